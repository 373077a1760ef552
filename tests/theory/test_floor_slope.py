"""[IDEAL] appendix C.4, vertical access: the slope of an ordinary least-squares line.

The closed form is compared with independent computations, and its interval
with how often it covers a planted slope.
"""

import numpy as np
import pytest
from scipy import stats

from ideal_dispatch.errors import InputError
from ideal_dispatch.records.travel_times import floor_slope

SLOPE = 1.90


def _rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    depot = rng.integers(0, 3, count)
    storeys = rng.integers(0, 40, count) + 8.0 * depot  # towers by the third depot
    seconds = 300 + 60 * depot + SLOPE * storeys + rng.normal(0, 40, count)
    return depot, storeys, seconds


def test_one_intercept_against_scipy() -> None:
    _, storeys, seconds = _rows(np.random.default_rng(1), 500)
    ours, theirs = floor_slope(storeys, seconds), stats.linregress(storeys, seconds)
    assert ours.seconds_per_floor == pytest.approx(theirs.slope, rel=1e-12)
    assert ours.standard_error == pytest.approx(theirs.stderr, rel=1e-10)
    assert ours.intercept_s == pytest.approx(theirs.intercept, rel=1e-12)
    reach = stats.t.ppf(0.975, 498) * theirs.stderr
    assert (ours.lower, ours.upper) == pytest.approx((theirs.slope - reach, theirs.slope + reach))


def test_intercepts_by_depot_against_dummy_variables() -> None:
    """Frisch–Waugh: centring within groups is a regression with their dummies."""
    depot, storeys, seconds = _rows(np.random.default_rng(2), 400)
    design = np.column_stack([storeys, *(depot == d for d in range(3))]).astype(float)
    beta, squares, *_ = np.linalg.lstsq(design, seconds, rcond=None)
    variance = squares[0] / (400 - 4) * np.linalg.inv(design.T @ design)[0, 0]
    ours = floor_slope(storeys, seconds, depot)
    assert ours.seconds_per_floor == pytest.approx(beta[0], rel=1e-10)
    assert ours.standard_error == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_residuals_are_orthogonal_to_floors() -> None:
    _, storeys, seconds = _rows(np.random.default_rng(3), 300)
    ours = floor_slope(storeys, seconds)
    residual = seconds - ours.intercept_s - ours.seconds_per_floor * storeys
    assert abs(residual.sum()) < 1e-8 * np.abs(seconds).sum()
    assert abs(residual @ storeys) < 1e-8 * np.abs(seconds) @ storeys


def test_the_interval_covers_as_often_as_it_says() -> None:
    """400 worlds: coverage of 95 % intervals lies within four standard errors of 95 %."""
    covered = 0
    for seed in range(400):
        depot, storeys, seconds = _rows(np.random.default_rng(seed), 60)
        slope = floor_slope(storeys, seconds, depot)
        covered += slope.lower <= SLOPE <= slope.upper
    assert abs(covered / 400 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_ignoring_the_depots_would_be_wrong() -> None:
    """Where towers stand by the slow depot, one intercept puts its slowness on the floors."""
    depot, storeys, seconds = _rows(np.random.default_rng(4), 5000)
    assert floor_slope(storeys, seconds).lower > SLOPE + 1
    own = floor_slope(storeys, seconds, depot)
    assert own.lower < SLOPE < own.upper


def test_without_different_floors_there_is_no_slope() -> None:
    for storeys in (np.array([]), np.array([1.0, 2.0]), np.full(50, 7.0)):
        with pytest.raises(InputError, match="too few different floors"):
            floor_slope(storeys, storeys + 1)
    depot = np.array([0, 0, 1, 1])
    with pytest.raises(InputError, match="too few different floors"):
        floor_slope(np.array([1.0, 1.0, 2.0, 2.0]), np.arange(4.0), depot)
