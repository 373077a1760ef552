"""Traffic for calls that happen now: a live router, a replayed recording, or the forecast."""

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Protocol

import numpy as np

from ideal_dispatch.context import Calendar, Context, Weather
from ideal_dispatch.dispatch import Assignment, Incident, Situation, observe
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.dispatch.situation import Station
from ideal_dispatch.errors import IdealError, UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.traffic.recorded import RecordedWorld
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

log = logging.getLogger(__name__)

PREPARE_S = 5.0
"""How often sources of traffic are prepared for what comes."""

_LEAST_S, _MARGIN_S = 3600.0, 600.0  # a replayed moment has an hour of past and a while to come
_AHEAD_S = 2 * PREPARE_S
_FORECAST = ("no_live_traffic", "no live traffic is known; times are the model's own")
_THREADS = 64  # of questions to a router
_MOST_OVERDUE = 48  # that still run although nobody waits for them
_REPLAYED = ("recorded_traffic", "traffic is a recording of other days, replayed as if it were now")
_ROUTER_AWAY = "the router did not answer the last call; the forecast is used"


@dataclass(frozen=True, slots=True)
class Asked:
    """A call to look at: where, from where, who is free, and who was sent already.

    ``station`` is the depot of an ambulance that was sent, ``path`` its way
    where that is known; else the router's is assumed. ``alternatives`` says
    whether a depot's other route is wanted also where other depots have one.
    """

    incident: Incident
    depots: Sequence[Depot]
    units: Sequence[int]
    weather: Weather
    station: int | None
    path: Path | None
    wait_s: float
    alternatives: bool = True

    def observed(
        self, source: TrafficSource, network: RoadNetwork, incident: Incident, context: Context
    ) -> Situation:
        """What the source says about it; the incident may be of a replayed moment."""
        situation = observe(
            source, network, incident, context, self.depots,
            units=self.wanted, alternatives=self.alternatives,
        )  # fmt: skip
        return self.completed(situation)

    @property
    def wanted(self) -> list[int]:
        """Units by which a router knows the depots to be asked about."""
        return [max(n, 1) if i == self.station else n for i, n in enumerate(self.units)]

    def completed(self, situation: Situation) -> Situation:
        """The situation with the ambulance that was sent, and no longer among the units."""
        if self.station is None:
            return situation
        stations = tuple(
            replace(one, units=units)
            for one, units in zip(situation.stations, self.units, strict=True)
        )
        quote, path = stations[self.station].quote, self.path
        if path is None and quote is None:
            raise UnreachableError(
                f"no way leads from {self.depots[self.station].name} to the incident; "
                "check one-way roads there"
            )
        if path is None:
            assert quote is not None
            path = quote.path
        return replace(situation, stations=stations, sent=Assignment(self.station, path))


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The situation, how old its traffic is, and why it is not what was wanted."""

    situation: Situation
    age_s: float | None
    reasons: tuple[tuple[str, str], ...] = ()


class LiveTraffic(Protocol):
    """Where the situation of a call comes from."""

    @property
    def status(self) -> str:
        """Whether it can be used: "ready", "starting", or in words why not."""
        ...

    def prepare(self) -> None:
        """Whatever takes long, before the first call and again now and then."""
        ...

    def look(self, asked: Asked) -> Seen:
        """The situation of a call, within the time it gives."""
        ...

    def close(self) -> None:
        """Give up connections."""
        ...


class ForecastTraffic:
    """The model's own times: no live traffic at all."""

    status = "ready"

    def __init__(self, network: RoadNetwork, calendar: Calendar, model: Model) -> None:
        self.network, self.calendar, self.model = network, calendar, model

    def prepare(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing is open."""

    def context(self, asked: Asked) -> Context:
        return self.calendar.context(asked.incident.at, asked.weather)

    def look(self, asked: Asked) -> Seen:
        """Quotes by the forecast of this moment."""
        context = self.context(asked)
        router = ForecastRouter(self.model, self.network, context)
        situation = asked.observed(router, self.network, asked.incident, context)
        return Seen(situation, None, (_FORECAST,))


class RecordedLive:
    """A recording replayed against the wall clock, as if it happened now.

    The same time of day is looked for on one of its days, another one each day;
    where none has it, all its hours take turns, and every answer says that it is
    a recording. With ``hours``, pairs of local hours from and to, it is a show:
    only these take turns, whatever the clock says, and nothing is said.
    """

    def __init__(
        self,
        network: RoadNetwork,
        load: Callable[[], RecordedTraffic],
        otherwise: ForecastTraffic,
        hours: Sequence[tuple[int, int]] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.network, self._load, self._otherwise = network, load, otherwise
        self._hours, self._now = tuple(hours), now
        self.world: RecordedWorld | None = None
        self.status = "starting"

    def prepare(self) -> None:
        """Load it, and have the estimates of this moment and the next at hand."""
        if self.world is None:
            try:
                self.world = RecordedWorld(self._load())
            except (IdealError, OSError) as error:
                self.status = str(error)
                raise
            self.status = "ready"
        for ahead_s in (0.0, _AHEAD_S):
            self.world.quote(0, 0, self.moment(self._now() + timedelta(seconds=ahead_s)))

    def close(self) -> None:
        """Nothing is open."""

    def moment(self, now: datetime) -> datetime:
        """The recorded moment that stands for ``now``."""
        windows = self._windows
        assert self.world is not None
        calendar = self.world.recording.calendar
        if not self._hours:
            local = calendar.local(now)
            days = self.world.recording.days
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
        assert self.world is not None
        recording = self.world.recording
        windows = []
        for stretch in recording.stretches:
            whole_s = float(stretch.bins * recording.bin_s)
            first = stretch.start + timedelta(seconds=min(_LEAST_S, whole_s / 2))
            last_s = max(whole_s - _MARGIN_S, 0.75 * whole_s)
            windows.append((first, stretch.start + timedelta(seconds=last_s)))
        if not self._hours:
            return windows
        busy = []
        for first, last in windows:
            midnight = recording.calendar.local(first).replace(hour=0, minute=0, second=0)
            for begin, end in self._hours:
                since = max(first, midnight + timedelta(hours=begin))
                until = min(last, midnight + timedelta(hours=end))
                if since < until:
                    busy.append((since, until))
        return busy or windows

    def look(self, asked: Asked) -> Seen:
        """What the recorded world's router says, by its own clock and weather."""
        if self.world is None:
            why = "still being read" if self.status == "starting" else self.status
            words = f"recorded traffic: {why}; the forecast is used"
            seen = self._otherwise.look(asked)
            return Seen(seen.situation, None, (("traffic_unavailable", words),))
        at = self.moment(asked.incident.at)
        incident = Incident(asked.incident.name, asked.incident.node, at)
        known = any(value.known for value in asked.weather)
        recorded = self.world.recording.context(at)
        context = self._otherwise.calendar.context(at, asked.weather) if known else recorded
        situation = asked.observed(self.world, self.network, incident, context)
        reasons = () if self._hours else (_REPLAYED,)
        return Seen(situation, _age_s(situation), reasons)


class RouterLive:
    """A routing service, asked about all depots at once within the time a call can spare.

    Where it does not answer for every depot in time, none of its answers is
    used: a quote and a forecast cannot be compared. ``status`` tells how the
    last call went.
    """

    def __init__(
        self, source: TrafficSource, otherwise: ForecastTraffic, close: Callable[[], None]
    ) -> None:
        self.source, self._otherwise, self._close = source, otherwise, close
        self._pool = ThreadPoolExecutor(_THREADS, "router")
        self._overdue: set[Future[RouteQuote | None]] = set()
        self._lock = Lock()
        self.status = "ready"

    def prepare(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Give up connections; questions that hang are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._close()

    def look(self, asked: Asked) -> Seen:
        """The router's situation, else the forecast's with the reason."""
        try:
            seen = self._asked(asked)
            self.status = "ready"
            return seen
        except IdealError as error:
            if not isinstance(error, UnreachableError):  # that was an answer
                self.status = _ROUTER_AWAY
            seen = self._otherwise.look(asked)
            words = f"{without_secrets(str(error))}; the forecast is used"
            reason = ("traffic_unavailable", words)
            return Seen(seen.situation, None, (reason,))

    def _asked(self, asked: Asked) -> Seen:
        from ideal_dispatch.traffic.circuit import TrafficServiceError

        with self._lock:
            self._overdue = {one for one in self._overdue if not one.done()}
            overdue = len(self._overdue)
        if overdue > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        futures = {
            number: self._pool.submit(self._quote, asked.depots[number].node, asked)
            for number, units in enumerate(asked.wanted)
            if units > 0
        }
        wait(futures.values(), asked.wait_s)
        late = [number for number, future in futures.items() if not future.done()]
        if late:
            running = {future for future in futures.values() if not future.cancel()}
            with self._lock:
                self._overdue |= running
            raise TrafficServiceError(
                f"the router did not answer within {asked.wait_s:.2g} s about "
                f"{asked.depots[late[0]].name}"
            )
        quotes = {number: future.result() for number, future in futures.items()}
        stations = tuple(
            Station(depot, units, quotes.get(number))
            for number, (depot, units) in enumerate(zip(asked.depots, asked.wanted, strict=True))
        )
        context = self._otherwise.context(asked)
        situation = Situation(self._otherwise.network, asked.incident, context, stations)
        notes = sorted({q.fell_back for q in quotes.values() if q is not None and q.fell_back})
        reasons = tuple(("router_fell_back", note) for note in notes)
        return Seen(asked.completed(situation), _age_s(situation), reasons)

    def _quote(self, origin: int, asked: Asked) -> RouteQuote | None:
        try:
            return self.source.quote(origin, asked.incident.node, asked.incident.at)
        except UnreachableError:
            return None


def _age_s(situation: Situation) -> float | None:
    ages = [station.quote.data_age_s for station in situation.stations if station.quote]
    known = [age for age in ages if not math.isnan(age)]
    return max(known) if known else None


def live_router(
    kind: str, network: RoadNetwork, url: str, key: str, wait_s: float, zone: str, ranges: bool
) -> tuple[TrafficSource, Callable[[], None]]:
    """A client of a routing service that asks once and not for long."""
    from ideal_dispatch.traffic.service_client import Patience

    patience = Patience(attempts=1, timeout_s=wait_s, deadline_s=wait_s)
    rng = np.random.default_rng()  # pauses between tries, of which there is one
    if kind == "google":
        from ideal_dispatch.traffic.google_routes import URL, GoogleParams, GoogleRoutes

        google = GoogleRoutes.connect(
            network, key, rng, GoogleParams(ranges=ranges), url=url or URL, patience=patience
        )
        return google, google.close
    from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams

    valhalla = Valhalla.connect(
        network, url, rng, ValhallaParams(time_zone=zone), patience=patience
    )
    return valhalla, valhalla.close
