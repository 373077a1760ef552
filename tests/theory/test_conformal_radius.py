"""Split-conformal scaling: for exchangeable trips the stated coverage holds, and hardly more."""

import math

import numpy as np
import pytest

from ideal_dispatch.learning import RadiusParams
from ideal_dispatch.learning.radius_training import TripRadii, conformal_factor, fit_radius


@pytest.mark.parametrize(("held_out", "level"), [(9, 0.9), (19, 0.8), (37, 0.55), (50, 0.95)])
def test_mean_coverage_lies_in_its_interval(held_out: int, level: float) -> None:
    rng = np.random.default_rng(held_out)
    runs, fresh = 3000, 20
    covered = np.empty(runs)
    for run in range(runs):
        predicted = rng.uniform(0.1, 2.0, held_out + fresh)  # any prediction, even a poor one
        targets = rng.exponential(0.3, held_out + fresh)
        factor = conformal_factor(targets[:held_out], predicted[:held_out], level)
        assert factor is not None
        covered[run] = (targets[held_out:] <= factor * predicted[held_out:]).mean()
    error = 4 * covered.std() / math.sqrt(runs)
    assert level - error <= covered.mean() <= level + 1 / (held_out + 1) + error


def test_with_many_zero_targets_coverage_is_at_least_promised() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(2000):
        predicted = rng.uniform(0.1, 2.0, 40)
        targets = np.where(rng.random(40) < 0.6, 0.0, rng.exponential(0.3, 40))
        factor = conformal_factor(targets[:30], predicted[:30], 0.5)
        assert factor is not None
        covered.append((targets[30:] <= factor * predicted[30:]).mean())
    assert np.mean(covered) >= 0.5


def test_rank_of_the_ratio() -> None:
    targets, predicted = np.arange(1.0, 10.0), np.ones(9)
    assert conformal_factor(targets, predicted, 0.9) == 9.0
    assert conformal_factor(targets, predicted, 0.5) == 5.0
    assert conformal_factor(targets, predicted, 0.91) is None, "ten ranks, nine trips"
    assert conformal_factor(targets[:0], predicted[:0], 0.5) is None
    assert conformal_factor(targets, 4 * predicted, 0.5) == 1.25


def test_trips_that_no_radius_explains_are_not_promised() -> None:
    predicted = np.ones(9)
    targets = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, np.inf, np.inf])
    assert conformal_factor(targets, predicted, 0.7) == 7.0
    assert conformal_factor(targets, predicted, 0.8) is None
    nothing = np.array([0.0] * 5 + [1.0] * 4)
    assert conformal_factor(np.ones(9), nothing, 0.5) is None, "no factor lifts a radius of zero"
    assert conformal_factor(np.zeros(9), nothing, 0.9) == 0.0


def test_coverage_holds_where_radii_end_at_physical_bounds() -> None:
    """The factor is chosen for what the model answers: min(factor · predicted, greatest)."""
    rng = np.random.default_rng(2)
    covered: list[float] = []
    before: list[float] = []
    for _ in range(1500):
        predicted, greatest = rng.uniform(0.1, 1.0, 80), rng.uniform(0.2, 1.5, 80)
        upper = rng.exponential(0.2, 80)
        radii = TripRadii(upper, (), upper, upper, upper, upper, greatest)
        for targets, found in ((radii.targets, covered), (upper, before)):
            factor = conformal_factor(targets[:60], predicted[:60], 0.8)
            assert factor is not None
            answered = np.minimum(factor * predicted, greatest)
            found.append((upper <= answered)[60:].mean())
    assert np.mean(covered) >= 0.8
    assert np.mean(before) < 0.79, "scaled as if nothing ended them"


def test_infinite_held_out_targets_count_as_uncovered() -> None:
    rng = np.random.default_rng(1)
    contexts, features = rng.standard_normal((200, 3)), np.zeros((200, 4))
    targets = rng.exponential(0.1, 200)
    held_out = np.arange(200) >= 100
    targets[np.arange(200) % 4 == 0] = np.inf  # trips from a node to itself, say
    params = RadiusParams(coverage=0.7, epochs=50)
    fitted = fit_radius(params, contexts, features, targets, held_out)
    radii = fitted.rule(fitted.weights, contexts.astype(np.float32), features)
    assert (targets <= radii)[held_out].mean() >= 0.7
    fitted = fit_radius(RadiusParams(epochs=50), contexts, features, targets, held_out)
    assert "too many of them (25) beyond any radius, to promise a" in fitted.warnings[0]
