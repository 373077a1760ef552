"""Calls driven in the traffic of now, in real time: [IDEAL] appendix A with a live router.

The router is asked at every junction at the moment when it is reached, and what it says
of the next segment is what that segment takes. That is instantaneous traffic: what a road
really took, nobody can tell live.
"""

import os
import shutil
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.dispatch.policy_tables import FittedParts
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.experiment.engine import locked
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.outside_service import BudgetError, KeptBudget
from ideal_dispatch.replay.drive import Drive, World, driving
from ideal_dispatch.replay.experiment import Experiment, Live, PresentGround
from ideal_dispatch.replay.fitting import load_parts
from ideal_dispatch.replay.incidents import RecordedCalls, with_units_on_road
from ideal_dispatch.replay.log import dropped_text, line_text
from ideal_dispatch.replay.run import LOG, Report, merged
from ideal_dispatch.replay.run_folder import Manifest, settings
from ideal_dispatch.replay.simulation import DecidedCall, Replay
from ideal_dispatch.replay.study import LEFT_OUT, take_up, transferred_parts, write_start
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.present_traffic import PresentTraffic
from ideal_dispatch.traffic.routers import ROUTERS, connect_router, load_router, read_key
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

LIVE, REQUESTS = "live", "requests.count"
"""A live run's part of its folder, and the file that has a byte for every request."""

WORLD = World.INSTANTANEOUS

_THREADS = 64  # of questions to the router
_UNPLANNED = datetime.fromtimestamp(0, UTC)  # a call's own moment is when it is made


class LiveClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return utc_now()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, answers: Collection[Future[Any]], until: datetime | None) -> None:
        """Wait for an answer, or until a moment, whichever comes first."""
        left_s = None if until is None else max((until - self.now()).total_seconds(), 0.0)
        if answers:
            wait(answers, left_s, FIRST_COMPLETED)
        elif left_s:
            self.sleep(left_s)


@dataclass(frozen=True, slots=True)
class LiveSummary:
    """What a live run did.

    Of all calls so far ``driven`` are in the log, ``dropped`` could not be driven to their end,
    and ``undriven`` are left to the next start, where the run ``stopped`` for a reason.
    ``void`` calls were under way when an earlier start ended: they were driven anew, or are
    among the undriven. ``requests`` are those of all starts.
    """

    folder: Path
    driven: int
    dropped: Sequence[Mapping[str, str]]
    undriven: int
    void: int
    requests: int
    stopped: str


def run_live(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    most: int,
    *,
    clock: LiveClock | None = None,
    report: Report | None = None,
) -> LiveSummary:
    """Drive the experiment's calls with its live router, into ``folder/instantaneous/live``.

    A call is made every ``live.every_s``. All policies decide by the same quotes, and each
    distinct way is driven once, in real time, many at once. At most ``most`` requests are
    sent in all, over all starts: each is written down before it is sent. The same call
    continues an interrupted run: finished calls are kept, calls that were under way are
    void and made anew. Of a call that the router fails, no drive is kept.
    """
    if not experiment.live.kind:
        raise InputError(f"{experiment.path}: no [live] table; its kind names the router to ask")
    experiment = replace(experiment, worlds=(WORLD,))
    clock, place = clock or LiveClock(), Path(folder)
    with complaints_about(experiment.path):
        ground = experiment.present_ground()
        policies = experiment.policies_with(_parts(experiment, ground.network), ground)
        calls, recorded = _calls(experiment, ground)
    with locked(place), ExitStack() as open_:
        take_up(place, experiment, None)
        if recorded is not None and recorded.words:
            warnings.warn(f"{recorded.words}; {place / LEFT_OUT} has all", stacklevel=2)
            recorded.write_left_out(place / LEFT_OUT)
        budget = open_.enter_context(closing(KeptBudget(most, place / REQUESTS)))
        with complaints_about(experiment.path):
            sources = _sources(experiment, ground, budget, clock)
        for source in sources:
            open_.callback(getattr(source, "close", lambda: None))
        write_start(place, experiment, test=True)
        traffic = PresentTraffic(ground.network, ground.calendar, sources[0], budget, sources[-1])
        replay = Replay(
            traffic, ground.depots, policies, region=ground.region, seed=experiment.seed,
            worlds=(WORLD,),
        )  # fmt: skip
        part = place / WORLD / LIVE
        part.mkdir(parents=True, exist_ok=True)
        manifest = Manifest.open(part, settings(replay, calls))
        every_s = experiment.live.every_s
        return _Run(replay, traffic, calls, manifest, clock, every_s, report).finish(budget)


# --- what is needed -------------------------------------------------------------------


def _parts(experiment: Experiment, network: RoadNetwork) -> FittedParts:
    """What policies were fitted with: files of the live table, or those of another run."""
    live, folder = experiment.live, experiment.folder
    if experiment.transferred is not None:
        return load_parts(experiment, transferred_parts(experiment, WORLD))
    model = Model.load(folder / live.model) if live.model else None
    if model is not None:
        model.check(network)
    times = None
    if live.responses:
        drives = "" if model is None else model.checksum
        times = ResponseModel.load(folder / live.responses, drives)
    return FittedParts(
        model,
        times,
    )


def _calls(
    experiment: Experiment, ground: PresentGround
) -> tuple[tuple[Incident, ...], RecordedCalls | None]:
    """Names and places of the calls, in order; of a file the table too."""
    if experiment.calls.file:
        found = experiment.calls.recorded(ground, ground.calendar, experiment.folder)
        return found.incidents, found
    weights, count = ground.weights(experiment.calls), experiment.live.calls
    rng = np.random.default_rng([experiment.seed, 3])
    nodes = rng.choice(weights.size, count, p=weights / weights.sum())
    names = (f"live-{number:04d}" for number in range(1, count + 1))
    made = zip(names, nodes.tolist(), strict=True)
    calls = [Incident(name, node, _UNPLANNED) for name, node in made]
    on_road = experiment.calls.on_road, experiment.seed
    return with_units_on_road(calls, ground.network, *on_road), None


def _sources(
    experiment: Experiment, ground: PresentGround, budget: KeptBudget, clock: LiveClock
) -> list[TrafficSource]:
    """The router that is asked at the call, and where it is another one, that on the way."""
    live, folder, zone = experiment.live, experiment.folder, ground.calendar.time_zone
    key = read_key(folder / live.key_file) if live.key_file else ""
    if live.kind not in ROUTERS:
        offered = {"network": ground.network, "url": live.url, "key": key, "time_zone": zone,
                   "folder": folder, "budget": budget}  # fmt: skip
        return [load_router(live.kind, live.options, "live.kind", **offered)]
    return [
        connect_router(
            live.kind, ground.network, np.random.default_rng(experiment.seed), url=live.url,
            key=key, ranges=ranges, segment=live.segment, time_zone=zone, budget=budget,
            now=clock.now,
        )
        for ranges in _ranges(live)
    ]  # fmt: skip


def _ranges(live: Live) -> list[bool]:
    """Optimistic and pessimistic times are for decisions: on the way nobody pays for them."""
    return [True, False] if live.kind == "google" and live.ranges else [False]


# --- driving --------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Call:
    """A call that is under way: what was decided, and the drives that are finished."""

    number: int
    planned: Incident
    decided: DecidedCall | None = None
    drives: dict[str, Drive] = field(default_factory=dict)
    over: bool = False


@dataclass(slots=True, eq=False)
class _Step:
    """What is asked at a moment: the call as such where there is no ``key``, or a drive's next."""

    call: _Call
    ask: Callable[[], DecidedCall | datetime | Drive]
    key: str = ""


class _OnTheWay:
    """The router of the drives of one call, which repeats the quotes that were given at it."""

    def __init__(self, call: DecidedCall, traffic: PresentTraffic) -> None:
        quotes = (station.quote for station in call.situation.stations)
        self._known = {(q.path.origin, q.asked_at): q for q in quotes if q is not None}
        self._driver = traffic.driver
        for name in ("router_times", "way_on"):
            if hasattr(self._driver, name):
                setattr(self, name, getattr(self._driver, name))

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        known = self._known.get((origin, at))
        if known is not None and known.path.destination == destination:
            return known
        return self._driver.quote(origin, destination, at)


class _Run:
    """All calls of a run, from the first that is not finished to the last."""

    def __init__(
        self,
        replay: Replay,
        traffic: PresentTraffic,
        calls: Sequence[Incident],
        manifest: Manifest,
        clock: LiveClock,
        every_s: float,
        report: Report | None,
    ) -> None:
        self._replay, self._traffic, self._calls = replay, traffic, calls
        self._manifest, self._clock, self._every_s = manifest, clock, every_s
        self._report = report or (lambda done, whole: None)
        self._chunks = manifest.folder / "chunks"
        self._queue: list[tuple[datetime, int, _Step]] = []
        self._pushed, self._stopped = 0, ""

    def finish(self, budget: KeptBudget) -> LiveSummary:
        """Drive what is missing; the log has what is finished, also where not all is."""
        manifest, void = self._manifest, 0
        dropped: Sequence[Mapping[str, str]]
        if manifest.replayed is None:
            self._chunks.mkdir(exist_ok=True)
            missing = [n for n in range(len(self._calls)) if not self._file(n).exists()]
            void = sum(self._begun(number).exists() for number in missing)
            self._drive(missing)
            files = [self._file(number) for number in range(len(self._calls))]
            done = [file for file in files if file.exists()]
            driven, dropped = merged(done, manifest.folder / LOG)
            if len(done) == len(files):
                manifest.finish(driven, dropped)
        else:
            driven, dropped = manifest.replayed, manifest.dropped
        if manifest.replayed is not None:
            shutil.rmtree(self._chunks, ignore_errors=True)
        undriven = len(self._calls) - driven - len(dropped)
        return LiveSummary(
            manifest.folder, driven, dropped, undriven, void, budget.spent, self._stopped
        )

    def _file(self, number: int) -> Path:
        return self._chunks / f"{number:06d}.jsonl"

    def _begun(self, number: int) -> Path:
        return self._chunks / f"{number:06d}.begun"

    def _drive(self, missing: Sequence[int]) -> None:
        """Take every step when it is due, until there is none left."""
        first = self._clock.now()
        for turn, number in enumerate(missing):
            call = _Call(number, self._calls[number])
            due = first + timedelta(seconds=turn * self._every_s)
            self._push(due, _Step(call, partial(self._begin, call)))
        asked: dict[Future[Any], _Step] = {}
        pool = ThreadPoolExecutor(_THREADS, "router")
        try:
            while self._queue or asked:
                while self._queue and self._queue[0][0] <= self._clock.now():
                    step = heappop(self._queue)[2]
                    if not step.call.over:
                        asked[pool.submit(step.ask)] = step
                self._clock.wait(asked, self._queue[0][0] if self._queue else None)
                for answer in [one for one in asked if one.done()]:
                    self._take(asked.pop(answer), answer)
        finally:
            pool.shutdown(cancel_futures=True)

    def _push(self, due: datetime, step: _Step) -> None:
        self._pushed += 1  # of two at one moment the first
        heappush(self._queue, (due, self._pushed, step))

    def _begin(self, call: _Call) -> DecidedCall:
        """Make the call now: ask for quotes, and let every policy decide."""
        self._begun(call.number).touch()
        now = self._traffic.calendar.local(self._clock.now())
        return self._replay.decided(replace(call.planned, at=now))

    def _take(self, step: _Step, answer: Future[Any]) -> None:
        """Go on with what came of a step."""
        call = step.call
        if call.over:
            return
        try:
            found = answer.result()
        except BudgetError as error:
            self._stopped = str(error)
            self._queue.clear()
            return
        except PluginError:
            raise
        except IdealError as error:
            self._write(call, dropped_text(call.planned.name, str(error)))
            return
        if isinstance(found, DecidedCall):
            call.decided = found
            self._set_out(call, found)
        elif isinstance(found, Drive):
            call.drives[step.key] = found
        elif not self._stopped:
            self._push(found, step)
        if call.decided is not None and len(call.drives) == len(call.decided.ways):
            ways = call.decided.ways
            drives = {key: (ways[key], {WORLD: call.drives[key]}) for key in ways}
            self._write(call, line_text(self._replay.logged(call.decided, drives)))

    def _set_out(self, call: _Call, decided: DecidedCall) -> None:
        """Every way of a call as a drive that begins at its moment."""
        if self._stopped:
            return
        router, incident = _OnTheWay(decided, self._traffic), decided.situation.incident
        for key, way in decided.ways.items():
            steps = driving(router, self._traffic.network, way, incident.node, incident.at, WORLD)
            self._push(incident.at, _Step(call, partial(next, steps), key))

    def _write(self, call: _Call, line: str) -> None:
        """Keep the line of a call, which is then over."""
        call.over = True
        write_file(self._file(call.number), line + "\n")
        self._report(len(list(self._chunks.glob("*.jsonl"))), len(self._calls))
