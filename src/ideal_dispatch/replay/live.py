"""Calls made now and driven in real time, by the router that is asked at every junction.

The paper's own procedure ([IDEAL] appendix A). Only instantaneous traffic is possible: what a
road really took, a live router does not report.
"""

import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.policy_tables import FittedParts
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.experiment.engine import Run
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.outside_service import BudgetError, RequestBudget
from ideal_dispatch.replay import study
from ideal_dispatch.replay.drive import Drive, World, driving
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.fitting import load_parts
from ideal_dispatch.replay.incidents import with_units_on_road
from ideal_dispatch.replay.log import dropped_text, line_text
from ideal_dispatch.replay.run import CHUNKS, KIND, Report, finish, settings
from ideal_dispatch.replay.simulation import DecidedCall, Replay
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.replayed_traffic import PresentTraffic
from ideal_dispatch.traffic.routers import ROUTERS, connect_router, load_router, read_key
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

LIVE, REQUESTS = "live", "requests.count"
"""A live run's part of its folder, and the file that has a byte for every request."""

_THREADS = 64  # of questions to the router
_UNPLANNED = datetime.fromtimestamp(0, UTC)  # a call's own moment is when it is made


class LiveClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, answers: Collection[Future[Any]], until: datetime | None) -> None:
        """Wait for an answer, or until a moment, whichever comes first."""
        left_s = None if until is None else max((until - self.now()).total_seconds(), 0.0)
        if answers:
            wait(answers, left_s, FIRST_COMPLETED)
        elif left_s:
            sleep(left_s)


@dataclass(frozen=True, slots=True)
class LiveSummary:
    """What a live run did.

    Of all calls so far ``driven`` are in the log, ``dropped`` could not be driven to their end,
    and ``undriven`` are left to the next start, where the run ``stopped`` for a reason.
    ``void`` calls were under way when an earlier start ended: they were driven again, or are
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
    """Drive the experiment's calls with its live router, into ``folder/live``.

    A call is made every ``live.every_s``. All policies decide by the same quotes, and each
    distinct way is driven once, in real time, many at once. At most ``most`` requests are
    sent in all, over all starts: each is written down before it is sent. The same call
    continues an interrupted run: finished calls are kept, calls that were under way are
    void and made again. Of a call that the router fails, no drive is kept.
    """
    live, clock = experiment.live, clock or LiveClock()
    if not live.kind:
        raise InputError(f"{experiment.path}: no [live] table; its kind names the router to ask")
    experiment = replace(experiment, world=World.INSTANTANEOUS)
    with complaints_about(experiment.path):
        ground = experiment.ground(live=True)
        policies = experiment.policies_with(_parts(experiment, ground), ground)
        recorded = ground.file_calls(experiment)
    if recorded is not None:
        calls = recorded.incidents
    else:
        weights = ground.weights(experiment.calls)
        rng = np.random.default_rng([experiment.seed, 3])
        nodes = rng.choice(weights.size, live.calls, p=weights / weights.sum()).tolist()
        drawn = [Incident(f"live-{k:04d}", node, _UNPLANNED) for k, node in enumerate(nodes, 1)]
        on_road = experiment.calls.on_road, experiment.seed
        calls = with_units_on_road(drawn, ground.network, *on_road)
    with (
        Run.opened(folder, study.KIND, study.settings(experiment, ground)) as whole,
        ExitStack() as open_,
    ):
        study.note_start(whole, experiment, recorded)
        budget = open_.enter_context(closing(RequestBudget(most, whole.folder / REQUESTS)))
        with complaints_about(experiment.path):
            sources = _sources(experiment, ground, budget, clock)
        for source in sources:
            open_.callback(getattr(source, "close", lambda: None))
        traffic = PresentTraffic(ground.network, ground.calendar, sources[0], budget, sources[-1])
        replay = Replay(
            traffic, ground.depots, policies, region=ground.region, seed=experiment.seed,
            world=World.INSTANTANEOUS,
        )  # fmt: skip
        run = open_.enter_context(Run.opened(whole.folder / LIVE, KIND, settings(replay, calls)))
        return _LiveRun(replay, traffic, calls, run, clock, live.every_s, report).finish(budget)


def _parts(experiment: Experiment, ground: Ground) -> FittedParts:
    """What policies were fitted with: files of the live table, or those of another run."""
    live, folder = experiment.live, experiment.folder
    if experiment.transferred is not None:
        return load_parts(experiment, study.transferred_parts(experiment))
    model = Model.load(folder / live.model) if live.model else None
    if model is not None:
        model.check(ground.network)
    responses = None
    if live.responses:
        drives = "" if model is None else model.checksum
        responses = ResponseModel.load(folder / live.responses, drives)
    return FittedParts(model, responses)


def _sources(
    experiment: Experiment, ground: Ground, budget: RequestBudget, clock: LiveClock
) -> list[TrafficSource]:
    """The router that is asked at the call, and where it is another one, that on the way."""
    live, folder, zone = experiment.live, experiment.folder, ground.calendar.time_zone
    key = read_key(folder / live.key_file) if live.key_file else ""
    if live.kind not in ROUTERS:
        offered = {"network": ground.network, "url": live.url, "key": key, "time_zone": zone,
                   "folder": folder, "budget": budget}  # fmt: skip
        return [load_router(live.kind, live.options, "live.kind", **offered)]
    # optimistic and pessimistic times are for decisions: on the way they would cost in vain
    return [
        connect_router(
            live.kind, ground.network, np.random.default_rng(experiment.seed), url=live.url,
            key=key, ranges=ranges, segment=live.segment, time_zone=zone, budget=budget,
            now=clock.now,
        )
        for ranges in ([True, False] if live.kind == "google" and live.ranges else [False])
    ]  # fmt: skip


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


@dataclass(eq=False)
class _LiveRun:
    """All calls of a run, from the first that is not finished to the last."""

    replay: Replay
    traffic: PresentTraffic
    calls: Sequence[Incident]
    run: Run
    clock: LiveClock
    every_s: float
    report: Report | None
    queue: list[tuple[datetime, int, _Step]] = field(default_factory=list)
    pushed: int = 0
    stopped: str = ""

    def finish(self, budget: RequestBudget) -> LiveSummary:
        """Drive what is missing; the log has what is finished, also where not all is."""
        run, void = self.run, 0
        if run.manifest.get("replayed") is None:
            self.chunks.mkdir(exist_ok=True)
            files = [self._file(number, "jsonl") for number in range(len(self.calls))]
            missing = [number for number, file in enumerate(files) if not file.exists()]
            void = sum(self._file(number, "begun").exists() for number in missing)
            self._drive(missing)
            done = [file for file in files if file.exists()]
            driven, dropped = finish(run, done, complete=len(done) == len(files))
        else:
            driven, dropped = run.manifest["replayed"], run.manifest["dropped"]
        if run.manifest["replayed"] is not None:
            shutil.rmtree(self.chunks, ignore_errors=True)
        undriven = len(self.calls) - driven - len(dropped)
        return LiveSummary(run.folder, driven, dropped, undriven, void, budget.spent, self.stopped)

    @property
    def chunks(self) -> Path:
        return self.run.folder / CHUNKS

    def _file(self, number: int, kind: str) -> Path:
        return self.chunks / f"{number:06d}.{kind}"

    def _drive(self, missing: Sequence[int]) -> None:
        """Take every step when it is due, until there is none left."""
        first, queue, clock = self.clock.now(), self.queue, self.clock
        for turn, number in enumerate(missing):
            call = _Call(number, self.calls[number])
            due = first + timedelta(seconds=turn * self.every_s)
            self._push(due, _Step(call, partial(self._begin, call)))
        asked: dict[Future[Any], _Step] = {}
        pool = ThreadPoolExecutor(_THREADS, "router")
        try:
            while queue or asked:
                while queue and queue[0][0] <= clock.now():
                    step = heappop(queue)[2]
                    if not step.call.over:
                        asked[pool.submit(step.ask)] = step
                if asked or queue:
                    clock.wait(asked, queue[0][0] if queue else None)
                for answer in [one for one in asked if one.done()]:
                    self._take(asked.pop(answer), answer)
        finally:
            pool.shutdown(cancel_futures=True)

    def _push(self, due: datetime, step: _Step) -> None:
        self.pushed += 1  # of two at one moment the first
        heappush(self.queue, (due, self.pushed, step))

    def _begin(self, call: _Call) -> DecidedCall:
        """Make the call now: ask for quotes, and let every policy decide."""
        self._file(call.number, "begun").touch()
        now = self.traffic.calendar.local(self.clock.now())
        return self.replay.decided(replace(call.planned, at=now))

    def _take(self, step: _Step, answer: Future[Any]) -> None:
        """Go on with what came of a step."""
        call = step.call
        if call.over:
            return
        try:
            found = answer.result()
        except BudgetError as error:
            self.stopped = str(error)
            self.queue.clear()
            return
        except PluginError:
            raise
        except IdealError as error:
            self._write(call, dropped_text(call.planned.name, str(error)))
            return
        if isinstance(found, DecidedCall):
            call.decided = found
            if not self.stopped:  # every way is a drive that begins at the moment of the call
                router, incident = _OnTheWay(found, self.traffic), found.situation.incident
                for key, way in found.ways.items():
                    steps = driving(router, self.traffic.network, way, incident.node, incident.at,
                                    World.INSTANTANEOUS)  # fmt: skip
                    self._push(incident.at, _Step(call, partial(next, steps), key))
        elif isinstance(found, Drive):
            call.drives[step.key] = found
        elif not self.stopped:
            self._push(found, step)
        if call.decided is not None and len(call.drives) == len(call.decided.ways):
            drives = {key: call.drives[key] for key in call.decided.ways}
            self._write(call, line_text(self.replay.logged(call.decided, drives)))

    def _write(self, call: _Call, line: str) -> None:
        """Keep the line of a call, which is then over."""
        call.over = True
        write_file(self._file(call.number, "jsonl"), line + "\n")
        if self.report is not None:
            self.report(len(list(self.chunks.glob("*.jsonl"))), len(self.calls))
