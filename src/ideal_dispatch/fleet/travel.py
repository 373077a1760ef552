"""How long units drive between the places of a fleet, and where they are on the way.

A fleet knows some hundreds of places: stations, hospitals, and nodes that stand for the
cells in which calls happen. Times between all pairs are worked out once, along fastest
paths, in two modes: with lights and sirens, and without.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, read_only
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane, unit_vectors

STEPS = 7
"""Points of a way at which a unit's whereabouts are known, both ends left out."""

_ROWS = 32  # origins whose shortest paths are held in memory at a time


@dataclass(frozen=True, slots=True, eq=False)
class Roads:
    """The roads that times were worked out on.

    ``nodes`` has the node of every place, ``edge_s`` the seconds of every edge with lights.
    """

    network: RoadNetwork
    nodes: IntArray
    edge_s: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Travel:
    """Seconds between all pairs of places, and the places on the way.

    ``fast_s[a, b]`` is the drive with lights and sirens, ``slow_s[a, b]`` the one without.
    ``between[a, b, k]`` is the place nearest to a unit that has done (k + 1) of
    ``STEPS`` + 1 parts of the drive from a to b. ``lon`` and ``lat`` may be NaN where
    they are unknown. ``roads`` are None where the times are a matrix that was given.
    """

    fast_s: FloatArray
    slow_s: FloatArray
    between: IntArray
    lon: FloatArray
    lat: FloatArray
    roads: Roads | None = None

    def __post_init__(self) -> None:
        count = len(self.fast_s)
        for name in ("fast_s", "slow_s"):
            times = read_only(getattr(self, name), np.float64, (count, count), name)
            if not (np.isfinite(times) & (times >= 0.0)).all():
                raise InputError(f"travel: {name} must be finite and zero or more")
            object.__setattr__(self, name, times)
        between = read_only(self.between, np.int32, (count, count, STEPS), "between")
        if count and (between.min() < 0 or between.max() >= count):
            raise InputError(f"travel: between names places outside 0 … {count - 1}")
        object.__setattr__(self, "between", between)
        for name in ("lon", "lat"):
            object.__setattr__(
                self, name, read_only(getattr(self, name), np.float64, (count,), name)
            )

    @property
    def num_places(self) -> int:
        """How many places there are."""
        return len(self.fast_s)

    @classmethod
    def on_roads(
        cls,
        network: RoadNetwork,
        nodes: Sequence[int] | IntArray,
        fast_s: FloatArray,
        slow_s: FloatArray,
    ) -> "Travel":
        """Along fastest paths between ``nodes``, by the seconds of every edge in both modes.

        Forbidden turns are not looked at: they change the mean of a drive by less than its
        spread. Where a unit is on its way follows the path with lights and sirens.
        """
        if network.lon is None or network.lat is None:
            raise InputError("travel: the network has no coordinates; a fleet needs them")
        places = np.asarray(nodes, np.int32)
        lon, lat = network.lon[places], network.lat[places]
        fast, between = _fastest(network, places, fast_s, traced=True)
        slow, _ = _fastest(network, places, slow_s, traced=False)
        roads = Roads(network, places, np.asarray(fast_s, np.float64))
        return cls(fast, slow, between, lon, lat, roads)


def _fastest(
    network: RoadNetwork, places: IntArray, times_s: FloatArray, *, traced: bool
) -> tuple[FloatArray, IntArray]:
    """Times between all pairs and, where ``traced``, the places on the way."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra
    from scipy.spatial import KDTree

    # of parallel edges the fastest counts; a sparse matrix would add them up
    order = np.lexsort((times_s, network.head, network.tail))
    tail, head, cost = network.tail[order], network.head[order], np.asarray(times_s)[order]
    first = np.r_[True, (np.diff(tail) != 0) | (np.diff(head) != 0)]
    shape = (network.num_nodes, network.num_nodes)
    graph = csr_matrix((np.maximum(cost[first], 1e-6), (tail[first], head[first])), shape=shape)
    tree = KDTree(unit_vectors(network.lon[places], network.lat[places]))
    nearest = tree.query(unit_vectors(network.lon, network.lat))[1].astype(np.int32)
    count = len(places)
    seconds = np.empty((count, count))
    between = np.zeros((count, count, STEPS), np.int32)
    for start in range(0, count, _ROWS):
        rows = slice(start, min(start + _ROWS, count))
        times, before = dijkstra(graph, indices=places[rows], return_predecessors=True)
        seconds[rows] = times[:, places]
        if traced:
            _trace(times, before, places, nearest, between[rows])
    if not np.isfinite(seconds).all():
        a, b = np.argwhere(~np.isfinite(seconds))[0]
        raise UnreachableError(
            f"no way leads from node {places[a]} to node {places[b]}; take stations, hospitals "
            "and call places from the connected part of the network"
        )
    return seconds, between


@kernel
def _trace(times, before, places, nearest, between):  # type: ignore[no-untyped-def]
    """Walk every fastest path back and note the nearest place at each step of its time."""
    steps = between.shape[2]
    for row in range(times.shape[0]):
        for b in range(places.size):
            node = places[b]
            whole = times[row, node]
            k = steps - 1
            while k >= 0:
                if before[row, node] < 0 or times[row, node] <= whole * (k + 1) / (steps + 1):
                    between[row, b, k] = nearest[node]
                    k -= 1
                else:
                    node = before[row, node]


def connected_nodes(network: RoadNetwork) -> IntArray:
    """The nodes of the largest part of the network in which every node reaches every other."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    shape = (network.num_nodes, network.num_nodes)
    links = csr_matrix((np.ones(network.num_edges), (network.tail, network.head)), shape=shape)
    _, part = connected_components(links, connection="strong")
    return np.flatnonzero(part == np.bincount(part).argmax()).astype(np.int32)


def cells_of(
    network: RoadNetwork, nodes: IntArray, weights: FloatArray, cells: int
) -> tuple[IntArray, FloatArray]:
    """At most about ``cells`` nodes that stand for all of ``nodes``, and the weight of each.

    The map is cut into squares so that about that many hold a node. Each is stood for by
    the node nearest to the weighted middle of its nodes.
    """
    if network.lon is None or network.lat is None:
        raise InputError("calls: the network has no coordinates; a fleet needs them")
    lonlat = np.column_stack([network.lon[nodes], network.lat[nodes]])
    metres = LocalPlane(float(lonlat[:, 1].mean())).to_metres(lonlat)
    metres -= metres.min(axis=0)
    low, high = 1.0, float(metres.max()) + 1.0
    for _ in range(40):  # the largest number of squares that is not above ``cells``
        side = 0.5 * (low + high)
        low, high = (side, high) if len(np.unique(_squares(metres, side))) > cells else (low, side)
    square = _squares(metres, high)
    _, group = np.unique(square, return_inverse=True)
    total = np.bincount(group, weights)
    sums = np.column_stack([np.bincount(group, weights * axis) for axis in metres.T])
    middle = sums / np.maximum(total, 1e-12)[:, None]
    far = np.hypot(*(metres - middle[group]).T)
    order = np.lexsort((nodes, far, group))
    first = order[np.r_[True, np.diff(group[order]) != 0]]
    used = total > 0.0
    return np.asarray(nodes[first][used]), np.asarray(total[used] / total.sum())


def _squares(metres: FloatArray, side_m: float) -> IntArray:
    column, row = (metres // side_m).astype(np.int64).T
    return np.asarray(row * (column.max() + 1) + column)


def junction_weights(network: RoadNetwork, nodes: IntArray, within_m: float = 500.0) -> FloatArray:
    """For every node the number of junctions near by: where streets are dense, people live.

    A junction is a node that three or more others are linked to.
    """
    from scipy.spatial import KDTree

    if network.lon is None or network.lat is None:
        raise InputError("calls: the network has no coordinates; a fleet needs them")
    lonlat = np.column_stack([network.lon, network.lat])
    metres = LocalPlane(float(lonlat[:, 1].mean())).to_metres(lonlat)
    ends = np.sort(np.column_stack([network.tail, network.head]), axis=1)
    links = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    junction = np.bincount(links.ravel(), minlength=network.num_nodes) >= 3
    if not junction.any():
        return np.ones(len(nodes))
    tree = KDTree(metres[junction])
    return np.asarray(tree.query_ball_point(metres[nodes], within_m, return_length=True), float)
