"""The roads of a service as its map draws them, and rides along them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m, polyline_length_m
from ideal_dispatch.network.routing import shortest_path

_KMH = {"motorway": 54.0, "trunk": 52.0, "living_street": 16.0}  # with lights
_USUAL_KMH = 37.0  # on other roads: means of the embedded city's model
_CLOSED_S = 1e5  # what a closed edge adds to a way: it is driven where no other leads


class Spot(NamedTuple):
    """Where a unit is: a share of an edge along; at a node, at the end of an edge to it."""

    edge: int
    share: float = 1.0


class Roads:
    """The network of ``/v1/network.geojson``; its speeds follow from the class of a road."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        ways: dict[int, tuple[FloatArray, str]] = {}
        for feature in document["features"]:
            road = feature["properties"]
            line = np.asarray(feature["geometry"]["coordinates"], np.float64)
            for turn, edge in enumerate(road["edges"]):  # the second leads back
                ways[edge] = line[::-1] if turn else line, road["road_class"]
        lines, classes = zip(*(ways[edge] for edge in sorted(ways)), strict=True)
        ends = np.concatenate([line[[0, -1]] for line in lines])
        nodes, place = np.unique(ends, axis=0, return_inverse=True)
        tail, head = place.reshape(-1, 2).T
        self.network = RoadNetwork.from_arrays(
            tail, head, [max(polyline_length_m(line), 0.1) for line in lines], *nodes.T,
            geometry=lines, road_class=classes,
            speed_kmh=[_KMH.get(one, _USUAL_KMH) for one in classes],
        )  # fmt: skip
        self.times_s = self.costs_s = self.network.free_flow_times_s

    def close(self, edges: Iterable[int]) -> None:
        """From now on these edges are closed and no others."""
        self.costs_s = self.times_s.copy()
        self.costs_s[np.array([*edges], np.int32)] += _CLOSED_S

    def way(self, spot: Spot, target: int) -> tuple[IntArray, FloatArray]:
        """The edges of the fastest way from a spot to a node, and the seconds of each."""
        start = int(self.network.head[spot.edge])
        ahead = shortest_path(self.network, self.costs_s, start, target).edges
        edges = np.r_[spot.edge, ahead].astype(ahead.dtype)
        seconds = self.times_s[edges]
        seconds[0] *= 1.0 - spot.share
        return edges, seconds

    def place(self, spot: Spot) -> dict[str, float]:
        """Where a spot is on the map, and the direction of its edge there, from north."""
        line = self.network.polyline(spot.edge)
        until_m = np.r_[0.0, np.cumsum(great_circle_m(*line[:-1].T, *line[1:].T))]
        at_m = spot.share * until_m[-1]
        lon, lat = (float(np.interp(at_m, until_m, axis)) for axis in line.T)
        part = min(int(np.searchsorted(until_m, at_m, side="right")), len(line) - 1)
        east, north = line[part] - line[part - 1]
        heading = math.degrees(math.atan2(east * math.cos(math.radians(lat)), north)) % 360.0
        return {"lon": round(lon, 6), "lat": round(lat, 6), "heading": round(heading, 1)}


class Ride:
    """One ride, ``pace`` times as long as usual: where the unit is at any moment of it."""

    def __init__(self, roads: Roads, spot: Spot, target: int, begins_s: float, pace: float) -> None:
        self._roads, self.target, self.pace = roads, target, pace
        self._edges, seconds = roads.way(spot, target)
        self._until_s = begins_s + pace * np.cumsum(seconds)
        self.ends_s = float(self._until_s[-1])

    def at(self, now_s: float) -> tuple[Spot, float]:
        """Where the unit is, and how fast in km/h."""
        if now_s >= self.ends_s:
            return Spot(int(self._edges[-1])), 0.0
        which = int(np.searchsorted(self._until_s, now_s, side="right"))
        edge = int(self._edges[which])
        lasts_s = self.pace * float(self._roads.times_s[edge])
        left = min((float(self._until_s[which]) - now_s) / lasts_s, 1.0)
        return Spot(edge, 1.0 - left), 3.6 * float(self._roads.network.length_m[edge]) / lasts_s
