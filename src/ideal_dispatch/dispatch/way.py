"""The ways of two ambulances: what is expected of each, and what they share."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.dispatch.decision import Assignment
from ideal_dispatch.dispatch.expected_gain import GainFeatures
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.traffic.source import RouteQuote

_ROADS = 3  # that are named to people


@dataclass(frozen=True, slots=True)
class Way:
    """An assignment with when it is expected and how wide the router's range is.

    ``kind`` says in words where the way comes from; ``above_s`` is pessimistic
    minus quoted and ``below_s`` quoted minus optimistic time, NaN where not known.
    """

    kind: str
    assignment: Assignment
    expected_s: float
    above_s: float
    below_s: float

    @property
    def path(self) -> Path:
        return self.assignment.path


def primary_of(situation: Situation) -> Assignment:
    """The ambulance that was already sent, else the router's shortest route."""
    return situation.sent or routed(situation, situation.fastest)


def routed(situation: Situation, station: int) -> Assignment:
    """A unit of the station on the router's route, asking again at every junction."""
    return Assignment(station, situation.quote(station).path)


def drivable_s(network: RoadNetwork, path: Path, seconds: float) -> float:
    """So many seconds for a path, but not fewer than it can be driven in."""
    return max(seconds, float(TimeBounds().on(network, path).least_s.sum()))


def quoted(
    network: RoadNetwork,
    kind: str,
    assignment: Assignment,
    quote: RouteQuote,
    edge_drift_s: FloatArray | None,
) -> Way:
    """The way of a quote, corrected by the learned drift of its edges where one is given."""
    drift_s = 0.0 if edge_drift_s is None else quote.path.time_s(edge_drift_s)
    expected_s = drivable_s(network, quote.path, quote.duration_s + drift_s)
    above_s = quote.pessimistic_s - quote.duration_s
    return Way(kind, assignment, expected_s, above_s, quote.duration_s - quote.optimistic_s)


def sent_way(
    situation: Situation,
    sent: Assignment,
    edge_drift_s: FloatArray | None = None,
    nominal_s: FloatArray | None = None,
) -> Way:
    """The way of an ambulance that was already sent, expected by :meth:`Situation.expected_s`.

    On another path than its depot's quote, the quote's range goes along in proportion.
    """
    quote = situation.stations[sent.station].quote
    if quote is not None and quote.path == sent.path:
        return quoted(situation.network, "sent", sent, quote, edge_drift_s)
    seconds = situation.expected_s(sent.station, sent.path, nominal_s)
    if edge_drift_s is not None:
        seconds += sent.path.time_s(edge_drift_s)
    seconds = drivable_s(situation.network, sent.path, seconds)
    if quote is None:
        return Way("sent", sent, seconds, math.nan, math.nan)
    return unquoted("sent", sent, seconds, quote)


def unquoted(kind: str, assignment: Assignment, seconds: float, quote: RouteQuote) -> Way:
    """A way of so many seconds on another path than the quote's, whose range is scaled to it."""
    scale = seconds / max(quote.duration_s, 1.0)
    above_s = scale * (quote.pessimistic_s - quote.duration_s)
    return Way(kind, assignment, seconds, above_s, scale * (quote.duration_s - quote.optimistic_s))


def shared(network: RoadNetwork, path: Path, other: Path) -> BoolArray:
    """Which edges of ``path`` are also on the other."""
    there = np.zeros(network.num_edges, np.bool_)
    there[other.edges] = True
    return there[path.edges]


def overlap(network: RoadNetwork, first: Path, second: Path) -> float:
    """The share of the second's metres that are also on the first's way.

    A second that need not drive at all shares everything with a first that
    need not either, and nothing with any other.
    """
    if not len(second):
        return 0.0 if len(first) else 1.0
    length_m = network.length_m[second.edges]
    return float(length_m[shared(network, second, first)].sum() / length_m.sum())


def differing(network: RoadNetwork, path: Path, other: Path) -> int:
    """How many edges of ``path`` to keep to, so that all that is not on ``other`` is driven."""
    own = np.flatnonzero(~shared(network, path, other))
    return int(own[-1]) + 1 if own.size else 0


def longest_roads(network: RoadNetwork, path: Path) -> list[str]:
    """The longest named roads of a path, in driving order."""
    metres: dict[str, float] = {}
    lengths = network.length_m[path.edges].tolist()
    for edge, length_m in zip(path.edges.tolist(), lengths, strict=True):
        if name := network.name[edge]:
            metres[name] = metres.get(name, 0.0) + length_m
    longest = sorted(metres, key=lambda name: -metres[name])[:_ROADS]
    return [name for name in metres if name in longest]


def unshared_s(
    network: RoadNetwork, first: Path, first_s: float, second: Path, second_s: float
) -> float:
    """Seconds on roads that only one of the two uses, both together.

    Each way's seconds are spread over its roads like free-flow times, so that
    a log of quotes says as much as the router did.
    """
    total = 0.0
    for path, other, seconds in ((first, second, first_s), (second, first, second_s)):
        if len(path):
            free_s = network.free_flow_times_s[path.edges]
            alone_s = free_s[~shared(network, path, other)]
            total += seconds * float(alone_s.sum() / free_s.sum())
    return total


def gain_features(network: RoadNetwork, first: Way, second: Way) -> GainFeatures:
    """What :class:`GainModel` asks about a primary and a second."""
    return GainFeatures(
        first.expected_s - second.expected_s,
        unshared_s(network, first.path, first.expected_s, second.path, second.expected_s),
        first.above_s,
        first.below_s,
        second.above_s,
        second.below_s,
    )


def pair_details(
    situation: Situation, first: Assignment, second: Assignment | None
) -> dict[str, Any]:
    """How different the second trip is from the first, for the log."""
    if second is None:
        return {}
    return {
        "overlap": round(overlap(situation.network, first.path, second.path), 4),
        "same_depot": first.station == second.station,
        "same_path": first.path == second.path,
    }
