"""Metrics, tests and intervals: worked out by hand, and beside NumPy, SciPy and chance itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.evaluation.metrics import (
    ArrivalSummary,
    RegretSummary,
    cvar,
    day_interval,
    day_t_interval,
    days_won,
    normal_interval,
    paired_wilcoxon,
    regret_s,
)

TEN = np.arange(1.0, 11.0)


def test_cvar_weighs_the_last_value_by_its_fraction() -> None:
    assert cvar(TEN, 0.8) == 9.5
    assert cvar(TEN, 0.75) == pytest.approx((10 + 9 + 0.5 * 8) / 2.5)
    assert cvar(TEN, 0.95) == 10.0  # half a value: the worst alone
    assert cvar(TEN, 0.0) == 5.5
    assert cvar(np.arange(1.0, 101.0), 0.95) == 98.0  # five values, not 5.000000000000004


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.sampled_from([0.0, 0.5, 0.95, 0.99])
)
def test_cvar_is_the_least_of_rockafellar_and_uryasev(values: list[float], level: float) -> None:
    array = np.array(values)
    bounds = [t + np.maximum(array - t, 0).mean() / (1 - level) for t in array]
    assert cvar(array, level) == pytest.approx(min(bounds), abs=1e-6)


def test_regret_by_hand() -> None:
    late = RegretSummary.of(np.array([10.0, 20.0, 33.0, 5.0]), np.array([10.0, 15.0, 30.0, 7.0]))
    assert late.optimal == 0.5  # one meets the best, one beats it
    assert late.mean_s == 1.5
    assert late.p95_s == pytest.approx(np.quantile([0, 5, 3, -2], 0.95))
    assert late.cvar95_s == late.cvar99_s == 5.0
    assert ArrivalSummary.of(TEN).p95_s == pytest.approx(9.55)  # 0.55 of the way from 9 to 10
    assert regret_s(np.array([0.1 + 0.2]), np.array([0.3])).tolist() == [0.0]


def test_arrivals_by_hand() -> None:
    times = np.array([300.0, 480.0, 719.9, 900.0])
    found = ArrivalSummary.of(times, CURVES["de-maio-2003"])
    assert found.mean_s == pytest.approx(599.975)
    assert found.within_8_min == 0.25  # 480 s is eight minutes, not below
    assert found.within_12_min == 0.75
    assert found.p90_s == pytest.approx(719.9 + 0.7 * 180.1)
    chances = 1 / (1 + np.exp(0.679 + 0.262 * times / 60))
    assert found.survival == pytest.approx(chances.mean())
    assert np.isnan(ArrivalSummary.of(times).survival)


# --- differences of two strategies ----------------------------------------------------


def test_wilcoxon_by_hand() -> None:
    baseline = np.array([5.0, 3.0, 3.0, 1.0, 0.0, 4.0])
    own = np.array([1.0, 2.0, 4.0, 1.0, 0.0, 2.0])  # 4, 1, −1, 0, 0, 2: ranks 4, 1.5, 1.5, 3
    test = paired_wilcoxon(baseline, own)
    assert (test.incidents, test.nonzero) == (6, 4)
    assert test.statistic == 8.5
    variance = 4 * 5 * 9 / 24 - (2**3 - 2) / 48  # one pair of equal ranks
    assert test.p_value == pytest.approx(stats.norm.sf((8.5 - 5) / np.sqrt(variance)))
    assert test.difference.mean == 1.0
    assert test.difference.high - 1.0 == pytest.approx(
        1.96 * np.std(baseline - own, ddof=1) / 6**0.5, 1e-4
    )
    back = paired_wilcoxon(own, baseline)
    assert test.p_value + back.p_value == pytest.approx(1.0)
    same = paired_wilcoxon(np.ones(5), np.ones(5))
    assert (same.nonzero, same.statistic, same.p_value) == (0, 0.0, 1.0)


def test_the_interval_agrees_with_scipy_and_covers_the_truth() -> None:
    rng = np.random.default_rng(5)
    days, each, misses = 20, 5, 0
    day = np.repeat(np.arange(days, dtype=np.int32), each)
    for seed in range(100):
        values = np.repeat(rng.normal(0, 1, days), each) + rng.normal(0, 1, days * each)
        found = day_interval(values, day, seed=seed)
        misses += found.low > 0 or found.high < 0
    assert misses <= 15  # 5 in 100 are promised; 20 days make it a little more
    means = values.reshape(days, each).mean(axis=1)
    told = stats.bootstrap((means,), np.mean, method="percentile", rng=np.random.default_rng(0))
    low, high = told.confidence_interval
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)


def test_whole_days_are_drawn() -> None:
    day = np.repeat(np.arange(8, dtype=np.int32), 50)
    effect = np.repeat(np.linspace(-3, 5, 8), 50)
    found = day_interval(effect, day, seed=1)
    assert found.mean == pytest.approx(1.0)
    assert found.low < -0.7  # days differ widely, though 400 calls hardly do
    assert found.high > 2.5
    assert normal_interval(effect).low > 0.7
    assert found == day_interval(effect, day, seed=1) != day_interval(effect, day, seed=2)
    few = day_interval(np.array([0.0, 0.0, 0.0, 4.0]), np.array([3, 3, 3, 9]))
    assert (few.mean, few.low, few.high) == (1.0, 0.0, 4.0)  # days count by their incidents
    assert np.isnan(day_interval(np.array([1.0, 2.0]), np.array([7, 7])).low)


def test_students_interval_of_days_by_scipy() -> None:
    rng = np.random.default_rng(7)
    day = np.repeat(np.arange(10, dtype=np.int32), 12)
    values = np.repeat(rng.normal(0.5, 1, 10), 12) + rng.normal(0, 1, 120)
    means = values.reshape(10, 12).mean(axis=1)
    low, high = stats.ttest_1samp(means, 0.0).confidence_interval()
    found = day_t_interval(values, day)
    assert (found.mean, found.low, found.high) == pytest.approx((means.mean(), low, high))
    drawn = day_interval(values, day)
    assert found.high - found.low > drawn.high - drawn.low  # ten days: the bootstrap is narrow
    assert day_t_interval(np.array([0.0, 0.0, 0.0, 4.0]), np.array([3, 3, 3, 9])).mean == 2.0
    assert np.isnan(day_t_interval(np.array([1.0, 2.0]), np.array([7, 7])).low)


def test_days_won() -> None:
    saved = np.array([1.0, -0.5, 0.0, 0.0, -1.0])
    assert days_won(saved, np.array([0, 0, 1, 1, 2])) == 1
