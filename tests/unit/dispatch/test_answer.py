"""One call asked in one line, and the answer that people and programs are shown."""

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Answer, Assignment, Decision, Situation, decide
from ideal_dispatch.dispatch.baselines import RouterDual
from ideal_dispatch.dispatch.decision import log_details
from ideal_dispatch.dispatch.threshold import ALWAYS, ConstantThreshold
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import GAIN, bounded_model, random_model, situation


@dataclass(frozen=True)
class Nearest:
    """A policy of a user's own: it knows nothing of what ours compute."""

    name: str = "nearest"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        one, two = (Assignment(n, situation.quote(n).path) for n in situation.available[:2])
        return Decision(self.name, one, two, 1.0, 0.0, "because", {"metres": 12.5})


def test_a_decision_carries_what_was_computed(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, model=random_model(grid), gain=GAIN, threshold=ConstantThreshold(0.0))
    assert made.situation is call
    assert made.second is not None
    assert made.worth is not None
    assert made.worth.candidate.assignment == made.second
    assert made.worth.gain_s == made.score_s == max(one.gain_s for one in made.considered)
    assert made.worth.survival_gain > 0.0
    assert made.gap is not None
    assert made.outlook is not None
    made.gap.verify(
        grid, made.outlook.scenarios, [one.depot for one in call.stations], 65, made.primary.path
    )
    assert made.send_second == (made.score_s > 0.0)


def test_the_usual_threshold_is_a_life_in_a_thousand(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, model=random_model(grid))
    assert made.worth is not None
    assert made.primary_s is not None
    slope_per_s = made.worth.curve.slope_per_s(made.primary_s)
    assert made.threshold_s * slope_per_s == pytest.approx(0.001)


def test_a_policy_has_its_own_model(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="a policy has its own model, gain and threshold"):
        decide(situation(grid), policy=RouterDual(), threshold=ALWAYS)


def test_a_policy_of_ones_own_is_explained_and_logged(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, policy=Nearest())
    assert made.situation is call
    assert "The two ways share" in str(made.explain())
    assert list(log_details(made)) == ["overlap", "same_depot", "same_path", "metres"]
    assert (made.worth, made.gap, made.sooner) == (None, None, None)
    answer = Answer.of(made, ConstantThreshold(60.0))
    assert answer.advice == "send_second"
    assert "60 s" in answer.threshold
    alone = Nearest().decide(call, np.random.default_rng(0))
    with pytest.raises(InputError, match="policy nearest: its decision does not know its"):
        alone.explain()


def test_an_answer_in_a_word_and_with_remarks(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, policy=RouterDual())
    noted = [("units_stale", "old"), ("late", "too late"), ("no_live_traffic", "none")]
    answer = Answer.of(made, None, noted)
    assert (answer.advice, answer.threshold) == ("send_second", "")
    assert [one.code for one in answer.remarks] == ["late", "units_stale", "no_live_traffic"]
    stays = Answer.of(replace(made, threshold_s=1.0), None)
    assert stays.advice == "primary_only"
    refused = Answer.none(("no_unit", "nobody is free"), [noted[1], ("no_unit", "nobody is free")])
    assert refused.advice == "no_advice"
    assert [one.code for one in refused.remarks] == ["no_unit", "late"], "the cause comes first"


def test_a_forecast_at_its_bound_is_no_advice(grid: RoadNetwork) -> None:
    model = bounded_model(grid)
    live = situation(grid, 65)
    call = replace(live, forecast=model.forecast(live.context, grid), router_times_s=None)
    answer = Answer.of(decide(call, model=model), ALWAYS)
    assert answer.advice == "no_advice"
    assert answer.refusal is not None
    assert answer.refusal[0] == answer.remarks[0].code == "forecast_bounded"
    assert answer.decision is not None, "what was considered can still be shown"


def test_a_number_is_a_threshold_and_a_name_a_policy(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, gain=GAIN, model=random_model(grid), threshold=30.0)
    assert (made.policy, made.threshold_s) == ("ideal", 30.0)
    number: Any = np.float32(30)
    made = decide(call, gain=GAIN, model=random_model(grid), threshold=number, policy=None)
    assert (made.policy, made.threshold_s) == ("ideal", 30.0)
    made = decide(call, policy="interval", threshold=-5)
    assert (made.policy, made.threshold_s) == ("interval", -5.0)
    for given, message in (
        ({"policy": "intervall"}, "decide.kind 'intervall': choose one of region"),
        ({"policy": 3}, "decide: policy 3: give a kind, or an object with decide"),
        ({"policy": "interval", "threshold": "much"}, "decide.threshold 'much': seconds"),
        ({"policy": "interval", "threshold": timedelta(0, 30)}, "threshold datetime.*: seconds"),
    ):
        with pytest.raises(InputError, match=message):
            decide(call, **given)


class Sparse:
    """A threshold of a user's own that has no words."""

    def seconds(self, primary_s: float, free_units: int) -> float:
        return 45.0


def test_a_threshold_without_words_and_a_score_of_numpy(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, policy="interval", threshold=Sparse())
    answer = Answer.of(made, Sparse())
    assert answer.threshold == "a second ambulance must be worth more than 45 s, as for every call"
    made = replace(made, score_s=np.float32(1.5))  # type: ignore[arg-type]
    assert json.dumps([made.score_s, made.threshold_s]) == "[1.5, 45.0]"
