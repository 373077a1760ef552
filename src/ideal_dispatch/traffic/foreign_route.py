"""A route of another engine, laid on our own network."""

import numpy as np

from ideal_dispatch.arrays import FloatArray, first_where
from ideal_dispatch.errors import IdealError, InputError, TrafficError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.map_matching import LENGTH_RATIO, match_route

LEAST_SHARE = 0.9
"""The least share on our path of a route that is used: routers draw some ends apart."""

MOST_TIMES, MORE_M = 2.0, 5000.0
"""A planned route may have so many times the shortest way, and so much more."""

_LONGEST = 7  # groups of five bits: the full circle at 1e7 needs no more


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
