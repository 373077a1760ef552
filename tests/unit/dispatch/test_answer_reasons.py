"""What is said beside a decision: the most serious first, and what always holds in one."""

import json
import random
from dataclasses import replace

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Readiness, observe
from ideal_dispatch.dispatch.answer import SEVERITY, STANDING, Reason, bounded, doubts, remarks
from ideal_dispatch.dispatch.policies import Ideal, RouterDual, RouterPolicy
from ideal_dispatch.dispatch.situation import ForecastRouter
from tests.conftest import ROOT
from tests.unit.dispatch.worlds import TIMES, bounded_model, depots, random_model, situation


def codes(*reasons: str) -> list[str]:
    return [one.code for one in remarks([(code, f"words of {code}") for code in reasons])]


def test_the_most_serious_comes_first() -> None:
    shuffled = random.Random(0).sample(SEVERITY, len(SEVERITY))
    assert codes(*shuffled) == list(SEVERITY)
    assert codes("gap_open", "weather_stale", "location_uncertain", "unusual_context")[0] == (
        "unusual_context"
    )
    assert codes("unusual_context", "forecast_bounded")[0] == "forecast_bounded"


def test_what_holds_for_every_call_is_one_remark_at_the_end() -> None:
    said: list[Reason] = [
        ("units_assumed", "a"), ("no_live_traffic", "b"), ("gap_open", "c"),
        ("published_spreads", "d"),
    ]  # fmt: skip
    first, last = remarks(said)
    assert (first.code, first.standing) == ("gap_open", False)
    assert (last.code, last.also) == ("published_spreads", ("no_live_traffic", "units_assumed"))
    assert (last.words, last.standing) == ("d · b · a", True)


def test_a_reason_is_said_once_and_a_code_may_be_said_twice() -> None:
    twice: list[Reason] = [("unknown_depot", "x"), ("unknown_depot", "y"), ("unknown_depot", "x")]
    assert [one.words for one in remarks(twice)] == ["x", "y"]


def test_a_code_of_others_comes_before_what_always_holds() -> None:
    assert codes("no_live_traffic", "of_a_plugin", "gap_open") == [
        "gap_open", "of_a_plugin", "no_live_traffic",
    ]  # fmt: skip


def test_every_code_is_translated_and_no_other() -> None:
    static = ROOT / "src" / "ideal_dispatch" / "service" / "desk" / "static"
    words = json.loads((static / "locales" / "zh-Hant.json").read_text(encoding="utf-8"))
    codes = {f"degraded.{code}" for code in (*SEVERITY, *STANDING)}
    assert {key for key in words if key.startswith("degraded.")} == codes


def test_doubts_of_a_decision(grid: RoadNetwork) -> None:
    call, model = situation(grid, 65), random_model(grid)
    made = Ideal(replace(model, network_checksum="other"), time_limit_s=None).decide(
        call, np.random.default_rng(0)
    )
    said = dict(doubts(made))
    assert said["unusual_context"].startswith("unlike anything in training: ")
    assert said["other_network"] == "the model was trained on another network"
    assert "gap_open" not in said
    assert doubts(replace(made, outlook=None, gap=None)) == []


def test_quotes_of_a_forecast_are_doubted_without_an_outlook(grid: RoadNetwork) -> None:
    model = replace(bounded_model(grid), network_checksum="other")
    live = situation(grid, 65)
    router = ForecastRouter(model, grid, live.context)
    own = observe(router, grid, live.incident, live.context, Readiness(depots(2)))
    rng = np.random.default_rng(0)
    for policy in (RouterPolicy(), RouterDual(), Ideal(responses=TIMES, seconds=("other-depot",))):
        made = policy.decide(own, rng)
        assert made.outlook is None
        assert (bounded(made) or ("", ""))[0] == "forecast_bounded"
        assert set(dict(doubts(made))) == {"unusual_context", "other_network"}
        made = policy.decide(live, rng)
        assert bounded(made) is None
        assert doubts(made) == []
    made = Ideal(model, time_limit_s=None).decide(live, rng)
    assert made.outlook is not None
    assert made.outlook.centre == "router"
    assert bounded(made) is None, "the times are the router's, not the forecast's"
