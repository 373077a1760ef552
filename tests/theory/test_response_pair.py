"""Two units of one incident: the closed forms of a pair against sums over many draws."""

import numpy as np
import pytest

from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.forecast.response_time import ResponsePair, ResponseTime

_DRAWS = 400_000
_PAIRS = [
    (ResponseTime(300.0, 0.2, 0.1), ResponseTime(330.0, 0.25, 0.1), 0.0),
    (ResponseTime(300.0, 0.2, 0.15, 0.1, 0.6), ResponseTime(280.0, 0.15, 0.05, 0.1, 0.6), 0.0),
    (ResponseTime(240.0, 0.3, 0.0), ResponseTime(420.0, 0.3, 0.2, 0.2, 0.5), 0.0),
    (ResponseTime(300.0, 0.2, 0.1, road=0.15), ResponseTime(310.0, 0.2, 0.1, road=0.1), 0.6),
    (ResponseTime(300.0, 0.2, 0.1, road=0.1), ResponseTime(310.0, 0.2, 0.1, road=0.1), 1.0),
    (
        ResponseTime(300.0, 0.2, 0.1, 0.1, 0.5, road=0.15),
        ResponseTime(310.0, 0.2, 0.1, 0.1, 0.5, road=0.15),
        0.8,
    ),
]


def _drawn(pair: ResponsePair) -> tuple[np.ndarray, np.ndarray]:
    """Responses of both units, drawn as the model says: a shared part, an own part, surprises."""
    rng = np.random.default_rng(0)
    shared, common = rng.standard_normal((2, _DRAWS))
    drawn = []
    least = min(float(pair.first.road), float(pair.second.road))
    for unit in (pair.first, pair.second):
        own = np.where(rng.random(_DRAWS) < unit.surprise, np.hypot(unit.wide, unit.own), unit.own)
        both = np.sqrt(pair.together) * least
        alone = np.sqrt(np.maximum(own**2 - both**2, 0.0)) * rng.standard_normal(_DRAWS)
        drawn.append(unit.median_s * np.exp(unit.shared * shared + both * common + alone))
    return drawn[0], drawn[1]


@pytest.mark.parametrize(("first", "second", "together"), _PAIRS)
def test_closed_forms_of_a_pair_are_what_draws_give(
    first: ResponseTime, second: ResponseTime, together: float
) -> None:
    pair = ResponsePair(first, second, together)
    t1, t2 = _drawn(pair)
    off = 4.0 / np.sqrt(_DRAWS)  # four standard errors
    assert pair.second_first == pytest.approx((t2 < t1).mean(), abs=off)
    assert pair.mean_s == pytest.approx((t1 - t2).mean(), abs=off * (t1 - t2).std())
    won = np.maximum(t1 - t2, 0.0)
    assert pair.gain_s == pytest.approx(won.mean(), abs=off * won.std())
    if not first.surprise and not second.surprise:  # one surprise has a heavy square
        assert pair.deviation_s == pytest.approx((t1 - t2).std(), rel=0.02)


@pytest.mark.parametrize(("first", "second", "together"), _PAIRS)
@pytest.mark.parametrize("curve", CURVES.values(), ids=lambda curve: curve.name)
def test_change_in_survival_is_that_of_the_earlier_arrival(
    first: ResponseTime, second: ResponseTime, together: float, curve: object
) -> None:
    pair = ResponsePair(first, second, together)
    t1, t2 = _drawn(pair)
    gained = curve.probability(np.minimum(t1, t2)) - curve.probability(t1)  # type: ignore[attr-defined]
    found = pair.survival_gain(curve.probability)  # type: ignore[attr-defined]
    assert found == pytest.approx(gained.mean(), abs=4.0 * gained.std() / np.sqrt(_DRAWS) + 1e-5)


def test_slope_times_seconds_overstates_the_lives_saved() -> None:
    """Why the change in survival is computed as it stands ([IDEAL] λ · gap is its first order)."""
    curve = CURVES["waalewijn-2001"]
    pair = ResponsePair(ResponseTime(400.0, 0.35, 0.0), ResponseTime(430.0, 0.35, 0.0))
    direct = float(pair.survival_gain(curve.probability))
    assert 0.0 < direct < float(curve.slope_per_s(float(pair.first.mean_s)) * pair.gain_s)


def test_what_is_left_of_a_response_has_the_moments_of_the_rest() -> None:
    unit = ResponseTime(300.0, 0.25, 0.1, 0.1, 0.5)
    rng = np.random.default_rng(1)
    own = np.where(rng.random(_DRAWS) < 0.1, np.hypot(0.5, 0.25), 0.25) * rng.standard_normal(
        _DRAWS
    )
    seconds = 300.0 * np.exp(own + 0.1 * rng.standard_normal(_DRAWS))
    for elapsed_s in (60.0, 250.0):
        rest = seconds[seconds > elapsed_s] - elapsed_s
        left = unit.after(elapsed_s)
        assert left.mean_s == pytest.approx(rest.mean(), rel=0.01)
        assert left.deviation_s == pytest.approx(rest.std(), rel=0.03)


def test_a_unit_that_is_long_overdue_is_not_there_at_once() -> None:
    """Far out in the tail a log-normal has more left the longer it has taken already."""
    plain = ResponseTime(300.0, 0.25, 0.1)
    left = [float(plain.after(elapsed_s).mean_s) for elapsed_s in (1200.0, 2400.0, 4800.0)]
    assert left == sorted(left)
    assert left[0] > 30.0
    tail = np.linspace(2400.0, 24_000.0, 400_001)  # the mean of what is left, by its integral
    exact = np.trapezoid(plain.later_than(tail), tail) / float(plain.later_than(2400.0))
    assert left[1] == pytest.approx(exact, rel=0.01)


def test_gain_grows_with_what_is_not_known_and_never_falls_below_the_difference() -> None:
    gains = [
        float(ResponsePair(ResponseTime(300.0, own, 0.1), ResponseTime(330.0, own, 0.1)).gain_s)
        for own in (0.01, 0.1, 0.2, 0.4)
    ]
    assert gains == sorted(gains)
    certain = ResponsePair(ResponseTime(330.0, 0.0, 0.0), ResponseTime(300.0, 0.0, 0.0))
    assert certain.gain_s == pytest.approx(30.0)
    assert certain.second_first == 1.0
    shared = ResponsePair(ResponseTime(300.0, 0.0, 0.3), ResponseTime(301.0, 0.0, 0.3))
    assert shared.second_first == 0.0  # what delays both changes no order
