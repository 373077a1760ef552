"""A policy is asked in one place, which checks what it answers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment, Decision, Situation, decide
from ideal_dispatch.errors import PolicyError, UnreachableError
from tests.unit.dispatch.worlds import situation


@dataclass(frozen=True)
class Told:
    """A policy that answers what it is told to."""

    answer: Callable[[Situation], Any]
    name: str = "told"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Any:
        return self.answer(situation)


def sends(one: int, another: int | None = None, way: int = 0, **changes: Any) -> Any:
    """What answers with these stations, both by the way of one station."""

    def answer(call: Situation) -> Decision:
        path = call.quote(way).path
        second = None if another is None else Assignment(another, path)
        made = Decision("told", Assignment(one, path), second, 0.0, 0.0, "")
        return replace(made, **changes)

    return answer


def fails(call: Situation) -> None:
    raise ZeroDivisionError("two\nlines")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (sends(99), "it sends from station 99, which is not available"),
        (sends(1), "it sends from station 1, which is not available"),
        (sends(2), r"does not lead from depot D2 \(node 108\) to the incident"),
        (sends(0, 1), "it sends from station 1, which is not available"),
        (sends(0, 0), r"it sends two ambulances from depot D0 \(node 0\), where 1 is free"),
        (sends(0, policy="other"), "it decided in the name of other"),
        (sends(0, primary=None), "it sends None; an Assignment is needed"),
        (sends(0, score_s=float("nan")), "score nan is not finite"),
        (lambda call: None, "decide\\(\\) gives None; a Decision is needed"),
        (lambda call: call.quote(1), r"depot D1 \(node 11\) has no route to the incident"),
        (fails, "ZeroDivisionError: two lines"),
    ],
)
def test_what_breaks_the_contract(grid: RoadNetwork, answer: Any, message: str) -> None:
    told = rf"^policy told, incident call 65: .*{message} \(test_decision.py, line \d+\)$"
    with pytest.raises(PolicyError, match=told):
        decide(situation(grid, 65, (1, 0, 1)), policy=Told(answer))


def test_the_ambulance_that_was_sent_is_the_primary(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (1, 1))
    call = replace(call, sent=Assignment(0, call.quote(0).path))
    with pytest.raises(PolicyError, match="its primary is not the ambulance sent from depot D0"):
        decide(call, policy=Told(sends(1, way=1)))
    both = decide(call, policy=Told(sends(0, 0)))
    assert both.second is not None, "one more is free at the depot of the one sent"


def test_no_answer_is_no_fault(grid: RoadNetwork) -> None:
    def answer(call: Situation) -> Decision:
        raise UnreachableError("no way")

    with pytest.raises(UnreachableError, match="^no way$"):
        decide(situation(grid, 65), policy=Told(answer))
