"""One call asked in one line, and the answer that people and programs are shown."""

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import (
    Answer,
    Assignment,
    Decision,
    Readiness,
    Situation,
    decide,
    observe,
)
from ideal_dispatch.dispatch.answer import EdgeLines, chance_words
from ideal_dispatch.dispatch.policies import RouterDual, RouterPolicy
from ideal_dispatch.dispatch.policy_tables import KINDS, FittedParts, advising_policy
from ideal_dispatch.dispatch.threshold import ALWAYS, ConstantThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from tests.unit.dispatch.worlds import (
    TIMES,
    bounded_model,
    depots,
    fleet_threshold,
    random_model,
    situation,
    world,
)

PUBLISHED = ResponseModel.published()
FITTED = ResponseModel(Effects(60.0, 0.3), source="a log of ours", rows=900)


@dataclass(frozen=True)
class Nearest:
    """A policy of a user's own: it knows nothing of what ours compute."""

    name: str = "nearest"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        one, two = (Assignment(n, situation.quote(n).path) for n in situation.available[:2])
        return Decision(self.name, one, two, 1.0, 0.0, "because", {"metres": 12.5})


def test_the_usual_threshold_is_a_life_in_a_thousand(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, model=random_model(grid))
    assert made.worth is not None
    assert made.primary_s is not None
    slope_per_s = made.worth.curve.slope_per_s(made.primary_s)
    assert made.threshold_s * slope_per_s == pytest.approx(0.001)


def test_a_policy_has_its_own_model(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="a policy has its own model"):
        decide(situation(grid), policy=RouterDual(), threshold=ALWAYS)


def test_a_policy_of_ones_own_is_explained_and_logged(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, policy=Nearest())
    assert made.situation is call
    assert "The two ways share" in str(made.explain())
    assert list(made.log_facts()) == ["overlap", "same_depot", "same_path", "metres"]
    assert (made.worth, made.gap, made.sooner) == (None, None, None)
    answer = Answer.of(made, ConstantThreshold(60.0), (), PUBLISHED)
    assert answer.advice == "send_second"
    assert "60 s" in answer.threshold
    alone = Nearest().decide(call, np.random.default_rng(0))
    with pytest.raises(InputError, match="policy nearest: its decision does not know its"):
        alone.explain()


def test_an_answer_in_a_word_and_with_remarks(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, policy=RouterDual())
    noted = [("units_stale", "old"), ("late", "too late"), ("no_live_traffic", "none")]
    answer = Answer.of(made, None, noted, PUBLISHED)
    assert (answer.advice, answer.threshold) == ("send_second", "")
    assert [one.code for one in answer.remarks] == ["late", "units_stale", "published_spreads"]
    assert answer.remarks[-1].also == ("no_live_traffic",)
    stays = Answer.of(replace(made, threshold_s=1.0), None, (), PUBLISHED)
    assert stays.advice == "primary_only"
    refused = Answer.none(("no_unit", "nobody is free"), [noted[1], ("no_unit", "nobody is free")])
    assert refused.advice == "no_advice"
    assert [one.code for one in refused.remarks] == ["no_unit", "late"], "the cause comes first"


def test_a_forecast_at_its_bound_is_no_advice(grid: RoadNetwork) -> None:
    model = bounded_model(grid)
    live = situation(grid, 65)
    call = replace(live, forecast=model.forecast(live.context, grid), router_times_s=None)
    answer = Answer.of(decide(call, model=model), ALWAYS, (), PUBLISHED)
    assert answer.advice == "no_advice"
    assert answer.refusal is not None
    assert answer.refusal[0] == answer.remarks[0].code == "forecast_bounded"
    assert answer.decision is not None, "what was considered can still be shown"


def test_a_number_is_a_threshold_and_a_name_a_policy(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = decide(call, responses=TIMES, model=random_model(grid), threshold=30.0)
    assert (made.policy, made.threshold_s) == ("ideal", 30.0)
    number: Any = np.float32(30)
    made = decide(call, responses=TIMES, model=random_model(grid), threshold=number, policy=None)
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
    answer = Answer.of(made, Sparse(), (), PUBLISHED)
    assert " 45 s" in answer.threshold
    made = replace(made, score_s=np.float32(1.5))  # type: ignore[arg-type]
    assert json.dumps([made.score_s, made.threshold_s]) == "[1.5, 45.0]"


# --- for programs -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_policy_gives_both_arrivals_and_plain_values(grid: RoadNetwork, kind: str) -> None:
    """Also those that compute none: the same drives, the same response times."""
    call = situation(grid, 65, region=0)
    policy: Any = advising_policy({"kind": kind}, FittedParts(random_model(grid), FITTED), "x")
    made = decide(call, policy=policy)
    answer = Answer.of(made, getattr(policy, "threshold", None), (), FITTED).to_dict()
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    units = [answer["primary"]] + ([answer["second"]] if made.second is not None else [])
    for unit, told in zip(units, (made.primary, made.second), strict=False):
        assert told is not None
        assert unit["route"]["edges"] == told.path.edges.tolist()
        assert unit["route"]["geojson"]["coordinates"][-1] == [
            round(float(grid.lon[65]), 6), round(float(grid.lat[65]), 6),
        ]  # fmt: skip
        assert 0.0 < unit["arrival"]["drive_s"] < unit["arrival"]["p90_s"]
    assert (answer["gain_s"] is None) == (made.second is None)
    assert answer["decision"] == ("send_second" if made.send_second else "primary_only")
    assert (answer["why"]["gap"] is None) == (made.gap is None)
    assert {row["depot"] for row in answer["considered"]} == {"D0", "D1"}
    assert not [one for one in answer["degraded"] if one["code"] == "published_spreads"]


def test_no_advice_has_the_same_fields_and_no_unit(grid: RoadNetwork) -> None:
    full = Answer.of(decide(situation(grid), policy=RouterDual()), None, (), FITTED).to_dict()
    refusal = Answer.none(("units_unknown", "say which units there are"), [("late", "x")])
    model = bounded_model(grid)
    live = situation(grid, 65)
    call = replace(live, forecast=model.forecast(live.context, grid), router_times_s=None)
    bounded = Answer.of(decide(call, model=model), ALWAYS, (), FITTED)
    for answer, code in ((refusal, "units_unknown"), (bounded, "forecast_bounded")):
        said = answer.to_dict()
        assert set(said) == set(full)
        assert set(said["why"]) == set(full["why"])
        assert (said["decision"], said["degraded"][0]["code"]) == ("no_advice", code)
        assert said["primary"] is said["second"] is said["gain_s"] is None
        assert said["considered"] == []
    assert refusal.to_dict()["location"]["node"] is None


def test_units_go_by_their_ids_the_first_first(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (3, 1))
    fast = call.fastest
    ids = [("a", "b", "c"), ("d",)] if fast == 0 else [("d", "e", "f"), ("a",)]
    ready = Readiness(depots(2), (3, 1), ids=ids)
    free = observe(world(grid), grid, call.incident, call.context, ready)
    made = Nearest().decide(free, np.random.default_rng(0))
    made = replace(made, situation=free)
    answer = Answer.of(made, None, (), FITTED)
    assert answer.units == (ids[0][0], ids[1][0])
    assert {row["unit"] for row in answer.to_dict()["considered"]} == {*ids[0], *ids[1]}
    twice = replace(made, second=made.primary)
    assert Answer.of(twice, None, (), FITTED).units == (ids[0][0], ids[0][1])
    sent = replace(free, sent=made.primary, sent_unit="gone", sent_ago_s=30.0)
    for told in (made, twice):
        answer = Answer.of(replace(told, situation=sent), None, (), FITTED)
        assert answer.units[0] == "gone"
        assert answer.units[1] == ids[0 if told is twice else 1][0]
        said = answer.to_dict()
        assert said["primary"]["chosen_by"] == "cad"
        assert len(said["considered"]) == 5
    with pytest.raises(InputError, match="2 ids of 1"):
        observe(
            world(grid), grid, call.incident, call.context,
            Readiness(depots(2), (3, 1), ids=[(), ("a", "b")]),
        )  # fmt: skip
    with pytest.raises(InputError, match="ids of units of 1 depots"):
        Readiness(depots(2), (3, 1), ids=[()])


def test_where_response_times_are_the_published_ones_it_says_so(grid: RoadNetwork) -> None:
    made = decide(situation(grid), policy=RouterPolicy())
    for responses, codes in ((PUBLISHED, ["published_spreads"]), (FITTED, [])):
        said = Answer.of(made, None, (), responses).to_dict()["degraded"]
        assert [one["code"] for one in said if one["standing"]] == codes


def test_the_rule_its_price_and_who_named_it(grid: RoadNetwork) -> None:
    call, rule = situation(grid, 65), fleet_threshold(grid)
    made = decide(call, model=random_model(grid), threshold=rule)
    for asked, source in ((True, "request"), (False, "configuration")):
        why = Answer.of(made, rule, (), PUBLISHED, asked_threshold=asked).to_dict()["why"]
        assert why["threshold"]["source"] == source
        assert why["threshold"]["seconds"] == pytest.approx(made.threshold_s, abs=0.01)
        assert why["cost"]["source"] == "fleet"
    made = decide(call, model=random_model(grid), threshold=ALWAYS)
    why = Answer.of(made, ALWAYS, (), PUBLISHED).to_dict()["why"]
    assert why["threshold"]["seconds"] is None
    why = Answer.of(decide(call, policy=RouterPolicy()), None, (), PUBLISHED).to_dict()["why"]
    assert why["threshold"] is why["cost"] is None


def test_a_second_opinion_on_each_drive_where_a_router_quoted(grid: RoadNetwork) -> None:
    live, model = situation(grid, 65), random_model(grid)
    own = replace(live, forecast=model.forecast(live.context, grid), router_times_s=None)
    for call, policy, known in (
        (live, None, True), (own, None, False), (live, RouterPolicy(), False),
    ):  # fmt: skip
        made = decide(call, model=None if policy else model, policy=policy)
        for row in Answer.of(made, None, (), PUBLISHED).to_dict()["considered"]:
            quote = live.quote(int(row["depot"][1:]))
            assert row["quote_s"] == pytest.approx(quote.duration_s, abs=0.06)
            assert (row["forecast_s"] is not None) == known


def test_lines_of_edges_are_kept_and_a_place_without_coordinates_has_none(
    grid: RoadNetwork,
) -> None:
    made = decide(situation(grid), policy=RouterDual())
    answer, lines = Answer.of(made, None, (), PUBLISHED), EdgeLines(grid)
    assert answer.to_dict(lines) == answer.to_dict(lines) == answer.to_dict()
    network = RoadNetwork.from_arrays([0, 1], [1, 2], [100.0, 100.0])
    assert EdgeLines(network).route(network.path([0]))["geojson"]["coordinates"] == []
    there = EdgeLines(grid).route(grid.shortest_path(grid.free_flow_times_s, 5, 5))
    assert len(there["geojson"]["coordinates"]) == 2


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "under 1 %"), (0.002, "under 1 %"), (0.01, "1 %"), (0.5, "50 %"), (0.984, "98 %"),
        (0.99, "99 %"), (0.997, "over 99 %"), (1.0, "over 99 %"),
    ],
)  # fmt: skip
def test_a_chance_is_never_said_to_be_none_or_certain(share: float, words: str) -> None:
    assert chance_words(share) == words
