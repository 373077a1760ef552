"""What a dispatcher knows when a call comes in, and nothing of what the streets will do."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ideal_dispatch.arrays import FloatArray, non_negative
from ideal_dispatch.context import WEATHER_VARIABLES, Context
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.dispatch.answer import NO_LIVE_TRAFFIC, Reason, fallbacks
from ideal_dispatch.dispatch.arrival import Arrival, UnitTraits, rolling, waiting
from ideal_dispatch.errors import InputError, NoRouteError, UnreachableError
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

if TYPE_CHECKING:
    from ideal_dispatch.forecast import Forecast, Model


Facts = dict[str, Any]
"""What a step states, by names that end in their unit: plain numbers and texts."""


@dataclass(slots=True, eq=False)
class Step:
    """A step with its facts, its seconds of wall time, and the steps inside it."""

    name: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0
    steps: list["Step"] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        inside = {"steps": [step.as_dict() for step in self.steps]} if self.steps else {}
        return {"step": self.name, "seconds": round(self.seconds, 6), **self.facts, **inside}


class Trace:
    """The steps of one decision in the order in which they began; for one thread.

    It goes along with the :class:`Situation`. Without ``kept`` nothing is recorded.
    """

    def __init__(self, kept: bool = True) -> None:
        self.steps: list[Step] = []
        self._inside = [self.steps]
        self._kept = kept

    @contextmanager
    def step(self, name: str) -> Iterator[Facts]:
        """A step that lasts as long as the ``with`` block, which fills in its facts."""
        step = Step(name)
        if not self._kept:
            yield step.facts
            return
        self._inside[-1].append(step)
        self._inside.append(step.steps)
        start = time.perf_counter()
        try:
            yield step.facts
        finally:
            step.seconds = time.perf_counter() - start
            self._inside.pop()


UNTRACED = Trace(kept=False)
"""Records nothing."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A call: its name in logs, the node to reach, and when it came in.

    ``on_road`` are units that are free on the road then: origins of this call beside the
    depots, for whoever replays it.
    """

    name: str
    node: int
    at: datetime
    on_road: tuple[Depot, ...] = ()

    def __post_init__(self) -> None:
        require_zone(self.at)


@dataclass(frozen=True, slots=True)
class Assignment:
    """One ambulance: the station it leaves and the path it is told.

    It keeps to the first ``follow`` edges of the path and asks the router
    again at every junction after them; 0 means from the start.
    """

    station: int
    path: Path
    follow: int = 0

    @property
    def prefix(self) -> tuple[int, ...]:
        """The edges it keeps to."""
        return tuple(self.path.edges[: self.follow].tolist())


@dataclass(frozen=True, slots=True)
class Station:
    """A depot at the moment of a call.

    ``units`` are free to go now, ``ids`` are their names: the first goes first, and empty means
    that only their number is known. ``quote`` is the router's route from here and
    ``alternative`` its own other route, where it has one; both are None where
    no unit is free. A unit on the road drives ``ahead_s`` to where they begin, which
    the quotes include.
    """

    depot: Depot
    units: int
    quote: RouteQuote | None
    alternative: RouteQuote | None = None
    ahead_s: float = 0.0
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.units < 0:
            raise InputError(f"{self.depot}: {self.units} free units; zero or more are possible")
        if self.ids and len(self.ids) != self.units:
            raise InputError(f"{self.depot}: {len(self.ids)} ids of {self.units} free units")


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Everything a policy may use.

    ``region`` is the station of the agency's static territory, where one is
    known. ``router_times_s`` is what the router believes of every edge, for
    routers that tell. ``sent`` is the ambulance that the agency has already
    sent, where it has: it is the primary of every policy, and no longer among
    the units of its station. ``trace`` records the steps towards a decision.
    ``forecast`` is what the quotes were made from, where they are a model's own.
    ``sent_ago_s`` is the time since ``sent`` was sent, and ``sent_unit`` its id. If it is rolling,
    it was seen at its start ``driven_s`` of driving ago. ``elsewhere`` are free
    units by their depot that are too far away to be looked at. ``reasons`` say why the quotes
    are not what was asked for. ``responses`` say how much times vary: as published, if None.
    """

    network: RoadNetwork
    incident: Incident
    context: Context
    stations: tuple[Station, ...]
    region: int | None = None
    router_times_s: FloatArray | None = None
    sent: Assignment | None = None
    trace: Trace = UNTRACED
    forecast: "Forecast | None" = None
    sent_ago_s: float = 0.0
    reasons: tuple[Reason, ...] = ()
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    driven_s: float = 0.0
    sent_unit: str = ""
    responses: ResponseModel | None = None

    def __post_init__(self) -> None:
        where, node = f"incident {self.incident.name}", self.incident.node
        count = len(self.stations)
        if self.sent is None and not self.available:
            raise NoRouteError(f"{where}: no depot has a free unit and a route to it")
        for name in ("sent_ago_s", "driven_s"):
            if non_negative(getattr(self, name), name, seconds=True) and self.sent is None:
                raise InputError(f"{where}: {name} without an ambulance that was sent")
        for station in self.stations:
            for quote in (station.quote, station.alternative):
                if quote is not None and quote.path.destination != node:
                    raise InputError(
                        f"{where}: the route from {station.depot} leads to "
                        f"node {quote.path.destination}, not to node {node}"
                    )
        if self.region is not None and not 0 <= self.region < count:
            raise InputError(f"{where}: region {self.region} is none of {count} stations")
        if (sent := self.sent) is not None:
            who = f"{where}: the ambulance already sent"
            if not 0 <= sent.station < count:
                raise InputError(f"{who} is of station {sent.station}, none of {count}")
            start = self.stations[sent.station].depot.node
            if sent.path.origin != start:
                raise InputError(f"{who} starts at node {sent.path.origin}, not at node {start}")
            if sent.path.destination != node:
                raise InputError(f"{who} ends at node {sent.path.destination}, not at node {node}")
        times, edges = self.router_times_s, self.network.num_edges
        if times is not None and times.shape != (edges,):
            raise InputError(f"{where}: router times of {times.size} edges, there are {edges}")

    @property
    def free_units(self) -> int:
        """Units of all depots that are free when the call comes in, one already sent included."""
        here = sum(station.units for station in self.stations)
        return here + sum(self.elsewhere.values()) + (self.sent is not None)

    @property
    def traffic_age_s(self) -> float | None:
        """How old the data behind the oldest quote are; None where no quote says."""
        ages = [station.quote.data_age_s for station in self.stations if station.quote]
        return max((age for age in ages if not math.isnan(age)), default=None)

    @property
    def available(self) -> tuple[int, ...]:
        """Stations with a free unit and a route."""
        return tuple(
            number
            for number, station in enumerate(self.stations)
            if station.units > 0 and station.quote is not None
        )

    def quote(self, station: int) -> RouteQuote:
        """The route from a station that is available."""
        quote = self.stations[station].quote
        if quote is None:
            raise InputError(f"{self.stations[station].depot} has no route to the incident")
        return quote

    def expected_s(self, station: int, path: Path, nominal_s: FloatArray | None = None) -> float:
        """When an ambulance on a path from a station is expected, quoted or not.

        By the station's quote where it is the quoted path. Else by the router's
        edge times where it tells them, or by ``nominal_s`` (free flow without)
        scaled so that they give the quote its own time.
        """
        quote, ahead_s = self.stations[station].quote, self.stations[station].ahead_s
        if quote is not None and quote.path == path:
            return quote.duration_s
        if self.router_times_s is not None:
            return ahead_s + path.time_s(self.router_times_s)
        times = self.network.free_flow_times_s if nominal_s is None else nominal_s
        usual_s = 0.0 if quote is None else quote.path.time_s(times)
        scale = 1.0
        if quote is not None and usual_s > 0.0:
            scale = (quote.duration_s - ahead_s) / usual_s
        return ahead_s + scale * path.time_s(times)

    def traits(self, station: int) -> UnitTraits:
        """What a model of response times is asked about the units of a station."""
        depot = self.stations[station].depot
        return UnitTraits(
            station=depot.home or depot.name, hour=self.context.at.hour, kind=depot.kind,
            on_road=depot.on_road, quoted=self.forecast is None,
        )  # fmt: skip

    def arrival(
        self,
        station: int,
        drive_s: float | None = None,
        responses: ResponseModel | None = None,
        *,
        first: bool = False,
    ) -> Arrival:
        """When a unit of a station is at the address: by its quote, or by another ``drive_s``.

        ``first`` means the primary: if it was sent already, time has passed for it.
        ``responses`` replace those of the situation.
        """
        model = responses or self.responses or ResponseModel.published()
        seconds = self.quote(station).duration_s if drive_s is None else drive_s
        traits = self.traits(station)
        if not first or self.sent is None:
            return waiting(model, seconds, **traits)
        if self.stations[station].depot.rolling:
            return rolling(model, seconds, self.driven_s, **traits)
        return waiting(model, seconds, self.sent_ago_s, **traits)

    @property
    def fastest(self) -> int:
        """The available station with the shortest quoted time; the first of equals."""
        return min(self.available, key=lambda number: self.quote(number).duration_s)

    def others(self, primary: int) -> tuple[int, ...]:
        """Available stations but the primary's, the shortest quote first."""
        others = [number for number in self.available if number != primary]
        return tuple(sorted(others, key=lambda number: self.quote(number).duration_s))

    def second_stations(self, primary: int) -> tuple[int, ...]:
        """Stations that still have a unit once the primary has left."""
        leaving = None if self.sent is not None else primary
        return tuple(n for n in self.available if self.stations[n].units > (n == leaving))


@runtime_checkable
class TellsEdgeTimes(Protocol):
    """A router that tells what it believes of every edge."""

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds per edge."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """Who could go to a call: the free ``units`` of every depot, two each by default.

    ``ids`` are their names, the first of a depot goes first. ``region`` is the number of the depot
    whose territory it is. ``sent`` is the ambulance that was sent ``sent_ago_s`` ago; the number of
    its depot alone means the router's route. ``driven_s`` and ``sent_unit`` are as in
    :class:`Situation`. ``elsewhere`` are further free units by depot, too far away to be asked
    about.
    """

    depots: Sequence[Depot]
    units: Sequence[int] | None = None
    region: int | None = None
    sent: Assignment | int | None = None
    sent_ago_s: float = 0.0
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    driven_s: float = 0.0
    sent_unit: str = ""
    ids: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        count = len(self.depots)
        free = [2] * count if self.units is None else self.units
        if len(free) != count:
            raise InputError(f"free units of {len(free)} depots given, there are {count}")
        ids = [()] * count if self.ids is None else self.ids
        if len(ids) != count:
            raise InputError(f"ids of units of {len(ids)} depots given, there are {count}")
        object.__setattr__(self, "units", tuple(free))
        object.__setattr__(self, "ids", tuple(map(tuple, ids)))

    @property
    def asked(self) -> list[int]:
        """Numbers of the depots that a router must be asked about: with a unit, or sent from."""
        sent = self.sent.station if isinstance(self.sent, Assignment) else self.sent
        return [n for n, free in enumerate(self.units or ()) if free > 0 or n == sent]


def observe(
    source: TrafficSource,
    network: RoadNetwork,
    incident: Incident,
    context: Context,
    ready: Readiness,
    *,
    alternatives: bool = True,
    trace: Trace = UNTRACED,
    responses: ResponseModel | None = None,
) -> Situation:
    """Ask the router for every depot that has a free unit, or whose unit was sent.

    Other routes than the fastest are asked for only with ``alternatives``, or where a
    single depot has a route: a policy then has nothing else to choose from.
    """
    stations: list[Station] = []
    with trace.step("the call") as facts:
        weather = zip(WEATHER_VARIABLES, context.weather, strict=True)
        facts |= {"node": incident.node, "at": context.at.isoformat(timespec="seconds")}
        facts |= {"holiday": context.holiday}
        facts |= {name: value.value for name, value in weather if value.known}

    def with_alternative(station: Station) -> Station:
        quote = station.quote
        if quote is None or not hasattr(source, "alternative"):
            return station
        return replace(station, alternative=source.alternative(quote.path, quote.asked_at))

    free = zip(ready.depots, ready.units or (), ready.ids or (), strict=True)
    for number, (depot, count, ids) in enumerate(free):
        with trace.step(f"quotes from {depot.name}") as facts:
            quote = None
            if number in ready.asked:
                with suppress(UnreachableError):  # this depot cannot serve the call
                    quote = source.quote(depot.node, incident.node, incident.at)
            station = Station(depot, count, quote, ids=tuple(ids))
            stations.append(with_alternative(station) if alternatives else station)
            facts |= _station_facts(stations[-1])
    quotes = [station.quote for station in stations if station.quote is not None]
    if not alternatives and len(quotes) == 1:
        stations = [with_alternative(station) for station in stations]
    with trace.step("edge times of the router") as facts:
        times = source.router_times(incident.at) if hasattr(source, "router_times") else None
        facts["edges"] = 0 if times is None else times.size
    forecast = source.forecast if hasattr(source, "forecast") else None  # of a model's own quotes
    if any(depot.edge is not None for depot in ready.depots):
        known_s = forecast.nominal_times if times is None and forecast is not None else times
        if known_s is None:  # at free flow, as much slower as all quotes are
            known_s = network.free_flow_times_s
            free_s = sum(quote.path.time_s(known_s) for quote in quotes)
            if free_s > 0.0:
                known_s = known_s * (sum(quote.duration_s for quote in quotes) / free_s)
        stations = [_from_the_road(station, known_s) for station in stations]
    sent = ready.sent
    if isinstance(sent, int):
        if (quote := stations[sent].quote) is None:
            raise UnreachableError(
                f"no way leads from {ready.depots[sent].name} to the incident; check one-way "
                "roads there"
            )
        sent = Assignment(sent, quote.path)
    return Situation(
        network, incident, context, tuple(stations), ready.region, times, sent, trace, forecast,
        ready.sent_ago_s, fallbacks(stations), ready.elsewhere, ready.driven_s, ready.sent_unit,
        responses,
    )  # fmt: skip


def _from_the_road(station: Station, times_s: FloatArray) -> Station:
    """With the seconds that a unit on the road needs before its route begins."""
    edge = station.depot.edge
    if edge is None:
        return station
    ahead_s = station.depot.ahead * float(times_s[edge])
    names = ("duration_s", "optimistic_s", "pessimistic_s")
    later = {
        which: replace(quote, **{name: getattr(quote, name) + ahead_s for name in names})
        for which in ("quote", "alternative") if (quote := getattr(station, which)) is not None
    }  # fmt: skip
    return replace(station, ahead_s=ahead_s, **later)


def _station_facts(station: Station) -> Facts:
    """What the router answered."""
    facts: Facts = {"units": station.units}
    if (quote := station.quote) is not None:
        for name in ("duration_s", "optimistic_s", "pessimistic_s"):
            if not math.isnan(seconds := getattr(quote, name)):
                facts[name] = round(float(seconds), 3)
        facts["segments"] = len(quote.path)
        if quote.fell_back:
            facts["fell_back"] = quote.fell_back
    if station.alternative is not None:
        facts["alternative_s"] = round(station.alternative.duration_s, 3)
    return facts


@dataclass(frozen=True, eq=False)
class ForecastRouter:
    """A model in a router's place: quotes by its nominal times of one context.

    Every quote says that it fell back, and has no range.
    """

    model: "Model"
    network: RoadNetwork
    context: Context

    @cached_property
    def forecast(self) -> "Forecast":
        """What all quotes are made from."""
        return self.model.forecast(self.context, self.network)

    @cached_property
    def _times_s(self) -> FloatArray:
        return self.forecast.nominal_times

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path of the forecast."""
        require_zone(at)
        times = self._times_s
        path = self.network.shortest_path(times, origin, destination)
        return RouteQuote(
            path=path,
            duration_s=path.time_s(times),
            next_segment_s=float(times[path.edges[0]]) if len(path) else 0.0,
            optimistic_s=math.nan,
            pessimistic_s=math.nan,
            asked_at=at,
            data_age_s=math.nan,
            fell_back=NO_LIVE_TRAFFIC[1],
        )
