"""One worker of the service: everything that its requests share, started and stopped together."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import count
from typing import Any, Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ideal_dispatch import __version__
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.closures import ClosureLayer
from ideal_dispatch.service.decider import Admission, Decider, LateError
from ideal_dispatch.service.deciding.engine import Engine, no_advice
from ideal_dispatch.service.deciding.weather import WeatherPoll, weather_provider
from ideal_dispatch.service.dispatches import DispatchFollower
from ideal_dispatch.service.errors import ConflictError, RecordUnavailableError
from ideal_dispatch.service.events import EventStreams
from ideal_dispatch.service.recommending import Question, Recommender, new_id
from ideal_dispatch.service.record.audit import prune
from ideal_dispatch.service.record.database import Database, Job, State, Transaction, see_units
from ideal_dispatch.service.record.rows import digest
from ideal_dispatch.service.requests import CountIn, RecommendationRequest, UnitInList
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.unit_news import UnitReader, UpdateResult, report

log = logging.getLogger(__name__)

_SWITCH_S = 0.001  # a fifth of the usual: the event loop waits for the thread that decides
_RECORD_SHARE, _RECORD_S = 0.2, 0.4  # of a deadline, for recording that there was no decision
_SEND_SHARE = 0.03  # of a deadline, for sending the answer
_COVER_S = 5.0  # between looks at how far the next call is from help
_THREADS = 8  # that wait for the database

_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether advice can be given, and the state of every part in words."""

    status: Literal["starting", "ready", "degraded"]
    parts: dict[str, str]


@dataclass(frozen=True, slots=True)
class CityNow:
    """The city: ``depots`` with name, lon and lat, its extent, and the service's ``clock``.

    ``cover``: a free unit reaches half of all junctions within ``median_s``, nine of ten within
    ``p90_s``. ``units_known`` is whether any unit was ever reported.
    """

    name: str
    depots: list[dict[str, Any]]
    centre: list[float]
    bounds: list[float]
    time_zone: str
    simulated: bool
    clock: dict[str, Any]
    cover: dict[str, float | None] | None
    units_known: bool


class Metrics:
    """Counters and gauges in a registry of their own, so that tests do not share it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.decisions = counter("ideal_recommendations", "Answers by decision", ["decision"])
        self.remarks = counter("ideal_degraded", "Remarks given with answers", ["code"])
        self.refused = counter("ideal_refused", "Requests refused, by code", ["code"])
        self.repeated = counter("ideal_repeated", "Requests answered as before (same key)")
        self.replies = counter("ideal_replies", "Replies of dispatchers", ["action"])
        self.latency = Histogram(
            "ideal_latency_seconds", "From request to answer", buckets=_BUCKETS, registry=registry
        )
        self.waiting = gauge("ideal_calls_waiting", "Calls being answered or waiting")
        self.hung = counter("ideal_hung_decisions", "Decision threads that were given up")
        self.listeners = gauge("ideal_listeners", "Open streams of events")
        self.database_up = gauge("ideal_database_up", "1 if the database answers")


class Service:
    """One worker's parts; its state is in the database."""

    def __init__(self, settings: ServiceSettings, engine: Engine) -> None:
        self.settings, self.engine = settings, engine
        self.depots = engine.assets.depot_names
        self.road_map = cache(engine.road_map)
        self.metrics = Metrics()
        self._deadline_s = settings.server.deadline_s
        self.database = Database(settings.database_url, settings.clock, timeout_s=self._deadline_s)
        self.admission = Admission(1 + settings.server.queue, lambda: engine.ready)
        self.weather = WeatherPoll(
            weather_provider(settings), *engine.middle, settings.weather.stale_s
        )
        self.closures = ClosureLayer(engine.assets.network)
        self._reader = UnitReader(self.depots, settings.units.codes)
        versions = {
            "software": __version__, **engine.checksums, "configuration": settings.checksum,
        }  # fmt: skip
        shared = (self.database, engine, self.weather.known, self.closures.laid)
        self.recommender = Recommender(*shared, versions, settings.server.expiry_s)
        self._follower = DispatchFollower(*shared)
        self._decider = Decider(lambda _: self.metrics.hung.inc())
        self._threads = ThreadPoolExecutor(_THREADS, "database")
        self.events = EventStreams(self.read, self.closures, settings.units.position_stale_s)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = threading.Event()
        self._database_up = True
        self._published: Health | None = None
        self._units_known = False
        self._cover: dict[str, float | None] | None = None
        self._cover_until = 0.0
        self._simulated, self._numbers = (0, 1.0), count(1)
        self._simulating: asyncio.Task[None] | None = None

    # --- life ---------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin what runs in the background; the database may be away."""
        sys.setswitchinterval(_SWITCH_S)
        self.engine.start()
        threading.Thread(target=self._poll_weather, name="weather", daemon=True).start()
        for work, every_s in (
            (self.events.run, 1.0),
            (self._follow, 0.5),
            (self._watch, 1.0),
            (self._retain, 3600.0),
        ):
            self._tasks.append(asyncio.create_task(_forever(work, every_s)))
        await self._note("started")

    async def stop(self) -> None:
        """End the streams and what runs in the background."""
        self._stopped.set()
        self.events.close()
        self.simulate(0, 1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._note("stopped")
        self._decider.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.engine.assets.traffic.close()
        self.database.close()

    async def _note(self, event: str) -> None:
        with suppress(RecordUnavailableError):
            body = {"event": event, "version": __version__}
            await self.write(lambda tx: tx.log("service", "", body))

    # --- advice -------------------------------------------------------------------------

    async def recommend(
        self,
        request: RecommendationRequest,
        key: str | None,
        actor: str,
        began: float,
        simulated: bool = False,
    ) -> dict[str, Any]:
        """The answer to a request that ``began`` at a moment of :func:`time.monotonic`."""
        content = request.content()
        sum_ = digest(content)
        named = f"key:{key}" if key else f"body:{sum_}"
        question = Question(request, content, named, sum_, actor, simulated, new_id(), began)
        with self.admission.admit(actor):
            try:
                made = await self._decided(question)
            except ConflictError:
                raise
            except RecordUnavailableError as error:
                log.warning("call %s: %s", request.call_id, error)
                self._database_up = False
                words = "the database does not answer, so no advice can be recorded; ask again"
                made = self.recommender.unrecorded(question, "record_unavailable", words)
            except Exception as error:  # a surprise must not reach the caller as silence
                log.exception("call %s: unexpected", request.call_id)
                words = f"a fault of this program ({type(error).__name__}); it was logged"
                made = self.recommender.unrecorded(question, "internal_error", words)
        self.events.woken.set()
        if made["id"] != question.id:
            self.metrics.repeated.inc()
            return made
        seconds = time.monotonic() - began
        self.metrics.decisions.labels(made["decision"]).inc()
        self.metrics.latency.observe(seconds)
        codes = [code for one in made["degraded"] for code in (one["code"], *one["also"])]
        for code in codes:
            self.metrics.remarks.labels(code).inc()
        extra = {name: made[name] for name in ("call_id", "decision", "revision")}
        log.info("answered", extra={**extra, "ms": round(1000 * seconds, 1), "codes": codes})
        return made

    async def _decided(self, question: Question) -> dict[str, Any]:
        """The answer on record: a decision, or the refusal of one that would be late."""
        recommender, deadline_s = self.recommender, self._deadline_s
        until = question.began + deadline_s * (1.0 - _SEND_SHARE)
        decide_by = until - min(_RECORD_S, _RECORD_SHARE * deadline_s)
        try:
            return await self._decider.run(
                partial(recommender.answer, question, decide_by), Job(decide_by)
            )
        except LateError:
            words = f"no decision within the {deadline_s:g} s there are"
            late = no_advice(question.call, [("late", words)])
            return await self._database(
                lambda job: recommender.record(question, late, self._now(job), job), until
            )

    # --- units --------------------------------------------------------------------------

    async def update_units(
        self, news: Sequence[UnitInList | CountIn], actor: str
    ) -> dict[str, Any]:
        """Take reports, all of them or none; what was older than what is known is ignored."""

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

    # --- dispatches ---------------------------------------------------------------------

    async def _follow(self) -> None:
        """Look at running dispatches that are due."""
        while self.engine.ready and await self._database(self._follower.look) > 0:
            self.events.woken.set()

    # --- the city -----------------------------------------------------------------------

    async def city(self) -> CityNow:
        """The city as it is now; where the database is away, as it was."""
        engine, clock = self.engine, self.settings.clock
        west, south, east, north = engine.bounds

        def look(state: State) -> Any:
            closed = [row for row in state.closures() if row.active(state.now)]
            return state.now, state.units(), self.closures.laid(closed)

        now = clock.at(time.time_ns() // 1000)
        with suppress(RecordUnavailableError):
            now, units, closed = await self.read(look)
            self._units_known = bool(units)
            if time.monotonic() > self._cover_until:
                self._cover_until = time.monotonic() + _COVER_S
                free = [unit for unit in units if unit.free and not unit.promised(now)]
                self._cover = await asyncio.to_thread(engine.cover, free, closed, now)
        depots = [{"name": k, "lon": lon, "lat": lat} for k, (lon, lat) in engine.depots.items()]
        centre = [round((west + east) / 2, 6), round((south + north) / 2, 6)]
        return CityNow(
            engine.assets.name, depots, centre, engine.bounds, engine.assets.calendar.time_zone,
            self.settings.demo,
            {"now": moment_text(now), "speed": clock.speed}, self._cover, self._units_known,
        )  # fmt: skip

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
            self.events.woken.set()
        return {"now": moment_text(now), "speed": self.settings.clock.speed}

    # --- invented calls -----------------------------------------------------------------

    def simulate(self, calls: int, every_s: float) -> None:
        """Ask about so many invented calls from now on, in place of those still to come."""
        if self._simulating is not None:
            self._simulating.cancel()
        self._simulated = calls, every_s
        self._simulating = asyncio.create_task(self._simulate()) if calls else None

    def simulation(self) -> dict[str, Any]:
        left, every_s = self._simulated
        return {"running": left > 0, "left": left, "every_s": every_s}

    async def _simulate(self) -> None:
        left, every_s = self._simulated
        while left:
            with suppress(IdealError):  # such as a database that is away, or no place: asked again
                invented = self.engine.invented_call(
                    next(self._numbers), await self._database(self._now)
                )
                request = RecommendationRequest.model_validate(invented)
                await self.recommend(request, None, "simulation", time.monotonic(), simulated=True)
                left -= 1
                self._simulated = left, every_s
            await asyncio.sleep(every_s)

    # --- how it is ----------------------------------------------------------------------

    def health(self) -> Health:
        parts = {
            "decisions": "ready" if self.engine.ready else "starting",
            "database": "ready" if self._database_up else "does not answer",
            "traffic": self.engine.assets.traffic.status,
            "weather": "answers say why" if self.weather.problem else "ready",
        }
        if not self.engine.ready:
            return Health("starting", parts)
        return Health("ready" if {*parts.values()} == {"ready"} else "degraded", parts)

    def measure(self) -> bytes:
        self.metrics.waiting.set(self.admission.inside)
        self.metrics.listeners.set(len(self.events.streams))
        self.metrics.database_up.set(self._database_up)
        return generate_latest(self.metrics.registry)

    async def _watch(self) -> None:
        """Ask the database how it is, and let the desks know of changes of health."""
        try:
            await self._database(self._now)
            self._database_up = True
        except RecordUnavailableError:
            self._database_up = False
        if (health := self.health()) != self._published:
            self._published = health
            self.events.publish("health", asdict(health))

    def _poll_weather(self) -> None:
        """In a thread of its own, for a provider may hang; ``refresh`` logs what goes wrong."""
        while True:
            self.weather.refresh(self.settings.clock.at(time.time_ns() // 1000))
            if self._stopped.wait(self.settings.weather.every_s):
                return

    async def _retain(self) -> None:
        """Let go of rows older than the settings say."""
        if days := self.settings.audit.retention_days:
            await asyncio.to_thread(prune, self.database, days)

    # --- the database -------------------------------------------------------------------

    async def read(self, look: Callable[[State], _Found]) -> _Found:
        return await self._database(partial(self.database.read, look))

    async def write(self, change: Callable[[Transaction], _Found]) -> _Found:
        """What a change returns, once it is committed and logged."""
        found = await self._database(partial(self.database.change, change))
        self.events.woken.set()
        return found

    def _now(self, job: Job) -> int:
        return self.database.read(lambda state: state.now, job)

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


async def _forever(work: Callable[[], Coroutine[Any, Any, None]], every_s: float) -> None:
    """Do it again and again, whatever goes wrong."""
    while True:
        try:
            await work()
        except RecordUnavailableError as error:  # health says so, too
            log.debug("%s: %s", work.__name__, error)
        except Exception:
            log.exception("%s failed", work.__name__)
        await asyncio.sleep(every_s)
