"""Paths: edges in driving order, and the roads they run along."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.road_class import ROAD_CLASSES

if TYPE_CHECKING:
    from ideal_dispatch.network.road_network import RoadNetwork

_KINDS = {
    "motorway": "motorway",
    "trunk": "main road",
    "primary": "main road",
    "secondary": "main road",
    "residential": "residential road",
    "living_street": "living street",
    "service": "service road",
}

Road = tuple[str, int]
"""What a road is called, and 0 for a name; roads without one are numbered along a path."""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Edges from ``origin`` to ``destination`` in driving order ([IDEAL] z, in order).

    A path with no edges stays where it is. Made by :meth:`RoadNetwork.path`
    and the shortest-path methods, which know that the edges connect.
    """

    edges: IntArray
    origin: int
    destination: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", read_only(self.edges, np.int32, (None,), "path edges"))
        if self.edges.size == 0 and self.origin != self.destination:
            raise InputError(f"a path from node {self.origin} to {self.destination} needs edges")

    def __len__(self) -> int:
        return int(self.edges.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        same_ends = (self.origin, self.destination) == (other.origin, other.destination)
        return same_ends and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.origin, self.destination, self.edges.tobytes()))

    def __repr__(self) -> str:
        return f"Path({self.origin} → {self.destination}, {len(self)} edges)"

    def time_s(self, times_s: FloatArray) -> float:
        """Seconds along the path under the given edge times."""
        return float(np.asarray(times_s, dtype=np.float64)[self.edges].sum())

    def length_m(self, network: "RoadNetwork") -> float:
        """Metres along the path."""
        return self.time_s(network.length_m)

    def nodes(self, network: "RoadNetwork") -> IntArray:
        """Nodes passed, both ends included."""
        return np.concatenate(([self.origin], network.head[self.edges])).astype(np.int32)

    def coordinates(self, network: "RoadNetwork") -> FloatArray:
        """The path as a (k, 2) lon/lat polyline along the known geometry."""
        if not len(self):
            return np.array([[network.lon[self.origin], network.lat[self.origin]]])
        points = np.concatenate([network.polyline(int(e)) for e in self.edges])
        moved = np.ones(len(points), dtype=bool)
        moved[1:] = (points[1:] != points[:-1]).any(axis=1)
        return points[moved]


def roads(network: "RoadNetwork", path: Path) -> list[Road]:
    """The road of every edge of a path.

    Edges of one name are one road. Every stretch without a name is a separate road.
    """
    found: list[Road] = []
    stretch, before = 0, ""
    for edge in path.edges.tolist():
        name = network.name[edge]
        if name:
            found.append((name, 0))
        else:
            kind = ROAD_CLASSES[network.road_class[edge]]
            link = kind.endswith("_link")
            described = f"an unnamed {'slip road' if link else _KINDS.get(kind, 'road')}"
            stretch += described != before
            found.append((described, stretch))
        before = found[-1][0]
    return found
