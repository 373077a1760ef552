"""Standing a second down with live information: what is told of fleets and of races."""

import math
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.dispatch.recall import RECALLS
from ideal_dispatch.evaluation.race_judgement import OURS, JudgedRaces
from ideal_dispatch.fleet.run import run_fleet
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.report import Interval
from tests.unit.fleet.small_runs import experiment
from workshop.evidence import live_races
from workshop.evidence.live_races import LiveRaces, LoggedUnit, Trust, known, stood_down_s
from workshop.evidence.live_recall import fleet_cases, fleet_tables, fleet_words

_TOLD: tuple[Trust, ...] = ("believed", "forgotten")
_MODEL = ResponseModel(Effects(100.0, 0.5), shared=0.1, unplaced=Effects(500.0, 0.3))


def test_every_rule_of_a_fleet_has_its_row(tmp_path: Path) -> None:
    some = experiment(
        recall=RECALLS, utilisation=(0.3,), years=2,
        policies={"always": {"kind": "always"}, "priced C": {"kind": "survival"}},
    )  # fmt: skip
    folder = run_fleet(some, tmp_path / "run", workers=1)
    cases = list(fleet_cases(folder))
    (table,) = fleet_tables(cases)
    assert len(table.rows) == 2 * len(RECALLS)
    none, arrival, *early = (cases[0].minutes(recall) for recall in RECALLS)
    assert none > arrival > max(early)
    assert cases[0].survivors("live", "live").value == 0.0
    assert cases[0].freed("worth", "none").value > 0.0
    (words,) = fleet_words(cases)
    assert "- **What positions add**, live against by its price" in words
    assert "- **Against us.** Neither rule surely saves more than standing down at first" in words


def test_a_unit_is_known_as_far_as_the_log_tells() -> None:
    unit, silent = LoggedUnit(100.0, 500.0, _MODEL), LoggedUnit(math.nan, 500.0, _MODEL)
    assert known(unit, 500.0, "not told").state == "arrived"
    for found in (known(silent, 99.0, "believed"), known(unit, 99.0, "not told")):
        assert found.expected_s == float(_MODEL.of(math.nan).after(99.0).mean_s)
    waits, drives = (known(unit, now_s, "believed").expected_s for now_s in (99.0, 101.0))
    assert waits is not None
    assert drives is not None
    assert drives < waits - 20.0  # it has left: no turnout any more
    late = LoggedUnit(400.0, 500.0, _MODEL)
    believed, doubted = (known(late, 399.0, how).expected_s for how in _TOLD)
    assert believed is not None
    assert doubted is not None
    assert doubted < believed - 100.0  # it has probably left and not said so


def test_the_second_is_stood_down_when_the_first_leaves_and_it_does_not() -> None:
    first, second = LoggedUnit(20.0, 300.0, _MODEL), LoggedUnit(290.0, 900.0, _MODEL)
    told = stood_down_s(first, second, (1e-4, 3e-2, 1.0), "believed")
    assert told == sorted(told, reverse=True)  # the dearer, the sooner
    assert told[-1] == live_races.LOOK_S
    assert told[0] == math.inf
    untold = stood_down_s(first, second, (3e-2,), "not told")
    assert told[1] < untold[0]


def test_what_is_kept_and_freed_is_counted_from_what_happened() -> None:
    took_s = np.array([[400.0, 300.0], [300.0, 600.0], [500.0, 200.0]])
    expected = np.array([[1.0, 2.0]] * 3)
    judged = JudgedRaces(
        took_s, np.arange(3, dtype=np.int32), {OURS: expected}, {OURS: expected}, {},
        np.ones(3), np.full(3, 0.5),
    )  # fmt: skip
    stood = np.array([[120.0], [60.0], [math.inf]]).repeat(3, axis=1)
    races = LiveRaces(judged, dict.fromkeys(live_races.RULES, stood), np.array([280.0, 30.0, 9.0]))
    table = races.table
    never, arrival, told, untold, _, dealt = table.rows[:6]
    assert never[6] == pytest.approx((400.0 + 600.0 + 500.0) / 180.0)
    assert arrival[6] == pytest.approx((300.0 + 300.0 + 200.0) / 180.0)
    assert told[6] == pytest.approx((120.0 + 60.0 + 200.0) / 180.0)
    assert told[2] == pytest.approx(2 / 3)
    assert told[1:] == untold[1:]
    seconds, share = told[3:5]
    assert isinstance(seconds, Interval)
    assert isinstance(share, Interval)
    assert seconds.mean == pytest.approx(100.0)  # 300 s of 400 s in three races
    assert share.mean == pytest.approx(0.75)
    assert isinstance(dealt[4], float)
    assert 0.0 < dealt[4] < 0.75
    assert len(table.rows) == 2 + 4 * len(live_races.PRICES)
    lines, wrong = live_races.race_words(races)
    assert lines.count("75 % of the seconds remain, and 2.33 unit minutes are freed") == 3
    assert "at 0.01 75 against " in lines
    assert wrong.startswith(
        "**What went wrong.** At the usual price 1 of 2 seconds that were stood down would have "
        "been first. 1 of them had not said that they left; when they did, they were there after "
        "20 s in the median"
    )
