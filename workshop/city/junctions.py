"""Where streets meet: the lines of a plan cut into pieces between junctions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ideal_dispatch.arrays import FloatArray
from workshop.city.street import Street

_END_REACH_M = 6.0
"""A street that ends this close to another joins it."""

_JUNCTION_M = 9.0
"""Cuts this close to each other are one junction."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A stretch of ``street`` (its number in the plan) from node ``tail`` to node ``head``."""

    street: int
    tail: int
    head: int
    points: FloatArray


def cut_at_junctions(streets: Sequence[Street]) -> tuple[FloatArray, list[Piece]]:
    """The chart places of all nodes, west to east, and the pieces between them."""
    lines = shapely.linestrings(
        np.concatenate([street.points for street in streets]),
        indices=np.repeat(np.arange(len(streets)), [len(street.points) for street in streets]),
    )
    owner, position = _cuts(streets, lines)
    places = shapely.get_coordinates(shapely.line_interpolate_point(lines[owner], position))
    nodes, label = _merge(places)
    pieces = []
    for street in range(len(streets)):
        mine = np.flatnonzero(owner == street)
        mine = mine[np.argsort(position[mine], kind="stable")]
        at, node = position[mine], label[mine]
        turns = np.flatnonzero(node[:-1] != node[1:])
        for i in turns:
            points = between(streets[street].points, at[i], at[i + 1])
            points[0], points[-1] = nodes[node[i]], nodes[node[i + 1]]
            pieces.append(Piece(street, int(node[i]), int(node[i + 1]), points))
    return nodes, pieces


def _cuts(
    streets: Sequence[Street], lines: npt.NDArray[np.object_]
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Streets and the metres along them where they are cut, both ends included."""
    level = np.array([street.level for street in streets])
    first, second = shapely.STRtree(lines).query(lines, "dwithin", distance=_END_REACH_M)
    other = first != second
    first, second = first[other], second[other]
    everyone = np.arange(len(streets))
    owners, positions = [everyone, everyone], [np.zeros(len(streets)), shapely.length(lines)]
    for end in (0, -1):
        tips = shapely.get_point(lines, end)[first]
        touching = shapely.distance(tips, lines[second]) < _END_REACH_M
        owners.append(second[touching])
        positions.append(shapely.line_locate_point(lines[second], tips)[touching])
    same_level = level[first] == level[second]
    first, second = first[same_level], second[same_level]
    points, pair = shapely.get_coordinates(
        shapely.intersection(lines[first], lines[second]), return_index=True
    )
    owners.append(first[pair])
    positions.append(shapely.line_locate_point(lines[first[pair]], shapely.points(points)))
    return np.concatenate(owners), np.concatenate(positions)


def _merge(places: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """One node per cluster of places, and the node of each place."""
    pairs = cKDTree(places).query_pairs(_JUNCTION_M, output_type="ndarray")
    count = len(places)
    near = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    clusters, label = connected_components(near, directed=False)
    size = np.bincount(label)
    nodes = np.column_stack([np.bincount(label, axis) / size for axis in places.T])
    order = np.lexsort(np.round(nodes[:, ::-1].T, 2))
    rank = np.empty(clusters, np.intp)
    rank[order] = np.arange(clusters)
    return nodes[order], rank[label]


def between(points: FloatArray, start_m: float, stop_m: float) -> FloatArray:
    """A copy of the line from one distance along it to another."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    inside = points[(along > start_m + 1.0) & (along < stop_m - 1.0)]
    ends = [[np.interp(at, along, axis) for axis in points.T] for at in (start_m, stop_m)]
    return np.concatenate([ends[:1], inside, ends[1:]])
