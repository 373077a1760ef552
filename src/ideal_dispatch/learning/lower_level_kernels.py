"""Fastest paths of trips, with the time of an edge worked out when a search first looks at it.

The search is Dijkstra's and ends when all nodes no farther than the destination are
settled, so the canonical path that is then read off the costs is the one of
:mod:`ideal_dispatch.network.shortest_path`, as if all edges had been worked out.
"""

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.forecast.edge_times import edge_time
from ideal_dispatch.network.shortest_path import heap_pop, heap_push, trace

_UNKNOWN = -1.0


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
