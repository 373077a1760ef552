"""[IDEAL] Remark 1: the smoothed lower level has a unique flow, and a gradient at ties too."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning import TrainParams
from tests.theory.kinks import across, at_a_kink
from tests.unit.learning.worlds import SMALL, in_double, town, trainer, trips
from workshop.smoothed_level import SmoothedTrainer, smoothed_flow
from workshop.stationarity import Objective

NETWORK = town(2)


def _times(seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return NETWORK.free_flow_times_s * rng.uniform(0.8, 1.5, NETWORK.num_edges)


def _balance(network: RoadNetwork, flow: FloatArray) -> FloatArray:
    balance = np.zeros(network.num_nodes)
    np.add.at(balance, network.tail, flow)
    np.subtract.at(balance, network.head, flow)
    return balance


@pytest.mark.parametrize("gamma_s", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize(("origin", "destination"), [(0, 7), (5, 2), (11, 4)])
def test_the_flow_is_the_minimiser(gamma_s: float, origin: int, destination: int) -> None:
    times_s = _times()
    flow = smoothed_flow(NETWORK, times_s, origin, destination, gamma_s)
    wanted = np.zeros(NETWORK.num_nodes)
    wanted[[origin, destination]] = 1.0, -1.0
    assert ((flow >= 0) & (flow <= 1)).all()
    np.testing.assert_allclose(_balance(NETWORK, flow), wanted, atol=1e-8)
    value = times_s @ flow + gamma_s * flow @ flow
    path = NETWORK.shortest_path(times_s, origin, destination)
    fastest = path.time_s(times_s)
    assert fastest - 1e-6 <= value <= fastest + gamma_s * len(path) + 1e-6
    # optimal: no feasible direction to another flow goes down
    marginal = times_s + 2 * gamma_s * flow
    rng = np.random.default_rng(1)
    for _ in range(20):
        random = rng.uniform(0.5, 2.0, NETWORK.num_edges) * NETWORK.free_flow_times_s
        other = np.zeros(NETWORK.num_edges)
        other[NETWORK.shortest_path(random, origin, destination).edges] = 1.0
        assert marginal @ (other - flow) >= -1e-5 * value


def test_another_solver_finds_the_same_flow() -> None:
    network = town(1, nodes=6, roads=12)
    times_s = network.free_flow_times_s
    matrix = np.zeros((network.num_nodes, network.num_edges))
    np.add.at(matrix, (network.tail, np.arange(network.num_edges)), 1.0)
    np.add.at(matrix, (network.head, np.arange(network.num_edges)), -1.0)
    demand = np.zeros(network.num_nodes)
    demand[[0, 3]] = 1.0, -1.0
    ours = smoothed_flow(network, times_s, 0, 3, 20.0)
    solve: Any = minimize
    theirs = solve(
        lambda z: times_s @ z + 20.0 * z @ z, ours * 0 + 0.3, jac=lambda z: times_s + 40.0 * z,
        bounds=[(0, 1)] * network.num_edges, method="SLSQP", options={"ftol": 1e-12},
        constraints=[LinearConstraint(matrix[:-1], demand[:-1], demand[:-1])],
    )  # fmt: skip
    np.testing.assert_allclose(ours, theirs.x, atol=1e-4)


@pytest.mark.parametrize("gamma_s", [0.5, 20.0])
def test_the_value_has_the_flow_as_its_gradient(gamma_s: float) -> None:
    times_s = _times(3)

    def value(at: FloatArray) -> float:
        z = smoothed_flow(NETWORK, at, 0, 7, gamma_s)
        return float(at @ z + gamma_s * z @ z)

    flow = smoothed_flow(NETWORK, times_s, 0, 7, gamma_s)
    for edge in range(0, NETWORK.num_edges, 3):
        step = np.zeros(NETWORK.num_edges)
        step[edge] = 1e-4
        slope = (value(times_s + step) - value(times_s - step)) / 2e-4
        assert slope == pytest.approx(flow[edge], abs=1e-4)


@pytest.mark.parametrize("loss", ["huber", "log"])
def test_the_direction_of_training_is_the_gradient_of_finite_differences(loss: Any) -> None:
    params = TrainParams(SMALL, loss=loss, path_refreshes=0, weight_decay=0.0)
    plain = trainer(NETWORK, trips(NETWORK, 6), params)
    made = in_double(SmoothedTrainer(plain.data, params, 5.0))
    objective = Objective(made, np.arange(6))
    _, gradient = objective(objective.here)
    rng = np.random.default_rng(0)
    for along in (gradient, *rng.standard_normal((4, gradient.size))):
        unit = along / np.linalg.norm(along)
        above, below = (objective(objective.here + s * 1e-4 * unit)[0] for s in (1.0, -1.0))
        slope = (above - below) / 2e-4
        assert gradient @ unit == pytest.approx(slope, abs=1e-4 * float(np.linalg.norm(gradient)))


def test_there_is_a_gradient_at_a_tie() -> None:
    """Without smoothing the directions of both sides differ; with it they are one."""
    sharp = at_a_kink()
    along = across(sharp)
    smooth = at_a_kink(gamma_s=5.0)
    for objective, jumps in ((sharp, True), (smooth, False)):
        sides = [objective(objective.here + sign * 1e-7 * along)[1] for sign in (1.0, -1.0)]
        apart = np.linalg.norm(sides[0] - sides[1]) / np.linalg.norm(sides[0])
        assert (apart > 0.01) == jumps


def test_predictions_are_of_fastest_paths_all_the_same() -> None:
    table = trips(NETWORK, 20)
    params = TrainParams(SMALL, epochs=2, batch_size=8, path_refreshes=0)
    made = SmoothedTrainer(trainer(NETWORK, table, params).data, params, 2.0)
    made.run()
    rows = np.arange(20)
    times = made.model.all_times(made.lower_level.contexts, made.model.edge_part().detach())
    for i in (0, 9):
        own = times[made.lower_level.group[i]]
        path = NETWORK.shortest_path(own, int(table.origin[i]), int(table.destination[i]))
        constant_s = made.model.constant_s().item()
        assert made.predict(rows)[i] == pytest.approx(path.time_s(own) + constant_s, rel=1e-6)
