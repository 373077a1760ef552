"""The canonical shortest path: one answer among ties, whatever search found the costs.

Symbols: ``g`` cost from the nearest source.

Rounded addition of a non-negative number is monotone, so
``g[v] = min over paths of the left-to-right rounded sum`` obeys Bellman's
equation exactly, bit for bit, whatever order nodes are settled in. The path
is then read off ``g`` alone: from the target backwards, always the smallest
edge index among the tight edges (``g[u] + cost == g[v]``) that come from a
strictly smaller ``g``. Edges of no cost, which join nodes of one ``g``, are used
only where there is no such edge, and then as few as possible: the walk over the
plateau is breadth-first, in the order of edge indices. So Dijkstra, early-stopped
Dijkstra and A* return the same edges, parallel edges included.
"""

import numpy as np

from ideal_dispatch.compiled import kernel


@kernel
def trace(into, cost, g, is_source, target, edges):  # type: ignore[no-untyped-def]
    """Write the canonical path into ``edges`` from its end; return how many.

    ``into`` are the incoming edges. The path stands in
    ``edges[edges.size - count:]``, origin first.
    """
    start, edge, other = into
    count = 0
    v = target
    while g[v] > 0.0 or not is_source[v]:
        found = -1
        for k in range(start[v], start[v + 1]):
            u = other[k]
            if g[u] < g[v] and g[u] + cost[edge[k]] == g[v]:
                found = k
                break
        if found >= 0:
            count += 1
            edges[edges.size - count] = edge[found]
            v = other[found]
            continue
        count, v = _cross_plateau(into, cost, g, is_source, v, edges, count)
    return count


@kernel
def _cross_plateau(into, cost, g, is_source, v, edges, count):  # type: ignore[no-untyped-def]
    """Walk back over edges of no cost to the first node that has a way on."""
    start, edge, other = into
    queue = np.empty(g.size, np.int32)
    towards = np.full(g.size, -1, np.int64)  # slot that leads from a node on to v
    next_node = np.full(g.size, -1, np.int32)
    queue[0] = v
    next_node[v] = v
    first, last = 0, 1
    goal = -1
    while first < last and goal < 0:
        w = queue[first]
        first += 1
        for k in range(start[w], start[w + 1]):
            u = other[k]
            if g[u] == g[w] and g[u] + cost[edge[k]] == g[w] and next_node[u] < 0:
                next_node[u] = w
                towards[u] = k
                queue[last] = u
                last += 1
                way_on = g[u] == 0.0 and is_source[u]
                for j in range(start[u], start[u + 1]):
                    if g[other[j]] < g[u] and g[other[j]] + cost[edge[j]] == g[u]:
                        way_on = True
                if way_on:
                    goal = u
                    break
    u = goal
    stretch = 0
    while u != v:
        stretch += 1
        u = next_node[u]
    u = goal
    position = edges.size - count - stretch
    while u != v:
        edges[position] = edge[towards[u]]
        position += 1
        u = next_node[u]
    return count + stretch, goal
