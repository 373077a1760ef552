"""Ambulances that could go: their paths, the gap over all of them, what a second is worth."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.dispatch.arrival import Arrival
from ideal_dispatch.dispatch.situation import Assignment, Facts, Situation
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair
from ideal_dispatch.gap import DcaStep, OptimisticGap, dca_steps, optimistic_gap
from ideal_dispatch.gap.optimistic_gap import Method
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.scenarios import ScenarioSet

SecondKind = Literal["other-depot", "alternative", "gap-path"]
"""Where the path of a second ambulance may come from: another depot's route, the primary
depot's other route, or the path of the optimistic gap."""

ALL_KINDS: tuple[SecondKind, ...] = ("other-depot", "alternative", "gap-path")
"""What our policy considers by default: training days of every city tried favoured all."""

Centre = Literal["forecast", "router"]

SAME_PLACE_M = 150.0
"""Units that start within so many metres start at the same place."""

_BOUNDS = TimeBounds()
_ROADS = 3  # that are named to people


# --- two paths side by side -------------------------------------------------------------


def shared(network: RoadNetwork, path: Path, other: Path) -> BoolArray:
    """Which edges of ``path`` are also on the other."""
    there = np.zeros(network.num_edges, np.bool_)
    there[other.edges] = True
    return there[path.edges]


def overlap(network: RoadNetwork, first: Path, second: Path) -> float:
    """The share of the second's metres that are also on the first.

    If the second has no edges, it is 1 where the first has none either, else 0.
    """
    if not len(second):
        return 0.0 if len(first) else 1.0
    length_m = network.length_m[second.edges]
    return float(length_m[shared(network, second, first)].sum() / length_m.sum())


def differing(network: RoadNetwork, path: Path, other: Path) -> int:
    """How many edges of ``path`` to keep to, so that all that is not on ``other`` is driven."""
    own = np.flatnonzero(~shared(network, path, other))
    return int(own[-1]) + 1 if own.size else 0


def unshared_s(
    network: RoadNetwork, first: Path, first_s: float, second: Path, second_s: float
) -> float:
    """Seconds on roads that only one of the two uses, both together.

    The seconds of each path are spread over its roads like free-flow times: quotes have no
    finer times.
    """
    total = 0.0
    for path, other, seconds in ((first, second, first_s), (second, first, second_s)):
        if len(path):
            free_s = network.free_flow_times_s[path.edges]
            alone_s = free_s[~shared(network, path, other)]
            total += seconds * float(alone_s.sum() / free_s.sum())
    return total


def together(
    network: RoadNetwork, first: Path, first_s: float, second: Path, second_s: float
) -> float:
    """The share of both drives that is on the same roads; 1 where neither takes any time."""
    driving_s = first_s + second_s
    if driving_s <= 0.0:
        return 1.0
    alone_s = unshared_s(network, first, first_s, second, second_s)
    return min(max(1.0 - alone_s / driving_s, 0.0), 1.0)


def longest_roads(network: RoadNetwork, path: Path, apart_from: Path | None = None) -> list[str]:
    """The longest named roads of a path, in driving order; what another path drives is left out."""
    left_out = set() if apart_from is None else set(apart_from.edges.tolist())
    metres: dict[str, float] = {}
    lengths = network.length_m[path.edges].tolist()
    for edge, length_m in zip(path.edges.tolist(), lengths, strict=True):
        if edge not in left_out and (name := network.name[edge]):
            metres[name] = metres.get(name, 0.0) + length_m
    longest = sorted(metres, key=lambda name: -metres[name])[:_ROADS]
    return [name for name in metres if name in longest]


# --- the gap of a call ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The scenario set of a call, its forecast, and where its nominal times come from."""

    scenarios: ScenarioSet
    forecast: Forecast
    centre: Centre

    @property
    def facts(self) -> Facts:
        """The scenario set, and what is unusual about its forecast, for logs."""
        facts: Facts = {"centre": self.centre, "radius": round(self.scenarios.radius, 6)}
        if self.forecast.unusual:
            facts["unusual"] = "; ".join(self.forecast.unusual)
        if self.forecast.transferred:
            facts["transferred"] = True
        return facts


def outlook_of(
    situation: Situation, model: Model, *, path: Path | None = None, centre: Centre = "forecast"
) -> Outlook:
    """The travel times that are plausible at the call.

    They lie around the forecast, or around the edge times of a "router" that states them. No
    scenario leaves the model's bounds.
    """
    with situation.trace.step("forecast") as facts:
        forecast = model.forecast(situation.context, situation.network, path)
        facts |= {"dimension": forecast.embeddings.shape[1], "radius": round(forecast.radius, 6)}
    with situation.trace.step("scenario set") as facts:
        embeddings, times = forecast.embeddings, situation.router_times_s
        if centre == "router" and times is not None:
            embeddings = recentred(embeddings, forecast.bounds.held(times))
            scenarios = ScenarioSet(embeddings, forecast.radius)
            most = forecast.bounds.greatest_radius(scenarios.nominal_times)
            scenarios = replace(scenarios, radius=min(scenarios.radius, most))
            outlook = Outlook(scenarios, forecast, "router")
        else:  # the forecast's own radius leaves no bound
            outlook = Outlook(ScenarioSet(embeddings, forecast.radius), forecast, "forecast")
        facts |= outlook.facts
    return outlook


def recentred(embeddings: FloatArray, times_s: FloatArray) -> FloatArray:
    """The embeddings with the same directions and the given nominal times.

    An edge without a direction, of zero seconds, gets the first one.
    """
    nominal = np.einsum("ij,ij->i", embeddings, embeddings)
    nowhere = nominal == 0.0
    moved: FloatArray = embeddings * np.sqrt(times_s / np.where(nowhere, 1.0, nominal))[:, None]
    moved[nowhere, 0] = np.sqrt(times_s[nowhere])
    return moved


def situation_gap(
    situation: Situation,
    outlook: Outlook,
    primary: Assignment,
    rng: np.random.Generator,
    method: Method,
    time_limit_s: float | None,
) -> OptimisticGap | None:
    """The gap over all depots that still have a unit; None where none has."""
    question = _question(situation, outlook, primary)
    if question is None:
        return None
    seed = _dca_seed(rng) if method == "dca" else 0
    with situation.trace.step("gap search") as facts:
        gap = optimistic_gap(*question, method=method, time_limit_s=time_limit_s, seed=seed)
        facts |= {"method": method, "labels": len(gap.proof), **gap_facts(gap)}
    return gap


def situation_steps(
    situation: Situation, outlook: Outlook, primary: Assignment, rng: np.random.Generator
) -> tuple[DcaStep, ...]:
    """The steps of Algorithm 2 to the gap of :func:`situation_gap`; none where there is no gap.

    With a generator in the same state, the random restarts are the same.
    """
    question = _question(situation, outlook, primary)
    return () if question is None else dca_steps(*question, seed=_dca_seed(rng))


def _question(
    situation: Situation, outlook: Outlook, primary: Assignment
) -> tuple[RoadNetwork, ScenarioSet, list[Depot], int, Path, Depot] | None:
    """What the gap is asked about: the depots that still have a unit; None where none has."""
    network, node, stations = situation.network, situation.incident.node, situation.stations
    depots = [stations[number].depot for number in situation.second_stations(primary.station)]
    first = stations[primary.station].depot
    return (network, outlook.scenarios, depots, node, primary.path, first) if depots else None


def _dca_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def gap_facts(gap: OptimisticGap) -> Facts:
    """The interval of the gap, for logs; an upper end of None was not found."""
    return {
        "gap_lower_s": round(gap.lower_s, 3),
        "gap_upper_s": round(gap.upper_s, 3) if np.isfinite(gap.upper_s) else None,
        "gap_status": gap.status,
    }


def on_path(situation: Situation, primary: int, path: Path, follow: int) -> Assignment:
    """A second that keeps to the first ``follow`` edges of a path the gap gave.

    Of several depots at its origin, the one with the least way there is taken, if possible not
    the primary's.
    """
    station = min(
        (
            number
            for number in situation.second_stations(primary)
            if situation.stations[number].depot.node == path.origin
        ),
        key=lambda number: (situation.stations[number].ahead_s, number == primary, number),
    )
    return Assignment(station, path, min(follow, len(path)))


# --- who could go -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assignment with the seconds of its drive; ``source`` says where its path comes from."""

    source: str
    assignment: Assignment
    drive_s: float

    @property
    def path(self) -> Path:
        return self.assignment.path


def drivable_s(network: RoadNetwork, path: Path, seconds: float) -> float:
    """So many seconds for a path, but not fewer than it can be driven in."""
    return max(seconds, float(_BOUNDS.on(network, path).least_s.sum()))


def candidate(
    situation: Situation, source: str, one: Assignment, nominal_s: FloatArray | None = None
) -> Candidate:
    """An ambulance on a path, expected by :meth:`Situation.expected_s`."""
    seconds = situation.expected_s(one.station, one.path, nominal_s)
    return Candidate(source, one, drivable_s(situation.network, one.path, seconds))


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
    found, others = list[Candidate](), list[Candidate]()
    if "other-depot" in kinds:
        others = [route for route in routes if route.assignment.station != station]
    if "alternative" in kinds:
        other, quote = alternative(situation, station), situation.stations[station].alternative
        if other is not None and quote is not None:
            drive_s = drivable_s(network, other.path, quote.duration_s)
            found.append(Candidate("alternative", other, drive_s))
    follow = 0
    if "gap-path" in kinds and gap_path is not None and outlook is not None:
        follow = differing(network, gap_path, first.path)
    if gap_path is not None and outlook is not None and follow:
        assignment, starts = on_path(situation, station, gap_path, follow), situation.stations
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
    apart = [one for one in found if overlap(network, first.path, one.path) <= overlap_limit]
    return [
        one for one in (*others, *apart) if not follows(situation, first.assignment, one.assignment)
    ]


# --- what a second is worth --------------------------------------------------------------

LEAST_SOONER_S = 30.0
"""Seconds by which another unit must be expected sooner to be named."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second ambulance is expected to save, and from what that follows.

    ``arrivals`` are T₁ and T₂, those of the primary and of the second. ``gain_s`` is
    E[(T₁ − T₂)⁺], ``second_first`` the probability that the second arrives before the primary, and
    ``survival_gain`` the lives that it saves per call by ``curve``. T₁ − T₂ has the mean
    ``mean_s`` and the standard deviation ``spread_s``. ``primary_s`` is when the primary is
    expected, counted from when it was sent. ``times_from`` and ``spread_from`` say in words where
    mean and spread come from.
    """

    candidate: Candidate
    arrivals: tuple[Arrival, Arrival]
    mean_s: float
    spread_s: float
    times_from: str
    spread_from: str
    curve: SurvivalCurve
    primary_s: float
    gain_s: float
    second_first: float
    survival_gain: float

    @property
    def facts(self) -> Facts:
        """As plain values, for logs."""
        return {
            "second": self.candidate.source,
            "second_s": round(self.candidate.drive_s, 3),
            "expected_gain_s": round(self.gain_s, 3),
            "mean_s": round(self.mean_s, 3),
            "spread_s": round(self.spread_s, 3),
            "times_from": self.times_from,
            "spread_from": self.spread_from,
            "expected_survival_gain": round(self.survival_gain, 6),
            "survival_curve": self.curve.name,
        }


def worth_of(
    situation: Situation,
    first: Candidate,
    second: Candidate,
    *,
    responses: ResponseModel,
    curve: SurvivalCurve,
) -> Worth:
    """The worth of a second ambulance beside the first."""
    one = situation.arrival(first.assignment.station, first.drive_s, responses, first=True)
    other = situation.arrival(second.assignment.station, second.drive_s, responses)
    drives = first.path, first.drive_s, second.path, second.drive_s
    pair = ResponsePair(one.time, other.time, together(situation.network, *drives))
    ago_s = situation.sent_ago_s
    return Worth(
        candidate=second,
        arrivals=(one, other),
        mean_s=one.expected_s - other.expected_s,
        spread_s=float(pair.deviation_s),
        times_from="quotes" if situation.forecast is None else "forecast",
        spread_from=responses.source,
        curve=curve,
        primary_s=ago_s + one.expected_s,
        gain_s=float(pair.gain_s),
        second_first=min(float(pair.second_first), 1.0),
        survival_gain=float(pair.survival_gain(lambda later_s: curve.probability(ago_s + later_s))),
    )


@dataclass(frozen=True, slots=True)
class SoonerUnit:
    """A better primary: a free unit that arrives so many seconds sooner than the one sent.

    ``unit`` is its id, where known. ``probability`` is that of arriving before the primary at all.
    """

    depot: str
    unit: str | None
    seconds: float
    probability: float


def sooner_unit(
    situation: Situation,
    first: Candidate,
    others: Iterable[Candidate],
    responses: ResponseModel,
    least_s: float,
) -> SoonerUnit | None:
    """The unit of another station than the primary's that is expected soonest, if sent now.

    None where no unit is sooner by more than ``least_s`` with a chance of ``LEAST_SURE``.
    """
    found = []
    primary = situation.arrival(first.assignment.station, first.drive_s, responses, first=True)
    for one in others:
        number = one.assignment.station
        arrival = situation.arrival(number, one.drive_s, responses)
        lead_s = primary.expected_s - arrival.expected_s
        drives = first.path, first.drive_s, one.path, one.drive_s
        pair = ResponsePair(primary.time, arrival.time, together(situation.network, *drives))
        if lead_s > least_s and (chance := float(pair.second_first)) >= LEAST_SURE:
            station = situation.stations[number]
            depot, unit = station.depot.home or station.depot.name, next(iter(station.ids), None)
            found.append(SoonerUnit(depot, unit, round(lead_s, 1), round(min(chance, 1.0), 3)))
    return max(found, key=lambda one: one.seconds, default=None)
