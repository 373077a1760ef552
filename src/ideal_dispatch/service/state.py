"""The service at work: everything that requests share, started and stopped together."""

import asyncio
import logging
import math
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from prometheus_client import generate_latest

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service import clock, logs
from ideal_dispatch.service.admission import Admission
from ideal_dispatch.service.audit.fleet import concerned, fleet_body
from ideal_dispatch.service.audit.notices import Listener
from ideal_dispatch.service.audit.record import AuditError, Entry, Row, StoreError
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.units import DepotUnits, units_body
from ideal_dispatch.service.audit.writer import AuditWriter
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.closures import ClosureBoard
from ideal_dispatch.service.desk.events import Hub
from ideal_dispatch.service.dispatches import Dispatches
from ideal_dispatch.service.ledger import Ledger
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.polling import WeatherPoll, weather_provider
from ideal_dispatch.service.recommender import Recommender
from ideal_dispatch.service.recorded_answers import check_holds
from ideal_dispatch.service.repeated import Repeated
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.messages import Cover, RoadMap
from ideal_dispatch.service.solver.pool import SolverPool
from ideal_dispatch.service.tokens import Doorkeeper
from ideal_dispatch.service.units.unit import AHEAD, News, Unit
from ideal_dispatch.service.webhooks import Webhooks

log = logging.getLogger(__name__)

_SWITCH_S = 0.001  # a fifth of the usual: the event loop waits for the audit at each of its steps
_COVER_S, _COVER_WAIT_S = 5.0, 1.0
_FOLLOW_S, _PLACES_S, _RETAIN_S = 1.0, 0.5, 3600.0
_REST_S = 0.25  # between two looks at what others wrote, however many notices there are
_FOLLOWED = 200  # rows at a look


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
        self.closures: ClosureBoard
        self.recommender: Recommender
        self.dispatches: Dispatches
        self._tasks: list[asyncio.Task[None]] = []
        self._map_lock, self._map = asyncio.Lock(), RoadMap("", b"", b"")
        self._told_units: list[dict[str, Any]] = []  # to the desks, last
        self._cover: dict[str, float | None] | None = None
        self._cover_until = 0.0
        self._told_fleet: dict[str, dict[str, Any]] = {}
        self._unwritten: set[str] = set()  # units that were seen here since places were written
        self._repeated: set[str] = set()  # units whose status was last told here as it was known
        self._polling = Repeated("weather", settings.weather.every_s, self.weather.refresh)
        self.webhooks = Webhooks(settings, self.observations)
        self._listener: Listener
        self._news = asyncio.Event()  # others may have written something

    async def start(self) -> None:
        """Open the audit and begin everything that runs in the background."""
        sys.setswitchinterval(_SWITCH_S)
        store = AuditStore(self.settings.database_url)
        spool = Spool(self.settings.file(self.settings.audit.spool))
        self.ledger = Ledger(store, AuditWriter(store, spool))
        self.closures = ClosureBoard(self.solver, self.ledger, self.hub)
        self.recommender = Recommender(
            self.settings, self.admission, self.solver, self.weather, self.ledger, self.hub,
            self.observations,
        )  # fmt: skip
        self.dispatches = Dispatches(
            self.ledger, self.solver, self.weather, self.hub, lambda: self.recommender.versions
        )
        await self.ledger.read_spooled_units()
        self.solver.start()
        self._polling.start()
        self.webhooks.start()
        loop = asyncio.get_running_loop()
        self._listener = Listener(
            self.settings.database_url, lambda: loop.call_soon_threadsafe(self._news.set)
        )  # fmt: skip
        self._listener.start()
        self.run(self._follow())
        self.run(self._exchange_places())
        self.run(self.dispatches.run())
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
        await asyncio.gather(*map(asyncio.to_thread, (self._listener.stop, self.webhooks.stop)))
        self.solver.close()
        await asyncio.to_thread(self.ledger.close)

    def _note(self, what: str) -> None:
        """That the service began or ended is on record too."""
        body = {"event": what, "versions": self.recommender.versions}
        try:
            self.ledger.writer.submit(Entry("service", "", body, at=clock.now()), 2.0)
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
        now = clock.now()
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
        entry = Entry("units", "", body, at=clock.now())
        await self.ledger.write(entry)
        self.hub.publish("units", self.units(), entry.id)

    async def tell_fleet(self, news: Sequence[News], actor: str) -> list[str]:
        """Take news of units; the ids of those whose news were older than what is known.

        What units do goes on record before it is known. Where they are is known at once here, and
        to the other workers with the next writing of places.
        """
        known = self.ledger.units
        changed, work, old = known.news(news)
        if self._repeated & {unit.id for unit in work}:
            with suppress(StoreError):  # the database is down: what is known here counts
                await self._read_fleet()
                changed, work, old = known.news(news)
        if work:
            body = {**fleet_body(work), "actor": actor}
            await self.ledger.write(Entry("unit", "", body, at=clock.now()))
        fleet = known.fleet
        self._repeated |= {
            one.id for one in changed
            if one.id in fleet and one.status_at != fleet[one.id].status_at
        }  # fmt: skip
        self._repeated -= {unit.id for unit in work}
        known.merge_fleet(changed)
        self._unwritten |= {unit.id for unit in changed}
        self.dispatches.news({unit.id for unit in work})
        return old

    async def remove_unit(self, unit_id: str, actor: str) -> bool:
        """Let a unit go that is no longer of the fleet; whether it was."""
        if (unit := self.ledger.units.fleet.get(unit_id)) is None:
            return False
        now, since = clock.now(), unit.since
        with suppress(StoreError):  # another worker may have heard more
            recorded = await self._read_fleet()
            since = max([since, *(one.since for one in recorded if one.id == unit_id)])
        began = since + timedelta(milliseconds=1)  # on another clock, a little ahead
        at = began if now < began <= now + AHEAD else now
        body = {**fleet_body([], [unit_id]), "actor": actor}
        await self.ledger.write(Entry("unit", "", body, at=at))
        return True

    async def cover(self) -> dict[str, float | None] | None:
        """How far the next call is from a free unit, looked at anew every few seconds."""
        if not self.ledger.units.fleet:
            return None
        if time.monotonic() >= self._cover_until:
            self._cover_until = time.monotonic() + _COVER_S
            known = self.ledger.units.known("", listed=False).fleet or ()
            free = [one for one in known if one.free and not one.promised]
            closed = self.ledger.closed(self.solver.facts.checksums["network"])
            with suppress(IdealError, TimeoutError):
                async with asyncio.timeout(_COVER_WAIT_S):
                    found: Cover | None = await self.solver.ask("cover", free, closed)
                self._cover = None if found is None else asdict(found)
        return self._cover

    def fleet(self) -> list[dict[str, Any]]:
        """Every unit, as last told."""
        return self.ledger.units.fleet_rows(self.settings.units.position_stale_s)

    def units(self) -> list[dict[str, Any]]:
        """Free units of every depot, as last told, and which are promised."""
        return self.ledger.units.rows(self.solver.facts.depots, self.settings.units.default)

    async def _exchange_places(self) -> None:
        """Write where units were seen here, and read where others saw them."""
        while True:
            await asyncio.sleep(_PLACES_S)
            known, unwritten = self.ledger.units, self._unwritten
            self._unwritten = set()
            seen = [known.fleet[one] for one in unwritten if one in known.fleet]
            try:
                if seen:
                    await self.ledger.ask(partial(AuditStore.write_places, seen=seen))
                if known.fleet:
                    known.merge_places(await self._read_fleet())
                self._tell_fleet()
            except StoreError as error:
                self._unwritten |= unwritten
                log.debug("places not exchanged: %s", error)
            except Exception:  # what makes no sense must not end the exchange
                log.exception("places not exchanged")

    async def _read_fleet(self) -> list[Unit]:
        """The units on record.

        Another worker may have put a change of a unit on record of which this one had not heard
        when it took later news for a repetition: these go on record now.
        """
        units, waits = self.ledger.units, len(self.ledger.writer.spool)
        told = dict(units.fleet)  # what is told from now on goes on record by itself
        recorded = await self.ledger.ask(AuditStore.read_fleet)
        for unit in [] if waits else units.later(recorded, told):
            body = {**fleet_body([unit]), "actor": unit.source}
            await self.ledger.write(Entry("unit", "", body, at=clock.now()))
            units.merge_fleet([unit])
        return recorded

    def _tell_fleet(self) -> None:
        """Let the desks know the units that changed since they were told."""
        if not self.hub.listeners:  # whoever comes asks for all of them first
            self._told_fleet = {}
            return
        known = {row["id"]: row for row in self.fleet()}
        for row in known.values():
            del row["age_s"]  # it changes without news
        news = [row for row in known.values() if self._told_fleet.get(row["id"]) != row]
        news += [{"id": one, "gone": True} for one in self._told_fleet if one not in known]
        if news:
            self.hub.publish("fleet", news)
        self._told_fleet = known

    # --- news for the desks, of this worker and of others ---------------------------

    async def _follow(self) -> None:
        """Pass on what other workers wrote, and changes of this one's health, to the desks here."""
        ledger, begun, health = self.ledger, False, ""
        while True:
            try:
                if not begun:
                    last = await ledger.ask(AuditStore.last_number)  # so that no news falls between
                    await ledger.read_units()
                    await ledger.read_closures()
                    ledger.followed, begun = last, True
                    try:
                        await self.dispatches.read()
                    except StoreError as error:  # what comes is followed all the same
                        log.warning("dispatches of before are not known here: %s", error)
                rows = await ledger.ask(lambda store: store.rows(ledger.followed, _FOLLOWED))
                for row in rows:
                    ledger.followed = row.number
                    try:
                        self._pass_on(row)
                    except Exception:  # one that makes no sense must not hide the others
                        log.exception("row %d is not followed", row.number)
                if rows:
                    self.webhooks.wake()
                if len(rows) == _FOLLOWED:
                    self._news.set()
            except StoreError as error:
                log.debug("not followed: %s", error)
            except Exception:
                log.exception("not followed")
            try:
                ledger.units.promises.forget(clock.now())
                self._tell_units()
                await self.closures.follow()
            except Exception:  # the stream goes on
                log.exception("not told")
            status, parts = self.health()
            if (seen := f"{status} {parts}") != health:
                self.hub.publish("health", {"status": status, "parts": parts})
                health = seen
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        """Until PostgreSQL says that something was written, and no longer than a second."""
        await asyncio.sleep(_REST_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_FOLLOW_S - _REST_S):
                await self._news.wait()
        self._news.clear()

    def _pass_on(self, row: Row) -> None:
        if row.duplicate_of is None:
            self.dispatches.take(row.entry, row.number)
        if row.kind in ("units", "unit"):  # in their order, this worker's own too: all end alike
            self.ledger.units.follow(row.entry)
            if row.kind == "units":  # before what comes after it; units change far more often
                self._tell_units()
            else:
                self.dispatches.news(concerned([row.entry]))
        elif row.kind == "closure":
            self.ledger.closures.take(row.entry)
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
                await self.ledger.ask(lambda store: store.prune(clock.now() - kept), 600.0)
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
        if (webhooks := self.webhooks.health) is not None:
            parts["webhooks"] = webhooks
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
        seen.listening.set(self._listener.listening)
        seen.weather_age.set(math.nan if weather.age_s is None else weather.age_s)
        return generate_latest(seen.registry)
