"""Closed roads of one worker: made, ended, and told to its desks."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.closures import Closure
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.ledger import Ledger
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.solver.process import SolverLostError

log = logging.getLogger(__name__)

MOST = 200
"""Closures that are in force, or will be, at once."""


class ClosureBoard:
    """What is closed, for people and desks; the ledger knows it for calls."""

    def __init__(self, solver: SolverPool, ledger: Ledger, hub: Hub) -> None:
        self._solver, self._ledger, self._hub = solver, ledger, hub
        self._told: list[dict[str, Any]] = []  # to the desks, last

    @property
    def _network(self) -> str:
        return self._solver.facts.checksums["network"]

    def rows(self) -> list[dict[str, Any]]:
        """Closures that are in force or will be."""
        return self._ledger.closures.rows(clock.now(), self._network)

    async def close(
        self,
        kind: str,
        drawn: Sequence[Any],
        actor: str,
        *,
        since: datetime | None,
        until: datetime | None,
        reason: str,
    ) -> dict[str, Any]:
        """Close what edges, a line or a polygon name; the closure, once it is on record."""
        now, network = clock.now(), self._network
        if until is not None and until <= now:
            raise InputError("until: that moment is over; check it, or leave it out")
        if len(self.rows()) >= MOST:
            raise InputError(f"{MOST} closures are known; delete those that are not needed first")
        edges = await self._solver.ask("closed_edges", kind, drawn)
        shape = {kind: drawn} if kind != "edges" else {}
        made = Closure(
            uuid4().hex, tuple(edges), network, actor, now, since, until, reason, **shape
        )
        body = {"closure": made.plain(), "actor": actor}
        await self._ledger.write(Entry("closure", "", body, at=now, id=made.id))
        self.tell()
        return made.row(clock.now(), network)

    async def end(self, closure_id: str, actor: str) -> bool:
        """Open it again; whether there was one."""
        if self._ledger.closures.get(closure_id) is None:
            return False
        body = {"ended": closure_id, "actor": actor}
        await self._ledger.write(Entry("closure", "", body, at=clock.now()))
        self.tell()
        return True

    def tell(self) -> None:
        """Let the desks know the closures, unless they do; some begin or end by the clock."""
        known = self.rows()
        if known != self._told:
            self._hub.publish("closures", known)
        self._told = known

    async def follow(self) -> None:
        """Do what is to be done now and then."""
        self._ledger.closures.forget(clock.now())
        await self._lay()
        self.tell()

    async def _lay(self) -> None:
        """Find the edges of what was drawn on another network: the files of a city change."""
        network = self._network
        for one in self._ledger.closures:
            drawn = one.line or one.polygon
            if one.network == network or drawn is None:
                continue
            try:
                kind = "line" if one.line else "polygon"
                edges = await self._solver.ask("closed_edges", kind, drawn)
            except SolverLostError:
                return  # later
            except IdealError as error:
                log.warning("closure %s closes nothing here: %s", one.id, error)
                edges = []
            self._ledger.closures.lay(one, edges, network)
