"""Arrivals: seconds from now until a unit is at the address, and what follows from two of them."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.dispatch import Answer, Ideal, Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.arrival import Arrival, rolling, waiting
from ideal_dispatch.dispatch.candidate import routed
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import (
    Effects,
    ResponseModel,
    ResponsePair,
    ResponseTime,
)
from tests.unit.dispatch.worlds import CALENDAR, NODES, moment, world

CASES = 3000
KINDS = ("", "medic", "engine")


def random_model(rng: np.random.Generator) -> ResponseModel:
    """Response times as different as agencies could be, surprises and whole responses included."""
    return ResponseModel(
        Effects(float(rng.uniform(5.0, 200.0)), float(rng.uniform(0.0, 0.9)), kind={"medic": 0.5}),
        road_turnout_s=float(rng.uniform(1.0, 60.0)),
        drive_scale=float(rng.uniform(0.5, 2.0)),
        beside_s=float(rng.choice([0.0, rng.uniform(0.0, 120.0)])),
        drive_spread=float(rng.uniform(0.0, 0.6)),
        slack_s=float(rng.uniform(0.0, 90.0)),
        shared=float(rng.uniform(0.0, 0.3)),
        surprise=float(rng.choice([0.0, rng.uniform(0.0, 0.3)])),
        wide=float(rng.uniform(0.0, 1.0)),
        unplaced=Effects(float(rng.uniform(60.0, 900.0)), float(rng.uniform(0.05, 0.6))),
    )


def random_arrival(rng: np.random.Generator, model: ResponseModel) -> Arrival:
    """A unit in any state: about to be sent, sent, or on its way."""
    drive_s = float(rng.choice([0.0, np.nan, rng.uniform(0.0, 60.0), rng.uniform(0.0, 2000.0)]))
    passed_s = float(rng.choice([0.0, rng.uniform(0.0, 30.0), rng.uniform(0.0, 1500.0)]))
    traits: Any = {
        "hour": int(rng.integers(24)), "kind": str(rng.choice(KINDS)),
        "on_road": bool(rng.integers(2)), "quoted": bool(rng.integers(2)),
    }  # fmt: skip
    if rng.integers(2):
        return rolling(model, drive_s, passed_s, **traits)
    return waiting(model, drive_s, passed_s, forgotten=float(rng.choice([0.0, 0.05])), **traits)


def test_gain_chance_and_parts_of_any_two_units_agree() -> None:
    """E[(T₁ − T₂)⁺] ≥ E[T₁] − E[T₂], 0 ≤ P ≤ 1, and turnout + drive = expectation."""
    rng = np.random.default_rng(0)
    for _ in range(CASES):
        model = random_model(rng)
        one, two = (random_arrival(rng, model) for _ in range(2))
        pair = ResponsePair(one.time, two.time, float(rng.uniform()))
        lead_s = one.expected_s - two.expected_s
        assert pair.gain_s >= max(lead_s, 0.0) - 1e-9 * one.expected_s
        assert pair.gain_s <= one.expected_s * (1.0 + 1e-9)
        assert -1e-12 <= pair.second_first <= 1.0 + 1e-12
        for each in (one, two):
            assert each.turnout_s >= 0.0
            assert each.drive_s >= 0.0
            assert each.turnout_s + each.drive_s == pytest.approx(each.expected_s, rel=1e-12)
            assert each.expected_s == float(each.time.mean_s)
            assert each.time.later_than(each.p90_s) == pytest.approx(0.1, abs=1e-4)
            shown = each.to_dict()
            parts = shown["turnout_s"] + shown["drive_s"]
            assert parts == pytest.approx(shown["expected_s"], abs=1e-9)


def test_the_moment_of_arrival_never_gets_earlier_while_nothing_is_heard() -> None:
    """a + E[T] does not fall, for a unit that waits without surprises, and for one that drives."""
    rng = np.random.default_rng(1)
    elapsed_s = [0.0, 1.0, 10.0, 40.0, 90.0, 200.0, 500.0, 1500.0]
    for _ in range(CASES // 10):
        model, drive_s = random_model(rng), float(rng.uniform(0.0, 1500.0))
        usual = replace(model, surprise=0.0)
        for moments in (
            [s + waiting(usual, drive_s, s, forgotten=0.0).expected_s for s in elapsed_s],
            [s + rolling(model, drive_s, s).expected_s for s in elapsed_s],
        ):
            assert all(later >= sooner - 1e-6 * sooner for sooner, later in pairwise(moments))


def test_a_longer_drive_arrives_later_and_a_unit_that_left_sooner() -> None:
    rng = np.random.default_rng(2)
    for _ in range(CASES // 10):
        model, drive_s = random_model(rng), float(rng.uniform(1.0, 1500.0))
        for of in (waiting, rolling):
            assert of(model, drive_s + 30.0).expected_s > of(model, drive_s).expected_s
        waits, rolls = waiting(model, drive_s), rolling(model, drive_s)
        assert rolls.turnout_s == 0.0
        assert rolls.expected_s <= waits.expected_s
        assert waits.drive_s >= rolls.drive_s - 1e-6 - 1.0  # a drive of nothing takes a second


def test_only_the_turnout_of_a_waiting_unit_is_shorter_by_the_time_that_has_passed() -> None:
    model = ResponseModel(Effects(70.0, 0.4))
    at_once = waiting(model, 300.0, quoted=True)
    for ago_s in (10.0, 60.0, 120.0):
        later = waiting(model, 300.0, ago_s, forgotten=0.0, quoted=True)
        left = model.leaving().after(ago_s)
        assert later.turnout_s == pytest.approx(left.mean_s)
        assert later.drive_s == pytest.approx(300.0) == at_once.drive_s


def test_a_turnout_that_is_no_part_of_the_whole_is_refused() -> None:
    for turnout_s in (-1.0, 500.0):
        with pytest.raises(InputError, match=str(turnout_s)):
            Arrival(ResponseTime(100.0, 0.2, 0.1), turnout_s)
    for state in (waiting, rolling):
        with pytest.raises(InputError, match=r"-1\.0 s"):
            state(ResponseModel.published(), 100.0, -1.0)


# --- through what a dispatcher knows ------------------------------------------------------


def random_situation(
    rng: np.random.Generator, network: RoadNetwork, rolls: bool | None
) -> Situation:
    """A call with depots and a unit on the road; that one was sent, or the router chooses."""
    unit_node, node = (int(one) for one in rng.integers(network.num_nodes, size=2))
    edges = np.flatnonzero(network.head == unit_node)
    unit = Depot(
        "A1", unit_node, True, home="D0", edge=int(rng.choice(edges)), ahead=float(rng.uniform()),
        rolling=bool(rolls),
    )  # fmt: skip
    starts = [*(Depot(f"D{n}", place) for n, place in enumerate(NODES)), unit]
    units = [*rng.integers(0, 3, size=3).tolist(), 1, int(rolls is None)]
    ids = [tuple(f"{n}-{k}" for k in range(count)) for n, count in enumerate(units)]
    sent = {} if rolls is None else {
        "sent": 4, "sent_unit": "A1", "sent_ago_s": float(rng.uniform(0.0, 200.0)),
    }  # fmt: skip
    at = moment(network)
    return observe(
        world(network),
        network,
        Incident("x", node, at),
        CALENDAR.context(at),
        Readiness(starts, units, ids=ids, **sent),  # type: ignore[arg-type]
    )


def shown(call: Situation, model: ResponseModel) -> dict[str, Any]:
    policy = Ideal(responses=model, seconds=("other-depot", "alternative"))
    made = policy.decide(call, np.random.default_rng(0))
    return Answer.of(made, policy.threshold, call.reasons, model).to_dict()


def test_the_age_of_a_position_says_nothing_of_a_unit_that_stands(grid: RoadNetwork) -> None:
    """Seconds since it was seen count as driven only for a unit that rolls."""
    rng = np.random.default_rng(3)
    differ = 0
    for _ in range(200):
        model = random_model(rng)
        call = random_situation(rng, grid, rolls=False)
        fresh, old = (shown(replace(call, driven_s=age_s), model) for age_s in (0.0, 100.0))
        assert fresh == old
        call = random_situation(rng, grid, rolls=True)
        fresh, old = (shown(replace(call, driven_s=age_s), model) for age_s in (0.0, 100.0))
        assert fresh["primary"]["arrival"]["turnout_s"] == 0.0
        differ += fresh["primary"]["arrival"] != old["primary"]["arrival"]
        assert fresh["considered"][-1]["arrival"] is not None
    assert differ > 150


def test_both_arrivals_the_gain_and_the_chance_of_an_answer_agree(grid: RoadNetwork) -> None:
    """Also as shown, rounded; and each is the arrival of its unit by the same function."""
    rng = np.random.default_rng(4)
    seconds = sooner = 0
    for number in range(200):
        model = random_model(rng)
        call = random_situation(rng, grid, rolls=(None, False, True)[number % 3])
        call = replace(call, driven_s=float(rng.uniform(0.0, 60.0)) if call.sent else 0.0)
        answer = shown(call, model)
        first, other = answer["primary"], answer["second"]
        if call.sent is not None:
            drive_s = call.expected_s(4, call.sent.path)
            own = call.arrival(4, drive_s, model, first=True)
            assert first["unit"] == "A1"
            assert first["arrival"]["expected_s"] == pytest.approx(own.expected_s, abs=0.06)
        if other is None:
            assert answer["gain_s"] is None
            continue
        seconds += 1
        lead_s = first["arrival"]["expected_s"] - other["arrival"]["expected_s"]
        assert answer["gain_s"] >= max(lead_s, 0.0) - 1e-9
        assert 0.0 <= answer["second_first"] <= 1.0
        assert other["unit"] != first["unit"]
        rows = {row["unit"]: row for row in answer["considered"]}
        assert len(rows) == len(answer["considered"])
        assert rows[first["unit"]]["arrival"] == first["arrival"]
        times_s = [row["arrival"]["expected_s"] for row in answer["considered"]]
        assert times_s == sorted(times_s)
        if (better := answer["sooner_unit"]) is not None:
            sooner += 1
            lead_s = first["arrival"]["expected_s"]
            lead_s -= rows[better["unit"]]["arrival"]["expected_s"]
            assert better["seconds"] == pytest.approx(lead_s, abs=0.16)
    assert seconds > 150
    assert sooner > 0


def test_a_primary_that_the_router_chooses_has_all_of_its_turnout_ahead(grid: RoadNetwork) -> None:
    call = random_situation(np.random.default_rng(5), grid, rolls=None)
    model = ResponseModel.published()
    station = routed(call, 3).station
    drive_s = call.quote(station).duration_s
    one, two = (call.arrival(station, drive_s, model, first=first) for first in (True, False))
    assert one.to_dict() == two.to_dict()
    for name in ("sent_ago_s", "driven_s"):
        changes: Any = {name: 10.0}
        with pytest.raises(InputError, match=name):
            replace(call, **changes)
