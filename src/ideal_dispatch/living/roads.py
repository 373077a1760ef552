"""The roads of a city as its service draws them, and drives along them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m, polyline_length_m
from ideal_dispatch.network.routing import distances_to, shortest_path

_SPEED_KMH = {"motorway": 54.0, "trunk": 52.0, "living_street": 16.0}
_USUAL_KMH = 37.0  # with lights, on a city's other roads: means of the embedded city's model
_LEAST_M = 0.1
_FASTEST = 0.4  # of the usual time: no luck makes a drive shorter
_UNEVEN = 0.25  # spread of the logarithm of the time that a stretch takes, within one drive


class Spot(NamedTuple):
    """Where a unit is on the network: at ``node``, or ``share`` of an edge along, before it."""

    node: int
    edge: int = -1
    share: float = 0.0


class Sight(NamedTuple):
    """What a unit's receiver tells: its place, its direction in degrees from north, its speed."""

    lon: float
    lat: float
    heading: float | None
    speed_kmh: float


def network_of(document: Mapping[str, Any]) -> RoadNetwork:
    """The network of ``/v1/network.geojson``; edges keep their order there.

    Of the edges of a line the first drives along it, the others against it. Lengths are those
    of the lines. The map tells no speeds: they go by the class of a road.
    """
    ways: dict[int, tuple[FloatArray, str, str]] = {}
    try:
        for feature in document["features"]:
            told = feature["properties"]
            line = np.asarray(feature["geometry"]["coordinates"], np.float64)
            for turn, edge in enumerate(told["edges"]):
                way = line[::-1] if turn else line
                ways[edge] = way, told["road_class"], told["name"]
        lines, classes, names = zip(*(ways[edge] for edge in sorted(ways)), strict=True)
        ends = np.array([[line[0], line[-1]] for line in lines])
    except (KeyError, TypeError, ValueError, IndexError):
        raise InputError("network.geojson: no roads as this program knows them") from None
    nodes, place = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    tail, head = place.reshape(-1, 2).T
    return RoadNetwork.from_arrays(
        tail, head, [max(polyline_length_m(line), _LEAST_M) for line in lines],
        nodes[:, 0], nodes[:, 1], geometry=lines, road_class=classes, name=names,
        speed_kmh=[_SPEED_KMH.get(one, _USUAL_KMH) for one in classes],
    )  # fmt: skip


def seconds_to(network: RoadNetwork, target: int) -> FloatArray:
    """Seconds from every node to the target, by the ways of :func:`way_to`."""
    times_s = network.free_flow_times_s
    open_s = distances_to(network, times_s, target)
    if not network.closed:
        return open_s
    return np.where(np.isfinite(open_s), open_s, distances_to(network.opened, times_s, target))


def way_to(network: RoadNetwork, spot: Spot, target: int) -> tuple[IntArray, FloatArray]:
    """The edges of the fastest way from a spot to a node, and the seconds of each.

    A unit within an edge drives to its end first: it does not turn round on the road. Where only
    closed roads lead to the node, the way is that of the open network.
    """
    times_s = network.free_flow_times_s
    try:
        edges = shortest_path(network, times_s, spot.node, target).edges
    except UnreachableError:
        edges = shortest_path(network.opened, times_s, spot.node, target).edges
    if spot.edge < 0:
        return edges, times_s[edges]
    edges = np.concatenate([[spot.edge], edges]).astype(edges.dtype)
    seconds = times_s[edges]
    seconds[0] *= 1.0 - spot.share
    return edges, seconds


class Drive:
    """One drive: where the unit is at any moment between ``begins_s`` and ``ends_s``.

    It takes ``lasts_s`` in all, or what the roads need at least; ``rng`` makes some stretches
    slow and others fast.
    """

    def __init__(
        self,
        network: RoadNetwork,
        spot: Spot,
        target: int,
        begins_s: float,
        lasts_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._network, self._from, self.target, self._rng = network, spot, target, rng
        self._edges, seconds = way_to(network, spot, target)
        paced = seconds * np.exp(_UNEVEN * rng.standard_normal(len(seconds)))
        whole_s = float(paced.sum())
        lasts_s = max(lasts_s, _FASTEST * float(seconds.sum())) if whole_s > 0.0 else 0.0
        self._pace = lasts_s / float(seconds.sum()) if whole_s > 0.0 else 1.0
        self._until_s = np.cumsum(paced) * (lasts_s / whole_s if whole_s > 0.0 else 0.0)
        self.begins_s, self.ends_s = begins_s, begins_s + lasts_s

    def around(self, network: RoadNetwork, now_s: float) -> "Drive":
        """The same drive, or the rest of it at the same pace where an edge ahead is closed now."""
        if not np.isin(self._edges[self._which(now_s) + 1 :], network.closed).any():
            return self
        spot, _ = self.at(now_s)
        lasts_s = self._pace * float(way_to(network, spot, self.target)[1].sum())
        return Drive(network, spot, self.target, now_s, lasts_s, self._rng)

    def _which(self, now_s: float) -> int:
        """The number of the edge that the unit is on, of those on its way."""
        passed_s = max(now_s - self.begins_s, 0.0)
        return int(np.searchsorted(self._until_s[:-1], passed_s, side="right"))

    def at(self, now_s: float) -> tuple[Spot, Sight]:
        """Where the unit is, on the network and on the map."""
        passed_s, until_s = now_s - self.begins_s, self._until_s
        if now_s >= self.ends_s:
            spot = Spot(self.target)
            return spot, standing(self._network, spot)
        which = self._which(now_s)
        edge, before_s = int(self._edges[which]), float(until_s[which - 1]) if which else 0.0
        lasts_s = float(until_s[which]) - before_s
        first = self._from.share if which == 0 and self._from.edge >= 0 else 0.0
        share = first + (1.0 - first) * min(max(passed_s - before_s, 0.0) / lasts_s, 1.0)
        speed_kmh = 3.6 * (1.0 - first) * float(self._network.length_m[edge]) / lasts_s
        spot = Spot(int(self._network.head[edge]), edge, share)
        lon, lat, heading = _along(self._network.polyline(edge), share)
        return spot, Sight(lon, lat, heading, speed_kmh)


def standing(network: RoadNetwork, spot: Spot) -> Sight:
    """What a unit tells that stands there."""
    if spot.edge >= 0:
        return Sight(*_along(network.polyline(spot.edge), spot.share), 0.0)
    return Sight(float(network.lon[spot.node]), float(network.lat[spot.node]), None, 0.0)


def _along(line: FloatArray, share: float) -> tuple[float, float, float]:
    """The point that is a share of a line along, and the direction there."""
    (lon1, lat1), (lon2, lat2) = line[:-1].T, line[1:].T
    ends_m = np.cumsum(great_circle_m(lon1, lat1, lon2, lat2))
    wanted_m = share * float(ends_m[-1])
    part = min(int(np.searchsorted(ends_m, wanted_m)), len(ends_m) - 1)
    start_m = float(ends_m[part - 1]) if part else 0.0
    length_m = float(ends_m[part]) - start_m
    rest = min((wanted_m - start_m) / length_m, 1.0) if length_m > 0.0 else 0.0
    step = line[part + 1] - line[part]
    lon, lat = (float(value) for value in line[part] + rest * step)
    east = float(step[0]) * math.cos(math.radians(lat))
    return lon, lat, math.degrees(math.atan2(east, float(step[1]))) % 360.0
