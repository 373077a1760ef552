"""Ambulances that could go: from which station, on which path, and when they are expected."""

from dataclasses import dataclass
from typing import Literal

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.path_pair import differing, overlap
from ideal_dispatch.dispatch.scenario_gap import Outlook, on_path
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.traffic.source import RouteQuote

SecondKind = Literal["other-depot", "alternative", "gap-path"]
"""Where the path of a second ambulance may come from: another depot's route, the primary
depot's other route, or the path of the optimistic gap."""

ALL_KINDS: tuple[SecondKind, ...] = ("other-depot", "alternative", "gap-path")
"""What our policy considers unless told: training days of every city tried favoured all."""

OTHER_DEPOT: tuple[SecondKind, ...] = ("other-depot",)

SAME_PLACE_M = 150.0
"""Units that start within so many metres start at the same place."""

_BOUNDS = TimeBounds()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assignment with the seconds of its drive; ``source`` says where its path comes from."""

    source: str
    assignment: Assignment
    drive_s: float

    @property
    def path(self) -> Path:
        return self.assignment.path


def primary_of(situation: Situation) -> Assignment:
    """The ambulance that was already sent, else the router's shortest route."""
    return situation.sent or routed(situation, situation.fastest)


def routed(situation: Situation, station: int) -> Assignment:
    """A unit of the station on the router's route, asking again at every junction."""
    return Assignment(station, situation.quote(station).path)


def alternative(situation: Situation, station: int) -> Assignment | None:
    """A second unit of a station on the router's other route, where there are both."""
    other = situation.stations[station].alternative
    if other is None or station not in situation.second_stations(station):
        return None
    sent = situation.sent
    first = sent if sent is not None and sent.station == station else routed(situation, station)
    follow = differing(situation.network, other.path, first.path)
    return Assignment(station, other.path, follow) if follow else None


def drivable_s(network: RoadNetwork, path: Path, seconds: float) -> float:
    """So many seconds for a path, but not fewer than it can be driven in."""
    return max(seconds, float(_BOUNDS.on(network, path).least_s.sum()))


def quoted(
    network: RoadNetwork, source: str, assignment: Assignment, quote: RouteQuote
) -> Candidate:
    """A candidate on a quoted path."""
    return Candidate(source, assignment, drivable_s(network, quote.path, quote.duration_s))


def sent_candidate(
    situation: Situation, sent: Assignment, nominal_s: FloatArray | None = None
) -> Candidate:
    """The ambulance that was already sent, expected by :meth:`Situation.expected_s`."""
    seconds = situation.expected_s(sent.station, sent.path, nominal_s)
    return Candidate("sent", sent, drivable_s(situation.network, sent.path, seconds))


def follows(situation: Situation, first: Assignment, second: Assignment) -> bool:
    """Whether a second unit would only follow the first, which a jam stops as well.

    Both start within ``SAME_PLACE_M`` (without coordinates: at one node), and more than half of
    the second's metres are the first's, too.
    """
    network = situation.network
    one, two = (situation.stations[each.station].depot.node for each in (first, second))
    lon, lat = network.lon, network.lat
    near = one == two or great_circle_m(lon[one], lat[one], lon[two], lat[two]) <= SAME_PLACE_M
    return bool(near) and overlap(network, first.path, second.path) > 0.5


def second_candidates(
    situation: Situation,
    first: Candidate,
    routes: list[Candidate],
    gap_path: Path | None,
    outlook: Outlook | None,
    kinds: tuple[SecondKind, ...],
    overlap_limit: float,
) -> list[Candidate]:
    """Second ambulances of the given kinds on paths that differ enough from the first's.

    ``routes`` are the router's from all available stations, the first's among them. A unit that
    :func:`follows` the first is no second, of whatever kind and depot.
    """
    network, station = situation.network, first.assignment.station
    found: list[Candidate] = []
    if "other-depot" in kinds:
        found += [route for route in routes if route.assignment.station != station]
    if "alternative" in kinds:
        other, quote = alternative(situation, station), situation.stations[station].alternative
        part = 1.0 if other is None else overlap(network, first.path, other.path)
        if other is not None and quote is not None and part <= overlap_limit:
            found.append(quoted(network, "alternative", other, quote))
    if "gap-path" in kinds and gap_path is not None and outlook is not None:
        follow = differing(network, gap_path, first.path)
        if follow and overlap(network, first.path, gap_path) <= overlap_limit:
            assignment = on_path(situation, station, gap_path, follow)
            starts = situation.stations
            if situation.router_times_s is not None:
                seconds = gap_path.time_s(situation.router_times_s)
            else:  # by the forecast, scaled so that it gives the first its own drive
                nominal = outlook.scenarios.nominal_times
                first_s = first.path.time_s(nominal)
                driving_s = max(first.drive_s - starts[station].ahead_s, 0.0)
                scale = driving_s / first_s if first_s > 0.0 else 1.0
                seconds = scale * gap_path.time_s(nominal)
            seconds = drivable_s(network, gap_path, starts[assignment.station].ahead_s + seconds)
            found.append(Candidate("gap path", assignment, seconds))
    return [one for one in found if not follows(situation, first.assignment, one.assignment)]
