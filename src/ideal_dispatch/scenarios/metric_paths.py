"""Shortest paths under a metric, with edge times computed only where the search looks.

Symbols: ``X`` metric, ``φ`` embedding, ``c(X)[e] = φᵀXφ``, ``d̂(v)`` nominal
time from node v to the target, ``λ`` smallest eigenvalue of X.

As X ⪰ λI, c(X)[e] ≥ λ ĉ[e]: one backward search under nominal times gives
λ d̂, a lower bound on the remaining time under *every* metric, and A* guided by
it reads few edges.
"""

from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.compiled import kernel
from ideal_dispatch.network.shortest_path import heap_pop, heap_push
from ideal_dispatch.scenarios.small_matrices import add_outer, quadratic

_SLACK = 1e-12  # relative rounding of g + λ d̂


class MetricRoads(NamedTuple):
    """Outgoing edges as of an ``Adjacency``, their embeddings φ and nominal times ĉ, and d̂."""

    start: IntArray
    edge: IntArray
    other: IntArray
    embeddings: FloatArray
    nominal: FloatArray
    nominal_to_target: FloatArray


@kernel
def fastest_edges(roads, metric, smallest, sources, target):  # type: ignore[no-untyped-def]
    """Edges of a fastest path under the metric from the best source, and its time.

    ``roads`` are :class:`MetricRoads`, ``smallest`` is no more than λ. The time is
    infinite, and the path empty, where no source reaches the target. Ties are
    broken by the order of the search, which depends on nothing but the arguments.
    """
    start, edge, other, embeddings, nominal, nominal_to_target = roads
    num_nodes = start.size - 1
    time = np.full(num_nodes, np.inf)
    arrived_by = np.full(num_nodes, -1, np.int32)  # slot
    came_from = np.full(num_nodes, -1, np.int32)
    keys = np.empty(1024)
    nodes = np.empty(1024, np.int32)
    size = 0
    for s in sources:
        if time[s] > 0.0 and nominal_to_target[s] < np.inf:
            time[s] = 0.0
            size = heap_push(keys, nodes, size, smallest * nominal_to_target[s], s)
    while size:
        u = nodes[0]
        key = keys[0]
        if key >= time[target]:
            break
        size = heap_pop(keys, nodes, size)
        if key > (time[u] + smallest * nominal_to_target[u]) * (1.0 + _SLACK):
            continue  # reached faster since
        for k in range(start[u], start[u + 1]):
            v = other[k]
            ahead = smallest * nominal_to_target[v]
            least = time[u] + smallest * nominal[edge[k]]
            if least >= time[v] or least + ahead >= time[target]:
                continue  # it cannot help, whatever the metric makes of it
            reached = time[u] + quadratic(metric, embeddings[edge[k]])
            if reached < time[v] and reached + ahead < time[target]:
                time[v] = reached
                arrived_by[v] = k
                came_from[v] = u
                if size == keys.size:
                    keys = np.concatenate((keys, np.empty(keys.size)))
                    nodes = np.concatenate((nodes, np.empty(nodes.size, np.int32)))
                size = heap_push(keys, nodes, size, reached + ahead, v)
    count = 0
    v = target
    while came_from[v] >= 0:
        count += 1
        v = came_from[v]
    edges = np.empty(count, np.int32)
    v = target
    while came_from[v] >= 0:
        count -= 1
        edges[count] = edge[arrived_by[v]]
        v = came_from[v]
    return edges, time[target]


@kernel
def path_matrix(embeddings, edges):  # type: ignore[no-untyped-def]
    """The matrix G(z) = Σ φφᵀ of a path's edges."""
    matrix = np.zeros((embeddings.shape[1], embeddings.shape[1]))
    for e in edges:
        add_outer(matrix, embeddings[e], 1.0)
    return matrix
