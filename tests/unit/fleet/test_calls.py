"""Calls: same seed, same calls; shares as set; one setting changes no other draw."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calls import (
    DAY_S,
    Calls,
    counted_from_s,
    draw_calls,
)
from ideal_dispatch.fleet.city import CallList, Duration, Work
from tests.unit.fleet.small import small_city


def _changed(one: Calls, other: Calls) -> set[str]:
    names = (item.name for item in fields(Calls))
    return {name for name in names if not np.array_equal(getattr(one, name), getattr(other, name))}


def test_same_seed_and_year_same_calls() -> None:
    city = small_city()
    calls = draw_calls(city, 5, 2, days=40)
    assert not _changed(calls, draw_calls(city, 5, 2, days=40))
    for seed, year in ((5, 3), (6, 2)):
        assert not np.array_equal(calls.at_s[:100], draw_calls(city, seed, year).at_s[:100])


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"weights": np.ones(5)}, {"cell"}),
        ({"arrests": 0.2}, {"arrest", "entitled"}),
        ({"entitled": 0.3}, {"entitled"}),
        ({"work": Work(scene=Duration(60.0))}, {"scene_s"}),
        ({"work": Work(transported=0.2)}, {"transported"}),
        ({"work": Work(handover=Duration(60.0, "fixed"))}, {"handover_s"}),
    ],
)
def test_one_setting_changes_no_other_draw(changes: dict[str, Any], columns: set[str]) -> None:
    usual = draw_calls(small_city(), 1, days=60)
    assert _changed(usual, draw_calls(small_city(**changes), 1, days=60)) == columns


def test_shares_and_hours_are_as_set() -> None:
    by_hour = np.where(np.arange(24) < 12, 0.5, 1.5)
    city = small_city(by_hour=by_hour, arrests=0.1, entitled=0.2)
    calls = draw_calls(city, 3, days=1000)
    count = len(calls)
    assert count == pytest.approx(60_000, rel=0.02)
    near = 0.008  # four standard errors of 60,000 draws
    assert (calls.at_s % DAY_S < DAY_S / 2).mean() == pytest.approx(0.25, abs=near)
    assert np.bincount(calls.cell) / count == pytest.approx(city.weights / 9.0, abs=near)
    assert (calls.priority == 0).mean() == pytest.approx(0.5, abs=near)
    assert calls.arrest.mean() == pytest.approx(0.1, abs=near)
    assert calls.entitled.mean() == pytest.approx(0.2, abs=near)
    assert not (calls.arrest & ~calls.entitled).any()
    assert not (calls.entitled & (calls.priority != 0)).any()
    surprises = calls.luck[:, 3::4]
    assert surprises.min() >= 0.0
    assert surprises.mean() == pytest.approx(0.5, abs=near)


def test_a_list_is_taken_as_it_is() -> None:
    at_s, cell, level = np.array([100.0, 90_000.0]), np.array([3, 1]), np.array([0, 1])
    city = small_city(listed=CallList(at_s, cell, level))
    calls = draw_calls(city, 7)
    assert calls.at_s.tolist() == at_s.tolist()
    assert calls.cell.tolist() == [3, 1]
    assert calls.priority.tolist() == [0, 1]
    assert counted_from_s(city, 2) == 0.0
    assert [counted_from_s(small_city(), days) for days in (1, 2, 366)] == [0.0, DAY_S, DAY_S]
    assert "luck" in _changed(calls, draw_calls(city, 8))


def test_calls_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match="in the order in which they come in"):
        draw_calls(small_city(listed=CallList(np.array([5.0, 1.0]), *np.zeros((2, 2), int))), 0)
