"""What two units promise in compiled code, beside the response times and beside draws."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.fleet.chances import pair, remaining, response, risk_at, second_first
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime

_CURVE = CURVES[USUAL_CURVE]
_RISK = 1.0 - _CURVE.probability(np.arange(7201.0))
_PAIRS = [
    ((300.0, 0.2, 0.1), (330.0, 0.25, 0.1)),
    ((300.0, 0.3, 0.15), (280.0, 0.15, 0.05)),
    ((240.0, 0.4, 0.0), (420.0, 0.3, 0.2)),
    ((600.0, 0.2, 0.13), (900.0, 0.2, 0.13)),
    ((120.0, 0.6, 0.05), (121.0, 0.6, 0.05)),
]
Triple = tuple[float, float, float]


def _as_time(one: Triple) -> ResponseTime:
    mean, own, shared = one
    return ResponseTime(mean * math.exp(-0.5 * (own**2 + shared**2)), own, shared)


@pytest.mark.parametrize(("first", "second"), _PAIRS)
@pytest.mark.parametrize("before_s", [0.0, 180.0])
@pytest.mark.parametrize("surprise", [(0.0, 0.0), (0.015, 1.2), (0.2, 0.8)])
def test_pair_is_that_of_the_response_times(
    first: Triple, second: Triple, before_s: float, surprise: tuple[float, float]
) -> None:
    chance, wide = surprise
    times = [replace(_as_time(one), surprise=chance, wide=wide) for one in (first, second)]
    exact = ResponsePair(times[0], times[1])
    saved, sooner_s = pair(first, second, before_s, _RISK, surprise)
    gain = exact.survival_gain(lambda seconds: _CURVE.probability(seconds + before_s))
    assert saved == pytest.approx(float(gain), rel=0.01, abs=1e-5)
    expected_s = float(times[0].mean_s) - float(exact.gain_s)
    assert sooner_s == pytest.approx(expected_s, rel=0.005)


@pytest.mark.parametrize(("first", "second"), _PAIRS)
def test_chance_of_the_second_is_that_of_the_response_times(first: Triple, second: Triple) -> None:
    exact = ResponsePair(_as_time(first), _as_time(second)).second_first
    assert second_first(first, second) == pytest.approx(float(exact), abs=1e-9)


@pytest.mark.parametrize(("first", "second"), _PAIRS)
def test_pair_is_what_draws_give(first: Triple, second: Triple) -> None:
    count = 200_000
    rng = np.random.default_rng(3)
    shared = rng.standard_normal(count)
    times = []
    for mean, own, both in (first, second):
        off = own * rng.standard_normal(count) + both * shared - 0.5 * (own**2 + both**2)
        times.append(mean * np.exp(off))
    least = np.minimum(*times)
    gained = _CURVE.probability(least) - _CURVE.probability(times[0])
    saved, sooner_s = pair(first, second, 0.0, _RISK, (0.0, 0.0))
    within = 4.0 / math.sqrt(count)
    assert saved == pytest.approx(gained.mean(), rel=0.01, abs=within * gained.std())
    assert sooner_s == pytest.approx(least.mean(), rel=0.002, abs=within * least.std())


def test_second_that_cannot_be_first_saves_nothing() -> None:
    saved, sooner_s = pair((100.0, 0.05, 0.0), (2000.0, 0.05, 0.0), 0.0, _RISK, (0.0, 0.0))
    assert saved == pytest.approx(0.0, abs=1e-12)
    assert sooner_s == pytest.approx(100.0, rel=0.005)


@pytest.mark.parametrize("elapsed_s", [0.0, 60.0, 280.0, 400.0, 700.0])
@pytest.mark.parametrize("one", [(300.0, 0.3, 0.1), (300.0, 0.1, 0.2)])
def test_what_is_left_is_that_of_the_response_times(one: Triple, elapsed_s: float) -> None:
    exact = _as_time(one).after(elapsed_s)
    mean, own, shared = remaining(one, elapsed_s)
    if elapsed_s == 700.0 and one[1] == 0.1:  # so far out compiled code only says: soon
        assert 1.0 <= mean <= 0.2 * elapsed_s
        return
    assert mean == pytest.approx(float(exact.mean_s), rel=1e-3)
    assert (own, shared) == pytest.approx((float(exact.own), float(exact.shared)), rel=2e-2)


def test_what_is_left_of_a_hopeless_response_is_a_tenth_of_what_it_took() -> None:
    assert remaining((100.0, 0.05, 0.0), 5000.0) == (500.0, 0.05, 0.0)


def test_what_is_left_of_a_certain_response_is_certain() -> None:
    assert remaining((500.0, 0.0, 0.0), 100.0) == (pytest.approx(400.0), 0.0, 0.0)


@pytest.mark.parametrize("drive_s", [10.0, 240.0, 900.0])
def test_response_is_that_of_the_model(drive_s: float) -> None:
    model = ResponseModel.published()
    spread = model.turnout.spread
    leaving_s = model.turnout.seconds * math.exp(0.5 * spread**2)
    spreads = (model.drive_spread, model.slack_s, model.shared)
    made = response(leaving_s, leaving_s**2 * math.expm1(spread**2), drive_s, spreads)
    one = model.of(drive_s)
    assert made == pytest.approx((float(one.mean_s), float(one.own), float(one.shared)), rel=1e-9)


def test_risk_is_read_between_seconds_and_held_at_both_ends() -> None:
    assert risk_at(_RISK, -5.0) == _RISK[0]
    assert risk_at(_RISK, 300.25) == pytest.approx(0.75 * _RISK[300] + 0.25 * _RISK[301])
    assert risk_at(_RISK, 1e9) == _RISK[-1]
