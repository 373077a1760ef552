"""[IDEAL] appendix B: the clinical threshold, and the published curves it rests on."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.survival import CURVES, survival_curve
from ideal_dispatch.dispatch.threshold import LONGEST_S, CapacityCost, ClinicalThreshold

MINUTE = 60.0
names = st.sampled_from(sorted(CURVES))


def test_waalewijn_gives_the_figures_of_the_literature() -> None:
    curve = CURVES["waalewijn-2001"]
    assert 100 * curve.probability(0.0) == pytest.approx(49.0, abs=0.05)
    assert 100 * curve.probability(4 * MINUTE) == pytest.approx(22.4, abs=0.05)
    at_once = survival_curve("waalewijn-2001", bystander_cpr_s=0.0)
    assert 100 * at_once.probability(4 * MINUTE) == pytest.approx(35.4, abs=0.05)
    for minutes, points in ((0, 7.5), (4, 5.2), (10, 1.3)):
        a_minute = 100 * MINUTE * curve.slope_per_s(minutes * MINUTE)
        assert a_minute == pytest.approx(points, abs=0.05)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("larsen-1993", lambda t: 0.67 - 0.023 * t - 0.011 * (t + 1) - 0.021 * (t + 2)),
        ("valenzuela-1997", lambda t: 1 / (1 + np.exp(-0.260 + 0.106 * t + 0.139 * (t + 1)))),
        ("waalewijn-2001", lambda t: 1 / (1 + np.exp(0.04 + 0.30 * t + 0.14 * (t - t)))),
        ("de-maio-2003", lambda t: 1 / (1 + np.exp(0.679 + 0.262 * t))),
    ],
)
def test_curves_are_as_printed(name: str, printed: Callable[[FloatArray], FloatArray]) -> None:
    curve = survival_curve(name, defibrillation_after_s=60.0, advanced_after_s=120.0)
    minutes = np.linspace(0.0, 9.0, 19)
    np.testing.assert_allclose(curve.probability(MINUTE * minutes), printed(minutes), rtol=1e-12)
    earlier = survival_curve(
        name, before_drive_s=90.0, defibrillation_after_s=60.0, advanced_after_s=120.0
    )
    np.testing.assert_allclose(earlier.probability(MINUTE * minutes), printed(minutes + 1.5))


@given(names, st.floats(0.0, 1800.0), st.sampled_from([None, 0.0, 240.0]), st.floats(0.0, 120.0))
def test_slopes_are_those_of_the_curve(
    name: str, drive_s: float, bystander_s: float | None, before_s: float
) -> None:
    curve = survival_curve(name, bystander_cpr_s=bystander_s, before_drive_s=before_s)
    slope = curve.slope_per_s(drive_s)
    assert slope > 0
    step = 0.01
    kink = bystander_s is not None and abs(drive_s + before_s - bystander_s) < 1.0
    ends = curve.probability(drive_s), curve.probability(drive_s + step)
    if not kink and min(ends) > 0.0:  # a line that has reached zero goes on in its slope only
        assert slope == pytest.approx((ends[0] - ends[1]) / step, rel=1e-3, abs=1e-12)


@given(names, st.floats(0.0, 1500.0), st.floats(1e-4, 0.2), st.integers(1, 12), st.floats(-50, 900))
def test_a_gap_exceeds_the_threshold_just_where_its_worth_exceeds_the_cost(
    name: str, primary_s: float, base: float, free_units: int, gap_s: float
) -> None:
    cost = CapacityCost(base, full_units=6)
    rule = ClinicalThreshold(CURVES[name], cost)
    limit_s = rule.seconds(primary_s, free_units)
    worth, price = CURVES[name].slope_per_s(primary_s) * gap_s, cost.risk(free_units)
    if abs(worth - price) > 1e-9 * price:
        assert (gap_s > limit_s) == (worth > price)
    if limit_s < LONGEST_S:
        assert CURVES[name].slope_per_s(primary_s) * limit_s == pytest.approx(price)


def test_the_farther_the_patient_the_fewer_seconds_by_logistic_curves() -> None:
    for name, curve in CURVES.items():
        rule = ClinicalThreshold(curve, CapacityCost(0.01))
        limits = [rule.seconds(60.0 * minutes, 4) for minutes in range(3, 15)]
        if curve.form == "linear":
            assert limits == pytest.approx([limits[0]] * len(limits)), name
        else:
            assert (np.diff(limits) > 0).all(), name


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.0, 3.0))
def test_scarcity_never_makes_a_second_cheaper(full: int, free: int, steepness: float) -> None:
    cost = CapacityCost(0.01, full, steepness)
    assert cost.risk(free) >= cost.risk(free + 1) >= cost.base
    assert cost.risk(full) == cost.base
