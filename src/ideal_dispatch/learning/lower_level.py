"""The lower level: the fastest path of every trip under the current times.

The search is Dijkstra's and works out the time of an edge when it first looks at it. It ends
when all nodes no farther than the destination are settled, so the canonical path that is
then read off the costs is the one of :mod:`ideal_dispatch.network.shortest_path`, as if all
edges had been worked out.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import FloatArray, first_where
from ideal_dispatch.compiled import kernel, plain
from ideal_dispatch.errors import IdealError, UnreachableError
from ideal_dispatch.forecast.edge_times import edge_time
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.shortest_path import heap_pop, heap_push, trace
from ideal_dispatch.records import Trips

_TRIPS_AT_ONCE = 32
_UNKNOWN = -1.0  # the time of an edge that no search has looked at
Rows = npt.NDArray[np.int64]


class TrainingError(IdealError):
    """Training cannot go on."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The edges of many paths in a row: path i is ``edges[start[i]:start[i+1]]``."""

    edges: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]

    def of(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The edges of the given paths, and for each edge the position of its path."""
        counts = self.start[rows + 1] - self.start[rows]
        owner = np.repeat(np.arange(rows.size), counts)
        offset = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.edges[self.start[rows][owner] + offset], owner


class LowerLevel:
    """Trips of which only the ends are known: each takes the fastest path of its context.

    Equal contexts are evaluated once.
    """

    def __init__(self, network: RoadNetwork, trips: Trips, inputs: FloatArray) -> None:
        self._network, self._trips = network, trips
        distinct, group = np.unique(inputs.astype(np.float32), axis=0, return_inverse=True)
        self.contexts = torch.from_numpy(distinct)
        self.group: Rows = group.reshape(-1).astype(np.int64)

    def solve(self, model: RepresentationNetwork, rows: Rows) -> tuple[Routes, FloatArray]:
        """Canonical fastest paths of the trips in ``rows``, and their seconds."""
        graph, trips = self._network.turn_graph, self._trips
        roads = plain((graph.out, graph.into, graph.edge))
        times = plain(model.edge_times(model.edge_part().detach()))
        contexts = model.context_rows(self.contexts)
        edges: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)] * rows.size
        seconds = np.empty(rows.size)

        def solve(chunk: Rows) -> None:
            own = rows[chunk]
            origin, target = trips.origin[own], graph.arrival[trips.destination[own]]
            arcs = np.empty((own.size, graph.node.size), np.int32)
            counts, found_s = np.empty(own.size, np.int64), np.empty(own.size)
            fastest_paths(
                roads, times, contexts, self.group[own], origin, target, arcs, counts, found_s
            )
            seconds[chunk] = found_s
            for position, row, count in zip(chunk, arcs, counts, strict=True):
                edges[position] = graph.edges(row[row.size - count :].copy())

        # trips of one context together: they share what was worked out
        order = np.argsort(self.group[rows], kind="stable")
        chunks = [order[i : i + _TRIPS_AT_ONCE] for i in range(0, rows.size, _TRIPS_AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(solve, chunks))
        lost = first_where(seconds == np.inf)
        if lost is not None:
            ends = trips.origin[rows[lost]], trips.destination[rows[lost]]
            raise UnreachableError("node {1} cannot be reached from node {0}".format(*ends))
        start = np.concatenate([[0], np.cumsum([part.size for part in edges])])
        whole = np.concatenate(edges) if edges else np.empty(0, np.int32)
        return Routes(whole.astype(np.int64), start.astype(np.int64)), finite(seconds)


def finite(seconds: FloatArray) -> FloatArray:
    """The seconds, or an error where one is no number: it would look like a closed road."""
    if not np.isfinite(seconds).all():
        raise TrainingError("training diverged: times are not finite; lower learning_rate")
    return seconds


# --- kernels --------------------------------------------------------------------------


@kernel
def fastest_paths(  # type: ignore[no-untyped-def]
    graph, times, contexts, which, origins, targets, arcs, counts, seconds
):  # fmt: skip
    """Fill in the canonical path of every trip, in the context that ``which`` names.

    ``graph`` has outgoing and incoming arcs and the edge that each drives, ``times`` is
    :class:`EdgeTimes`. Row i of ``arcs`` ends with ``counts[i]`` arcs. Seconds are infinite,
    and the path empty, where there is no way; NaN where a time is NaN.
    """
    out, into, drives = graph
    nodes, edges = out[0].size - 1, times[0].shape[0]
    cost, hidden = np.empty(drives.size), np.empty(times[0].shape[1], times[0].dtype)
    g, is_source = np.empty(nodes), np.zeros(nodes, np.bool_)
    heap = np.empty(drives.size + 1), np.empty(drives.size + 1, np.int32)
    for row in range(origins.size):
        if row == 0 or which[row] != which[row - 1]:
            cost[:] = _UNKNOWN
        origin, target = origins[row], targets[row]
        _search(
            out, drives, edges, times, contexts[which[row]], hidden, origin, target, heap, cost, g
        )
        seconds[row], counts[row] = g[target], 0
        if g[target] < np.inf:
            is_source[origin] = True
            counts[row] = trace(into, cost, g, is_source, target, arcs[row])
            is_source[origin] = False


@kernel
def _search(  # type: ignore[no-untyped-def]
    out, drives, edges, times, context, hidden, origin, target, heap, cost, g
):  # fmt: skip
    start, arc, other = out
    keys, nodes = heap
    g[:] = np.inf
    g[origin] = 0.0
    size = heap_push(keys, nodes, 0, 0.0, origin)
    while size and keys[0] <= g[target]:
        u, reached_u = nodes[0], keys[0]
        size = heap_pop(keys, nodes, size)
        if reached_u > g[u]:
            continue
        for k in range(start[u], start[u + 1]):
            a = arc[k]
            if cost[a] == _UNKNOWN:
                cost[a] = 0.0  # an arc to an arrival drives no edge
                if drives[a] < edges:
                    cost[a] = edge_time(times, drives[a], context, hidden)
            reached = reached_u + cost[a]
            if reached != reached:
                g[target] = reached
                return
            v = other[k]
            if reached < g[v]:
                g[v] = reached
                size = heap_push(keys, nodes, size, reached, v)
