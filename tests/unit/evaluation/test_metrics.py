"""Metrics against cases worked out by hand and against NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.metrics import (
    ArrivalSummary,
    RegretSummary,
    cvar,
    quantile,
    regret_s,
)

TEN = np.arange(1.0, 11.0)


def test_quantiles_lie_at_share_times_n_minus_one() -> None:
    assert quantile(TEN, 0.95) == pytest.approx(9.55)  # place 8.55: 0.55 of the way from 9 to 10
    assert quantile(TEN, 0.5) == 5.5
    assert quantile(np.array([7.0]), 0.99) == 7.0


def test_cvar_weighs_the_last_value_by_its_fraction() -> None:
    assert cvar(TEN, 0.8) == 9.5
    assert cvar(TEN, 0.75) == pytest.approx((10 + 9 + 0.5 * 8) / 2.5)
    assert cvar(TEN, 0.95) == 10.0  # half a value: the worst alone
    assert cvar(TEN, 0.0) == 5.5
    assert cvar(np.arange(1.0, 101.0), 0.95) == 98.0  # five values, not 5.000000000000004
    with pytest.raises(InputError, match="CVaR at level 1"):
        cvar(TEN, 1.0)


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


def test_a_regret_of_rounding_is_none() -> None:
    late = regret_s(np.array([0.1 + 0.2]), np.array([0.3]))
    assert late.tolist() == [0.0]
    assert not np.signbit(regret_s(np.array([1.0]), np.array([1.0])))[0]


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


def test_nothing_to_judge() -> None:
    with pytest.raises(InputError, match="no incidents to judge"):
        ArrivalSummary.of(np.empty(0))
