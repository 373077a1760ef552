"""[IDEAL] Lemma 3: E[d(φ + r u)] is the gradient of the smoothed J.

The draws are those the trainer makes. The gradient of the smoothed objective is
estimated without any gradient, from values on the sphere (Stokes' theorem):
∇Ĵ_r(φ) = (p / r) E[J(φ + r s) s], s uniform on the unit sphere of ℝᵖ.
"""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.trainer import perturbation_rng, uniform_in_ball
from tests.theory.test_learning_direction import _two_ways, objective
from tests.unit.learning.worlds import gradient, in_double, trainer, weights


def _draws(size: int, count: int, seed: int) -> FloatArray:
    return np.array(
        [uniform_in_ball(size, perturbation_rng(seed, k)).numpy() for k in range(count)]
    )


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_perturbations_are_uniform_in_the_ball(size: int) -> None:
    draws = _draws(size, 4000, seed=size)
    lengths = np.linalg.norm(draws, axis=1)
    assert lengths.max() <= 1.0
    assert stats.kstest(lengths**size, "uniform").pvalue > 1e-3
    # isotropic: mean 0 and covariance I / (p + 2), each entry within five deviations
    spread = np.sqrt(1.0 / (size + 2))
    assert np.abs(draws.mean(axis=0)).max() < 5 * spread / np.sqrt(4000)
    covariance = draws.T @ draws / 4000
    assert np.abs(covariance - np.eye(size) / (size + 2)).max() < 5 * 2 / (size + 2) / np.sqrt(4000)
    assert abs(stats.spearmanr(lengths, draws[:, 0] / lengths).statistic) < 5 / np.sqrt(4000)


def test_perturbations_differ_by_step_and_seed() -> None:
    first = _draws(5, 3, seed=0)
    np.testing.assert_array_equal(first, _draws(5, 3, seed=0))
    others = [_draws(5, 3, seed=seed) for seed in (1, 2, 2**31)]
    rows = np.concatenate([first, *others])
    assert np.unique(rows.round(9), axis=0).shape == rows.shape


@pytest.mark.parametrize("head", ["polar", "plain"])
def test_mean_direction_is_the_gradient_of_the_smoothed_objective(head: str) -> None:
    network, table, _ = _two_ways()
    sizes: Any = {"head": head, "dimension": 1, "width": 2, "hour_harmonics": 0}
    shape = Architecture("attributes", crossings=False, **sizes)
    params = TrainParams(
        shape,
        loss="squared",
        smoothness=1e-3,
        path_refreshes=0,
        perturbation=0.3,
        seed=4,
        trip_constant=False,
    )
    made = in_double(trainer(network, table, params))
    with torch.no_grad():
        made.model.cross.out.weight.zero_()
        made.model.cross.out.bias.fill_(0.7)  # both ways tie: no gradient here, only smoothed
    rows, start = np.arange(2), weights(made)
    radius, count, size = params.perturbation, 300, start.size
    directions, first_edges = [], set()
    for step in range(count):
        kept = made._perturb(radius, step)
        drawn = uniform_in_ball(size, perturbation_rng(params.seed, step)).numpy()
        np.testing.assert_allclose(weights(made), start + radius * drawn, atol=1e-12)
        first_edges.add(int(made.lower_level.solve(made.model, rows)[0].edges[0]))
        made.direction(rows)
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(kept, made.model.parameters())
        directions.append(gradient(made))
    np.testing.assert_array_equal(weights(made), start)
    assert first_edges == {0, 2}, "both ways are tried"
    rng = np.random.default_rng(1)
    sphere = rng.standard_normal((count, size))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    values = np.array(
        [
            [objective(made, start + sign * radius * s, rows)[0] for sign in (1.0, -1.0)]
            for s in sphere
        ]
    )
    by_values = size / (2 * radius) * (values[:, 0] - values[:, 1])[:, None] * sphere
    by_direction = np.array(directions)
    steepest = by_direction.mean(axis=0)
    across = rng.standard_normal(size)
    for along in (steepest, across, by_values.mean(axis=0)):
        unit = along / np.linalg.norm(along)
        ours, theirs = by_direction @ unit, by_values @ unit
        error = np.sqrt((ours.var() + theirs.var()) / count)
        assert abs(ours.mean() - theirs.mean()) < 4 * error
    unit = steepest / np.linalg.norm(steepest)
    assert (by_direction @ unit).mean() > 5 * np.sqrt((by_values @ unit).var() / count), "sharp"
