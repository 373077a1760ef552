"""Shortest-path kernels on a multigraph in arrays, with one canonical answer among ties.

Symbols: ``g`` cost from the nearest source, ``h`` lower bound on the cost to
the target (A* potential), ``f = g + h``.

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

from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen
from ideal_dispatch.compiled import kernel, plain

_BUCKETS_PER_MEAN = 4.0
_TIE_SLACK = 1e-9  # A* settles this much past the target, relatively: rounding of g + h


class Adjacency(NamedTuple):
    """Edges grouped by one end: slots ``start[v]:start[v+1]`` belong to node v.

    ``edge`` is the edge index in each slot (ascending within a node), ``other``
    the node at its far end. Kernels take it unchanged.
    """

    start: IntArray
    edge: IntArray
    other: IntArray

    @classmethod
    def by(cls, near: IntArray, far: IntArray, num_nodes: int) -> "Adjacency":
        order = np.argsort(near, kind="stable").astype(np.int32)
        start = np.zeros(num_nodes + 1, dtype=np.int32)
        np.cumsum(np.bincount(near, minlength=num_nodes), out=start[1:])
        return cls(frozen(start), frozen(order), frozen(far[order]))


@kernel
def heap_push(keys, nodes, size, key, node):  # type: ignore[no-untyped-def]
    """Add an entry to the 4-ary heap; returns its new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 2
        if keys[parent] <= key:
            break
        keys[i] = keys[parent]
        nodes[i] = nodes[parent]
        i = parent
    keys[i] = key
    nodes[i] = node
    return size + 1


@kernel
def heap_pop(keys, nodes, size):  # type: ignore[no-untyped-def]
    """Remove the root of the 4-ary heap, which the caller has read; returns its new size."""
    size -= 1
    key = keys[size]
    node = nodes[size]
    i = 0
    while True:
        child = 4 * i + 1
        if child + 3 < size:
            left = child if keys[child] <= keys[child + 1] else child + 1
            right = child + 2 if keys[child + 2] <= keys[child + 3] else child + 3
            best = left if keys[left] <= keys[right] else right
        elif child < size:
            best = child
            for c in range(child + 1, size):
                if keys[c] < keys[best]:
                    best = c
        else:
            break
        if keys[best] >= key:
            break
        keys[i] = keys[best]
        nodes[i] = nodes[best]
        i = best
    keys[i] = key
    nodes[i] = node
    return size


@kernel
def dijkstra(out, cost, sources, target, g):  # type: ignore[no-untyped-def]
    """Fill ``g`` with costs from the nearest source.

    ``target < 0`` settles every node. Otherwise the search ends once all nodes
    no farther than the target are settled, which is what the canonical trace
    needs; ``g`` of later nodes is then only an upper bound.
    """
    if not _bucket_search(out, cost, sources, target, g):
        a_star(out, cost, sources, target, np.zeros(g.size), g)


@kernel
def _bucket_search(out, cost, sources, target, g):  # type: ignore[no-untyped-def]
    """Label-correcting search over buckets of width mean cost / 4; False if it gave up.

    Roads make it about twice as fast as a heap: hardly any node is scanned
    twice. It gives up, for :func:`a_star`, on costs so uneven that labels
    or buckets would outnumber the edges several times.
    """
    start, edge, other = out
    largest, total, finite = 0.0, 0.0, 0
    for c in cost:
        if c < np.inf:
            largest = max(largest, c)
            total += c
            finite += 1
    per_second = _BUCKETS_PER_MEAN * finite / total if total > 0.0 else 0.0
    most_labels = 2 * edge.size + sources.size
    if not largest * per_second < most_labels:  # also when they are not numbers
        return False
    num_buckets = 4
    while num_buckets < largest * per_second + 3:
        num_buckets *= 2
    mask = num_buckets - 1
    first = np.full(num_buckets, -1, np.int32)  # a chain of labels per bucket
    following = np.empty(most_labels, np.int32)
    node_of = np.empty(most_labels, np.int32)
    key_of = np.empty(most_labels)

    g[:] = np.inf
    labels = 0
    for s in sources:
        if g[s] > 0.0:
            g[s] = 0.0
            node_of[labels] = s
            key_of[labels] = 0.0
            following[labels] = first[0]
            first[0] = labels
            labels += 1
    waiting = labels
    level = 0
    while waiting:
        while first[level & mask] < 0:
            level += 1
        if target >= 0 and g[target] * per_second < level:
            return True
        label = first[level & mask]
        first[level & mask] = following[label]
        waiting -= 1
        u = node_of[label]
        reached_u = g[u]
        if key_of[label] > reached_u:
            continue
        for k in range(start[u], start[u + 1]):
            reached = reached_u + cost[edge[k]]
            v = other[k]
            if reached < g[v]:
                if labels == most_labels:
                    return False
                g[v] = reached
                bucket = int(reached * per_second) & mask
                node_of[labels] = v
                key_of[labels] = reached
                following[labels] = first[bucket]
                first[bucket] = labels
                labels += 1
                waiting += 1
    return True


@kernel
def a_star(out, cost, sources, target, potential, g):  # type: ignore[no-untyped-def]
    """As :func:`dijkstra` with a 4-ary heap: good bounds for any costs, led by ``h = potential``.

    ``h`` must never exceed the true remaining cost, and is zero without a target. Nodes are
    reopened, so a potential that rounding made slightly inconsistent does no harm.
    """
    start, edge, other = out
    keys = np.empty(edge.size + sources.size + 1)
    nodes = np.empty(edge.size + sources.size + 1, np.int32)
    done = np.full(g.size, np.inf)
    g[:] = np.inf
    size = 0
    for s in sources:
        if g[s] > 0.0 and potential[s] < np.inf:
            g[s] = 0.0
            size = heap_push(keys, nodes, size, potential[s], s)
    while size:
        u = nodes[0]
        if target >= 0 and keys[0] > g[target] + _TIE_SLACK * g[target]:
            return
        size = heap_pop(keys, nodes, size)
        if g[u] >= done[u]:
            continue
        done[u] = g[u]
        for k in range(start[u], start[u + 1]):
            reached = g[u] + cost[edge[k]]
            v = other[k]
            if reached < g[v] and potential[v] < np.inf:
                g[v] = reached
                if size == keys.size:
                    keys = np.concatenate((keys, np.empty(keys.size)))
                    nodes = np.concatenate((nodes, np.empty(nodes.size, np.int32)))
                size = heap_push(keys, nodes, size, reached + potential[v], v)


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


@kernel
def solve_rows(out, into, costs, origins, targets, edges, counts):  # type: ignore[no-untyped-def]
    """Canonical paths of a batch: one cost row (or one for all), origin and target each.

    Row i of ``edges`` ends with ``counts[i]`` edges; a count of −1 is an
    unreachable target.
    """
    g = np.empty(edges.shape[1])
    is_source = np.zeros(g.size, np.bool_)
    for row in range(origins.size):
        cost = costs[min(row, costs.shape[0] - 1)]
        target = targets[row]
        dijkstra(out, cost, origins[row : row + 1], target, g)
        counts[row] = -1
        if g[target] < np.inf:
            is_source[origins[row]] = True
            counts[row] = trace(into, cost, g, is_source, target, edges[row])
            is_source[origins[row]] = False


def search(
    out: Adjacency,
    cost: FloatArray,
    sources: IntArray,
    target: int = -1,
    potential: FloatArray | None = None,
) -> FloatArray:
    """Costs ``g`` from the nearest source; see :func:`dijkstra` and :func:`a_star`."""
    g = np.empty(out.start.size - 1)
    if potential is None:
        dijkstra(plain(out), cost, sources, target, g)
    else:
        a_star(plain(out), cost, sources, target, potential, g)
    return g


def canonical_edges(
    into: Adjacency, cost: FloatArray, g: FloatArray, sources: IntArray, target: int
) -> IntArray:
    """Edges of the canonical shortest path that ``g`` implies; the target must be reached."""
    is_source = np.zeros(g.size, dtype=np.bool_)
    is_source[sources] = True
    edges = np.empty(g.size, dtype=np.int32)
    count = trace(plain(into), cost, g, is_source, target, edges)
    return edges[edges.size - count :].copy()
