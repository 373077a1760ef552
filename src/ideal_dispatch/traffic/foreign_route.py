"""A route of another engine, laid on our own network."""

from typing import Any, NamedTuple, TypeVar

import numpy as np

from ideal_dispatch.arrays import FloatArray, first_where
from ideal_dispatch.errors import IdealError, InputError, TrafficError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.map_matching import LENGTH_RATIO, match_route

LEAST_SHARE = 0.9
"""The least share on our path of a route that is used: routers draw some ends apart."""

_Part = TypeVar("_Part", dict[str, Any], list[Any], str)
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
_LONGEST = 7  # groups of five bits: the full circle at 1e7 needs no more


class ForeignRoute(NamedTuple):
    """What another engine said: where, how long, and its parts in order.

    ``part_m`` and ``part_s`` hold metres and seconds of each part (step,
    manoeuvre), NaN where the engine gave none.
    """

    points: FloatArray
    duration_s: float
    part_m: FloatArray
    part_s: FloatArray


def decode_polyline(text: str, precision: int = 5) -> FloatArray:
    """Points of an encoded polyline as (k, 2) lon/lat degrees.

    Google writes them to five digits, Valhalla to six. Each coordinate is the
    rounded difference to the one before it, zigzagged, in groups of five bits,
    lowest first, each plus 63 as a character.

    >>> decode_polyline("_p~iF~ps|U_ulLnnqC").tolist()
    [[-120.2, 38.5], [-120.95, 40.7]]
    """
    groups = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 63
    wrong = first_where((groups < 0) | (groups > 63))
    if wrong is not None:
        raise InputError(f"polyline: byte {wrong} is not part of an encoded polyline")
    if not groups.size:
        return np.empty((0, 2))
    last = groups < 32
    if not last[-1]:
        raise InputError("polyline: it ends in the middle of a number; was it cut off?")
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    if starts.size % 2:
        raise InputError("polyline: a latitude without its longitude; was it cut off?")
    place = np.arange(groups.size) - np.repeat(starts, np.diff([*starts, groups.size]))
    if place.max() >= _LONGEST:
        raise InputError("polyline: a number is too long; is it an encoded polyline?")
    zigzag = np.add.reduceat((groups & 31) << (5 * place), starts)
    steps = (zigzag >> 1) ^ -(zigzag & 1)
    points: FloatArray = np.cumsum(steps.reshape(-1, 2), axis=0)[:, ::-1] / 10**precision
    wrong = first_where((np.abs(points[:, 0]) > 180.0) | (np.abs(points[:, 1]) > 90.0))
    if wrong is not None:
        lon, lat = points[wrong]
        raise InputError(
            f"polyline: point {wrong} is longitude {lon:g}, latitude {lat:g}; "
            f"is its precision 1e{precision}?"
        )
    return points


def laid_on(network: RoadNetwork, points: FloatArray, origin: int, destination: int) -> Path:
    """The path of ours that the route follows, or a :class:`TrafficError` that says how far off."""
    what = f"route from node {origin} to node {destination}"
    try:
        match = match_route(network, points, origin, destination)
    except IdealError as error:
        raise TrafficError(f"{what} is not on this network: {error}") from None
    if not match.agrees(LEAST_SHARE):
        low, high = LENGTH_RATIO
        raise TrafficError(
            f"{what} fits this network badly: {match.matched_share:.0%} of it on our path, "
            f"{match.supported_share:.0%} of our path on it (at least {LEAST_SHARE:.0%}), "
            f"length ratio {match.length_ratio:.2f} ({low:g} … {high:g}); "
            "is the network up to date?"
        )
    return match.path


MOST_TIMES, MORE_M = 2.0, 5000.0
"""A planned route may have so many times the shortest way, and so much more."""


def laid_from(network: RoadNetwork, points: FloatArray, start: Depot, node: int) -> Path:
    """A planned route laid on the network, from a depot, or from where a unit is on an edge."""
    origin = start.node
    if start.edge is not None:
        origin = int(network.tail[start.edge])
        points = np.vstack([[network.lon[origin], network.lat[origin]], points])
    # laying it takes time by its length, not by its points
    line_m = float(np.hypot(*np.diff(network.snapper.plane.to_metres(points), axis=0).T).sum())
    way_m = network.shortest_path(network.length_m, origin, node).length_m(network)
    if line_m > MOST_TIMES * way_m + MORE_M:
        raise InputError(
            f"its line is {line_m / 1000:,.1f} km long, the shortest way {way_m / 1000:,.1f} "
            "km; send the planned route, no noisy trace"
        )
    path = laid_on(network, points, origin, node)
    if start.edge is None:
        return path
    if not len(path) or path.edges[0] != start.edge:
        raise InputError("it does not lead on along the road that the unit is on")
    return network.path(path.edges[1:], start.node)


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


def part(value: Any, kind: type[_Part], what: str) -> _Part:
    """A part of a JSON answer that must be of this type, or a ``ValueError``."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {'missing' if value is None else f'not {_KINDS[kind]}'}")
    return value


def number_or_nan(value: Any, what: str) -> float:
    """A number of a JSON answer as finite float of zero or more, NaN where there is none."""
    return np.nan if value is None else number(value, what)


def number(value: Any, what: str) -> float:
    """A number of a JSON answer as finite float of zero or more, or a ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{what} is not a number")
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{what} is {value}")
    return float(value)
