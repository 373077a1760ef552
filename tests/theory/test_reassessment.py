"""A running dispatch: what is left of two responses against draws, limits, and no flapping."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import reassessment as rules
from ideal_dispatch.dispatch.arrival import Arrival, rolling, waiting
from ideal_dispatch.dispatch.candidate import candidate, routed, together, worth_of
from ideal_dispatch.dispatch.reassessment import (
    ARRIVED,
    LOST,
    Reassessment,
    UnitProgress,
    away_s,
    reassess,
)
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel, ResponseTime
from tests.unit.dispatch.worlds import situation

_CURVE = CURVES["waalewijn-2001"]
_MODEL = ResponseModel(Effects(70.0, 0.4))
_DRAWS = 400_000


def _under_way(median_s: float, own: float = 0.2, shared: float = 0.1) -> UnitProgress:
    return UnitProgress("under_way", Arrival(ResponseTime(median_s, own, shared)))


def _turning_out(drive_s: float, waited_s: float) -> UnitProgress:
    found = waiting(_MODEL, drive_s, waited_s, forgotten=0.0, quoted=True)
    return UnitProgress("under_way", found)


def _driving(drive_s: float, driven_s: float = 0.0) -> UnitProgress:
    return UnitProgress("under_way", rolling(_MODEL, drive_s, driven_s, quoted=True))


def _judged(
    first: UnitProgress,
    second: UnitProgress,
    before_s: float = 0.0,
    cost: float = 1e-3,
    last: Reassessment | None = None,
    arrest_chance: float = 1.0,
) -> Reassessment:
    return reassess(
        first, second, before_s=before_s, curve=_CURVE, cost_lives=cost,
        arrest_chance=arrest_chance, last=last,
    )  # fmt: skip


# --- what is left, against draws ---------------------------------------------------------


def _drive(rng: np.random.Generator, mean_s: float, shared: np.ndarray) -> np.ndarray:
    """Drives of a mean, drawn as the model says."""
    own = math.sqrt(math.log1p(_MODEL.drive_spread**2 + (_MODEL.slack_s / mean_s) ** 2))
    part = _MODEL.shared
    logs = own * rng.standard_normal(_DRAWS) + part * shared - 0.5 * (own**2 + part**2)
    return np.asarray(mean_s * np.exp(logs))


@pytest.mark.parametrize(
    ("first_s", "second_s", "waited_s", "drives"),
    [(300.0, 240.0, 45.0, False), (240.0, 300.0, 90.0, True), (420.0, 420.0, 150.0, True)],
)
def test_chance_and_worth_are_those_of_draws_given_what_has_passed(
    first_s: float, second_s: float, waited_s: float, drives: bool
) -> None:
    """The second has not left. The first has not left either, or left half the time ago."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal(_DRAWS)
    turnout = [70.0 * np.exp(0.4 * rng.standard_normal(_DRAWS)) for _ in range(2)]
    road = [_drive(rng, mean_s, shared) for mean_s in (first_s, second_s)]
    possible = turnout[1] > waited_s
    if drives:
        possible &= road[0] > waited_s / 2
        left_1 = road[0] - waited_s / 2
        first = _driving(first_s, waited_s / 2)
    else:
        possible &= turnout[0] > waited_s
        left_1 = turnout[0] + road[0] - waited_s
        first = _turning_out(first_s, waited_s)
    t1, t2 = left_1[possible], (turnout[1] + road[1] - waited_s)[possible]
    second = _turning_out(second_s, waited_s)
    found = _judged(first, second, waited_s)
    assert found.first_s == pytest.approx(t1.mean(), rel=0.01)
    assert found.second_s == pytest.approx(t2.mean(), rel=0.01)
    assert found.second_first == pytest.approx((t2 < t1).mean(), abs=0.015)
    soonest = np.minimum(t1, t2)
    saved = _CURVE.probability(waited_s + soonest) - _CURVE.probability(waited_s + t1)
    assert found.saves == pytest.approx(saved.mean(), rel=0.06, abs=2e-5)
    assert away_s(first, second) == pytest.approx(soonest.mean(), rel=0.01)


def test_a_response_without_a_place_is_its_turnout_and_the_rest() -> None:
    """Given how long it waited, a unit has the rest of its turnout and all of its drive ahead."""
    rng = np.random.default_rng(1)
    turnout = 70.0 * np.exp(0.4 * rng.standard_normal(_DRAWS))
    drive = 300.0 * np.exp(0.3 * rng.standard_normal(_DRAWS))
    logs = np.log(turnout + drive)
    spread = math.sqrt(logs.var() - 0.1**2)
    model = replace(_MODEL, shared=0.1, unplaced=Effects(float(np.exp(logs.mean())), spread))
    waits = waiting(model, math.nan, 100.0, forgotten=0.0)
    rolls = rolling(model, math.nan, 100.0)
    late = turnout > 100.0
    assert waits.expected_s == pytest.approx((turnout + drive - 100.0)[late].mean(), rel=0.02)
    assert waits.turnout_s == pytest.approx((turnout - 100.0)[late].mean(), rel=0.02)
    assert waits.time.deviation_s == pytest.approx((turnout + drive)[late].std(), rel=0.05)
    assert rolls.expected_s == pytest.approx((drive - 100.0)[drive > 100.0].mean(), rel=0.02)
    assert rolls.time.deviation_s == pytest.approx(drive[drive > 100.0].std(), rel=0.05)


def test_a_crew_that_should_have_left_long_ago_may_have_forgotten_to_say_so() -> None:
    rng = np.random.default_rng(3)
    turnout = 70.0 * np.exp(0.4 * rng.standard_normal(_DRAWS))
    whole = turnout + _drive(rng, 300.0, rng.standard_normal(_DRAWS))
    silent = rng.random(_DRAWS) < 0.05
    for waited_s in (60.0, 150.0, 240.0):
        possible = np.where(silent, whole, turnout) > waited_s
        found = waiting(_MODEL, 300.0, waited_s, forgotten=0.05, quoted=True)
        assert found.expected_s == pytest.approx((whole - waited_s)[possible].mean(), rel=0.02)
        inside = np.maximum(turnout - waited_s, 0.0)[possible].mean()
        assert found.turnout_s == pytest.approx(inside, rel=0.05, abs=0.5)
        assert found.time.deviation_s == pytest.approx(whole[possible].std(), rel=0.05)
    waits = waiting(_MODEL, 300.0, 240.0, forgotten=0.0, quoted=True).expected_s
    assert found.expected_s < 200.0 < 300.0 < waits  # most probably it is half-way


def test_nothing_elapsed_is_what_the_call_was_judged_by(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (1, 1))
    one, two = (candidate(call, "", routed(call, number)) for number in (0, 1))
    worth = worth_of(call, one, two, responses=_MODEL, curve=_CURVE)
    shared = together(grid, one.path, one.drive_s, two.path, two.drive_s)
    units = [
        UnitProgress(
            "ready" if number else "under_way",
            waiting(_MODEL, each.drive_s, station=f"D{number}", quoted=True),
        )
        for number, each in enumerate((one, two))
    ]
    found = reassess(
        *units, before_s=0.0, curve=_CURVE, cost_lives=0.0,
        together=shared,
    )  # fmt: skip
    assert found.saves == pytest.approx(worth.survival_gain, rel=1e-9)
    assert found.second_first == pytest.approx(worth.second_first, rel=1e-9)
    assert found.first_s == pytest.approx(worth.primary_s, rel=1e-9)


# --- limits and monotonicity -------------------------------------------------------------


def test_a_first_at_the_scene_needs_no_second() -> None:
    found = _judged(ARRIVED, _under_way(120.0))
    assert (found.advice, found.saves, found.second_first, found.first_s) == (
        "stand_down", 0.0, 0.0, 0.0
    )  # fmt: skip
    assert [one.code for one in found.reasons] == ["first_arrived"]
    assert away_s(ARRIVED, _under_way(120.0)) == 0.0


def test_a_second_infinitely_far_away_stands_down() -> None:
    found = _judged(_under_way(200.0), _under_way(1e7), cost=0.0)
    assert found.advice == "stand_down"
    assert found.saves == pytest.approx(0.0, abs=1e-12)
    assert [one.code for one in found.reasons] == ["surely_first"]
    assert "under 1 %" in found.reason


def test_of_equal_units_each_is_first_in_half_of_the_cases() -> None:
    found = _judged(_under_way(300.0), _under_way(300.0))
    assert found.second_first == pytest.approx(0.5)
    assert found.first_s == found.second_s
    assert found.advice == "keep"


def test_the_longer_its_way_the_less_a_second_saves() -> None:
    found = [
        _judged(_driving(240.0), _driving(left_s), 120.0)
        for left_s in (0.0, 60.0, 180.0, 240.0, 300.0, 600.0, 1200.0)
    ]
    for near, far in pairwise(found):
        assert near.saves is not None
        assert far.saves is not None
        assert near.saves > far.saves
    assert [one.advice for one in found] == ["keep"] * 5 + ["stand_down"] * 2


def test_a_unit_that_is_seen_needs_no_turnout_and_one_near_by_may_still_be_late() -> None:
    far, near = (rolling(_MODEL, left_s, quoted=True) for left_s in (300.0, 30.0))
    assert far.expected_s == pytest.approx(300.0)
    assert near.time.deviation_s == pytest.approx(34.0, rel=0.05)  # all of the slack is ahead
    assert waiting(_MODEL, 300.0, quoted=True).expected_s == pytest.approx(
        300.0 + 70.0 * math.exp(0.08)
    )


def test_what_is_saved_goes_with_the_chance_of_an_arrest() -> None:
    whole, half = (
        _judged(_under_way(300.0), _under_way(300.0), arrest_chance=chance) for chance in (1.0, 0.5)
    )
    assert whole.saves is not None
    assert half.saves == pytest.approx(0.5 * whole.saves)


# --- facts -------------------------------------------------------------------------------


def test_a_second_goes_on_while_the_arrival_of_the_first_is_unknown() -> None:
    said = _judged(ARRIVED, _under_way(300.0), 60.0)
    found = _judged(LOST, _under_way(3000.0), 61.0, last=said)  # a fact does not wait
    assert (found.advice, found.changes) == ("keep", 2)
    assert (found.saves, found.second_first, found.first_s) == (None, None, None)
    assert away_s(LOST, LOST) is None
    assert _judged(_under_way(300.0), LOST).advice == "keep"
    assert _judged(_under_way(300.0), ARRIVED).advice == "keep"


def test_one_is_sent_where_the_first_broke_down_or_the_gain_is_great() -> None:
    other = UnitProgress("ready", Arrival(ResponseTime(200.0, 0.2, 0.1)))
    assert _judged(LOST, other).advice == "send_one"
    assert _judged(LOST, LOST).advice == "send_one"
    late = _under_way(600.0)
    gain = _judged(late, other).saves
    assert gain is not None
    assert _judged(late, other, cost=gain / 1.9).advice == "keep"
    sent = _judged(late, other, cost=gain / 2.1)
    assert sent.advice == "send_one"
    assert _judged(late, other, 40.0, cost=gain / 1.9, last=sent).advice == "send_one"
    assert _judged(late, other, 40.0, cost=gain, last=sent).advice == "keep"
    down = _judged(ARRIVED, _under_way(300.0))
    assert _judged(_under_way(100.0), other, 40.0, last=down).advice == "stand_down"
    assert _judged(_under_way(600.0), _under_way(200.0), cost=gain / 10).advice == "keep"


# --- no flapping -------------------------------------------------------------------------


def test_advice_changes_back_only_beyond_a_margin() -> None:
    first, second = _under_way(300.0), _under_way(320.0)
    saves = _judged(first, second).saves
    assert saves is not None
    costs = {"keep": saves / 0.81, "stand_down": saves / 0.79}
    for advice, cost in costs.items():
        assert _judged(first, second, cost=cost).advice == advice
    down = _judged(first, second, cost=costs["stand_down"])
    for cost, advice in ((saves / 1.19, "stand_down"), (saves / 1.21, "keep")):
        late = _judged(first, second, 0.0, cost, replace(down, changed_s=-60.0))
        assert late.advice == advice


def test_advice_does_not_change_again_at_once() -> None:
    first, second = _under_way(300.0), _under_way(320.0)
    down = _judged(first, second, 100.0, cost=1.0)
    assert (down.advice, down.changes, down.changed_s) == ("stand_down", 1, 100.0)
    soon = _judged(first, second, 129.0, 0.0, down)
    assert soon.advice == "stand_down"
    assert [one.code for one in soon.reasons] == ["worth_its_price", "changed_just_now"]
    later = _judged(first, second, 130.0, 0.0, soon)
    assert (later.advice, later.changes, later.changed_s) == ("keep", 2, 130.0)


def test_a_random_walk_does_not_make_it_flap() -> None:
    rng = np.random.default_rng(2)
    plain = limited = 0
    for _ in range(20):
        said: Reassessment | None = None
        before, moments = "keep", []
        for step, off in enumerate(np.cumsum(rng.normal(0.0, 6.0, 120))):
            first = _under_way(300.0)
            said = _judged(first, _under_way(330.0 + off), 5.0 * step, 7e-3, said)
            alone = _judged(first, _under_way(330.0 + off), 5.0 * step, 7e-3)
            plain += alone.advice != before
            before = alone.advice
            if said.changed_s == 5.0 * step:
                moments.append(said.changed_s)
        assert said is not None
        assert len(moments) == said.changes <= rules.MOST_CHANGES
        assert all(b - a >= rules.PAUSE_S for a, b in pairwise(moments))
        limited += said.changes
    assert 0 < limited < plain / 3


def test_what_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="arrived"):
        UnitProgress("arrived", Arrival(ResponseTime(1.0, 0.1, 0.0)))
    with pytest.raises(InputError, match="under_way"):
        UnitProgress("under_way")
    with pytest.raises(InputError, match=r"arrest_chance 2\.0"):
        _judged(ARRIVED, LOST, arrest_chance=2.0)
    with pytest.raises(InputError, match=r"-1\.0 s"):
        rolling(_MODEL, 300.0, -1.0)


def test_a_dear_second_goes_on_where_the_price_is_no_reason() -> None:
    """Before anybody arrives, only a first that surely will be there lets it stand down."""

    def judged(first_s: float, second_s: float, by_price: bool) -> rules.Reassessment:
        first, second = _driving(first_s), _driving(second_s)
        return rules.reassess(
            first, second, before_s=60.0, curve=_CURVE, cost_lives=1.0, by_price=by_price
        )

    assert judged(300.0, 330.0, by_price=True).advice == "stand_down"
    kept = judged(300.0, 330.0, by_price=False)
    assert (kept.advice, kept.cost) == ("keep", 1.0)
    assert judged(1.0, 3000.0, by_price=False).advice == "stand_down"
