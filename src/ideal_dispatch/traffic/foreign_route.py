"""A route of another engine, laid on our own network."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, read_only, whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.errors import IdealError, InputError, TrafficError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.map_matching import LENGTH_RATIO, match_route
from ideal_dispatch.network.time_bounds import TimeBounds

LEAST_SHARE = 0.9
"""The least share of the route on the path, and of the path on the route."""


class MatchError(TrafficError):
    """A route cannot be laid on our network well enough to be used, or not in its time."""


@dataclass(frozen=True, slots=True, eq=False)
class ForeignRoute:
    """What another engine said: where, how long, and its parts in order.

    ``part_m`` and ``part_s`` hold metres and seconds of each part (step,
    manoeuvre), NaN where the engine gave none.
    """

    points: FloatArray
    duration_s: float
    part_m: FloatArray
    part_s: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", read_only(self.points, np.float64, (None, 2), "route"))
        for name in ("part_m", "part_s"):
            parts = read_only(getattr(self, name), np.float64, (None,), name)
            object.__setattr__(self, name, parts)


def check_question(network: RoadNetwork, origin: int, destination: int, at: datetime) -> None:
    """Refuse what no source can answer: a time without zone, an unknown node."""
    require_zone(at)
    for node, what in ((origin, "origin"), (destination, "destination")):
        if not 0 <= whole_number(node, what) < network.num_nodes:
            raise InputError(f"{what} {node} is not a node (0 … {network.num_nodes - 1})")
        if not (np.isfinite(network.lon[node]) and np.isfinite(network.lat[node])):
            raise InputError(f"{what} {node} has no coordinates; a router needs them")


def laid_on(
    network: RoadNetwork,
    points: FloatArray,
    origin: int,
    destination: int,
    least_share: float = LEAST_SHARE,
) -> Path:
    """The path of ours that the route follows, or a :class:`MatchError` that says how far off."""
    what = f"route from node {origin} to node {destination}"
    try:
        match = match_route(network, points, origin, destination)
    except IdealError as error:
        raise MatchError(f"{what} is not on this network: {error}") from None
    share = min(match.matched_share, match.supported_share)
    low, high = LENGTH_RATIO
    if share < least_share or not low <= match.length_ratio <= high:
        raise MatchError(
            f"{what} fits this network badly: {match.matched_share:.0%} of it on our path, "
            f"{match.supported_share:.0%} of our path on it (at least {least_share:.0%}), "
            f"length ratio {match.length_ratio:.2f} ({low:g} … {high:g}); "
            "is the network up to date?"
        )
    return match.path


def check_duration(network: RoadNetwork, path: Path, duration_s: float) -> None:
    """Refuse a duration in which the path cannot be driven."""
    bounds = TimeBounds().on(network, path)
    least_s, greatest_s = float(bounds.least_s.sum()), float(bounds.greatest_s.sum())
    if not least_s <= duration_s <= greatest_s:
        raise MatchError(
            f"route from node {path.origin} to node {path.destination}: "
            f"{path.length_m(network) / 1000:.1f} km in {duration_s:.0f} s cannot be driven; "
            f"it takes {least_s:.0f} s to {greatest_s:.0f} s"
        )


def first_edge_s(network: RoadNetwork, path: Path, route: ForeignRoute) -> tuple[float, str]:
    """Predicted seconds of the path's first edge, and a note where parts were missing.

    Time runs evenly within a part. Where a part on the edge has no length or no
    time, the mean pace of the whole route is used.
    """
    if len(path) <= 1:
        return (route.duration_s if len(path) else 0.0), ""
    share = float(network.length_m[path.edges[0]]) / path.length_m(network)
    known = np.cumprod(np.isfinite(route.part_m) & np.isfinite(route.part_s)).astype(bool)
    gone_m = np.cumsum(route.part_m[known])
    if known.all() and known.size:
        wanted_m = share * gone_m[-1]
    else:
        wanted_m = float(network.length_m[path.edges[0]])
    if not gone_m.size or not gone_m[-1] > 0 or gone_m[-1] < wanted_m:
        note = "no times of its parts; the route's mean pace is used for the next segment"
        return share * route.duration_s, note
    gone_s = np.cumsum(route.part_s[known])
    return float(np.interp(wanted_m, [0.0, *gone_m], [0.0, *gone_s])), ""


def joined(notes: Sequence[str]) -> str:
    """Distinct notes in one line, in order."""
    return "; ".join(dict.fromkeys(note for note in notes if note))


def finite(value: Any, what: str) -> float:
    """A number of a JSON answer as finite float of zero or more, or a ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{what} is not a number")
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{what} is {value}")
    return float(value)
