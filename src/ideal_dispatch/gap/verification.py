"""Checking a gap by other means: dense linear algebra, plain Dijkstra, nothing compiled here.

Nothing is taken over from the search but the tree of labels and the multipliers:
matrices are summed anew, bounds and dominances come from their definitions.
"""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import CertificateError
from ideal_dispatch.gap import certificate_kernels as fates
from ideal_dispatch.gap.certificate import Proof
from ideal_dispatch.gap.optimistic_gap import OptimisticGap, status_of
from ideal_dispatch.gap.problem import NO_RADIUS, GapProblem
from ideal_dispatch.network import Path
from ideal_dispatch.scenarios import burg

_ROUNDING = 1e-9  # relative to the primary's time under the widest scenario


def verify(gap: OptimisticGap, problem: GapProblem) -> None:
    """Raise :class:`CertificateError` unless every claim of ``gap`` holds."""
    if not problem.scenarios.contains(gap.metric):
        raise CertificateError("the metric is not in the scenario set")
    second = problem.unrolled(gap.secondary, gap.metric)
    times = [path.time_s(problem.scenarios.nominal_times) for path in (problem.primary, second)]
    scale = problem.scenarios.eigenvalue_bounds.upper * sum(times)
    slack_s = _ROUNDING * (1.0 + scale)
    _verify_lower(gap, problem, second, slack_s)
    if not gap.lower_s <= gap.upper_s:
        raise CertificateError(f"the interval [{gap.lower_s}, {gap.upper_s}] is empty")
    found = status_of(gap.lower_s, gap.upper_s, gap.threshold_s)
    if gap.status != found:
        raise CertificateError(
            f"[{gap.lower_s}, {gap.upper_s}] s at threshold {gap.threshold_s} is {found}, "
            f"not {gap.status}"
        )
    try:
        _TreeCheck(gap.proof, problem, gap.upper_s + slack_s).run()
    except IndexError as error:
        raise CertificateError(f"the proof points outside itself ({error})") from None


def _verify_lower(gap: OptimisticGap, problem: GapProblem, second: Path, slack_s: float) -> None:
    if second.origin not in problem.depots or second.destination != problem.destination:
        raise CertificateError("the secondary does not lead from a depot to the destination")
    times = problem.scenarios.times(gap.metric)
    attained = problem.primary.time_s(times) - second.time_s(times)
    if abs(attained - gap.lower_s) > slack_s:
        raise CertificateError(f"the lower end {gap.lower_s} s is not attained, {attained} s is")


@dataclass(frozen=True, slots=True)
class _Base:
    """γ, γρ − γ log det A, spread/γ², Y = A⁻¹, and lengths under Y of edges and of ways on."""

    multiplier: float
    constant: float
    spread: float
    metric: FloatArray
    lengths: FloatArray
    ahead: FloatArray

    def bound(self, length: float | FloatArray) -> FloatArray:
        """What any way on of this length, or a longer one, can gain at most."""
        length = np.asarray(length) / self.multiplier
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.maximum(length - self.spread / length, 0.0) if self.spread else length
            gain = length * np.where(mean > 1e-8, np.log1p(mean) / mean, 1.0 - mean / 2.0)
        gain = np.where(np.isinf(length), np.inf, gain)
        # log det is known to a few roundings, which a large multiplier magnifies
        rounding = 8.0 * len(self.metric) * float(np.finfo(np.float64).eps)
        bound: FloatArray = self.constant - self.multiplier * (gain + rounding)
        return bound


class _TreeCheck:
    """Every second path runs through a leaf of the tree, and no leaf exceeds the upper end."""

    def __init__(self, proof: Proof, problem: GapProblem, upper_s: float) -> None:
        self._proof, self._problem, self._upper_s = proof, problem, upper_s
        self._radius = problem.scenarios.radius
        self._bases: dict[int, _Base] = {}
        self._inside = np.ones(problem.network.num_edges, np.bool_)
        self._spread = np.zeros(problem.network.num_nodes)
        size = problem.scenarios.dimension
        self._matrix = np.zeros((len(proof), size, size))
        self._node = np.empty(len(proof), np.int64)

    def run(self) -> None:
        proof, problem = self._proof, self._problem
        self._check_shape()
        if self._radius < NO_RADIUS:
            fastest = problem.nominal_to_destination[problem.depots].min()
            self._require(problem.primary.time_s(problem.scenarios.nominal_times) - fastest)
            return
        if proof.corridor_multiplier.size:
            self._inside = self._without_dead_ends(self._corridor())
            self._spread = self._least_spread(self._inside)
        extensions = set(zip(proof.parent.tolist(), proof.via.tolist(), strict=True))
        for label in range(len(proof)):
            fate = proof.fate[label]
            if fate == fates.EXPANDED:
                visited = set(self._node[self._ancestors(label)].tolist())
                for edge in np.flatnonzero(problem.network.tail == self._node[label]).tolist():
                    # a path that returns to its own node is slower in every scenario
                    returns = int(problem.network.head[edge]) in visited
                    if (label, edge) not in extensions and not returns:
                        self._require(self._through(label, edge))
            elif fate == fates.COMPLETE:
                difference = problem.primary_matrix - self._matrix[label]
                self._require(-burg.minimise_linear(-difference, self._radius).value)
            elif fate == fates.DOMINATED:
                self._check_dominance(label)
            else:  # bounded or open
                self._require(self._through(label, None))

    def _check_shape(self) -> None:
        """Labels are paths from depots, and no depot is left out."""
        proof, problem = self._proof, self._problem
        network = problem.network
        roots = set()
        for label in range(len(proof)):
            parent, edge = int(proof.parent[label]), int(proof.via[label])
            if parent < 0:
                self._node[label] = proof.node[label]
                roots.add(int(proof.node[label]))
                continue
            if not parent < label or network.tail[edge] != self._node[parent]:
                raise CertificateError(f"label {label} does not extend its parent")
            self._node[label] = network.head[edge]
            embedding = problem.scenarios.embeddings[edge]
            self._matrix[label] = self._matrix[parent] + np.outer(embedding, embedding)
        reachable = problem.depots[np.isfinite(problem.nominal_to_destination[problem.depots])]
        if roots != set(reachable.tolist()):
            raise CertificateError("the tree does not start at all depots")

    def _ancestors(self, label: int) -> list[int]:
        """The label, its parent, and so on to the depot."""
        chain = []
        while label >= 0:
            chain.append(label)
            label = int(self._proof.parent[label])
        return chain

    def _require(self, bound_s: float) -> None:
        if not bound_s <= self._upper_s:
            raise CertificateError(
                f"the upper end {self._upper_s} s is not proved: a path may gain {bound_s} s"
            )

    def _through(self, label: int, edge: int | None) -> float:
        """Bound on any second path that begins with the label, and the edge if given."""
        node = int(self._node[label] if edge is None else self._problem.network.head[edge])
        if self._spread[node] == np.inf:  # no way on in the corridor
            return -np.inf
        base = int(self._proof.base[label])
        if base < 0:  # a depot that was never looked at
            bounds = self._problem.scenarios.eigenvalue_bounds
            return bounds.upper * float(np.trace(self._problem.primary_matrix))
        owner = int(self._proof.base_label[base])
        if base not in self._bases:
            gamma = float(self._proof.base_multiplier[base])
            self._bases[base] = self._base(self._matrix[owner], int(self._node[owner]), gamma)
        if owner not in self._ancestors(label):
            raise CertificateError(f"label {label} has a base that is not on its way")
        known = self._bases[base]
        length = float(np.sum((self._matrix[label] - self._matrix[owner]) * known.metric))
        if edge is not None:
            length += float(known.lengths[edge])
        return float(known.bound(length + known.ahead[node]))

    def _base(self, matrix: FloatArray, node: int, gamma: float) -> "_Base":
        """What the multiplier proves of every way on from the node behind a path of the matrix."""
        problem = self._problem
        spectrum, vectors = np.linalg.eigh(problem.primary_matrix - matrix)
        if not gamma > max(0.0, spectrum[-1]):
            raise CertificateError(f"a base at node {node} has a multiplier that bounds nothing")
        metric = (vectors / (1.0 - spectrum / gamma)) @ vectors.T
        embeddings = problem.scenarios.embeddings
        lengths = np.einsum("ei,ij,ej->e", embeddings, metric, embeddings, optimize=True)
        lengths = np.where(self._inside, np.maximum(lengths, 0.0), np.inf)
        largest = 1.0 - min(0.0, float(spectrum[0])) / gamma
        return _Base(
            gamma,
            gamma * (self._radius - float(np.log1p(-spectrum / gamma).sum())),
            min(1.0, 2.0 * self._spread[node] / (largest * gamma) ** 2),
            metric,
            lengths,
            problem.network.distances_to(lengths, problem.destination),
        )

    def _corridor(self) -> BoolArray:
        """Edges of the second paths that bases at the depots allow above the upper end."""
        network = self._problem.network
        inside = np.zeros(network.num_edges, np.bool_)
        reach = self._problem.nominal_to_destination
        nothing = np.zeros_like(self._problem.primary_matrix)
        for i, depot in enumerate(self._problem.depots.tolist()):
            if depot == self._problem.destination or not np.isfinite(reach[depot]):
                continue
            base = self._base(nothing, depot, float(self._proof.corridor_multiplier[i]))
            behind = network.distances(base.lengths, depot)
            through = behind[network.tail] + base.lengths + base.ahead[network.head]
            inside |= base.bound(through) > self._upper_s
        return inside

    def _without_dead_ends(self, inside: BoolArray) -> BoolArray:
        """Without the roads to nodes with one neighbour, from where a path can but return."""
        tail, head = self._problem.network.tail, self._problem.network.head
        inside = inside & (tail != head)
        while True:
            ways = np.stack([tail[inside], head[inside]])
            pairs = np.unique(np.hstack([ways, ways[::-1]]), axis=1)
            dead = np.bincount(pairs[0], minlength=self._problem.network.num_nodes) == 1
            dead[[*self._problem.depots, self._problem.destination]] = False
            if not dead.any():
                return inside
            inside &= ~dead[tail] & ~dead[head]

    def _least_spread(self, corridor: BoolArray) -> FloatArray:
        """The least Σ ĉ off over the ways on inside the corridor, direction by direction."""
        network, scenarios = self._problem.network, self._problem.scenarios
        times, embeddings = scenarios.nominal_times, scenarios.embeddings
        costs = np.full(network.num_edges, np.inf)
        for edge in np.flatnonzero(corridor).tolist():
            along = np.zeros(network.num_edges)
            if times[edge] > 0.0:
                along = (embeddings @ embeddings[edge]) ** 2 / times[edge]
            off = np.where(corridor, np.maximum(times - along, 0.0), np.inf)
            ahead = network.distances_to(off, self._problem.destination)[network.head[edge]]
            costs[edge] = times[edge] * ahead if np.isfinite(ahead) else np.inf
        return network.distances_to(costs, self._problem.destination)

    def _check_dominance(self, label: int) -> None:
        """Some label at the same node is no slower in any scenario, and is not itself dropped."""
        proof = self._proof
        seen = {label}
        better = int(proof.dominator[label])
        if better < 0 or self._node[better] != self._node[label]:
            raise CertificateError(f"label {label} is not dominated by a label at its node")
        difference = self._matrix[label] - self._matrix[better]
        least = burg.minimise_linear(difference, self._radius).value
        if least < -_ROUNDING * (1.0 + float(np.trace(self._matrix[label]))):
            raise CertificateError(f"label {label} is faster than its dominator by {-least} s")
        while proof.fate[better] == fates.DOMINATED:
            if better in seen:
                raise CertificateError(f"label {label} dominates itself")
            seen.add(better)
            better = int(proof.dominator[better])
