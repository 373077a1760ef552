import math

import numpy as np
import pytest

from ideal_dispatch.dispatch.survival import CURVES, SurvivalCurve, survival_curve
from ideal_dispatch.dispatch.threshold import (
    ALWAYS,
    LONGEST_S,
    CapacityCost,
    ClinicalThreshold,
    ConstantThreshold,
    Threshold,
)
from ideal_dispatch.errors import InputError

WAALEWIJN = CURVES["waalewijn-2001"]


def test_survival_stays_a_probability() -> None:
    drives = np.array([0.0, 300.0, 3600.0, 1e6])
    for curve in CURVES.values():
        chances = curve.probability(drives)
        assert ((chances >= 0) & (chances <= 1)).all()
        assert (np.diff(chances) <= 0).all()
        assert [curve.probability(float(t)) for t in drives] == pytest.approx(chances.tolist())
        assert curve.slope_per_s(drives).shape == drives.shape
    assert CURVES["larsen-1993"].probability(3600.0) == 0.0


def test_a_bystander_helps_until_the_ambulance_is_sooner() -> None:
    helped = survival_curve("waalewijn-2001", bystander_cpr_s=120.0)
    assert helped.probability(60.0) == WAALEWIJN.probability(60.0)
    assert helped.probability(300.0) > WAALEWIJN.probability(300.0)
    assert helped.slope_per_s(60.0) == WAALEWIJN.slope_per_s(60.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": "cubic"}, "form 'cubic'; choose linear or logistic"),
        ({"cpr_per_min": -0.1}, "curve x: cpr_per_min is -0.1; it must be finite and zero"),
        ({"before_drive_s": math.inf}, "before_drive_s is inf"),
        ({"constant": math.nan}, "constant nan is not finite"),
        ({"arrival_per_min": 0.0, "cpr_per_min": 1.0}, "the ambulance's arrival changes nothing"),
        ({"bystander_cpr_s": -1.0}, "bystander_cpr_s is -1.0"),
    ],
)
def test_curves_that_make_no_sense(changes: dict[str, float], message: str) -> None:
    good = {"name": "x", "form": "logistic", "constant": 0.0, "arrival_per_min": 0.1}
    with pytest.raises(InputError, match=message):
        SurvivalCurve(**{**good, **changes})  # type: ignore[arg-type]


def test_a_curve_that_nobody_published_and_a_drive_before_the_call() -> None:
    with pytest.raises(InputError, match="'larsen': choose one of larsen-1993, valenzuela-1997"):
        survival_curve("larsen")
    with pytest.raises(InputError, match="a drive takes zero seconds or more"):
        WAALEWIJN.probability(-1.0)


def test_a_constant_threshold() -> None:
    rule = ConstantThreshold(30.0)
    assert isinstance(rule, Threshold)
    assert rule.seconds(100.0, 1) == rule.seconds(900.0, 9) == 30.0
    assert "more than 30 s, as for every call" in rule.words(100.0, 1)
    assert ALWAYS.seconds(100.0, 1) == -math.inf
    assert ALWAYS.words(100.0, 1) == "a second ambulance always goes"
    for wrong in (math.inf, math.nan):
        with pytest.raises(InputError, match="or minus infinity to always send a second"):
            ConstantThreshold(wrong)


def test_a_clinical_threshold_in_words() -> None:
    rule = ClinicalThreshold(WAALEWIJN, CapacityCost(0.01, full_units=6))
    assert isinstance(rule, Threshold)
    assert rule.seconds(240.0, 6) == pytest.approx(0.01 / WAALEWIJN.slope_per_s(240.0))
    assert rule.seconds(240.0, 3) == pytest.approx(2 * rule.seconds(240.0, 6))
    assert rule.words(240.0, 3) == (
        "a second ambulance must be worth more than 23 s: with 3 units free it costs 2 points of "
        "survival, and after 4.0 min a minute is worth 5.2 points by waalewijn-2001"
    )
    assert "with 6 units free it costs 1 point of survival" in rule.words(240.0, 6)


def test_where_time_no_longer_matters_nothing_is_worth_a_second() -> None:
    rule = ClinicalThreshold(WAALEWIJN, CapacityCost(0.01))
    assert rule.seconds(1e6, 3) == LONGEST_S
    assert ClinicalThreshold(WAALEWIJN, CapacityCost(0.0)).seconds(300.0, 3) == 0.0


def test_costs_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="cost is -0.1; it must be finite and zero or more"):
        CapacityCost(-0.1)
    with pytest.raises(InputError, match="full_units 0: at least one is needed"):
        CapacityCost(0.1, 0)
    with pytest.raises(InputError, match="steepness is nan"):
        CapacityCost(0.1, 3, math.nan)
