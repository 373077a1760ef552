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

_FEW = 100_000  # distances that are quicker worked out than a tree is made


@dataclass(frozen=True, slots=True)
class NodeSnap:
    """The nearest node and how far away it is."""

    node: int
    distance_m: float


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
        try:
            lon, lat = float(lon), float(lat)
        except (TypeError, ValueError):
            raise InputError(f"longitude {lon!r}, latitude {lat!r}: not numbers") from None
        if not isinstance(limit_m, (int, float, np.number)) or not limit_m >= 0:
            raise InputError(f"snap limit {limit_m} m: it must be zero or more")
        check_degrees(lon, lat)
        node, distance = self.nodes(np.array([lon]), np.array([lat]))
        if distance[0] > limit_m:
            raise OffNetworkError(
                f"longitude {lon:.6f}, latitude {lat:.6f}: "
                f"{self.why_off(lon, lat, float(distance[0]), limit_m)}; "
                "check the coordinates or the network's area"
            )
        return NodeSnap(int(node[0]), float(distance[0]))

    def edges_within(
        self, points: FloatArray, radius_m: float
    ) -> tuple[npt.NDArray[np.intp], IntArray]:
        """Pairs (point row, edge) no farther apart than ``radius_m``; points in local metres.

        They are sorted, so that nothing depends on the order of the tree.
        """
        row, edge = self._edges.query(shapely.points(points), "dwithin", distance=radius_m)
        order = np.lexsort((edge, row))
        return row[order], edge[order].astype(np.int32)

    def why_off(self, lon: float, lat: float, far_m: float, limit_m: float) -> str:
        """Why a point so far from the nearest node is off the network; tells no coordinates."""
        if abs(lon) <= 90:
            _, swapped_m = self.nodes(np.array([lat]), np.array([lon]))
            if swapped_m[0] <= max(limit_m, SNAP_LIMIT_M):
                return "latitude and longitude are swapped"
        far = f"{far_m / 1000:,.1f} km" if far_m >= 1000 else f"{far_m:.0f} m"
        return f"the nearest road is {far} away, beyond the limit of {limit_m:.0f} m"
