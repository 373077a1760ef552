"""Checking a gap by other means: dense linear algebra, plain Dijkstra, nothing compiled here.

Nothing is taken over from the search but the tree of labels and the multipliers:
matrices are summed anew, bounds and dominances come from their definitions.
"""

from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import CertificateError
from ideal_dispatch.gap import certificate_kernels as fates
from ideal_dispatch.gap.certificate import Proof
from ideal_dispatch.gap.problem import NO_RADIUS, GapProblem
from ideal_dispatch.scenarios import burg

if TYPE_CHECKING:
    from ideal_dispatch.gap.optimistic_gap import OptimisticGap

_ROUNDING = 1e-9  # relative to the primary's time under the widest scenario


def verify(gap: "OptimisticGap", problem: GapProblem) -> None:
    """Raise :class:`CertificateError` unless every claim of ``gap`` holds."""
    times = [path.time_s(problem.scenarios.nominal_times)
             for path in (problem.primary, gap.secondary)]  # fmt: skip
    scale = problem.scenarios.eigenvalue_bounds.upper * sum(times)
    slack_s = _ROUNDING * (1.0 + scale)
    _verify_lower(gap, problem, slack_s)
    if not gap.lower_s <= gap.upper_s:
        raise CertificateError(f"the interval [{gap.lower_s}, {gap.upper_s}] is empty")
    _verify_status(gap)
    try:
        _TreeCheck(gap.proof, problem, gap.upper_s + slack_s).run()
    except IndexError as error:
        raise CertificateError(f"the proof points outside itself ({error})") from None


def _verify_lower(gap: "OptimisticGap", problem: GapProblem, slack_s: float) -> None:
    scenarios, network = problem.scenarios, problem.network
    if not scenarios.contains(gap.metric):
        raise CertificateError("the metric is not in the scenario set")
    second = network.path(gap.secondary.edges, origin=gap.secondary.origin)
    if second.origin not in problem.depots or second.destination != problem.destination:
        raise CertificateError("the secondary does not lead from a depot to the destination")
    times = scenarios.times(gap.metric)
    attained = problem.primary.time_s(times) - second.time_s(times)
    if abs(attained - gap.lower_s) > slack_s:
        raise CertificateError(f"the lower end {gap.lower_s} s is not attained, {attained} s is")


def _verify_status(gap: "OptimisticGap") -> None:
    from ideal_dispatch.gap.optimistic_gap import status_of

    found = status_of(gap.lower_s, gap.upper_s, gap.threshold_s)
    if gap.status != found:
        raise CertificateError(
            f"[{gap.lower_s}, {gap.upper_s}] s at threshold {gap.threshold_s} is {found}, "
            f"not {gap.status}"
        )


class _TreeCheck:
    """Every second path runs through a leaf of the tree, and no leaf allows more than the upper
    end.
    """

    def __init__(self, proof: Proof, problem: GapProblem, upper_s: float) -> None:
        self._proof, self._problem, self._upper_s = proof, problem, upper_s
        self._radius = problem.scenarios.radius
        self._bases: dict[int, tuple[float, float, FloatArray, FloatArray]] = {}
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
        children: dict[int, set[int]] = {}
        for label in range(len(proof)):
            if proof.parent[label] >= 0:
                children.setdefault(int(proof.parent[label]), set()).add(int(proof.via[label]))
        for label in range(len(proof)):
            fate = proof.fate[label]
            if fate == fates.EXPANDED:
                visited = set(self._node[self._ancestors(label)].tolist())
                for edge in np.flatnonzero(problem.network.tail == self._node[label]).tolist():
                    # a path that returns to its own node is slower in every scenario
                    returns = int(problem.network.head[edge]) in visited
                    if edge not in children.get(label, ()) and not returns:
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
        base = int(self._proof.base[label])
        if base < 0:  # a depot that was never looked at
            bounds = self._problem.scenarios.eigenvalue_bounds
            return bounds.upper * float(np.trace(self._problem.primary_matrix))
        gamma, constant, metric, ahead = self._base(base)
        owner = int(self._proof.base_label[base])
        if owner not in self._ancestors(label):
            raise CertificateError(f"label {label} has a base that is not on its way")
        since = self._matrix[label] - self._matrix[owner]
        length = float(np.sum(since * metric))
        node = self._node[label]
        if edge is not None:
            embedding = self._problem.scenarios.embeddings[edge]
            length += float(embedding @ metric @ embedding)
            node = self._problem.network.head[edge]
        # log det is known to a few roundings, which a large multiplier magnifies
        rounding = 8.0 * len(metric) * float(np.finfo(np.float64).eps) * gamma
        return constant - gamma * float(np.log1p((length + ahead[node]) / gamma)) - rounding

    def _base(self, base: int) -> tuple[float, float, FloatArray, FloatArray]:
        """γ, γρ − γ log det A, Y = A⁻¹ and the times to the destination under Y."""
        if base not in self._bases:
            gamma = float(self._proof.base_multiplier[base])
            label = int(self._proof.base_label[base])
            difference = self._problem.primary_matrix - self._matrix[label]
            spectrum, vectors = np.linalg.eigh(difference)
            if not gamma > max(0.0, spectrum[-1]):
                raise CertificateError(f"base {base} has a multiplier that bounds nothing")
            constant = gamma * (self._radius - float(np.log1p(-spectrum / gamma).sum()))
            metric = (vectors / (1.0 - spectrum / gamma)) @ vectors.T
            times = np.einsum(
                "ei,ij,ej->e", *(self._problem.scenarios.embeddings, metric),
                self._problem.scenarios.embeddings, optimize=True,
            )  # fmt: skip
            ahead = self._problem.network.distances_to(
                np.maximum(times, 0.0), self._problem.destination
            )
            self._bases[base] = gamma, constant, metric, ahead
        return self._bases[base]

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
