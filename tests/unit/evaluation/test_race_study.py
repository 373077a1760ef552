"""Races of a made-up log, judged by what was known before them."""

from dataclasses import fields, replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.predictors import (
    BOOSTING,
    FREE_FLOW,
    IDENTITY,
    QUOTE,
    ROAD,
    STRAIGHT,
    Arrivals,
    as_if_arrived,
    by_hour,
    fit_predictors,
)
from ideal_dispatch.evaluation.race_study import (
    OFF_NETWORK,
    RaceStudy,
    StudySettings,
    Window,
    check_model,
    study_races,
)
from ideal_dispatch.records.responses import NEVER, Responses
from tests.unit.dispatch.worlds import random_model
from tests.unit.evaluation.race_logs import SLOWNESS, TURNOUT_S, town_log

SPLIT = date(2023, 2, 11)
PLAIN = StudySettings(SPLIT, regressions=False)

_NAT = np.datetime64("NaT", "s")


@pytest.fixture(scope="module")
def log(grid: RoadNetwork) -> Responses:
    return town_log(grid)


@pytest.fixture(scope="module")
def study(grid: RoadNetwork, log: Responses) -> RaceStudy:
    return study_races(log, PLAIN, grid)


def test_races_after_the_date_are_judged(study: RaceStudy, log: Responses) -> None:
    races = log.races()
    assert 0 < len(study.judged) < len(races)
    assert study.races.date.min() >= np.datetime64(SPLIT)
    assert len(study.judged) == (races.date >= np.datetime64(SPLIT)).sum()
    np.testing.assert_array_equal(study.judged.took_s, study.races.response_s)
    assert study.left_out == {NEVER: 20}
    assert [one.window.name for one in study.windows] == ["2023-02-11 to 2023-03-02"]
    assert study.words.startswith("free flow × hour")


def test_ours_and_the_controls_are_there(grid: RoadNetwork, log: Responses) -> None:
    study = study_races(log, StudySettings(SPLIT), grid)
    judged = study.judged
    assert {"ideal", STRAIGHT, ROAD, FREE_FLOW, BOOSTING} == set(judged.expected_s)
    controls = {STRAIGHT, ROAD, FREE_FLOW, BOOSTING, QUOTE}
    assert {"ideal", *controls} <= set(judged.scores)
    # the truth is a turnout and free flow times a constant: it ranks, and it is calibrated
    assert judged.auc("ideal").mean > 0.6
    assert judged.gain_ratio.low < 1.0 < judged.gain_ratio.high
    assert judged.mae_s("ideal").mean < 1.1 * judged.mae_s(FREE_FLOW).mean
    assert study.arrivals > 2 * len(judged)
    assert study.arrivals_mae_s("ideal") < 40.0


def test_what_comes_later_changes_nothing_before(
    study: RaceStudy, grid: RoadNetwork, log: Responses
) -> None:
    """Arrivals after the date decide who won, and nothing that was expected."""
    judged_now = log.date >= np.datetime64(SPLIT)
    shuffled = log.on_scene.copy()
    late = np.flatnonzero(judged_now & log.arrived)
    shuffled[late] = log.dispatched[late] + np.timedelta64(600, "s")
    other = study_races(replace(log, on_scene=shuffled), PLAIN, grid)
    np.testing.assert_array_equal(other.judged.gain_s, study.judged.gain_s)
    for name, score in study.judged.scores.items():
        np.testing.assert_array_equal(other.judged.scores[name], score)
    assert (other.judged.took_s == 600).all()


def test_months_roll_forward(grid: RoadNetwork) -> None:
    long = town_log(grid, 500, 110)
    rolled = study_races(long, StudySettings(date(2023, 2, 20), "month"), None)
    names = [one.window.name for one in rolled.windows]
    assert names == ["2023-02-20 to 2023-02-28", "2023-03", "2023-04"]
    learned = [one.learned for one in rolled.windows]
    assert learned == sorted(learned)
    assert learned[0] < learned[-1]
    months = rolled.races.date.astype("M8[M]").astype(str)
    assert np.array(["2023-02", "2023-03", "2023-04"])[rolled.window].tolist() == months.tolist()
    assert rolled.words.startswith("straight lines")


def test_a_log_without_places_has_identity_and_hour(grid: RoadNetwork) -> None:
    bare = town_log(grid, 500, places=False)
    found = study_races(bare, StudySettings(SPLIT), None)
    assert set(found.judged.expected_s) == {"ideal", IDENTITY}
    assert np.isfinite(found.judged.gain_s).all()
    assert np.isnan(found.straight_m).all()


def test_races_off_the_network_are_counted(grid: RoadNetwork, log: Responses) -> None:
    far = np.where(log.incident == "C0000", log.lon + 1.0, log.lon)
    assert study_races(replace(log, lon=far), PLAIN, grid).left_out[OFF_NETWORK] == 1


def test_a_remark_excludes_from_learning_and_not_from_judging(
    study: RaceStudy, grid: RoadNetwork, log: Responses
) -> None:
    remarked = np.where(log.date >= np.datetime64(SPLIT), 3, 0).astype(np.uint8)
    same = study_races(replace(log, remark=remarked), PLAIN, grid)
    assert same.judged.as_dict() == study.judged.as_dict()
    early = np.where(log.incident < "C0100", 3, 0).astype(np.uint8)
    fewer = study_races(replace(log, remark=early), PLAIN, grid)
    assert fewer.windows[0].learned < study.windows[0].learned


def test_what_cannot_be_judged_is_said(grid: RoadNetwork, log: Responses) -> None:
    with pytest.raises(InputError, match="--learn-until 2030-01-01"):
        study_races(log, StudySettings(date(2030, 1, 1)), grid)
    with pytest.raises(InputError, match="no arrival before the date"):
        study_races(log, StudySettings(date(2022, 1, 1)), grid)
    with pytest.raises(InputError, match="--network"):
        study_races(log, StudySettings(SPLIT, train=True))
    model = random_model(grid)
    with pytest.raises(InputError, match="--model"):
        check_model(model, SPLIT, grid, False)
    late = replace(model, details={"data": {"last": "2023-02-11"}})
    with pytest.raises(InputError, match="2023-02-11"):
        check_model(late, SPLIT, grid, False)
    check_model(replace(model, details={"data": {"last": "2023-02-10"}}), SPLIT, grid, False)


def test_a_button_pressed_at_the_scene_takes_no_race_away(
    grid: RoadNetwork, log: Responses
) -> None:
    """When a unit said that it left is known after the call: it may not choose what is judged."""
    both_at_once = replace(log, en_route=np.where(np.arange(len(log)) % 3 == 0, log.on_scene, _NAT))
    assert len(Arrivals.of(both_at_once, grid)) == len(Arrivals.of(log, grid))


def test_units_of_other_kinds_teach_nothing(grid: RoadNetwork, log: Responses) -> None:
    """The same races, judged alike, whatever engines did at other calls."""
    engines = replace(
        log.select(np.arange(0, len(log), 2)),
        kind=np.full(-(-len(log) // 2), "engine"),
        on_scene=log.on_scene[::2] + np.timedelta64(900, "s"),
        incident=np.char.add("E", log.incident[::2]),
    )
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(one, field.name) for one in (log, engines)])
        for field in fields(log)
        if isinstance(getattr(log, field.name), np.ndarray)
    }
    mixed = replace(log, **columns).in_order()
    settings = StudySettings(date(2023, 2, 1), kinds=("ambulance",))
    alone, beside = (study_races(one, settings, grid).judged for one in (log, mixed))
    np.testing.assert_allclose(beside.gain_s, alone.gain_s)


def test_what_is_learned_of_arrivals(grid: RoadNetwork, log: Responses) -> None:
    arrivals = Arrivals.of(log, grid)
    exact = replace(arrivals, took_s=TURNOUT_S + SLOWNESS * arrivals.free_flow_s)
    whole, drive = by_hour(exact, "free_flow_s")
    np.testing.assert_allclose(whole(exact), exact.took_s)
    np.testing.assert_allclose(drive(exact), SLOWNESS * exact.free_flow_s)
    found = fit_predictors(arrivals)  # recalled units count as "would have taken longer"
    assert found.response.rows == len(arrivals) + 20
    assert found.response.drive == FREE_FLOW
    asked = Arrivals.of(as_if_arrived(log.select(log.recalled)), grid)
    assert len(asked) == 20
    assert (found.of(asked).mean_s > 60.0).all()


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [
        (date(2023, 12, 1), date(2024, 1, 1), "2023-12"),
        (date(2012, 1, 1), date(2013, 1, 1), "2012"),
        (date(2012, 1, 5), date(2012, 2, 1), "2012-01-05 to 2012-01-31"),
    ],
)
def test_windows_have_names(start: date, end: date, name: str) -> None:
    assert Window(start, end).name == name
