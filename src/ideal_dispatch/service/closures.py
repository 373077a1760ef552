"""Closed roads: drawn by the centre, laid on the network that this worker has."""

# ruff: noqa: A002 - as the API names an id

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.closing import closed_edges
from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.deciding.assets import Closed
from ideal_dispatch.service.errors import ClosesTooMuchError
from ideal_dispatch.service.record.database import Transaction
from ideal_dispatch.service.record.rows import ClosureRow, canonical
from ideal_dispatch.service.requests import MOST_CLOSED

log = logging.getLogger(__name__)

MOST = 200
"""Closures that are in force, or will be, at once."""

WHOLE_CITY = 0.2
"""The share of all edges above which a closure needs ``whole_city``."""


class ClosureLayer:
    """Which edges closures close in one worker's network, worked out once for each."""

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self.edges = lru_cache(2 * MOST)(self._edges_here)

    def draw(self, kind: str, drawn: Sequence[Any], whole_city: bool) -> tuple[int, ...]:
        """The edges that a new closure closes, or why it is refused."""
        edges = tuple(closed_edges(self._network, kind, drawn))
        if len(edges) > MOST_CLOSED:
            raise InputError(
                f"{kind}: it closes {len(edges):,} edges, at most {MOST_CLOSED:,} are possible; "
                "draw a smaller one, or several"
            )
        share = len(edges) / self._network.num_edges
        if share > WHOLE_CITY and not whole_city:
            raise ClosesTooMuchError(
                f"{kind}: it closes {100 * share:.0f} % of all roads; draw a smaller one, or send "
                '"whole_city": true',
            )
        return edges

    def _edges_here(self, row: ClosureRow) -> tuple[int, ...]:
        """The edges of a closure here; none where its roads are not known on this network."""
        shape = json.loads(row.shape)
        if shape["network"] == self._network.checksum:
            return tuple(shape["edges"])
        kind = "line" if shape["line"] else "polygon"
        if not shape[kind]:  # edges of another network say nothing here
            return ()
        try:
            return tuple(closed_edges(self._network, kind, shape[kind]))
        except IdealError as error:
            log.warning("closure %s closes nothing here: %s", row.id, error)
            return ()

    def laid(self, rows: Sequence[ClosureRow]) -> tuple[Closed, ...]:
        """Closures in force, for a decision."""
        return tuple(
            Closed(row.id, json.loads(row.shape)["reason"], edges)
            for row in rows if (edges := self.edges(row))
        )  # fmt: skip

    def plain(self, row: ClosureRow, now: int) -> dict[str, Any]:
        shape, edges = json.loads(row.shape), self.edges(row)
        return {
            "id": row.id, "from": _text(row.since), "until": _text(row.until),
            "reason": shape["reason"], "by": shape["by"], "at": _text(row.made_at),
            "edges": list(edges), "line": shape["line"], "polygon": shape["polygon"],
            "active": bool(edges) and row.active(now),
        }  # fmt: skip


def close(
    tx: Transaction, id: str, shape: Mapping[str, Any], since: int | None, until: int | None
) -> ClosureRow:
    """Close roads; the same closure again changes nothing."""
    known = tx.closures()
    same = next((row for row in known if row.id == id), None)
    if same is not None:
        return same
    if until is not None and until <= tx.now:
        late_s = (tx.now - until) / SECOND
        raise InputError(f"until: that moment passed {late_s:.0f} s ago; check it, or leave it out")
    if len(known) >= MOST:
        raise InputError(f"{MOST} closures are known; delete those that are not needed first")
    row = ClosureRow(id, canonical(shape), tx.now, since, until)
    tx.put(row)
    tx.log("closure", "", {"closed": id, "actor": shape["by"]})
    return row


def end(tx: Transaction, id: str, actor: str) -> bool:
    """Open roads again; whether they were closed."""
    row = next((row for row in tx.closures() if row.id == id), None)
    if row is None:
        return False
    tx.put(replace(row, ended_at=tx.now))
    tx.log("closure", "", {"ended": id, "actor": actor})
    return True


def _text(at: int | None) -> str | None:
    return None if at is None else moment_text(at)
