"""Deterministic starts that escape the zero-gap fixed point, and their polish by DCA.

For every edge, the fastest way from a depot to it, over it and on to the destination
is a plausible second path. All of them together cost two shortest-path trees; the
matrices G add up along the trees. The most promising by a second-order estimate
of the largest advantage, Δ ≈ tr D + √(2ρ) ‖D‖_F with D = G₁ − G(z), are polished
by DCA; then the trees are grown again under the best metric found.

A direction is kept as a *sketch*, a vector of single precision: the diagonal, then
√2 times the entries below it, so that inner products are those of the matrices.
Thousands of them then fit the cache. Rounding only moves a start.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen
from ideal_dispatch.compiled import kernel
from ideal_dispatch.gap import descent
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import Path

_KEPT_PER_DEPOT = 10
_LOOKED_AT = 400  # edges, of which so many different directions are kept
_ALIKE = 0.97  # cosine of two directions that would lead to the same end
_POLISHED = 6
MOST_ROUNDS = 4
_MOST_EDGES = 8192  # nearest to a shortest path first: bounds memory in a large city
_POLISH_STEPS = 20
_WORTH = 0.8  # of what is enough: a start that promises less will hardly climb there
_ROOT = math.sqrt(2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The best gap found, attained by ``metric`` and ``secondary``."""

    gap_s: float
    metric: FloatArray
    secondary: Path


def best_start(
    problem: GapProblem,
    enough_s: float = np.inf,
    rounds: int = MOST_ROUNDS,
    deadline: float = np.inf,
) -> Start:
    """The largest gap that the starts lead to.

    The search ends early above ``enough_s``, and at the ``deadline`` of the
    clock :func:`time.perf_counter`.
    """
    climb = _Climb(problem)
    climb.polish(np.eye(problem.scenarios.dimension), 1.0, _POLISH_STEPS)
    if climb.gap_s > enough_s:
        return climb.best
    least_s = _WORTH * enough_s if enough_s < np.inf else -np.inf
    for turn in range(rounds if problem.scenarios.radius > 0 else 0):
        before = climb.gap_s
        scenarios = problem.scenarios
        times = scenarios.times(climb.metric) if turn else scenarios.nominal_times
        seeds = []
        for direction in _directions(problem, times, least_s):
            if climb.gap_s > enough_s or time.perf_counter() > deadline:
                return climb.best
            metric, smallest = descent.linear_minimum(-direction, scenarios.radius)
            seeds.append((climb.polish(metric, smallest, 0), metric, smallest))
        for _value, metric, smallest in sorted(seeds, key=lambda seed: -seed[0])[:_POLISHED]:
            climb.polish(metric, smallest, _POLISH_STEPS)
            if climb.gap_s > enough_s:
                return climb.best
        if climb.gap_s <= before * (1 + 1e-9) + 1e-9 or time.perf_counter() > deadline:
            break
    return climb.best


def polished(problem: GapProblem, edges: IntArray) -> Start:
    """The gap of the path of the given edges under its own best metric, polished."""
    direction = problem.primary_matrix - problem.scenarios.path_matrix(edges)
    climb = _Climb(problem)
    metric, smallest = descent.linear_minimum(-direction, problem.scenarios.radius)
    climb.polish(metric, smallest, _POLISH_STEPS)
    return climb.best


class _Climb:
    """Descents from many metrics, of which the best end is kept."""

    def __init__(self, problem: GapProblem) -> None:
        size = problem.scenarios.dimension
        self._problem = problem
        self._trace = (
            np.empty((_POLISH_STEPS + 1, size, size)),
            np.empty(_POLISH_STEPS + 1),
            np.empty(_POLISH_STEPS + 1),
        )
        self.gap_s = -np.inf
        self.metric: FloatArray = np.eye(size)
        self._edges: IntArray = np.empty(0, np.int32)

    def polish(self, metric: FloatArray, smallest: float, steps: int) -> float:
        """The gap after at most so many steps of DCA, kept if it is the best so far."""
        metrics, values, decreases = self._trace
        descend: Any = descent.descend
        _, done, edges = descend(
            *self._problem.kernel_arguments, metric, smallest, 0.0, steps, True,
            metrics, values, decreases,
        )  # fmt: skip
        if values[done] > self.gap_s:
            self.gap_s, self.metric = float(values[done]), metrics[done].copy()
            self._edges = edges
        return float(values[done])

    @property
    def best(self) -> Start:
        return Start(self.gap_s, self.metric, self._problem.secondary(self._edges))


def _directions(problem: GapProblem, times: FloatArray, least_s: float) -> Iterator[FloatArray]:
    """Promising D = G₁ − G(z) of paths through single edges, depot by depot.

    Those that promise no more than ``least_s`` are left out.
    """
    network, scenarios = problem.network, problem.scenarios
    times = frozen(times)  # one type for the kernel
    to_destination = network.distances_to(times, problem.destination)
    trace, norm = np.trace(problem.primary_matrix), np.linalg.norm(problem.primary_matrix)
    for depot in problem.depots:
        from_depot = network.distances(times, int(depot))
        through = from_depot[network.tail] + times + to_destination[network.head]
        # what a path of this length could gain at best, as ‖G(z)‖_F ≤ tr G(z)
        most_s = trace + np.sqrt(2 * scenarios.radius) * np.hypot(norm, through)
        edges = np.flatnonzero(np.isfinite(through) & (through <= most_s - max(least_s, 0.0)))
        if edges.size > _MOST_EDGES:
            edges = edges[np.argsort(through[edges], kind="stable")[:_MOST_EDGES]]
        if edges.size:
            # nodes no farther from a shortest path than these edges: whole branches of the trees
            around = from_depot + to_destination
            nodes = np.flatnonzero(around <= through[edges].max() * (1 + 1e-12))
            yield from promising_directions(
                *network.outgoing.arrays, *network.incoming.arrays, scenarios.embeddings, times,
                from_depot, to_destination, network.tail, network.head, nodes.astype(np.int32),
                edges.astype(np.int32), problem.primary_matrix, scenarios.radius, least_s,
                _KEPT_PER_DEPOT,
            )  # fmt: skip


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
def _accumulate(start, edge, other, embeddings, times, distance, order, place, sketches):  # type: ignore[no-untyped-def]
    """G along a shortest-path tree: row ``place[v]`` of ``sketches`` for each v of ``order``."""
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
def promising_directions(  # type: ignore[no-untyped-def]
    out_start, out_edge, out_other, in_start, in_edge, in_other, embeddings, times,
    from_depot, to_destination, tail, head, nodes, edges, primary_matrix, radius, least, most,
):  # fmt: skip
    """The D = G₁ − G(z) of the most promising distinct paths through any of the edges.

    ``nodes`` holds the ends of ``edges`` and all nodes of the trees on the way.
    Paths that promise no more than ``least`` seconds are left out.
    """
    size = embeddings.shape[1]
    length = size * (size + 1) // 2
    place = np.full(out_start.size - 1, -1, np.int64)
    for i in range(nodes.size):
        place[nodes[i]] = i
    ahead = np.empty((nodes.size, length), np.float32)
    behind = np.empty((nodes.size, length), np.float32)
    order = nodes[np.argsort(from_depot[nodes])]
    _accumulate(in_start, in_edge, in_other, embeddings, times, from_depot, order, place, behind)
    order = nodes[np.argsort(to_destination[nodes])]
    _accumulate(
        out_start, out_edge, out_other, embeddings, times, to_destination, order, place, ahead
    )
    primary = np.empty(length, np.float32)
    for i in range(size):
        primary[i] = primary_matrix[i, i]
        for j in range(i):
            primary[size + i * (i - 1) // 2 + j] = _ROOT * primary_matrix[i, j]
    width = np.sqrt(2.0 * radius)
    scores = np.empty(edges.size)
    direction = np.empty(length, np.float32)
    for i in range(edges.size):
        _sketch(embeddings[edges[i]], direction)
        before, after = behind[place[tail[edges[i]]]], ahead[place[head[edges[i]]]]
        square = _difference(primary, before, after, direction)
        scores[i] = -np.inf
        if square > 0.0:
            scores[i] = width * np.sqrt(square)
            for j in range(size):
                scores[i] += direction[j]
    chosen = np.empty((most, length), np.float32)
    norms = np.empty(most)
    count = 0
    for i in np.argsort(-scores)[:_LOOKED_AT]:
        if scores[i] == -np.inf or scores[i] <= least or count == most:
            break
        _sketch(embeddings[edges[i]], direction)
        before, after = behind[place[tail[edges[i]]]], ahead[place[head[edges[i]]]]
        norm = np.sqrt(_difference(primary, before, after, direction))
        alike = False  # all edges of one path give one direction, its neighbours nearly so
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
