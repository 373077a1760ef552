"""The corridor: the roads of those second paths that may still exceed the target.

Symbols: ``S`` a way on from a node, ``t = tr G(S)`` its nominal time, ``φ̂`` the unit
direction of an edge's embedding.

A bound that knows but the length of S must fear that all of it lies in one
direction of the embedding space. It does not: for an edge e of S, what of S lies off
the direction of e is itself the length of S, under the metric I − φ̂φ̂ᵀ, so no less
than the shortest such way in the corridor, off_e. Counting every pair of edges
once, at the one that comes first (after the bound of Gilmore and Lawler),

    ‖G(S)‖²_F = t² − 2 Σ_e ĉ_e off_e(S after e) ≤ t² − 2 Σ_e ĉ_e off_e(head of e),

and the least Σ over S, its *spread*, is a shortest path once more.
"""

import math
from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, frozen
from ideal_dispatch.compiled import kernel
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network.shortest_path import Adjacency

_BLOCK = 64  # directions at once
_ALIKE = 1e-4  # more than single precision gets wrong in a squared cosine
_SAFETY = 1.0 - 1e-3  # more than it gets wrong in a sum
_MARGIN = 0.08  # of the longest way
_NO_WAY = 1e30
_LONGEST_S = 1e15  # longer edges count as this long: thousands of them stay below no way
_MOST_SPREAD = 1.0  # beyond it the gain need not grow with the length


class Corridor(NamedTuple):
    """What a search needs of the roads it keeps to.

    ``to_destination``, ``from_depots`` and ``spread`` belong to ways inside; the
    first and the last are infinite at nodes without one.
    """

    outgoing: Adjacency
    incoming: Adjacency
    to_destination: FloatArray
    from_depots: FloatArray
    spread: FloatArray

    @classmethod
    def everywhere(cls, problem: GapProblem) -> "Corridor":
        """All roads, whose spread is not looked for."""
        network, times = problem.network, problem.scenarios.nominal_times
        return cls(
            network.outgoing,
            network.incoming,
            problem.nominal_to_destination,
            network.distances(times, problem.depots.tolist()),
            frozen(np.zeros(network.num_nodes)),
        )

    @classmethod
    def of(cls, problem: GapProblem, edges: IntArray) -> "Corridor":
        """The given roads alone."""
        network = problem.network
        times = np.full(network.num_edges, np.inf)
        times[edges] = problem.scenarios.nominal_times[edges]
        tail, head = network.tail[edges], network.head[edges]
        return cls(
            _slots(tail, head, edges, network.num_nodes),
            _slots(head, tail, edges, network.num_nodes),
            network.distances_to(times, problem.destination),
            network.distances(times, problem.depots.tolist()),
            frozen(least_spread(problem, edges)),
        )


def _slots(near: IntArray, far: IntArray, edges: IntArray, num_nodes: int) -> Adjacency:
    start, slot, other = Adjacency.by(near, far, num_nodes)
    return Adjacency(start, frozen(edges[slot]), other)


def without_dead_ends(problem: GapProblem, edges: IntArray) -> IntArray:
    """Those of the edges that lead on: a way into a dead end and back is slower in any scenario."""
    network = problem.network
    kept: BoolArray = lead_on(
        network.tail[edges], network.head[edges], problem.depots, problem.destination,
        network.num_nodes,
    )  # fmt: skip
    return edges[kept]


@kernel
def lead_on(tail, head, depots, destination, num_nodes):  # type: ignore[no-untyped-def]
    """Which edges join two nodes, neither with a single neighbour unless paths begin or end there.

    Edges that do not are left out one after another, until all do.
    """
    kept = tail != head
    neighbour = np.empty(num_nodes, np.int32)
    has_two = np.empty(num_nodes, np.bool_)
    changed = True
    while changed:
        neighbour[:] = -1
        has_two[:] = False
        has_two[destination] = True
        for v in depots:
            has_two[v] = True
        for k in range(tail.size):
            if kept[k]:
                for u, v in ((tail[k], head[k]), (head[k], tail[k])):
                    if neighbour[u] < 0:
                        neighbour[u] = v
                    elif neighbour[u] != v:
                        has_two[u] = True
        changed = False
        for k in range(tail.size):
            if kept[k] and not (has_two[tail[k]] and has_two[head[k]]):
                kept[k] = False
                changed = True
    return kept


# --- the least spread ---------------------------------------------------------------


def least_spread(problem: GapProblem, corridor: IntArray) -> FloatArray:
    """For every node the least spread of a way on inside the corridor; infinite without one."""
    network, scenarios = problem.network, problem.scenarios
    reach = problem.nominal_to_destination
    # by growing time to the destination: one sweep then settles nearly all nodes
    corridor = corridor[np.argsort(reach[network.tail[corridor]], kind="stable")]
    times = scenarios.nominal_times[corridor]
    lengths = np.sqrt(np.where(times > 0.0, times, 1.0))
    times = np.minimum(times, _LONGEST_S)
    units = np.zeros((corridor.size, -(-scenarios.dimension // 4) * 4), np.float32)
    units[:, : scenarios.dimension] = scenarios.embeddings[corridor] / lengths[:, None]
    off = off_directions(
        network.tail[corridor], network.head[corridor], units, times.astype(np.float32), reach,
        problem.destination,
    )  # fmt: skip
    costs = np.full(network.num_edges, np.inf)
    led = off < _NO_WAY * _SAFETY
    costs[corridor[led]] = times[led] * off[led]
    return network.distances_to(costs, problem.destination)


@kernel
def off_directions(tail, head, units, times, reach, destination):  # type: ignore[no-untyped-def]
    """off_e(head of e) of every edge e, never too large.

    Edges come by growing ``reach`` of their tails. A block of directions is swept
    over the edges not much farther than its own until nothing changes; a way that
    leaves them comes back, and is no shorter than from where it does.
    """
    count, size = units.shape
    result = np.empty(count)
    directions = np.zeros((size, _BLOCK), np.float32)
    weights = np.empty((count, _BLOCK), np.float32)
    off = np.empty((reach.size, _BLOCK), np.float32)
    back = np.empty(_BLOCK, np.float32)
    fresh, moved = np.empty(reach.size, np.bool_), np.empty(reach.size, np.bool_)
    for first in range(0, count, _BLOCK):
        last = min(first + _BLOCK, count)
        for j in range(last - first):
            for i in range(size):
                directions[i, j] = units[first + j, i]
        farthest = reach[tail[last - 1]] + _MARGIN * reach[tail[-1]]
        near = last
        while near < count and reach[tail[near]] <= farthest:
            near += 1
        _weigh(units[:near], times, directions, weights)
        off[:] = np.float32(_NO_WAY)
        off[destination] = 0.0
        fresh[:] = False
        fresh[destination] = True
        while _sweep(tail[:near], head, weights, off, fresh, moved):
            fresh, moved = moved, fresh
        back[:] = np.float32(_NO_WAY)
        for k in range(near, count):
            if reach[head[k]] <= farthest:
                for j in range(_BLOCK):
                    back[j] = min(back[j], off[head[k], j])
        for j in range(last - first):
            result[first + j] = min(off[head[first + j], j], back[j]) * _SAFETY
    return result


@kernel(fastmath=True)
def _weigh(units, times, directions, weights):  # type: ignore[no-untyped-def]
    """Fill in how much of each edge's time lies off each direction."""
    for k in range(units.shape[0]):
        row, unit = weights[k], units[k]
        row[:] = 0.0
        for i in range(0, unit.size, 4):  # so that sums stay in registers
            a, b, c, d = unit[i], unit[i + 1], unit[i + 2], unit[i + 3]
            along = directions[i : i + 4]
            for j in range(_BLOCK):
                row[j] += a * along[0, j] + b * along[1, j] + c * along[2, j] + d * along[3, j]
        for j in range(_BLOCK):
            row[j] = times[k] * max(np.float32(1.0 - _ALIKE) - row[j] * row[j], np.float32(0.0))


@kernel
def _sweep(tail, head, weights, off, fresh, moved):  # type: ignore[no-untyped-def]
    """Relax the edges to fresh nodes and to those that the sweep itself moves; whether any."""
    moved[:] = False
    any_moved = False
    for k in range(tail.size):
        if fresh[head[k]]:
            here, there, row = off[tail[k]], off[head[k]], weights[k]
            shorter = 0
            for j in range(_BLOCK):
                value = row[j] + there[j]
                shorter += value < here[j]
                here[j] = value if value < here[j] else here[j]
            if shorter:
                fresh[tail[k]] = moved[tail[k]] = any_moved = True
    return any_moved


# --- what a spread is worth -------------------------------------------------------


@kernel
def relative_spread(spread, multiplier, excess):  # type: ignore[no-untyped-def]
    """The spread in the metric Y = A⁻¹ and in units of γ²; λmax(A) is at most 1 + ``excess``/γ."""
    scale = 1.0 / (multiplier + excess)
    return min(2.0 * spread * scale * scale, _MOST_SPREAD)


@kernel
def least_gain(length, spread):  # type: ignore[no-untyped-def]
    """The least log det(I + S) for S ⪰ 0 with tr S = ``length``, ‖S‖²_F ≤ length² − ``spread``.

    log(1 + λ)/λ is convex: by Jensen's inequality with the weights λ/t, log det(I + S)
    is at least t log(1 + m)/m at the mean m = ‖S‖²_F/t. It grows with the length.
    """
    if spread == 0.0:
        return math.log1p(length)
    mean = length - spread / length
    if mean <= 1e-8:
        return length * (1.0 - 0.5 * max(mean, 0.0))
    return length * math.log1p(mean) / mean


@kernel
def longest(gain, spread):  # type: ignore[no-untyped-def]
    """A length from which on the least gain is no less than ``gain`` > 0; hardly too long."""
    high = math.expm1(gain)
    if spread == 0.0:
        return high
    low = gain
    for _ in range(40):
        middle = 0.5 * (low + high)
        if least_gain(middle, spread) < gain:
            low = middle
        else:
            high = middle
        if high - low < 1e-6 * high:
            break
    return high
