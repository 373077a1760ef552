"""The service at work: everything that requests share, started and stopped together."""

import asyncio
import logging
import math
import sys
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import generate_latest

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import logs
from ideal_dispatch.service.admission import Admission
from ideal_dispatch.service.audit.record import AuditError, Entry, Row, StoreError, moment_text
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.units import DepotUnits, units_body
from ideal_dispatch.service.audit.writer import AuditWriter
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.ledger import Ledger
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.polling import WeatherPoll, weather_provider
from ideal_dispatch.service.recommender import Recommender
from ideal_dispatch.service.recorded_answers import check_holds
from ideal_dispatch.service.repeated import Repeated
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.messages import RoadMap
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.tokens import Doorkeeper

log = logging.getLogger(__name__)

_SWITCH_S = 0.001  # a fifth of the usual: the event loop waits for the audit at each of its steps
_FOLLOW_S, _RETAIN_S = 1.0, 3600.0


class Service:
    """One worker's state."""

    def __init__(self, settings: ServiceSettings, solver: SolverPool) -> None:
        self.settings, self.solver = settings, solver
        self.observations, self.hub = Observations(), Hub()
        self.doorkeeper = Doorkeeper(settings.tokens)
        slots = settings.server.solvers + settings.server.queue
        self.admission = Admission(slots, lambda: solver.working > 0)
        self.weather = WeatherPoll(
            weather_provider(settings), *solver.facts.middle, settings.weather.stale_s
        )
        self.ledger: Ledger
        self.recommender: Recommender
        self._tasks: list[asyncio.Task[None]] = []
        self._map_lock, self._map = asyncio.Lock(), RoadMap("", b"", b"")
        self._told_units: list[dict[str, Any]] = []  # to the desks, last
        self._polling = Repeated("weather", settings.weather.every_s, self.weather.refresh)

    async def start(self) -> None:
        """Open the audit and begin everything that runs in the background."""
        sys.setswitchinterval(_SWITCH_S)
        store = AuditStore(self.settings.database_url)
        spool = Spool(self.settings.file(self.settings.audit.spool))
        self.ledger = Ledger(store, AuditWriter(store, spool))
        self.recommender = Recommender(
            self.settings, self.admission, self.solver, self.weather, self.ledger, self.hub,
            self.observations,
        )  # fmt: skip
        await self.ledger.read_spooled_units()
        self.solver.start()
        self._polling.start()
        self.run(self._follow())
        if self.settings.audit.retention_days:
            self.run(self._retain())
        self._note("started")

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this in the background until the service stops."""
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> None:
        """End the streams and write what waits."""
        self.hub.close()
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                log.error("a task in the background had failed", exc_info=ended)
        self._note("stopped")
        self._polling.stop(0.1)
        self.solver.close()
        await asyncio.to_thread(self.ledger.close)

    def _note(self, what: str) -> None:
        """That the service began or ended is on record too."""
        body = {"event": what, "versions": self.recommender.versions}
        try:
            self.ledger.writer.submit(Entry("service", "", body, at=datetime.now(UTC)), 2.0)
        except IdealError as error:
            log.warning("%s: %s", what, error)

    # --- what the solver knows beside advice ---------------------------------------

    async def road_map(self) -> RoadMap:
        """The roads of the city, made once."""
        async with self._map_lock:
            if self._map.checksum != self.solver.facts.checksums["network"]:
                self._map = await self.solver.ask("road_map")
            return self._map

    # --- people and units -------------------------------------------------------

    async def respond(
        self, advice_id: str, reply: Mapping[str, Any], actor: str
    ) -> dict[str, Any] | None:
        """The recommendation with what a dispatcher did with it; None where there is none."""
        found = await self.ledger.get(advice_id)
        if found is None:
            return None
        logs.call_id.set(found["call_id"])
        said = {**reply, "by": actor}
        before = found["response"]
        if before is not None and {k: v for k, v in before.items() if k != "at"} == said:
            return found  # told twice
        now = datetime.now(UTC)
        earlier = await self.ledger.earlier(found["call_id"])
        check_holds(found, (one.answer for one in earlier.answers), now)
        said["at"] = moment_text(now)
        body = {"recommendation_id": advice_id, "response": said, "actor": actor}
        entry = Entry("response", found["call_id"], body, at=now)
        await self.ledger.write(entry)
        self.observations.replies.labels(said["action"]).inc()
        log.info("response", extra={"decision": said["action"], "actor": actor})
        self._tell_reply(entry)
        return {**found, "response": said}

    async def set_units(self, told: Sequence[DepotUnits], actor: str) -> None:
        """Take new counts of free units, all of them or none."""
        body = {**units_body(told), "actor": actor}
        entry = Entry("units", "", body, at=datetime.now(UTC))
        await self.ledger.write(entry)
        self.hub.publish("units", self.units(), entry.id)

    def units(self) -> list[dict[str, Any]]:
        """Free units of every depot, as last told, and which are promised."""
        return self.ledger.units.rows(self.solver.facts.depots, self.settings.units.default)

    # --- news for the desks, of this worker and of others ---------------------------

    async def _follow(self) -> None:
        """Pass on what other workers wrote, and changes of this one's health, to the desks here."""
        ledger, begun, health = self.ledger, False, ""
        while True:
            try:
                if not begun:
                    last = await ledger.ask(AuditStore.last_number)  # so that no news falls between
                    await ledger.read_units()
                    ledger.followed, begun = last, True
                for row in await ledger.ask(lambda store: store.rows(ledger.followed, 200)):
                    ledger.followed = row.number
                    self._pass_on(row)
            except StoreError as error:
                log.debug("not followed: %s", error)
            except Exception:  # a row that makes no sense must not end the stream
                log.exception("not followed")
            ledger.units.promises.forget(datetime.now(UTC))
            self._tell_units()
            status, parts = self.health()
            if (seen := f"{status} {parts}") != health:
                self.hub.publish("health", {"status": status, "parts": parts})
                health = seen
            await asyncio.sleep(_FOLLOW_S)

    def _pass_on(self, row: Row) -> None:
        if row.kind == "units":  # in their order, this worker's own too: all end with the same
            self.ledger.units.follow(row.entry)
            self._tell_units()
        elif not (self.hub.knows(row.id) or row.duplicate_of is not None or row.kind == "service"):
            entry = row.entry
            self.ledger.units.take(entry)
            if entry.kind == "recommendation":
                self.hub.publish(entry.kind, {**entry.body["answer"], "response": None}, entry.id)
            elif entry.kind == "response":
                self._tell_reply(entry)

    def _tell_reply(self, entry: Entry) -> None:
        """Let the desks know what a dispatcher did."""
        data = {
            "recommendation_id": entry.body["recommendation_id"],
            "call_id": entry.call_id,
            "response": entry.body["response"],
        }
        self.hub.publish("response", data, entry.id)

    def _tell_units(self) -> None:
        """Let the desks know counts and promises, unless they do."""
        known = self.units()
        if known != self._told_units:
            self.hub.publish("units", known)
        self._told_units = known

    async def _retain(self) -> None:
        """Let go of rows older than the settings say, now and then."""
        kept = timedelta(days=self.settings.audit.retention_days)
        while True:
            try:
                await self.ledger.ask(lambda store: store.prune(datetime.now(UTC) - kept), 600.0)
            except AuditError as error:
                log.warning("nothing pruned: %s", error)
            await asyncio.sleep(_RETAIN_S)

    # --- how it is --------------------------------------------------------------

    def health(self) -> tuple[str, dict[str, str]]:
        """Whether advice can be given now, and the state of every part, in words for anybody."""
        store_up, waiting = self.ledger.writer.error is None, len(self.ledger.writer.spool)
        weather = self.weather.known()
        parts = {
            "solver": "ready" if self.solver.working else "starting",
            "traffic": self.solver.traffic,
            "weather": "not up to date, answers say why" if weather.problem else "ready",
            "audit": "ready",
        }
        if waiting or not store_up:
            parts["audit"] = f"{'replaying' if store_up else 'spooling'} ({waiting} waiting)"
        if not self.solver.working:
            return "starting", parts
        return "ready" if all(one == "ready" for one in parts.values()) else "degraded", parts

    def measure(self) -> bytes:
        """The page of metrics."""
        seen, writer, weather = self.observations, self.ledger.writer, self.weather.known()
        seen.inside.set(self.admission.inside)
        seen.solvers.set(self.solver.working)
        seen.solver_restarts.set(self.solver.restarts)
        seen.listeners.set(self.hub.listeners)
        seen.spooled.set(len(writer.spool))
        seen.store_up.set(writer.error is None)
        seen.weather_age.set(math.nan if weather.age_s is None else weather.age_s)
        return generate_latest(seen.registry)
