"""Rules that decide alike have the same year, byte for byte; luck belongs to call and role."""

from typing import Literal

import numpy as np
import pytest

from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.fleet.units import Log
from tests.fleets import town

_DAYS = 40
_ENDS: tuple[Literal["never"], Literal["always"]] = ("never", "always")
_WEIGHED = ("saved", "cost")  # what a rule looked at; the others are what happened


def _year(rule: SecondRule, recall: Recall, units: int = 8) -> Log:
    city = town(units)
    return Simulator(city).run(draw_calls(city, 11, days=_DAYS), rule.compiled(recall))[1]


def _happened(log: Log) -> list[bytes]:
    return [getattr(log, name).tobytes() for name in Log._fields if name not in _WEIGHED]


@pytest.mark.parametrize("recall", RECALLS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SecondRule("survival", 1.0), SecondRule("never")),
        (SecondRule("random", 1.0), SecondRule("never")),
        (SecondRule("random", 0.0), SecondRule("always")),
        (SecondRule("survival", 0.0), SecondRule("always")),
    ],
    ids=lambda rule: rule.name,
)
def test_rules_that_decide_alike_have_the_same_year(
    one: SecondRule, other: SecondRule, recall: Recall
) -> None:
    log = _year(one, recall)
    assert _happened(log) == _happened(_year(other, recall))
    assert (log.unit[:, 1] >= 0).any() == (other.kind == "always")


def test_without_a_second_the_rule_of_recall_changes_nothing() -> None:
    first, *rest = (_happened(_year(SecondRule("never"), recall)) for recall in RECALLS)
    assert all(log == first for log in rest)


@pytest.mark.parametrize("recall", RECALLS)
def test_rules_differ_only_after_the_first_second_has_left(recall: Recall) -> None:
    never, always = (_year(SecondRule(kind), recall) for kind in _ENDS)
    begin = int(np.flatnonzero(always.unit[:, 1] >= 0)[0])
    assert 0 < begin < 100
    for name in ("unit", "sent_s", "arrive_s", "first_s"):
        ours, theirs = getattr(never, name), getattr(always, name)
        assert ours[:begin].tobytes() == theirs[:begin].tobytes()
        assert ours[begin:].tobytes() != theirs[begin:].tobytes()


def test_same_unit_from_its_station_has_the_same_luck_under_every_rule() -> None:
    never, always = (_year(SecondRule(kind), "none", units=12) for kind in _ENDS)
    same = (never.unit[:, 0] == always.unit[:, 0]) & (never.sent_s[:, 0] == always.sent_s[:, 0])
    took = [log.arrive_s[same, 0] - log.sent_s[same, 0] for log in (never, always)]
    alike = took[0] == took[1]
    # the rest were on the road in one of the two years, in other places
    assert 0.8 < alike.mean() < 1.0
