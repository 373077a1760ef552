"""Scores by hand, and intervals that hold what they should."""

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.scores import best_factor, paired_interval, scores


def test_scores_by_hand() -> None:
    found = scores([100.0, 200.0, 400.0, 50.0], [110.0, 180.0, 400.0, 100.0])
    assert found.trips == 4
    assert found.mae_s == 20.0
    assert found.mape_percent == pytest.approx(100 * (0.1 + 0.1 + 0.0 + 1.0) / 4)
    assert found.rmse_s == pytest.approx(np.sqrt((100 + 400 + 2500) / 4))
    assert found.median_s == 15.0
    assert found.p90_s == pytest.approx(41.0)


def test_an_interval_holds_the_difference_and_turns_with_the_order() -> None:
    rng = np.random.default_rng(1)
    observed = rng.uniform(100, 900, 800)
    a, b = observed + rng.normal(0, 50, 800), observed + rng.normal(0, 60, 800)
    low, high = paired_interval(observed, a, b, seed=2)
    assert low < scores(observed, a).mae_s - scores(observed, b).mae_s < high < 0
    assert paired_interval(observed, b, a, seed=2) == pytest.approx((-high, -low))
    assert paired_interval(observed, a, b, seed=2) == (low, high)
    assert paired_interval(observed, a, a) == (0.0, 0.0)


def test_an_interval_of_equal_models_holds_zero_about_95_times_in_100() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        observed = rng.uniform(100, 900, 100)
        a, b = (observed + rng.normal(0, 50, 100) for _ in range(2))
        low, high = paired_interval(observed, a, b, draws=300)
        held += low <= 0 <= high
    assert 180 <= held <= 198


@pytest.mark.parametrize(
    ("observed", "predicted"),
    [([1.0, 0.0], [1.0, 1.0]), ([1.0, 2.0], [np.nan, 1.0]), ([1.0, 2.0], [1.0]), ([], [])],
)
def test_bad_numbers(observed: list[float], predicted: list[float]) -> None:
    with pytest.raises(InputError):
        scores(observed, predicted)
    with pytest.raises(InputError):
        paired_interval(observed, predicted, predicted)


def test_the_best_factor_has_the_least_error() -> None:
    rng = np.random.default_rng(3)
    base_s = rng.uniform(50, 500, 31)
    observed_s = base_s * rng.lognormal(0.4, 0.4, 31)
    found = best_factor(observed_s, base_s)
    errors = [np.abs(observed_s - factor * base_s).sum() for factor in np.linspace(0.5, 4, 500)]
    assert np.abs(observed_s - found * base_s).sum() <= min(errors) + 1e-9
