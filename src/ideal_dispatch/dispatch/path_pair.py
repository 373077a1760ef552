"""Two paths side by side: the roads they share, and the seconds on roads that only one uses."""

import numpy as np

from ideal_dispatch.arrays import BoolArray
from ideal_dispatch.network import Path, RoadNetwork

_ROADS = 3  # that are named to people


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

    The seconds of each path are spread over its roads like free-flow times: a log of
    quotes has no finer times.
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
