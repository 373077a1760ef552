"""A decision told step by step is the same decision, and nobody else pays for the telling."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.dispatch.situation import UNTRACED, Step, Trace
from tests.unit.dispatch.worlds import TIMES, depots, moment, random_model, world


def traced(network: RoadNetwork, trace: Trace) -> Situation:
    at = moment(network)
    return observe(
        world(network), network, Incident("call 65", 65, at), world(network).recording.context(at),
        Readiness(depots(3), [2, 1, 0], region=0), trace=trace,
    )  # fmt: skip


def flat(steps: list[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from flat(step.steps)


def test_steps_nest_and_last_at_least_as_long_as_those_inside() -> None:
    trace = Trace()
    with trace.step("outer") as facts:
        facts["answer_s"] = 42
        with trace.step("inner"):
            pass
        with trace.step("next"):
            pass
    with trace.step("after"):
        pass
    outer, after = trace.steps
    assert (outer.name, after.name) == ("outer", "after")
    assert [step.name for step in outer.steps] == ["inner", "next"]
    assert outer.seconds >= sum(step.seconds for step in outer.steps) > 0.0
    said = outer.as_dict()
    assert (said["step"], said["answer_s"], said["steps"][0]["step"]) == ("outer", 42, "inner")
    assert "steps" not in after.as_dict()


def test_untraced_keeps_nothing() -> None:
    with UNTRACED.step("anything") as facts:
        facts["large"] = 1
    with UNTRACED.step("more") as facts:
        assert facts == {}
    assert UNTRACED.steps == []


def test_the_way_to_our_decision(grid: RoadNetwork) -> None:
    trace = Trace()
    call, policy = traced(grid, trace), Ideal(random_model(grid), TIMES, method="multistart")
    made = policy.decide(call, np.random.default_rng(0))
    steps = {step.name: step.facts for step in flat(trace.steps)}
    assert list(steps) == [
        "the call", "quotes from D0", "quotes from D1", "quotes from D2",
        "edge times of the router", "forecast", "scenario set", "gap search", "expected gain",
        "threshold",
    ]  # fmt: skip
    assert steps["the call"]["node"] == 65
    assert steps["quotes from D0"]["duration_s"] == pytest.approx(
        call.quote(0).duration_s, abs=1e-3
    )
    assert steps["quotes from D2"] == {"units": 0}
    assert steps["scenario set"]["radius"] == made.log_facts()["radius"]
    assert steps["gap search"]["gap_lower_s"] == made.log_facts()["gap_lower_s"]
    assert steps["gap search"]["labels"] > 0
    assert steps["expected gain"]["expected_gain_s"] == pytest.approx(made.score_s, abs=1e-3)
    assert steps["threshold"] == {
        "primary_s": made.log_facts()["primary_s"], "free_units": 3,
        "threshold_s": made.threshold_s,
    }  # fmt: skip
    json.dumps([step.as_dict() for step in trace.steps], allow_nan=False)
