"""Deterministic starts that escape the zero-gap fixed point, and their polish by DCA.

For every edge, the fastest way from a depot to it, over it and on to the destination
is a plausible second path. All of them together cost two shortest-path trees; the
matrices G add up along the trees. A second-order estimate of a path's largest
advantage, Δ ≈ tr D + √(2ρ) ‖D‖_F with D = G₁ − G(z), picks the promising ones; those
whose largest advantage is indeed the largest are polished by DCA; then the trees
are grown again under the best metric found.

A direction is kept as a *sketch*, a vector of single precision: the diagonal, then
√2 times the entries below it, so that inner products are those of the matrices.
Thousands of them then fit the cache. Rounding only moves a start.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen
from ideal_dispatch.compiled import kernel, plain
from ideal_dispatch.gap.dca import AttainedGap, descend_to_new_paths
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network.shortest_path import Adjacency
from ideal_dispatch.scenarios.small_matrices import inner
from ideal_dispatch.scenarios.spectrum import largest_product

_KEPT_PER_DEPOT = 10
_LOOKED_AT = 400  # edges, of which so many different directions are kept
_ALIKE = 0.97  # cosine of two directions that would lead to the same end
_POLISHED = 8
MOST_ROUNDS = 4
_MOST_EDGES = 8192  # nearest to a shortest path first: bounds memory in a large city
_POLISH_STEPS = 20
_WORTH = 0.8  # of what is enough: a start that promises less will hardly climb there
_LEAST = 0.5  # of the best so far: neither will one that promises less than this climb above it
_ROOT = math.sqrt(2.0)


def best_start(
    problem: GapProblem,
    enough_s: float = np.inf,
    rounds: int = MOST_ROUNDS,
    deadline: float = np.inf,
    second: IntArray | None = None,
) -> AttainedGap:
    """The largest gap that the starts lead to, the first the best metric of ``second``, or X = I.

    The search ends early above ``enough_s``, and at the ``deadline`` of the
    clock :func:`time.perf_counter`.
    """
    climb, scenarios = _Climb(problem), problem.scenarios
    matrix = problem.primary_matrix if second is None else scenarios.path_matrix(second)
    climb.polish(matrix - problem.primary_matrix)
    for turn in range(rounds if scenarios.radius > 0 else 0):
        before = climb.gap_s
        if before > enough_s:
            break
        times = scenarios.times(climb.metric) if turn else scenarios.nominal_times
        least_s = _LEAST * before if before > 0 else -np.inf
        if enough_s < np.inf:
            least_s = max(least_s, _WORTH * enough_s)
        directions = _directions(problem, times, least_s)
        promised = np.array([largest_product(each, scenarios.radius) for each in directions])
        for k in np.argsort(-promised, kind="stable")[:_POLISHED]:
            if climb.gap_s > enough_s or time.perf_counter() > deadline:
                return climb.best
            climb.polish(-directions[k])
        if climb.gap_s <= before * (1 + 1e-9) + 1e-9:
            break
    return climb.best


class _Climb:
    """Descents from many metrics, of which the best end is kept."""

    def __init__(self, problem: GapProblem) -> None:
        self._problem, self._arrays = problem, problem.arrays
        self._seen = np.empty((1 + MOST_ROUNDS * _POLISHED) * _POLISH_STEPS, np.uint64)
        self._count = 0
        self.gap_s = -np.inf
        self.metric: FloatArray = np.eye(problem.scenarios.dimension)
        self._edges: IntArray = np.empty(0, np.int32)

    def polish(self, direction: FloatArray) -> None:
        """Descend from the metric that minimises ⟨direction, X⟩; the best end is kept."""
        gap_s, metric, edges, self._count = descend_to_new_paths(
            self._arrays, direction, _POLISH_STEPS, self._seen, self._count
        )
        if gap_s > self.gap_s:
            self.gap_s, self.metric, self._edges = gap_s, metric, edges

    @property
    def best(self) -> AttainedGap:
        return AttainedGap(self.gap_s, self.metric, self._problem.secondary(self._edges))


def _directions(problem: GapProblem, times: FloatArray, least_s: float) -> FloatArray:
    """Promising D = G₁ − G(z) of paths through single edges, depot by depot.

    Those that promise no more than ``least_s`` are left out.
    """
    network, scenarios = problem.network, problem.scenarios
    to_destination = problem.nominal_to_destination
    if times is not scenarios.nominal_times:
        times = frozen(times)  # one type for the kernel
        to_destination = network.distances_to(times, problem.destination)
    found = []
    for depot in problem.depots.tolist():
        trees = Trees(
            network.outgoing, network.incoming, network.tail, network.head,
            scenarios.embeddings, times, network.distances(times, depot), to_destination,
            problem.destination,
        )  # fmt: skip
        found.append(
            promising_directions(plain(trees), problem.primary_matrix, scenarios.radius, least_s)
        )
    return np.concatenate(found)


class Trees(NamedTuple):
    """The roads, and the times of the shortest-path trees from a depot and to the destination."""

    out: Adjacency
    into: Adjacency
    tail: IntArray
    head: IntArray
    embeddings: FloatArray
    times: FloatArray
    from_depot: FloatArray
    to_destination: FloatArray
    destination: int


@kernel(fastmath=True)
def _sketch(embedding, sketch):  # type: ignore[no-untyped-def]
    """Fill the sketch of φφᵀ."""
    size = embedding.size
    for i in range(size):
        sketch[i] = embedding[i] * embedding[i]
    first = size
    for i in range(1, size):
        row = sketch[first : first + i]
        scaled = _ROOT * embedding[i]
        for j in range(i):
            row[j] = scaled * embedding[j]
        first += i


@kernel
def _matrix(sketch, size):  # type: ignore[no-untyped-def]
    """The symmetric matrix of a sketch."""
    matrix = np.empty((size, size))
    place = size
    for i in range(size):
        matrix[i, i] = sketch[i]
        for j in range(i):
            matrix[i, j] = sketch[place] / _ROOT
            matrix[j, i] = matrix[i, j]
            place += 1
    return matrix


@kernel(fastmath=True)
def _dot(first, second):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@kernel
def _accumulate(adjacency, embeddings, times, distance, order, place, sketches, by):  # type: ignore[no-untyped-def]
    """G along a shortest-path tree: row ``place[v]`` of ``sketches`` for each v of ``order``.

    ``by[v]`` becomes the edge of the tree at v.
    """
    start, edge, other = adjacency
    for v in order:
        row = sketches[place[v]]
        row[:] = 0.0
        if distance[v] == 0.0:
            continue
        for k in range(start[v], start[v + 1]):
            u = other[k]
            tight = distance[u] < distance[v] and distance[u] + times[edge[k]] == distance[v]
            if tight and place[u] >= 0:
                before = sketches[place[u]]
                _sketch(embeddings[edge[k]], row)
                for i in range(row.size):
                    row[i] += before[i]
                by[v] = edge[k]
                break


@kernel(fastmath=True)
def _difference(primary, before, after, direction):  # type: ignore[no-untyped-def]
    """Take G₁ − G(z) from the sketch of z's middle edge in ``direction``; its ⟨·, ·⟩."""
    square = np.float32(0.0)
    for i in range(primary.size):
        value = primary[i] - before[i] - after[i] - direction[i]
        direction[i] = value
        square += value * value
    return square


@kernel
def _worth_a_look(trees, primary_matrix, radius, least):  # type: ignore[no-untyped-def]
    """The edges on paths that could gain more than ``least``, and all nodes of their paths."""
    tail, head, times = trees.tail, trees.head, trees.times
    from_depot, to_destination = trees.from_depot, trees.to_destination
    trace, norm = np.trace(primary_matrix), np.sqrt(inner(primary_matrix, primary_matrix))
    width = np.sqrt(2.0 * radius)
    through = np.empty(tail.size)
    edges = np.empty(tail.size, np.int32)
    count, farthest = 0, 0.0
    for e in range(tail.size):
        through[e] = from_depot[tail[e]] + times[e] + to_destination[head[e]]
        # at best, as ‖G(z)‖_F ≤ tr G(z)
        gain = trace - through[e] + width * np.hypot(norm, through[e])
        if through[e] < np.inf and gain >= max(least, 0.0):
            edges[count] = e
            count += 1
    edges = edges[:count]
    if count > _MOST_EDGES:
        edges = edges[np.argsort(through[edges], kind="mergesort")[:_MOST_EDGES]]
    for e in edges:
        farthest = max(farthest, through[e])
    # no farther from a shortest path than these edges: whole branches of the trees
    nodes = np.flatnonzero(from_depot + to_destination <= farthest * (1.0 + 1e-12))
    return edges, nodes


@kernel
def promising_directions(trees, primary_matrix, radius, least):  # type: ignore[no-untyped-def]
    """The D = G₁ − G(z) of the most promising distinct paths through any edge, best first.

    Paths that promise no more than ``least`` seconds are left out.
    """
    out, into, tail, head, embeddings, times, from_depot, to_destination, destination = trees
    edges, nodes = _worth_a_look(Trees(*trees), primary_matrix, radius, least)
    size = embeddings.shape[1]
    length = size * (size + 1) // 2
    place = np.full(from_depot.size, -1)
    by, onward = place.copy(), place.copy()
    for i in range(nodes.size):
        place[nodes[i]] = i
    ahead = np.empty((nodes.size, length), np.float32)
    behind = np.empty((nodes.size, length), np.float32)
    order = nodes[np.argsort(from_depot[nodes])]
    _accumulate(into, embeddings, times, from_depot, order, place, behind, by)
    order = nodes[np.argsort(to_destination[nodes])]
    _accumulate(out, embeddings, times, to_destination, order, place, ahead, onward)
    primary = np.empty(length, np.float32)
    for i in range(size):
        primary[i] = primary_matrix[i, i]
        for j in range(i):
            primary[size + i * (i - 1) // 2 + j] = _ROOT * primary_matrix[i, j]
    width = np.sqrt(2.0 * radius)
    scores = np.full(edges.size, -np.inf)
    direction = np.empty(length, np.float32)
    for i in range(edges.size):
        e = edges[i]
        if by[head[e]] == e and head[e] != destination:
            continue  # the path through the next edge is the same
        _sketch(embeddings[e], direction)
        square = _difference(primary, behind[place[tail[e]]], ahead[place[head[e]]], direction)
        if square > 0.0:
            scores[i] = width * np.sqrt(square)
            for j in range(size):
                scores[i] += direction[j]
    chosen = np.empty((_KEPT_PER_DEPOT, length), np.float32)
    norms = np.empty(_KEPT_PER_DEPOT)
    count = 0
    for i in np.argsort(-scores)[:_LOOKED_AT]:
        if scores[i] == -np.inf or scores[i] <= least or count == _KEPT_PER_DEPOT:
            break
        e = edges[i]
        _sketch(embeddings[e], direction)
        before, after = behind[place[tail[e]]], ahead[place[head[e]]]
        norm = np.sqrt(_difference(primary, before, after, direction))
        alike = False  # neighbours of one path give nearly one direction
        for j in range(count):
            if _dot(direction, chosen[j]) > _ALIKE * norm * norms[j]:
                alike = True
                break
        if not alike:
            chosen[count] = direction
            norms[count] = norm
            count += 1
    directions = np.empty((count, size, size))
    for i in range(count):
        directions[i] = _matrix(chosen[i], size)
    return directions
