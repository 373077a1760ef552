"""A second ambulance must save more than its absence costs the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Answer, Decision, Situation, Station
from ideal_dispatch.dispatch.policies import Ideal, IntervalPolicy
from ideal_dispatch.dispatch.policy_tables import FittedParts, advising_policy, threshold_from
from ideal_dispatch.dispatch.threshold import Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot
from tests.unit.dispatch.worlds import NODES, fleet_threshold, situation

RESPONSES = ResponseModel.published()


def decided(call: Situation, rule: Threshold) -> Decision:
    policy = Ideal(responses=RESPONSES, seconds=("other-depot",), threshold=rule)
    return policy.decide(call, np.random.default_rng(0))


def test_a_second_goes_just_where_it_saves_more_than_it_costs(grid: RoadNetwork) -> None:
    sent = set()
    for calls_per_day in (5.0, 100.0, 2000.0):
        rule = fleet_threshold(grid, calls_per_day=calls_per_day, recall="none")
        for node in range(0, grid.num_nodes, 7):
            made = decided(situation(grid, node, (1, 1, 1)), rule)
            assert made.worth is not None
            assert made.cost is not None
            assert made.send_second == (made.worth.survival_gain > made.cost.lives)
            sent.add(made.send_second)
    assert sent == {True, False}


def test_the_second_is_the_one_that_saves_most_beyond_its_cost(grid: RoadNetwork) -> None:
    rule, others = fleet_threshold(grid, calls_per_day=900.0, arrest_chance=0.1, recall="none"), 0
    for node in range(grid.num_nodes):
        call = situation(grid, node, (1, 1, 1, 1))
        made = decided(call, rule)
        costs = [
            rule.second_cost(call, (made.primary, one.candidate.assignment), one.primary_s, one)
            for one in made.considered
        ]
        net = [rule.arrest_chance * one.survival_gain - cost.lives
               for one, cost in zip(made.considered, costs, strict=True)]  # fmt: skip
        best = made.considered[int(np.argmax(net))]
        assert made.worth is best
        others += best.gain_s < max(one.gain_s for one in made.considered)
    assert others > 0  # calls whose soonest second costs the others too much


def test_the_absence_follows_from_the_recall(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    for recall in ("none", "first arrival", "worth"):
        made = decided(call, fleet_threshold(grid, recall=recall, assist_s=300.0))
        worth, cost = made.worth, made.cost
        assert worth is not None
        assert cost is not None
        first_s, second_s = worth.primary_s - worth.gain_s, worth.primary_s - worth.mean_s
        assert cost.hold_s == pytest.approx(second_s + 300.0 if recall == "none" else first_s)


def test_one_of_ten_calls_an_arrest_saves_a_tenth(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    sure = decided(call, fleet_threshold(grid))
    rarely = decided(call, fleet_threshold(grid, arrest_chance=0.1))
    assert sure.cost is not None
    assert rarely.cost is not None
    assert rarely.cost.lives == sure.cost.lives
    assert rarely.threshold_s == pytest.approx(10.0 * sure.threshold_s)


def test_a_unit_on_the_road_counts_to_the_nearest_station(grid: RoadNetwork) -> None:
    rule, call = fleet_threshold(grid), situation(grid, 65, (1, 1, 1))
    road = Station(Depot("A7", NODES[2], on_road=True), 1, call.stations[2].quote)
    emptied = replace(call.stations[2], units=0)
    moved = replace(call, stations=(*call.stations[:2], emptied, road))
    pair = decided(call, rule)
    assert pair.second is not None
    assert pair.second.station == 2
    on_road = pair.primary, replace(pair.second, station=3)
    costs = [
        rule.second_cost(one, who, 300.0, pair.worth)
        for one, who in ((call, (pair.primary, pair.second)), (moved, on_road))
    ]
    assert costs[0] == costs[1]
    stranger = replace(call.stations[1], depot=Depot("D9", NODES[1]))
    with pytest.raises(InputError, match="depot D9: the fleet has no units of it; add them"):
        decided(replace(call, stations=(call.stations[0], stranger)), rule)


def test_what_it_means_in_words(grid: RoadNetwork) -> None:
    call, rule = situation(grid, 65), fleet_threshold(grid, calls_per_day=100.0)
    made = decided(call, rule)
    assert made.cost is not None
    assert made.cost.hold_s is not None
    assert made.worth is not None
    lives, saved = (f"{1e4 * one:.2g}" for one in (made.cost.lives, made.worth.survival_gain))
    assert Answer.of(made, rule, (), ResponseModel.published()).threshold == made.cost.words
    assert made.cost.words.endswith(
        f"away for {made.cost.hold_s / 60:.0f} min it costs the others {lives} of 10,000 lives; "
        f"here it saves {saved}"
    )
    assert made.log_facts()["cost"] == made.cost.lives
    assert made.log_facts()["hold_s"] == pytest.approx(made.cost.hold_s, abs=0.1)
    assert rule.words(480.0, 4).endswith("of 10,000 lives with 4 units free")


def test_policies_that_compute_no_worth_take_the_slope_of_the_curve(grid: RoadNetwork) -> None:
    call, rule = situation(grid, 65), fleet_threshold(grid)
    made = IntervalPolicy(threshold=rule).decide(call, np.random.default_rng(0))
    assert made.cost is not None
    assert made.primary_s is not None
    slope_per_s = float(rule.curve.slope_per_s(made.primary_s))
    assert made.threshold_s == pytest.approx(made.cost.lives / slope_per_s)
    assert "here a minute saves" in made.cost.words
    assert rule.seconds(300.0, 1) > rule.seconds(300.0, 6) > 0.0


def test_tables_name_it_where_a_fleet_is_known(grid: RoadNetwork) -> None:
    rule = fleet_threshold(grid)
    parts = FittedParts(priced=rule)
    table = {"kind": "ideal", "seconds": ["other-depot"]}
    policies: list[Any] = [
        advising_policy(table | own, parts, "policy") for own in ({}, {"threshold": "priced"})
    ]
    assert [policy.threshold for policy in policies] == [rule, rule]
    fixed: Any = advising_policy(table | {"threshold": {"cost": 0.002}}, parts, "policy")
    assert fixed.threshold.cost.base == 0.002
    usual: Any = advising_policy(table, FittedParts(), "policy")
    assert usual.threshold.cost.base == 0.001
    with pytest.raises(InputError, match='threshold "priced": no fleet is known; describe it in'):
        threshold_from("priced")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recall": "later"}, "recall 'later': choose none, first arrival, worth"),
        ({"arrest_chance": 0.0}, "arrest_chance 0.0: more than 0, up to 1 is needed"),
        ({"assist_s": -1.0}, "assist_s is -1.0"),
        ({"units": {"D0": 2}}, "units of 1 stations, prices of 4"),
    ],
)
def test_rules_that_make_no_sense(grid: RoadNetwork, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(fleet_threshold(grid), **changes)
