"""One worker of the service: everything that its requests share, started and stopped together."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from ideal_dispatch import __version__
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service import closures
from ideal_dispatch.service.admission import Admission, BusyError, StartingError
from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.closures import ClosureLayer
from ideal_dispatch.service.decider import Decider, LateError
from ideal_dispatch.service.deciding.engine import Engine
from ideal_dispatch.service.deciding.weather import WeatherPoll, weather_provider
from ideal_dispatch.service.dispatches import DispatchFollower
from ideal_dispatch.service.errors import ConflictError, RecordUnavailableError
from ideal_dispatch.service.events import EventStreams
from ideal_dispatch.service.messages import CityFacts, RoadMap
from ideal_dispatch.service.metrics import Metrics
from ideal_dispatch.service.recommending import Question, Recommender, new_id
from ideal_dispatch.service.record.audit import prune
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import digest
from ideal_dispatch.service.record.transaction import State, Transaction, see_units
from ideal_dispatch.service.requests import CountIn, RecommendationRequest, UnitInList
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.unit_news import UnitReader, UpdateResult, report

log = logging.getLogger(__name__)

_SWITCH_S = 0.001  # a fifth of the usual: the event loop waits for the thread that decides
_RECORD_SHARE, _RECORD_S = 0.2, 0.4  # of a deadline, for recording that there was no decision
_SEND_SHARE = 0.03  # of a deadline, for sending the answer
_FOLLOW_S, _HEALTH_S, _COVER_S, _RETAIN_S = 0.5, 1.0, 5.0, 3600.0
_THREADS = 8  # that wait for the database
SIMULATION = "simulation"

_Found = TypeVar("_Found")


class Service:
    """One worker's parts; its state is in the database."""

    def __init__(self, settings: ServiceSettings, engine: Engine) -> None:
        self.settings, self.engine = settings, engine
        self.metrics = Metrics()
        self._deadline_s = settings.server.deadline_s
        self.database = Database(settings.database_url, settings.clock, timeout_s=self._deadline_s)
        self.admission = Admission(1 + settings.server.queue, lambda: engine.ready)
        self.weather = WeatherPoll(
            weather_provider(settings), *self.facts.middle, settings.weather.stale_s
        )
        self._layer = ClosureLayer(engine.city)
        self.depots = engine.city.depot_names
        self._reader = UnitReader(self.depots, settings.units.codes)
        versions = {
            "software": __version__, **self.facts.checksums, "configuration": settings.checksum,
        }  # fmt: skip
        shared = (self.database, engine, self.weather.known, self._layer.laid)
        self.recommender = Recommender(*shared, versions, settings.server.expiry_s)
        self._follower = DispatchFollower(*shared)
        self._decider = Decider(lambda _: self.metrics.hung.inc())
        self._threads = ThreadPoolExecutor(_THREADS, "database")
        self._events = EventStreams(self.read, self._layer, settings.units.position_stale_s)
        self._answering: dict[tuple[str, str, str], asyncio.Task[dict[str, Any]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._database_up = True
        self._units_known = False
        self._cover: tuple[float, dict[str, float | None] | None] = (0.0, None)
        self._map: RoadMap | None = None
        self._simulated = (0, 1.0)
        self._simulate_now = asyncio.Event()

    @property
    def facts(self) -> CityFacts:
        return self.engine.city.facts

    # --- life ---------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin what runs in the background; the database may be away."""
        sys.setswitchinterval(_SWITCH_S)
        self.engine.start()
        self._in_thread("weather", self.settings.weather.every_s, self._poll_weather)
        for work in (self._events.run, self._follow, self._watch, self._simulate):
            self._tasks.append(asyncio.create_task(_forever(work)))
        if self.settings.audit.retention_days:
            self._tasks.append(asyncio.create_task(_forever(self._retain)))
        with suppress(RecordUnavailableError):
            await self.write(partial(_note, what="started"))

    async def stop(self) -> None:
        """End the streams and what runs in the background."""
        self._events.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(RecordUnavailableError):
            await self.write(partial(_note, what="stopped"))
        self._decider.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.engine.close()
        self.database.close()

    # --- advice -------------------------------------------------------------------------

    async def recommend(
        self,
        request: RecommendationRequest,
        key: str | None,
        actor: str,
        began: float | None = None,
        simulated: bool = False,
    ) -> dict[str, Any]:
        """The answer to a request, within the deadline: advice, or why there is none.

        It ``began`` at a moment of :func:`time.monotonic`. The same request, sent again while it
        is being answered, gets the same answer.
        """
        content = request.content()
        sum_ = digest(content)
        named = f"key:{key}" if key else f"body:{sum_}"
        same = (request.call_id, named, sum_)
        running = self._answering.get(same)
        if running is None:
            began = time.monotonic() if began is None else began
            question = Question(
                request.call(), content, named, sum_, actor, simulated, new_id(), began
            )
            running = asyncio.create_task(self._answer(question))
            self._answering[same] = running
            running.add_done_callback(lambda _: self._answering.pop(same, None))
        return await asyncio.shield(running)

    async def _answer(self, question: Question) -> dict[str, Any]:
        with self.admission.admit(question.actor):
            made = await self._made(question)
        self._events.wake()
        if made["id"] == question.id:
            self._observe(made, time.monotonic() - question.began)
        else:
            self.metrics.repeated.inc()
        return made

    async def _made(self, question: Question) -> dict[str, Any]:
        recommender, deadline_s = self.recommender, self._deadline_s
        until = question.began + deadline_s * (1.0 - _SEND_SHARE)
        decide_by = until - min(_RECORD_S, _RECORD_SHARE * deadline_s)
        job = Job(decide_by)
        try:
            try:
                return await self._decider.run(
                    partial(recommender.answer, question, decide_by), job
                )
            except LateError:
                words = f"no decision within the {deadline_s:g} s there are"
                late = recommender.refusal(question, "late", words)
                return await self._database(
                    lambda job: recommender.record(question, late, self._now(job), job), until
                )
        except (ConflictError, InputError):
            raise
        except RecordUnavailableError as error:
            log.warning("call %s: %s", question.call.call_id, error)
            self._database_up = False
            words = "the database does not answer, so no advice can be recorded; ask again"
            code = "record_unavailable"
        except Exception as error:  # a surprise must not reach the caller as silence
            log.exception("call %s: unexpected", question.call.call_id)
            words = f"a fault of this program ({type(error).__name__}); it was logged"
            code = "internal_error"
        return recommender.unrecorded(question, recommender.refusal(question, code, words))

    def _now(self, job: Job) -> int:
        """The service's moment."""
        return self.database.read(lambda state: state.now, job)

    def _observe(self, made: Mapping[str, Any], seconds: float) -> None:
        self.metrics.decisions.labels(made["decision"]).inc()
        self.metrics.latency.observe(seconds)
        codes = [code for one in made["degraded"] for code in (one["code"], *one["also"])]
        for code in codes:
            self.metrics.remarks.labels(code).inc()
        extra = {name: made[name] for name in ("call_id", "decision", "revision")}
        log.info("answered", extra={**extra, "ms": round(1000 * seconds, 1), "codes": codes})

    # --- units --------------------------------------------------------------------------

    async def update_units(
        self, news: Sequence[UnitInList | CountIn], actor: str
    ) -> dict[str, Any]:
        """Take reports, all of them or none; what was older than what is known is ignored.

        What units do goes on record; where they are is written beside it, in bulk.
        """

        def update(state: State) -> tuple[UpdateResult, bool]:
            before = {unit.id: unit for unit in state.units()}
            result = self._reader.update(before, news, state.now)
            return result, bool(result.changed(before) or result.gone)

        result, changes = await self.read(update)
        if changes:
            result = await self.write(partial(report, reader=self._reader, news=news, actor=actor))
        if result.after:
            seen = partial(see_units, units=result.after.values())
            await self._database(partial(self.database.touch, seen))
        ignored = result.ignored
        return {"taken": len(news) - len({one["id"] for one in ignored}), "ignored": ignored}

    # --- closures -----------------------------------------------------------------------

    async def closures(self) -> list[dict[str, Any]]:
        """Closures that are in force or will be, the oldest first."""
        return await self.read(
            lambda state: [self._layer.plain(row, state.now) for row in state.closures()]
        )

    async def close(
        self,
        kind: str,
        drawn: Sequence[Any],
        actor: str,
        *,
        since: int | None = None,
        until: int | None = None,
        reason: str = "",
        whole_city: bool = False,
    ) -> dict[str, Any]:
        """Close what edges, a line or a polygon name."""
        edges = await asyncio.to_thread(self._layer.draw, kind, drawn, whole_city)
        id_, network = new_id(), self.facts.checksums["network"]
        shape = {
            "line": drawn if kind == "line" else None,
            "polygon": drawn if kind == "polygon" else None,
            "edges": list(edges), "network": network, "reason": reason, "by": actor,
        }  # fmt: skip

        def change(tx: Transaction) -> dict[str, Any]:
            row = closures.close(tx, id_, shape, since, until)
            return self._layer.plain(row, tx.now)

        return await self.write(change)

    async def end_closure(self, id: str, actor: str) -> bool:  # noqa: A002
        """Open it again; whether there was one."""
        return await self.write(lambda tx: closures.end(tx, id, actor))

    # --- dispatches and events ----------------------------------------------------------

    def events(self, after: int | None) -> AsyncIterator[bytes]:
        """Rows of the log after a number, as server-sent events."""
        return self._events.listen(after)

    @property
    def events_full(self) -> bool:
        """Whether another stream would be too many."""
        return self._events.full

    def end_events(self) -> None:
        """End all streams: a server that ends would wait for them."""
        self._events.close()

    async def _follow(self) -> None:
        """Look at running dispatches that are due."""
        while True:
            looked = 0
            if self.engine.ready:
                with suppress(RecordUnavailableError):
                    looked = await self._database(self._follower.look)
            if looked:
                self._events.wake()
            await asyncio.sleep(0.0 if looked else _FOLLOW_S)

    # --- the city -----------------------------------------------------------------------

    async def city(self) -> dict[str, Any]:
        """Name, depots, extent and clock."""
        facts = self.facts
        west, south, east, north = facts.bounds
        now = self.settings.clock.at(time.time_ns() // 1000)
        with suppress(RecordUnavailableError):
            now = await self._database(self._now)
            await self._look_at_cover()
        return {
            "name": facts.name,
            "depots": [
                {"name": name, "lon": lon, "lat": lat} for name, (lon, lat) in facts.depots.items()
            ],
            "centre": [round((west + east) / 2, 6), round((south + north) / 2, 6)],
            "bounds": [west, south, east, north],
            "time_zone": facts.time_zone,
            "simulated": self.settings.demo,
            "clock": {"now": moment_text(now), "speed": self.settings.clock.speed},
            "cover": self._cover[1],
            "units_known": self._units_known,
        }

    async def _look_at_cover(self) -> None:
        """How far the next call is from a free unit, every few seconds."""
        if time.monotonic() < self._cover[0]:
            return
        self._cover = (time.monotonic() + _COVER_S, self._cover[1])

        def look(state: State) -> Any:
            active = [row for row in state.closures() if row.active(state.now)]
            return state.now, state.units(), self._layer.laid(active)

        now, units, closed = await self.read(look)
        self._units_known = bool(units)
        free = [unit for unit in units if unit.free and not unit.promised(now)]
        found = await asyncio.to_thread(self.engine.city.cover, free, closed, now)
        self._cover = (self._cover[0], None if found is None else asdict(found))

    async def road_map(self) -> RoadMap:
        """The roads for a map, made once."""
        if self._map is None:
            self._map = await asyncio.to_thread(self.engine.city.road_map)
        return self._map

    async def model_card(self) -> str:
        """What the model is, learned from, and good for."""
        return await asyncio.to_thread(self.engine.city.model_card)

    async def step_clock(self, seconds: float, actor: str) -> dict[str, Any]:
        """Move a simulated clock on, for all workers."""
        if not self.settings.clock.simulated:
            raise InputError("this service runs by the time of day; its clock cannot be stepped")

        def change(tx: Transaction) -> int:
            tx.step(round(seconds * SECOND))
            tx.log("clock", "", {"step_s": seconds, "actor": actor})
            return tx.now

        now = await self.write(change)
        if await self._database(self._follower.look):  # a player steps on without waiting for it
            self._events.wake()
        return {"now": moment_text(now), "speed": self.settings.clock.speed}

    # --- invented calls -----------------------------------------------------------------

    def simulate(self, count: int, every_s: float) -> None:
        """Ask about so many invented calls from now on, in place of those still to come."""
        self._simulated = count, every_s
        self._simulate_now.set()

    def simulation(self) -> dict[str, Any]:
        """Invented calls still to come."""
        count, every_s = self._simulated
        return {"running": count > 0, "left": count, "every_s": every_s}

    async def _simulate(self) -> None:
        number = 0
        while True:
            count, every_s = self._simulated
            self._simulate_now.clear()
            if not count:
                await self._simulate_now.wait()
                continue
            with suppress(BusyError, StartingError, RecordUnavailableError):
                now = await self._database(self._now)
                number += 1
                invented = self.engine.city.invented_call(number, now)
                request = RecommendationRequest.model_validate(invented)
                await self.recommend(request, None, SIMULATION, simulated=True)
                if self._simulated[0]:
                    self._simulated = self._simulated[0] - 1, self._simulated[1]
            with suppress(TimeoutError):
                await asyncio.wait_for(self._simulate_now.wait(), every_s)

    # --- how it is ----------------------------------------------------------------------

    def health(self) -> tuple[str, dict[str, str]]:
        """Whether advice can be given now, and the state of every part in words."""
        parts = {
            "decisions": "ready" if self.engine.ready else "starting",
            "database": "ready" if self._database_up else "does not answer",
            "traffic": self.engine.traffic_status,
            "weather": "answers say why" if self.weather.problem else "ready",
        }
        if not self.engine.ready:
            return "starting", parts
        good = all(one == "ready" for one in parts.values())
        return "ready" if good else "degraded", parts

    def measure(self) -> bytes:
        """The page of metrics."""
        self.metrics.waiting.set(self.admission.inside)
        self.metrics.listeners.set(self._events.listeners)
        self.metrics.database_up.set(self._database_up)
        return self.metrics.page()

    async def _watch(self) -> None:
        """Ask the database how it is, and let the desks know of changes of health."""
        last = ""
        while True:
            try:
                await self._database(self._now)
                self._database_up = True
            except RecordUnavailableError:
                self._database_up = False
            status, parts = self.health()
            if str(parts) != last:
                last = str(parts)
                self._events.publish("health", {"status": status, "parts": parts})
            await asyncio.sleep(_HEALTH_S)

    def _poll_weather(self) -> None:
        self.weather.refresh(self.settings.clock.at(time.time_ns() // 1000))

    def _in_thread(self, name: str, every_s: float, work: Callable[[], None]) -> None:
        """Do something now and again in a thread that never waits for an event loop."""

        def run() -> None:
            while True:
                try:
                    work()
                except Exception:  # a poll that dies would go unnoticed
                    log.exception("%s failed", name)
                time.sleep(every_s)

        threading.Thread(target=run, name=name, daemon=True).start()

    async def _retain(self) -> None:
        """Let go of rows older than the settings say."""
        days = self.settings.audit.retention_days
        while True:
            with suppress(RecordUnavailableError):
                await asyncio.to_thread(prune, self.database, days)
            await asyncio.sleep(_RETAIN_S)

    # --- the database -------------------------------------------------------------------

    async def read(self, look: Callable[[State], _Found]) -> _Found:
        """What a look at the state finds."""
        return await self._database(partial(self.database.read, look))

    async def write(self, change: Callable[[Transaction], _Found]) -> _Found:
        """What a change returns, once it is committed and logged."""
        found = await self._database(partial(self.database.change, change))
        self._events.wake()
        return found

    async def _database(self, work: Callable[[Job], _Found], until: float | None = None) -> _Found:
        """Work on the database in a thread, within a deadline: also where its server is frozen."""
        job = Job(time.monotonic() + self._deadline_s if until is None else until)
        waiting = asyncio.get_running_loop().run_in_executor(self._threads, work, job)
        try:
            async with asyncio.timeout(max(job.left_s, 0.0)):
                return await asyncio.shield(waiting)
        except TimeoutError:
            job.give_up()
            waiting.add_done_callback(lambda one: one.cancelled() or one.exception())
            raise RecordUnavailableError("the database does not answer in time") from None


def _note(tx: Transaction, what: str) -> None:
    """That a worker began or ended is on record, too."""
    tx.log("service", "", {"event": what, "version": __version__})


async def _forever(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A task that a surprise does not end."""
    while True:
        try:
            await work()
        except IdealError as error:
            log.warning("%s: %s", work.__name__, error)
        except Exception:
            log.exception("%s failed", work.__name__)
        await asyncio.sleep(1.0)
