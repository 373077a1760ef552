"""Traffic for calls that happen now: the forecast, a replayed recording, or a routing service."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np

from ideal_dispatch.context import Calendar, Context, Weather
from ideal_dispatch.dispatch import Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.errors import IdealError, TrafficServiceError, UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.routers import ROUTERS, connect_router, load_router
from ideal_dispatch.traffic.source import AvoidsEdges, RouteQuote, TrafficSource

log = logging.getLogger(__name__)

_PAST, _TO_COME = timedelta(hours=1), timedelta(minutes=10)  # of a replayed moment, at least
_REPLAYED = ("recorded_traffic", "traffic is a recording of other days, replayed as if it were now")
_THREADS = 64  # of questions to a router
_MOST_OVERDUE = 48  # questions that still run although their calls were answered
_ROUTER_AWAY = "the router did not answer the last question; the forecast is used"


@dataclass(frozen=True, slots=True)
class TrafficQuery:
    """What is asked for the way to a call: who could go, on the roads of ``network``.

    ``alternatives`` says whether a depot's other route is wanted also where other depots have one.
    """

    incident: Incident
    ready: Readiness
    weather: Weather
    network: RoadNetwork
    alternatives: bool = True


@dataclass(eq=False)
class LiveTraffic:
    """Where the situation of a call comes from: the model's own times, no live traffic at all.

    Subclasses ask elsewhere and fall back on these times. ``status`` is "ready", or says why the
    traffic cannot be used. All may be asked from many threads.
    """

    network: RoadNetwork
    calendar: Calendar
    model: Model
    status: str = field(default="ready", init=False)

    def close(self) -> None:
        """Give up connections."""

    def look(self, query: TrafficQuery, wait_s: float) -> Situation:
        """The situation of a call, within so many seconds."""
        return self.forecast(query)

    def follow(self, query: TrafficQuery) -> Situation:
        """The situation of a running dispatch, looked at every second: no router is asked."""
        return self.look(query, 0.0)

    def forecast(self, query: TrafficQuery, *why: Reason) -> Situation:
        """The situation by the model's own times; ``why`` these are used in another's place."""
        context = self.calendar.context(query.incident.at, query.weather)
        router = ForecastRouter(self.model, query.network, context)
        situation = _observed(query, router, query.incident, context)
        return replace(situation, reasons=why or situation.reasons)


@dataclass(eq=False)
class RecordedLive(LiveTraffic):
    """A recording replayed against the service's clock, as if it happened now.

    The same time of day is looked for on one of its days, another one each day; where none has
    it, all its hours take turns, and every answer says that it is a recording. With ``hours``,
    pairs of local hours from and to, only these are replayed, and no answer says so: a show.
    """

    recording: RecordedTraffic
    hours: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        self._router = RecordedRouter(self.recording)
        self._windows: list[tuple[datetime, datetime]] = []
        for stretch in self.recording.stretches:
            whole = self.recording.end(stretch) - stretch.start
            first = self.calendar.local(stretch.start + min(_PAST, whole / 2))
            last = self.calendar.local(stretch.start + max(whole - _TO_COME, 0.75 * whole))
            midnight = first.replace(hour=0, minute=0, second=0)
            for begin, end in self.hours or [(0, 48)]:
                since = max(first, midnight + timedelta(hours=begin))
                until = min(last, midnight + timedelta(hours=end))
                self._windows += [(since, until)] if since < until else []

    def moment(self, now: datetime) -> datetime:
        """The recorded moment that stands for ``now``."""
        local = self.calendar.local(now)
        same = [
            at for first, last in self._windows
            if first <= (at := datetime.combine(first, local.time(), first.tzinfo)) < last
        ]  # fmt: skip
        if same:
            return same[local.toordinal() % len(same)]
        turn = timedelta(seconds=now.timestamp())
        turn %= sum((last - first for first, last in self._windows), timedelta())
        for first, last in self._windows:
            if turn < last - first:
                return first + turn
            turn -= last - first
        raise AssertionError("a turn is shorter than all of them")

    def look(self, query: TrafficQuery, wait_s: float) -> Situation:
        """What the recording's router says, by its own clock and weather."""
        at = self.moment(query.incident.at)
        context = self.recording.context(at)
        if any(value.known for value in query.weather):
            context = self.calendar.context(at, query.weather)
        router, incident = self._router.on(query.network), replace(query.incident, at=at)
        situation = _observed(query, router, incident, context)
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

    def close(self) -> None:
        """Give up connections; questions that hang are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        getattr(self.source, "close", lambda: None)()

    def look(self, query: TrafficQuery, wait_s: float) -> Situation:
        """The router's situation, else the forecast's with the reason."""
        code, status = "traffic_unavailable", _ROUTER_AWAY
        try:
            situation = self._asked(query, wait_s)
            self.status = "ready"
            return situation
        except _ClosedRoadError as error:
            code, why, status = "closed_road", str(error), "ready"
        except UnreachableError as error:
            why, status = str(error), "ready"  # that was an answer
        except IdealError as error:
            why = without_secrets(str(error))
        except Exception as error:  # whatever a plug-in does, calls go on
            log.exception("traffic: unexpected")
            why = f"the router failed ({type(error).__name__}); it was logged"
        self.status = status
        return self.forecast(query, (code, f"{why}; the forecast is used"))

    def follow(self, query: TrafficQuery) -> Situation:
        """By the forecast: following would cost the router some requests each second."""
        return self.forecast(query)

    def _asked(self, query: TrafficQuery, wait_s: float) -> Situation:
        if len(self._overdue) > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        asked = [query.ready.depots[number] for number in query.ready.asked]
        names = {depot.node: depot.name for depot in asked}
        where, at = query.incident.node, query.incident.at
        source, closed = self.source, query.network.closed
        if closed and isinstance(source, AvoidsEdges):
            source = source.avoiding(closed)
        futures = {node: self._pool.submit(source.quote, node, where, at) for node in names}
        wait(futures.values(), wait_s)
        late = [name for node, name in names.items() if not futures[node].done()]
        if late:
            for future in futures.values():
                if not future.cancel():
                    self._overdue.add(future)
                    future.add_done_callback(self._overdue.discard)
            words = f"the router did not answer within {wait_s:.2g} s about {late[0]}"
            raise TrafficServiceError(words)
        for node, future in futures.items() if closed else ():
            error = future.exception()
            if isinstance(error, UnreachableError):  # it may have closed more than we did
                words = f"the router finds no way around closed roads from {names[node]}"
                raise _ClosedRoadError(words)
            if error is None and np.isin(future.result().path.edges, closed).any():
                raise _ClosedRoadError(f"the router's way from {names[node]} is over a closed road")
        context = self.calendar.context(at, query.weather)
        return _observed(query, _Answers(futures), query.incident, context)


class _ClosedRoadError(IdealError):
    """A router's way drives over a closed road, or it finds none around."""


class _Answers(dict[int, "Future[RouteQuote]"]):
    """A router that has answered, by the node where a route begins."""

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self[origin].result()


def _observed(
    query: TrafficQuery, source: TrafficSource, incident: Incident, context: Context
) -> Situation:
    """What the source says about a call; the incident may be of a replayed moment."""
    return observe(
        source, query.network, incident, context, query.ready, alternatives=query.alternatives
    )


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
