"""[IDEAL] Lemma 6 and Theorem 6: stationarity of J from that of the smoothed objective."""

import numpy as np
import pytest

from ideal_dispatch.learning import TrainParams
from tests.theory.kinks import at_a_kink, ball
from tests.unit.learning.worlds import SMALL, town, trainer, trips
from workshop.stationarity import Objective, finite_time_bound, least_mean, measure


@pytest.mark.parametrize("radius", [0.02, 0.2])
def test_the_measure_of_the_objective_is_below_the_smoothed_gradient(radius: float) -> None:
    objective = at_a_kink()
    pairs = [
        np.mean([objective(objective.here + sign * radius * u)[1] for sign in (1.0, -1.0)], axis=0)
        for u in ball(objective.here.size, 40, seed=5)
    ]
    smoothed = np.mean(pairs, axis=0)  # of the gradient of the smoothed objective
    measure = np.linalg.norm(least_mean(np.array(pairs)))  # its points are within 2r, too
    assert measure <= np.linalg.norm(smoothed) * (1 + 1e-9)
    wider = np.linalg.norm(least_mean(np.array([*pairs, objective(objective.here)[1]])))
    assert wider <= measure * (1 + 1e-9), "more points, smaller infimum"


def test_the_least_mean_is_the_shortest_of_the_hull() -> None:
    rng = np.random.default_rng(1)
    for count, size in ((1, 3), (2, 3), (5, 3), (6, 200)):
        rows = rng.standard_normal((count, size)) + 0.5
        found = least_mean(rows)
        # a point of the hull is the shortest if no corner is nearer in its own direction
        assert (rows @ found >= found @ found - 1e-7).all()
        random = rng.dirichlet(np.ones(count), 200) @ rows
        assert np.linalg.norm(found) <= np.linalg.norm(random, axis=1).min() + 1e-9
    opposite = np.array([[1.0, 0.0], [-2.0, 0.0]])
    np.testing.assert_allclose(least_mean(opposite), 0.0, atol=1e-9)


def test_the_bound_is_that_of_the_theorem() -> None:
    sizes, radii = np.array([0.1, 0.05]), np.array([0.2, 0.1])
    by_hand = 2 * 3.0 + 2 * 5.0 * 0.1 + 5.0 * np.sqrt(16) * 7.0 * (0.01 / 0.2 + 0.0025 / 0.1)
    bound = finite_time_bound(sizes, radii, 16, 5.0, 7.0, 3.0)
    assert bound == pytest.approx(np.sqrt(by_hand / (2 * 0.15)))


def test_a_training_by_algorithm_1_says_how_stationary_its_output_is() -> None:
    network = town()
    params = TrainParams.paper(architecture=SMALL, epochs=4, batch_size=8, patience=4, seed=2)
    made = trainer(network, trips(network, 40), params, held_out=8)
    start = Objective(made, made.data.train).here
    made.run()
    steps = len(made.steps)
    assert steps == made.total_steps == 16
    made.finish()
    found = measure(made)
    table = made.step_table
    assert table.shape == (steps, 5)
    assert (found.steps, found.weights) == (steps, start.size)
    assert table[0, 4] == pytest.approx(np.linalg.norm(start), rel=1e-5)
    value, gradient = Objective(made, made.data.train)(Objective(made, made.data.train).here)
    assert value > 0
    assert found.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
    assert found.stationarity is not None
    assert found.bound is not None
    assert found.stationarity <= found.gradient_norm * (1 + 1e-6)
    assert found.stationarity <= found.bound, "Theorem 6, where it is not void"
    assert found.lipschitz >= table[:, 3].max()
    assert found.second_moment >= (table[:, 3] ** 2).mean()
    assert measure(made) == found


def test_without_perturbation_there_is_no_bound() -> None:
    network = town()
    params = TrainParams.paper(architecture=SMALL, epochs=1, batch_size=8, perturbation=0.0)
    made = trainer(network, trips(network, 16), params)
    made.run()
    found = measure(made)
    assert found.bound is None
    assert found.stationarity is None
    assert found.gradient_norm > 0
