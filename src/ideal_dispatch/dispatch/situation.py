"""What a dispatcher knows when a call comes in, and nothing of what the streets will do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource, require_zone


@dataclass(frozen=True, slots=True)
class Incident:
    """A call: its name in logs, the node to reach, and when it came in."""

    name: str
    node: int
    at: datetime

    def __post_init__(self) -> None:
        require_zone(self.at)


@dataclass(frozen=True, slots=True)
class Station:
    """A depot at the moment of a call.

    ``units`` are free to go now. ``quote`` is the router's route from here and
    ``alternative`` its own other route, where it has one; both are None where
    no unit is free.
    """

    depot: Depot
    units: int
    quote: RouteQuote | None
    alternative: RouteQuote | None = None

    def __post_init__(self) -> None:
        if self.units < 0:
            raise InputError(f"{self.depot}: {self.units} free units; zero or more are possible")


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Everything a policy may use.

    ``region`` is the station of the agency's static territory, where one is
    known. ``router_times_s`` is what the router believes of every edge, for
    routers that tell.
    """

    network: RoadNetwork
    incident: Incident
    context: Context
    stations: tuple[Station, ...]
    region: int | None = None
    router_times_s: FloatArray | None = None

    def __post_init__(self) -> None:
        if not self.available:
            raise InputError(
                f"incident {self.incident.name}: no depot has a free unit and a route to it"
            )
        node = self.incident.node
        for station in self.stations:
            for quote in (station.quote, station.alternative):
                if quote is not None and quote.path.destination != node:
                    raise InputError(
                        f"incident {self.incident.name}: the route from {station.depot} leads to "
                        f"node {quote.path.destination}, not to node {node}"
                    )
        if self.region is not None and not 0 <= self.region < len(self.stations):
            raise InputError(
                f"incident {self.incident.name}: region {self.region} is none of "
                f"{len(self.stations)} stations"
            )
        times = self.router_times_s
        if times is not None and times.shape != (self.network.num_edges,):
            raise InputError(
                f"incident {self.incident.name}: router times of {times.size} edges, "
                f"the network has {self.network.num_edges}"
            )

    @property
    def free_units(self) -> int:
        """Units of all depots that are free when the call comes in."""
        return sum(station.units for station in self.stations)

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
        return tuple(n for n in self.available if self.stations[n].units > (n == primary))


@runtime_checkable
class OffersAlternatives(Protocol):
    """A router that can be asked for another route than one it gave."""

    def alternative(self, avoid: Path, at: datetime) -> RouteQuote | None:
        """Its best route between the same ends that differs from ``avoid``."""
        ...


@runtime_checkable
class TellsEdgeTimes(Protocol):
    """A router that tells what it believes of every edge."""

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds per edge."""
        ...


def observe(
    source: TrafficSource,
    network: RoadNetwork,
    incident: Incident,
    context: Context,
    depots: Sequence[Depot],
    *,
    units: Sequence[int] | None = None,
    region: int | None = None,
) -> Situation:
    """Ask the router for every depot with a free unit (two each, where not told)."""
    free = [2] * len(depots) if units is None else list(units)
    if len(free) != len(depots):
        raise InputError(f"free units of {len(free)} depots given, there are {len(depots)}")
    stations = []
    for depot, count in zip(depots, free, strict=True):
        quote = other = None
        if count > 0:
            try:
                quote = source.quote(depot.node, incident.node, incident.at)
            except UnreachableError:
                quote = None  # this depot cannot serve the call
        if quote is not None and isinstance(source, OffersAlternatives):
            other = source.alternative(quote.path, incident.at)
        stations.append(Station(depot, count, quote, other))
    times = source.router_times(incident.at) if isinstance(source, TellsEdgeTimes) else None
    return Situation(network, incident, context, tuple(stations), region, times)
