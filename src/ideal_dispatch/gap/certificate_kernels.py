"""The compiled label search behind a proved gap.

Symbols: label ``P``, a partial path from a depot to node v; ``W = G₁ − G(P)``;
``γ`` multiplier; ``A = I − W/γ``; ``Y = A⁻¹``; ``T`` target: what is to be proved
not to be exceeded.

Bound. For any γ with A ≻ 0 and any way on S from v,

    Δ(P + S) ≤ γρ − γ log det(A + G(S)/γ) ≤ γρ − γ log det A − γ g(⟨G(S), Y⟩/γ),

with g(t) = log(1 + t), or more if the spread of the ways on is known
(:mod:`ideal_dispatch.gap.corridor`), and ⟨G(S), Y⟩ is the length of S under the
metric Y. So one backward search under Y, the *base* of P, bounds every
continuation at once: those longer than H, where g(H/γ) = ρ − log det A − T/γ,
cannot exceed T. A base serves all labels below it, for which the length since
the base counts with; the farther they are from it, the more its bound loses,
and a label takes a base of its own.

Dominance. A label P is dropped if another one at its node, P', is no slower in any
scenario. That is so, with E = G(P) − G(P'), if log det(I + sE) ≥ ρ for some s > 0, or, as
‖X − I‖_F ≤ M_ρ − 1 in the ball, if tr E ≥ (M_ρ − 1) ‖E‖_F.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.compiled import kernel
from ideal_dispatch.gap.corridor import Corridor, least_gain, longest, relative_spread
from ideal_dispatch.network.shortest_path import heap_pop, heap_push
from ideal_dispatch.scenarios.small_matrices import add_outer, factorise, inner, invert, quadratic
from ideal_dispatch.scenarios.spectrum import largest_product

OPEN, EXPANDED, BOUNDED, DOMINATED, COMPLETE = 0, 1, 2, 3, 4
CLOSED, FOUND, PAUSED, LABELS_FULL, BASES_FULL = 0, 1, 2, 3, 4
LABELS, WAITING, BASES, POPS = 0, 1, 2, 3  # counters

_REBASE = 0.1  # a base serves paths up to this length, as a share of γ
_STEP = 1.18  # factor of the search for γ
_SAFETY = 1.0 + 1e-12  # rounding never prunes what it should not
_SMALLEST_MULTIPLIER = 1e-9  # seconds; reached only where there is nothing to gain
_DOMINANCE_TRIES = 3
_HOPELESS = 1.2


class Claim(NamedTuple):
    """What is to be proved or refuted, and in which scenarios; ``width`` is M_ρ − 1."""

    embeddings: FloatArray
    nominal: FloatArray
    destination: int
    primary_matrix: FloatArray
    radius: float
    width: float
    stop_at_found: bool


class Labels(NamedTuple):
    """Labels: their place in the tree, G(P) and its trace, their base and fate.

    ``since_base`` is the length since the base; ``next_at`` chains labels of one node.
    ``keys`` and ``waiting`` are the heap of labels that wait.
    """

    node: IntArray
    parent: IntArray
    via: IntArray
    nominal_time: FloatArray
    matrix: FloatArray
    base: IntArray
    since_base: FloatArray
    fate: npt.NDArray[np.uint8]
    dominator: IntArray
    next_at: IntArray
    keys: FloatArray
    waiting: IntArray


class Bases(NamedTuple):
    """Bases: the label of each, γ, γρ − γ log det A, the spread, H, Y, and lengths of ways on."""

    label: IntArray
    multiplier: FloatArray
    constant: FloatArray
    spread: FloatArray
    limit: FloatArray
    metric: FloatArray
    ahead: FloatArray


class Tally(NamedTuple):
    """How many labels, waiting labels, bases and pops there are; T and the label that set it.

    ``first_at`` is the latest label of each node.
    """

    counters: npt.NDArray[np.int64]
    target: FloatArray
    first_at: IntArray


@kernel
def _backward(claim, corridor, metric, smallest, node, limit, ahead):  # type: ignore[no-untyped-def]
    """Lengths under the metric to the destination, of all nodes on a way from ``node`` that
    may be shorter than ``limit``; infinite for others.

    As from_depots[u] − from_depots[node] ≤ nominal time from node to u, the way
    from ``node`` to u is no shorter than ``smallest`` times that.
    """
    start, edge, other = corridor.incoming
    from_depots = corridor.from_depots
    embeddings, nominal = claim.embeddings, claim.nominal
    ahead[:] = np.inf
    ahead[claim.destination] = 0.0
    keys = np.empty(1024)
    nodes = np.empty(1024, np.int32)
    here = from_depots[node]
    size = heap_push(keys, nodes, 0, 0.0, claim.destination)
    while size:
        key = keys[0]
        u = nodes[0]
        if key > limit:
            break
        size = heap_pop(keys, nodes, size)
        if key > (ahead[u] + smallest * max(0.0, from_depots[u] - here)) * _SAFETY:
            continue
        for k in range(start[u], start[u + 1]):
            w = other[k]
            behind = smallest * max(0.0, from_depots[w] - here)
            least = ahead[u] + smallest * nominal[edge[k]]
            if least >= ahead[w] or not least + behind <= limit:
                continue
            reached = ahead[u] + quadratic(metric, embeddings[edge[k]])
            if reached < ahead[w] and reached + behind <= limit:
                ahead[w] = reached
                if size == keys.size:
                    keys = np.concatenate((keys, np.empty(keys.size)))
                    nodes = np.concatenate((nodes, np.empty(nodes.size, np.int32)))
                size = heap_push(keys, nodes, size, reached + behind, w)


@kernel
def _best_multiplier(matrix, radius, multiplier, ahead, spread, excess, factor):  # type: ignore[no-untyped-def]
    """A good γ for W = ``matrix`` when the way on is about ``ahead`` long."""
    logdet = factorise(matrix, -1.0 / multiplier, factor)
    while logdet == -np.inf:
        multiplier *= 1.5
        logdet = factorise(matrix, -1.0 / multiplier, factor)
    gain = least_gain(ahead / multiplier, relative_spread(spread, multiplier, excess))
    best = multiplier * (radius - logdet - gain)
    for step in (1.0 / _STEP, _STEP):
        moved = False
        while True:
            trial = multiplier * step
            if trial < _SMALLEST_MULTIPLIER:
                break
            logdet = factorise(matrix, -1.0 / trial, factor)
            gain = least_gain(ahead / trial, relative_spread(spread, trial, excess))
            bound = trial * (radius - logdet - gain)
            if logdet == -np.inf or not bound < best:
                break
            multiplier, best, moved = trial, bound, True
        if moved:
            break
    return multiplier


@kernel
def corridor_lengths(head, embeddings, metric, ahead, limit):  # type: ignore[no-untyped-def]
    """The length φᵀYφ of every edge; infinite where the way on alone reaches the limit."""
    lengths = np.full(head.size, np.inf)
    for e in range(head.size):
        if ahead[head[e]] < limit:
            lengths[e] = max(quadratic(metric, embeddings[e]), 0.0)
    return lengths


@kernel
def _excess(matrix, scale, most, factor):  # type: ignore[no-untyped-def]
    """A bound on λmax(−matrix), within a few per cent of the scale where that is small."""
    for share in (0.02, 0.05, 0.1, 0.2, 0.4):
        if share * scale >= most:
            break
        if factorise(matrix, 1.0 / (share * scale), factor) > -np.inf:
            return share * scale
    return most


@kernel(fastmath={"reassoc", "contract"})
def _distance_squared(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(first.size):
        value = second[i] - first[i]
        total += value * value
    return total


@kernel
def dominates(first, second, sooner, radius, width, difference, factor):  # type: ignore[no-untyped-def]
    """Whether the path of matrix ``first`` is proved no slower than ``second`` in any scenario.

    Proved, never guessed; what is missed costs labels. ``sooner`` is how much
    smaller the trace of ``first`` is, and ``width`` is M_ρ − 1.
    """
    square = 0.0
    for i in range(first.shape[0]):  # row by row, as mostly the first few say enough
        square += _distance_squared(first[i], second[i])
        if sooner * sooner < min(_HOPELESS * radius, 0.9) * square:  # hardly ever true then
            return False
    if sooner >= width * math.sqrt(square):
        return True
    for i in range(first.shape[0]):
        for j in range(i + 1):
            difference[i, j] = second[i, j] - first[i, j]
    scale = sooner / square
    for _ in range(_DOMINANCE_TRIES):
        logdet = factorise(difference, scale, factor)
        if logdet >= radius:
            return True
        scale *= 0.6 if logdet <= 0.0 else 1.7
    return False


@kernel
def _visits(node, parent, label, wanted):  # type: ignore[no-untyped-def]
    """Whether the label's path passes the node: going round costs time in every scenario."""
    while label >= 0:
        if node[label] == wanted:
            return True
        label = parent[label]
    return False


@kernel
def explore(claim, corridor, budget, tally, labels, bases):  # type: ignore[no-untyped-def]
    """Expand labels in the order of nominal time until none is left.

    ``target[0]`` is T; a complete path above it becomes T, or ends the search
    with ``stop_at_found``. ``target[1]`` is that path's label. Everything is kept
    in the arguments, so that a search can go on after a pause or with more room.
    """
    embeddings, nominal, destination, primary_matrix, radius, width, stop_at_found = claim
    (out_start, out_edge, out_other), _, to_destination, _, spread = corridor
    counters, target, first_at = tally
    node, parent, via, nominal_time, matrix, base, since_base = labels[:7]
    fate, dominator, next_at, keys, waiting = labels[7:]
    base_label, base_multiplier, base_constant, base_spread = bases[:4]
    base_limit, base_metric, base_ahead = bases[4:]
    size = embeddings.shape[1]
    factor, scratch = np.zeros((size, size)), np.zeros((size, size))
    difference, grown = np.empty((size, size)), np.empty((size, size))
    for _ in range(budget):
        if counters[WAITING] == 0:
            return CLOSED
        label = waiting[0]
        if fate[label] != OPEN:
            counters[WAITING] = heap_pop(keys, waiting, counters[WAITING])
            continue
        v = node[label]
        if counters[LABELS] + out_start[v + 1] - out_start[v] > node.size:
            return LABELS_FULL
        if counters[BASES] == base_label.size:
            return BASES_FULL
        counters[WAITING] = heap_pop(keys, waiting, counters[WAITING])
        counters[POPS] += 1

        if v == destination:
            fate[label] = COMPLETE
            value = largest_product(primary_matrix - matrix[label], radius)
            if value > target[0]:
                target[0], target[1] = value, label
                if stop_at_found:
                    return FOUND
            continue

        b = base[label]
        if to_destination[v] == np.inf:  # a depot with no way inside the corridor
            fate[label] = BOUNDED
            continue
        if b < 0 or since_base[label] > _REBASE * base_multiplier[b]:
            work = primary_matrix - matrix[label]
            known = to_destination[v] if b < 0 else base_ahead[b, v]
            guess = math.sqrt(inner(work, work) / (2.0 * radius)) if b < 0 else base_multiplier[b]
            guess = max(guess, _SMALLEST_MULTIPLIER)
            excess = 0.0  # A ⪯ I + G(P)/γ
            if spread[v] > 0.0:
                excess = _excess(work, guess, nominal_time[label] * _SAFETY, factor)
            gamma = _best_multiplier(work, radius, guess, known, spread[v], excess, factor)
            logdet = factorise(work, -1.0 / gamma, factor)
            b = counters[BASES]
            base_label[b] = label
            base_multiplier[b] = gamma
            base_constant[b] = gamma * (radius - logdet)
            exponent = radius - logdet - target[0] / gamma
            base_spread[b] = relative_spread(spread[v], gamma, excess)
            base_limit[b] = 0.0
            if exponent > 0.0:
                base_limit[b] = gamma * longest(exponent, base_spread[b]) * _SAFETY
            invert(factor, scratch, base_metric[b])
            # no more than Y's smallest eigenvalue
            smallest = 1.0 / ((1.0 + nominal_time[label] / gamma) * _SAFETY)
            _backward(
                Claim(*claim), Corridor(*corridor), base_metric[b], smallest, v, base_limit[b],
                base_ahead[b],
            )  # fmt: skip
            counters[BASES] += 1
            base[label] = b
            since_base[label] = 0.0
            if not base_ahead[b, v] < base_limit[b]:
                fate[label] = BOUNDED
                continue

        fate[label] = EXPANDED
        for k in range(out_start[v], out_start[v + 1]):
            u = out_other[k]
            e = out_edge[k]
            if not base_ahead[b, u] < base_limit[b]:
                continue
            length = since_base[label] + quadratic(base_metric[b], embeddings[e])
            if not length + base_ahead[b, u] < base_limit[b]:
                continue
            if _visits(node, parent, label, u):
                continue
            time = nominal_time[label] + nominal[e]
            grown[:] = matrix[label]
            add_outer(grown, embeddings[e], 1.0)
            new = counters[LABELS]
            counters[LABELS] += 1
            node[new], parent[new], via[new] = u, label, e
            base[new], since_base[new], nominal_time[new] = b, length, time
            matrix[new] = grown
            fate[new], dominator[new] = OPEN, -1
            q = first_at[u]
            while q >= 0:
                sooner = time - nominal_time[q]
                if (
                    sooner >= 0.0
                    and fate[q] != DOMINATED
                    and dominates(matrix[q], grown, sooner, radius, width, difference, factor)
                ):
                    fate[new], dominator[new] = DOMINATED, q
                    break
                q = next_at[q]
            if fate[new] == DOMINATED:
                continue
            q = first_at[u]
            while q >= 0:
                sooner = nominal_time[q] - time
                if (
                    sooner > 0.0
                    and fate[q] == OPEN
                    and dominates(grown, matrix[q], sooner, radius, width, difference, factor)
                ):
                    fate[q], dominator[q] = DOMINATED, new
                q = next_at[q]
            next_at[new] = first_at[u]
            first_at[u] = new
            counters[WAITING] = heap_push(
                keys, waiting, counters[WAITING], time + to_destination[u], new
            )
    return CLOSED if counters[WAITING] == 0 else PAUSED
