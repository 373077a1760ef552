"""From coordinates to the network: the nearest node, and the edges around a point."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import shapely

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError, OffNetworkError
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.network.geodesy import LocalPlane, check_degrees, chord_to_metres, unit_vectors
from ideal_dispatch.network.road_network import RoadNetwork

if TYPE_CHECKING:
    from scipy.spatial import KDTree

_GPS_M = 40.0  # how far off the road that it drives a vehicle may seem to be
_SAME_ROAD_M = 1.0  # both directions of a road are that near to each other
_NEAR_M = 8.0  # before and behind it, for the direction of the road there
_OFF_DEGREES = 60.0  # between its heading and the road's direction, at most
_M_PER_DEGREE = 0.3  # a road so much farther away is as likely as one so many degrees off
_FEW = 100_000  # distances that are quicker worked out than a tree is made


@dataclass(frozen=True, slots=True)
class NodeSnap:
    """The nearest node and how far away it is."""

    node: int
    distance_m: float


@dataclass(frozen=True, slots=True)
class RoadSnap:
    """Where a vehicle is on the road: it has a share ``ahead`` of ``edge`` to drive to ``node``.

    ``distance_m`` is how far from the road it seems to be.
    """

    node: int
    distance_m: float
    edge: int
    ahead: float


class Snapper:
    """Spatial indexes over one network's nodes and edges.

    Distances are great-circle metres.
    """

    def __init__(self, network: RoadNetwork) -> None:
        if np.isnan(network.lon).any():
            raise InputError("this network has no coordinates; snapping needs lon and lat")
        self._network = network
        self._nodes = unit_vectors(network.lon, network.lat)
        self.plane = LocalPlane(float(network.lat.mean()))

    @cached_property
    def _columns(self) -> FloatArray:
        """Of the nodes' places: one coordinate after the other is quicker to go through."""
        return np.ascontiguousarray(self._nodes.T)

    @cached_property
    def _node_tree(self) -> "KDTree":
        from scipy.spatial import KDTree  # slow to import, and not needed for single calls

        return KDTree(self._nodes)

    @cached_property
    def _edges(self) -> shapely.STRtree:
        return shapely.STRtree(self.edge_lines)

    @cached_property
    def edge_lines(self) -> npt.NDArray[np.object_]:
        """Every edge as a shapely line in local metres."""
        network = self._network
        lines = [network.polyline(edge) for edge in range(network.num_edges)]
        owner = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        points = np.concatenate(lines) if lines else np.empty((0, 2))
        result: npt.NDArray[np.object_] = shapely.linestrings(
            self.plane.to_metres(points), indices=owner
        )
        return result

    def nodes(self, lon: FloatArray, lat: FloatArray) -> tuple[IntArray, FloatArray]:
        """Nearest node and distance of many finite points at once, without any limit."""
        points = unit_vectors(lon, lat)
        if len(points) * len(self._nodes) <= _FEW and "_node_tree" not in self.__dict__:
            x, y, z = self._columns
            squared = [(x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 for a, b, c in points.tolist()]
            nearest = [int(each.argmin()) for each in squared]
            chords = np.sqrt([each[node] for each, node in zip(squared, nearest, strict=True)])
            return np.array(nearest, np.int32), chord_to_metres(chords)
        chord, node = self._node_tree.query(points)
        return np.asarray(node, np.int32), chord_to_metres(np.asarray(chord))

    def node(self, lon: float, lat: float, limit_m: float = SNAP_LIMIT_M) -> NodeSnap:
        """The nearest node, or an :class:`OffNetworkError` beyond ``limit_m``."""
        lon, lat = _checked(lon, lat, limit_m)
        node, distance = self.nodes(np.array([lon]), np.array([lat]))
        if distance[0] > limit_m:
            raise self._off(lon, lat, float(distance[0]), limit_m)
        return NodeSnap(int(node[0]), float(distance[0]))

    def _off(self, lon: float, lat: float, far_m: float, limit_m: float) -> OffNetworkError:
        return OffNetworkError(
            f"longitude {lon:.6f}, latitude {lat:.6f}: {self.why_off(lon, lat, far_m, limit_m)}; "
            "check the coordinates or the network's area"
        )

    def vehicle(
        self,
        lon: float,
        lat: float,
        heading: float | None,
        limit_m: float = SNAP_LIMIT_M,
        towards: tuple[float, float] | None = None,
    ) -> RoadSnap:
        """The road that a vehicle drives by its heading (degrees from north), and the node ahead.

        It cannot turn on the spot: its way begins at the end of that road. Without a heading, or
        where no road near by leads that way, it stands on the nearest road. It may leave that to
        both ends, and goes to the one that leads ``towards`` a place, or to the nearer one.
        """
        lon, lat = _checked(lon, lat, limit_m)
        place = self.plane.to_metres(np.array([[lon, lat]]))
        _, edges = self.edges_within(place, min(limit_m, _GPS_M))
        if not edges.size:
            _, edges = self.edges_within(place, limit_m)
        if not edges.size:
            _, far_m = self.nodes(np.array([lon]), np.array([lat]))
            raise self._off(lon, lat, float(far_m[0]), limit_m)
        lines, point = self.edge_lines[edges], shapely.points(place[0])
        distance_m = shapely.distance(lines, point)
        along_m, length_m = shapely.line_locate_point(lines, point), shapely.length(lines)
        ahead = 1.0 - along_m / np.maximum(length_m, 1e-9)
        head, best = self._network.head[edges], -1
        if heading is not None:
            off = _turned(lines, along_m, length_m, heading)
            fits = np.flatnonzero((off <= _OFF_DEGREES) & (distance_m <= _GPS_M))
            if fits.size:
                best = int(fits[np.argmin(distance_m[fits] + off[fits] * _M_PER_DEGREE)])
        if best < 0:
            here = np.flatnonzero(distance_m <= distance_m.min() + _SAME_ROAD_M)
            way_m = ahead[here] * self._network.length_m[edges[here]]
            if towards is not None:
                ends = np.stack([self._network.lon[head[here]], self._network.lat[head[here]]])
                there = self.plane.to_metres(np.array([towards]))
                way_m += np.hypot(*(self.plane.to_metres(ends.T) - there).T)
            alike = np.flatnonzero(way_m <= way_m.min() + _SAME_ROAD_M)  # as at a junction
            best = int(here[alike[np.argmin(ahead[here[alike]])]])
        return RoadSnap(
            int(head[best]), float(distance_m[best]), int(edges[best]), float(ahead[best])
        )

    def edges_within(
        self, points: FloatArray, radius_m: float
    ) -> tuple[npt.NDArray[np.intp], IntArray]:
        """Pairs (point row, edge) no farther apart than ``radius_m``; points in local metres.

        They are sorted, so that nothing depends on the order of the tree.
        """
        row, edge = self._edges.query(shapely.points(points), "dwithin", distance=radius_m)
        order = np.lexsort((edge, row))
        return row[order], edge[order].astype(np.int32)

    def edges_touching(self, area: shapely.Polygon) -> IntArray:
        """Edges whose line crosses an area or lies in it, sorted; the area in local metres."""
        return np.sort(self._edges.query(area, "intersects")).astype(np.int32)

    def why_off(self, lon: float, lat: float, far_m: float, limit_m: float) -> str:
        """Why a point so far from the nearest node is off the network; without coordinates."""
        if abs(lon) <= 90:
            _, swapped_m = self.nodes(np.array([lat]), np.array([lon]))
            if swapped_m[0] <= max(limit_m, SNAP_LIMIT_M):
                return "latitude and longitude are swapped"
        far = f"{far_m / 1000:,.1f} km" if far_m >= 1000 else f"{far_m:.0f} m"
        return f"the nearest road is {far} away, beyond the limit of {limit_m:.0f} m"


def _checked(lon: float, lat: float, limit_m: float) -> tuple[float, float]:
    """A place in degrees and a limit that make sense."""
    try:
        lon, lat = float(lon), float(lat)
    except (TypeError, ValueError):
        raise InputError(f"longitude {lon!r}, latitude {lat!r}: not numbers") from None
    if not isinstance(limit_m, (int, float, np.number)) or not limit_m >= 0:
        raise InputError(f"snap limit {limit_m} m: it must be zero or more")
    check_degrees(lon, lat)
    return lon, lat


def _turned(
    lines: npt.NDArray[np.object_], along_m: FloatArray, length_m: FloatArray, heading: float
) -> FloatArray:
    """Degrees between a heading and the direction of each line, so many metres along it."""
    before = shapely.line_interpolate_point(lines, np.maximum(along_m - _NEAR_M, 0.0))
    behind = shapely.line_interpolate_point(lines, np.minimum(along_m + _NEAR_M, length_m))
    east, north = np.subtract(
        [shapely.get_x(behind), shapely.get_y(behind)],
        [shapely.get_x(before), shapely.get_y(before)],
    )
    degrees: FloatArray = np.degrees(np.arctan2(east, north)) - heading
    return np.abs((degrees + 180.0) % 360.0 - 180.0)
