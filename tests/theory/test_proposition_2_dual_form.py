"""[IDEAL] Proposition 2: the target radius is the value of a convex program without paths.

Three computations of one number: the paper's program in (X, π, ω), a program with
a constraint for every path, both by conic solvers, and our interval.
"""

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.scenarios import ScenarioSet, burg_divergence
from ideal_dispatch.scenarios.target_radius import target_radius

cvxpy: Any = pytest.importorskip(
    "cvxpy", reason="the paper's program needs a conic solver: pip install cvxpy"
)

SEEDS = range(12)
ACCURACY = 1e-6  # of the interior-point solver, for values around one


class Case:
    """A random multigraph with parallel edges, embeddings and a slow trip across it."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        nodes, dimension = int(rng.integers(6, 13)), int(rng.integers(2, 5))
        chain = np.array(list(pairwise(rng.permutation(nodes))))
        extra = rng.integers(0, nodes, (2 * nodes, 2))
        ends = np.concatenate((chain, chain[::3], extra[extra[:, 0] != extra[:, 1]]))
        self.network = RoadNetwork.from_arrays(
            ends[:, 0], ends[:, 1], np.full(len(ends), 100.0), num_nodes=nodes
        )
        self.embeddings: FloatArray = rng.standard_normal((len(ends), dimension))
        self.origin, self.destination = int(chain[0, 0]), int(chain[-1, 1])
        self.scenarios = ScenarioSet(self.embeddings, 0.0)
        fastest = self.network.distances(self.scenarios.nominal_times, self.origin)
        self.observed_s = float(fastest[self.destination] * rng.uniform(1.05, 4.0))

    def arguments(self) -> tuple[RoadNetwork, FloatArray, int, int, float]:
        return (
            self.network, self.embeddings, self.origin, self.destination, self.observed_s
        )  # fmt: skip

    def path_matrices(self) -> list[FloatArray]:
        graph = nx.MultiDiGraph()
        ends = zip(self.network.tail.tolist(), self.network.head.tolist(), strict=True)
        graph.add_edges_from((u, v, e) for e, (u, v) in enumerate(ends))
        paths = nx.all_simple_edge_paths(graph, self.origin, self.destination)
        return [self.scenarios.path_matrix([edge for _, _, edge in path]) for path in paths]


def _minimum(metric: Any, constraints: list[Any], solver: str, **options: Any) -> float:
    divergence = cvxpy.trace(metric) - cvxpy.log_det(metric) - metric.shape[0]
    problem = cvxpy.Problem(cvxpy.Minimize(divergence), constraints)
    problem.solve(solver=solver, **options)
    assert problem.status == cvxpy.OPTIMAL
    return float(problem.value)


def _dual_form(case: Case, solver: str, **options: Any) -> float:
    """The value of the program of Proposition 2."""
    nodes, edges = case.network.num_nodes, case.network.num_edges
    incidence = np.zeros((nodes, edges))
    incidence[case.network.tail, np.arange(edges)] += 1.0
    incidence[case.network.head, np.arange(edges)] -= 1.0
    supply = np.zeros(nodes)
    supply[case.origin], supply[case.destination] = 1.0, -1.0
    metric = cvxpy.Variable((case.scenarios.dimension,) * 2, PSD=True)
    potential, surplus = cvxpy.Variable(nodes), cvxpy.Variable(edges, nonneg=True)
    times = cvxpy.sum(cvxpy.multiply(case.embeddings @ metric, case.embeddings), axis=1)
    constraints = [
        incidence.T @ potential - surplus <= times,
        supply @ potential - cvxpy.sum(surplus) >= case.observed_s,
    ]
    return _minimum(metric, constraints, solver, **options)


def _path_form(case: Case) -> float:
    """The value with one constraint for every simple path."""
    metric = cvxpy.Variable((case.scenarios.dimension,) * 2, PSD=True)
    constraints = [
        cvxpy.sum(cvxpy.multiply(matrix, metric)) >= case.observed_s
        for matrix in case.path_matrices()
    ]
    return _minimum(metric, constraints, "CLARABEL")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_interval_holds_the_value_of_the_dual_program(seed: int) -> None:
    case = Case(seed)
    radius = target_radius(*case.arguments())
    assert radius.relative_gap < 1e-8
    value = _dual_form(case, "CLARABEL")
    assert radius.lower - ACCURACY <= value <= radius.upper + ACCURACY


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_first_order_solver_agrees(seed: int) -> None:
    case = Case(seed)
    value = _dual_form(case, "SCS", eps_abs=1e-7, eps_rel=1e-7, max_iters=20_000)
    assert target_radius(*case.arguments()).upper == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_paths_as_constraints_give_the_same_value(seed: int) -> None:
    case = Case(seed)
    radius = target_radius(*case.arguments())
    value = _path_form(case)
    assert radius.lower - ACCURACY <= value <= radius.upper + ACCURACY


@pytest.mark.parametrize("seed", range(200))
def test_kkt_conditions_over_all_paths(seed: int) -> None:
    """Feasible, stationary, complementary and of equal value: optimal, without a solver."""
    case = Case(seed)
    radius = target_radius(*case.arguments())
    observed = case.observed_s
    for matrix in case.path_matrices():
        assert (matrix * radius.metric).sum() >= observed * (1 - 1e-13)
    assert (radius.multipliers > 0).all()
    matrices = [case.scenarios.path_matrix(path) for path in radius.paths]
    slack = np.eye(len(radius.metric)) - np.tensordot(radius.multipliers, matrices, 1)
    assert slack @ radius.metric == pytest.approx(np.eye(len(slack)), abs=1e-6)
    for matrix in matrices:
        assert (matrix * radius.metric).sum() == pytest.approx(observed, rel=1e-6)
    dual = np.linalg.slogdet(slack)[1] + observed * radius.multipliers.sum()
    assert radius.lower == pytest.approx(dual, rel=1e-9)
    assert radius.upper == pytest.approx(burg_divergence(radius.metric), rel=1e-12)
    assert radius.upper == pytest.approx(dual, rel=1e-8)
