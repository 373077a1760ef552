"""Prices of units from response times and call rates alone."""

from typing import Any

import numpy as np
import pytest

from ideal_dispatch.dispatch.price import (
    UNCALIBRATED,
    PriceTables,
    expected_deaths,
    free_after,
)
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponseModel

DRIVES_S = np.array([[60.0, 240.0, 600.0], [300.0, 60.0, 200.0], [700.0, 400.0, 60.0]])
RESPONSE = ResponseModel.published().of(DRIVES_S)
CURVE = CURVES[USUAL_CURVE]


def prices(**changes: Any) -> PriceTables:
    settings: dict[str, Any] = {
        "weights": [1.0, 2.0, 1.0], "calls_per_hour": 4.0, "units": 5, "occupation_s": 2400.0,
    }  # fmt: skip
    return PriceTables.of_deaths(RESPONSE, **(settings | changes))


def test_for_a_moment_it_is_what_calls_lose_by_the_next_free_unit() -> None:
    harm = expected_deaths(RESPONSE, 0.0, CURVE)
    rate = 0.03 * np.array([1.0, 2.0, 1.0]) / 4.0 * 4.0 / 3600.0
    # station 2 has nobody free, so that unit 0 has the first cell and unit 1 the others
    lost = rate[0] * (harm[1, 0] - harm[0, 0])
    short = prices(occupation_s=1.0)  # so that nobody stands in for anybody afterwards
    cost = short.cost([1, 1, 0], [(2, 1e9)], 0, 1e-3, 9)
    assert cost == pytest.approx(1e-3 * lost, rel=2e-3)


def test_a_twin_at_the_station_makes_it_cheap() -> None:
    alone = prices().cost([1, 1, 1], [], 0, 360.0, 9)
    assert prices().cost([2, 1, 1], [], 0, 360.0, 9) < 0.3 * alone


def test_a_unit_that_is_soon_free_lowers_the_price() -> None:
    soon = prices().cost([1, 0, 1], [(1, 60.0)], 0, 900.0, 9)
    assert soon < prices().cost([1, 0, 1], [(1, 3600.0)], 0, 900.0, 9)
    usual = prices().cost([1, 0, 1], [(1, 2400.0)], 0, 900.0, 9)
    assert prices().cost([1, 0, 1], [(1, None)], 0, 900.0, 9) == usual


def test_hours_have_their_own_calls_and_units() -> None:
    by_hour = np.r_[np.zeros(12), np.full(12, 4.0)]
    made = prices(calls_per_hour=by_hour, units=np.r_[np.full(12, 2.0), np.full(12, 5.0)])
    assert made.cost([1, 1, 1], [], 0, 900.0, 3) == 0.0
    assert made.cost([1, 1, 1], [], 0, 900.0, 15) > 0.0
    assert made.cost([1, 1, 1], [], 0, 900.0, 27) == 0.0  # the same hour as 3


def test_factors_multiply() -> None:
    doubled = prices(factors=[2.0, 0.0, 0.0, 0.0, 1.0])
    plain = prices().cost([1, 1, 1], [], 0, 900.0, 9)
    assert doubled.cost([1, 1, 1], [], 0, 900.0, 9) == pytest.approx(2.0 * plain)
    assert len(UNCALIBRATED) == len(doubled.factors)


def test_deaths_are_the_mean_over_responses() -> None:
    one = RESPONSE[0, 1:2]
    rng = np.random.default_rng(0)
    seconds = one.median_s * np.exp(np.hypot(one.own, one.shared) * rng.standard_normal(200_000))
    drawn = 1.0 - CURVE.probability(60.0 + seconds)
    assert expected_deaths(one, 60.0, CURVE) == pytest.approx(drawn.mean(), abs=0.001)


def test_availability_goes_from_what_is_known_to_what_is_usual() -> None:
    assert free_after(0.0, 0.0, 0.4, 2400.0) == 1.0
    assert free_after(0.0, 900.0, 0.4, 2400.0) == 0.0
    assert free_after(10.0, np.inf, 0.4, 2400.0) == 0.0
    for ready_s in (0.0, 900.0, 1440.0, 2400.0):  # 1440 = 2400 · (1 − 0.4), a removable pole
        assert free_after(1e6, ready_s, 0.4, 2400.0) == pytest.approx(0.6)
    near = [free_after(600.0, ready_s, 0.4, 2400.0) for ready_s in (1439.99, 1440.0, 1440.01)]
    assert near[1] == pytest.approx(0.5 * (near[0] + near[2]), abs=1e-5)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: prices().cost([0, 1, 1], [], 0, 900.0, 9), "no free unit at station 0"),
        (lambda: prices().cost([1, 1, 1], [], 3, 900.0, 9), "no free unit at station 3"),
        (lambda: prices().cost([1, 1], [], 0, 900.0, 9), "free units: expected 3 values"),
        (lambda: prices().cost([1, 1, 1], [(3, None)], 0, 900.0, 9), "stations are 0 … 2"),
        (lambda: prices(calls_per_hour=-1.0), "calls an hour must be finite and zero or more"),
        (lambda: prices(weights=[0.0, 0.0, 0.0]), "weights of cells must be zero or more"),
        (lambda: prices(occupation_s=0.0), "a call takes a unit 0.0 s; more than 0 is needed"),
        (lambda: prices(factors=[1.0]), "price: factors: expected 5 values, got 1"),
    ],
)
def test_what_cannot_be_is_refused(ask: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask()


def test_a_busy_unit_that_may_be_redirected_makes_prices_lower() -> None:
    harm = expected_deaths(RESPONSE, 0.0, CURVE)
    none = harm.max(axis=0)

    def cost(redirected: float) -> float:
        tables = PriceTables.of(
            harm, none, [1.0, 1.0, 1.0], 4.0, 3, 2400.0, critical=0.03, redirected=redirected
        )
        return tables.cost([1, 0, 0], [(1, 2400.0), (2, 2400.0)], 0, 900.0, 0)

    assert cost(0.2) < cost(0.0)
