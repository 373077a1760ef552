"""Traffic for calls that happen now: the forecast, a replayed recording, or a routing service."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock

import numpy as np

from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.dispatch import Incident, Situation, observe
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.errors import IdealError, TrafficServiceError, UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.clock import ClockTable, moment
from ideal_dispatch.service.deciding.case import CallAsRead
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.routers import ROUTERS, connect_router, load_router
from ideal_dispatch.traffic.source import AvoidsEdges, RouteQuote, TrafficSource

log = logging.getLogger(__name__)

PREPARE_S = 5.0
"""How often sources of traffic are prepared for what comes."""

_LEAST_S, _MARGIN_S = 3600.0, 600.0  # a replayed moment has an hour of past and a while to come
_REPLAYED = ("recorded_traffic", "traffic is a recording of other days, replayed as if it were now")
_UNREADABLE = "the file cannot be read, the log says why"  # clients see it: no path in here
_THREADS = 64  # of questions to a router
_MOST_OVERDUE = 48  # questions that still run although their calls were answered
_ROUTER_AWAY = "the router did not answer the last question; the forecast is used"


@dataclass(eq=False)
class LiveTraffic:
    """Where the situation of a call comes from: the model's own times, no live traffic at all.

    Subclasses ask elsewhere and fall back on these times. ``status`` is "ready", "starting", or
    says in words why the traffic cannot be used. All may be asked from many threads.
    """

    network: RoadNetwork
    calendar: Calendar
    model: Model
    status: str = field(default="ready", init=False)

    def prepare(self) -> None:
        """Do what takes long, before the first call and again now and then."""

    def close(self) -> None:
        """Give up connections."""

    def look(self, call: CallAsRead, wait_s: float) -> Situation:
        """The situation of a call, within so many seconds."""
        context = self.calendar.context(call.incident.at, call.weather)
        router = ForecastRouter(self.model, call.network, context)
        return self._observed(call, router, call.incident, context)

    def follow(self, call: CallAsRead) -> Situation:
        """The situation of a running dispatch, looked at every second: no router is asked."""
        return self.look(call, 0.0)

    def _observed(
        self, call: CallAsRead, source: TrafficSource, incident: Incident, context: Context
    ) -> Situation:
        """What the source says about a call; the incident may be of a replayed moment."""
        return observe(
            source, call.network, incident, context, call.ready, alternatives=call.alternatives
        )

    def _without(self, call: CallAsRead, why: str, code: str = "traffic_unavailable") -> Situation:
        """The situation by the forecast, with the reason for that."""
        words = f"{why}; the forecast is used"
        return replace(LiveTraffic.look(self, call, 0.0), reasons=((code, words),))


@dataclass(eq=False)
class RecordedLive(LiveTraffic):
    """A recording replayed against the service's clock, as if it happened now.

    The same time of day is looked for on one of its days, another one each day; where none has
    it, all its hours take turns, and every answer says that it is a recording. With ``hours``,
    pairs of local hours from and to, only these take turns, and no answer says so: a show.
    """

    load: Callable[[], RecordedTraffic]
    hours: Sequence[tuple[int, int]] = ()
    clock: ClockTable = field(default_factory=ClockTable)
    router: RecordedRouter | None = field(default=None, init=False)
    status: str = field(default="starting", init=False)

    def prepare(self) -> None:
        """Load it, and have the estimates of this moment and the next at hand."""
        if self.router is None:
            try:
                self.router = RecordedRouter(self.load())
            except Exception:
                self.status = _UNREADABLE
                raise
            self.status = "ready"
        for ahead_s in (0.0, 2 * PREPARE_S):
            now = moment(self.clock.at(round(1e6 * (time.time() + ahead_s))))
            self.router.quote(0, 0, self.moment(now))

    def moment(self, now: datetime) -> datetime:
        """The recorded moment that stands for ``now``."""
        windows = self._windows
        assert self.router is not None
        calendar = self.router.recording.calendar
        if not self.hours:
            local = calendar.local(now)
            days = self.router.recording.days
            for turn in range(len(days)):
                for number in days[(local.toordinal() + turn) % len(days)]:
                    first, last = windows[number]
                    at = calendar.local(first).replace(
                        hour=local.hour, minute=local.minute, second=local.second
                    )
                    if first <= at < last:
                        return at
        ends_s = np.cumsum([(last - first).total_seconds() for first, last in windows])
        turn_s = now.timestamp() % float(ends_s[-1])
        which = int(np.searchsorted(ends_s, turn_s, "right"))
        return windows[which][1] - timedelta(seconds=float(ends_s[which]) - turn_s)

    @cached_property
    def _windows(self) -> list[tuple[datetime, datetime]]:
        """When calls may come: with some past before, and some time to drive after."""
        assert self.router is not None
        recording = self.router.recording
        windows = []
        for stretch in recording.stretches:
            whole_s = float(stretch.bins * recording.bin_s)
            first = stretch.start + timedelta(seconds=min(_LEAST_S, whole_s / 2))
            last_s = max(whole_s - _MARGIN_S, 0.75 * whole_s)
            windows.append((first, stretch.start + timedelta(seconds=last_s)))
        if not self.hours:
            return windows
        busy = []
        for first, last in windows:
            midnight = recording.calendar.local(first).replace(hour=0, minute=0, second=0)
            for begin, end in self.hours:
                since = max(first, midnight + timedelta(hours=begin))
                until = min(last, midnight + timedelta(hours=end))
                if since < until:
                    busy.append((since, until))
        return busy or windows

    def look(self, call: CallAsRead, wait_s: float) -> Situation:
        """What the recording's router says, by its own clock and weather."""
        if self.router is None:
            why = "still being read" if self.status == "starting" else self.status
            return self._without(call, f"recorded traffic: {why}")
        at = self.moment(call.incident.at)
        incident = Incident(call.incident.name, call.incident.node, at)
        known = any(value.known for value in call.weather)
        recorded = self.router.recording.context(at)
        context = self.calendar.context(at, call.weather) if known else recorded
        situation = self._observed(call, self.router.on(call.network), incident, context)
        return replace(situation, reasons=() if self.hours else (_REPLAYED,))


@dataclass(eq=False)
class RouterLive(LiveTraffic):
    """A routing service, asked about all depots at once within the time a call can spare.

    If it does not answer for every depot in time, none of its answers is used: a quote and a
    forecast cannot be compared. Nor is any if one drives over a closed road. ``status`` says how
    the last call went.
    """

    source: TrafficSource

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "router")
        self._overdue: set[Future[RouteQuote]] = set()
        self._lock = Lock()

    def close(self) -> None:
        """Give up connections; questions that hang are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        getattr(self.source, "close", lambda: None)()

    def look(self, call: CallAsRead, wait_s: float) -> Situation:
        """The router's situation, else the forecast's with the reason."""
        try:
            situation = self._asked(call, wait_s)
            self.status = "ready"
            return situation
        except _ClosedRoadError as error:
            self.status = "ready"
            return self._without(call, str(error), "closed_road")
        except IdealError as error:
            if not isinstance(error, UnreachableError):  # that was an answer
                self.status = _ROUTER_AWAY
            why = without_secrets(str(error))
        except Exception as error:  # whatever a plug-in does, calls go on
            log.exception("traffic: unexpected")
            self.status = _ROUTER_AWAY
            why = f"the router failed ({type(error).__name__}); it was logged"
        return self._without(call, why)

    def follow(self, call: CallAsRead) -> Situation:
        """By the forecast: following would cost the router some requests each second."""
        return LiveTraffic.look(self, call, 0.0)

    def _asked(self, call: CallAsRead, wait_s: float) -> Situation:
        with self._lock:
            self._overdue = {one for one in self._overdue if not one.done()}
            overdue = len(self._overdue)
        if overdue > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        asked = [call.ready.depots[number] for number in call.ready.asked]
        names = {depot.node: depot.name for depot in asked}
        where, at = call.incident.node, call.incident.at
        source, closed = self.source, call.network.closed
        if closed and isinstance(source, AvoidsEdges):
            source = source.avoiding(closed)
        futures = {node: self._pool.submit(source.quote, node, where, at) for node in names}
        wait(futures.values(), wait_s)
        late = [name for node, name in names.items() if not futures[node].done()]
        if late:
            running = {future for future in futures.values() if not future.cancel()}
            with self._lock:
                self._overdue |= running
            words = f"the router did not answer within {wait_s:.2g} s about {late[0]}"
            raise TrafficServiceError(words)
        for node, future in futures.items() if closed else ():
            error = future.exception()
            if isinstance(error, UnreachableError):  # it may have closed more than we did
                words = f"the router finds no way around closed roads from {names[node]}"
                raise _ClosedRoadError(words)
            if error is None and np.isin(future.result().path.edges, closed).any():
                raise _ClosedRoadError(f"the router's way from {names[node]} is over a closed road")
        context = self.calendar.context(at, call.weather)
        return self._observed(call, _Answers(futures), call.incident, context)


class _ClosedRoadError(IdealError):
    """A router's way drives over a closed road, or it finds none around."""


class _Answers(dict[int, "Future[RouteQuote]"]):
    """A router that has answered, by the node where a route begins."""

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self[origin].result()


def live_router(settings: ServiceSettings, network: RoadNetwork, time_zone: str) -> TrafficSource:
    """A client of a routing service that asks once and not for long, or a plug-in."""
    from ideal_dispatch.outside_service import Patience

    table, key = settings.traffic, settings.router_key
    patience = Patience(attempts=1, timeout_s=table.wait_s, deadline_s=table.wait_s)
    rng = np.random.default_rng()  # pauses between tries, of which there is one
    if table.kind in ROUTERS:
        return connect_router(
            table.kind, network, rng, url=table.url, key=key, ranges=table.ranges,
            time_zone=time_zone, patience=patience,
        )  # fmt: skip
    with complaints_about(settings.path):
        return load_router(
            table.kind, table.options, "traffic.kind", network=network, url=table.url, key=key,
            wait_s=table.wait_s, time_zone=time_zone, folder=settings.folder,
        )  # fmt: skip
