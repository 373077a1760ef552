"""What is written of judged races."""

import csv
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.evaluation.race_report import (
    breakdowns,
    caveats,
    equal_groups,
    races_report,
    write_races,
)
from ideal_dispatch.evaluation.race_study import RaceStudy, StudySettings, study_races
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.unit.evaluation.race_logs import town_log

SETTINGS = StudySettings(date(2023, 2, 1), "month", regressions=False)


@pytest.fixture(scope="module")
def study(grid: RoadNetwork) -> RaceStudy:
    return study_races(town_log(grid), SETTINGS, grid)


@pytest.fixture(scope="module")
def folder(study: RaceStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("races")
    write_races(study, made)
    return made


def test_everything_is_written(study: RaceStudy, folder: Path) -> None:
    told = json.loads((folder / "races.json").read_text())
    assert told == study.judged.as_dict()
    assert ResponseModel.load(folder / "response_times.json") == study.windows[-1].response
    assert {"volumes.csv", "by-hour.csv", "by-distance.csv", "by-district.csv"} <= {
        path.name for path in (folder / "tables").iterdir()
    }
    assert {"map.png", "reliability.png", "volumes.png"} == {
        path.name for path in (folder / "figures").iterdir()
    }


def test_a_row_for_every_race(study: RaceStudy, folder: Path) -> None:
    with (folder / "races.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    judged = study.judged
    assert len(rows) == len(judged)
    saved = [float(row["saved_s"]) for row in rows]
    np.testing.assert_allclose(saved, judged.saved_s)
    for row in rows[:20]:
        late = float(row["primary_took_s"]) - float(row["second_took_s"])
        assert float(row["saved_s"]) == max(late, 0.0)
        assert row["second_first"] == str(int(late > 0))
        assert row["primary_station"] != row["second_station"]
        assert float(row["primary_expected_s"]) <= float(row["second_expected_s"])
    assert {row["district"] for row in rows} == {"Lower town", "Upper town"}


def test_breakdowns_count_every_race(study: RaceStudy) -> None:
    tables = breakdowns(study)
    assert [table.name for table in tables] == [
        "by-distance", "by-hour", "by-district", "by-station"
    ]  # fmt: skip
    for table in tables:
        assert sum(row[1] for row in table.rows) == len(study.judged)  # type: ignore[misc]


def test_tables_hold_what_was_judged(study: RaceStudy) -> None:
    report, judged = races_report(study), study.judged
    tables = report.tables
    assert report.numbers[0][1] == f"{100 * judged.came_first.mean():.0f} %"
    first = tables["volumes"].rows[0]
    assert first[0] == "ideal"
    assert first[3] == pytest.approx(judged.saved_at("ideal", (0.5,))[0])
    assert [row[2] for row in tables["windows"].rows] == np.bincount(study.window).tolist()
    assert tables["gain"].rows[-1][2] == pytest.approx(judged.gain_s.mean())
    *groups, everything = tables["probability"].rows
    assert sum(row[1] for row in groups) == everything[1] == len(judged)  # type: ignore[misc]
    assert everything[3] == judged.mean(judged.came_first)
    part = judged.select(study.window == 1)
    np.testing.assert_array_equal(part.took_s, judged.took_s[study.window == 1])


def test_groups_are_equal_and_whole() -> None:
    values = np.random.default_rng(0).random(100)
    groups = equal_groups(values, 5)
    assert [int(group.sum()) for group in groups] == [20] * 5
    assert np.add.reduce([g.astype(int) for g in groups]).tolist() == [1] * 100
    assert values[groups[0]].max() <= values[groups[1]].min()
    assert len(equal_groups(values[:20], 8)) == 1


def test_what_a_reader_must_know(study: RaceStudy) -> None:
    few = replace(study, judged=study.judged.select(study.window == 1))
    assert any("races are few" in line for line in caveats(few))
    always = replace(study.judged, gain_s=10 * study.judged.gain_s + 50.0)
    bold = replace(study, judged=always)
    assert any("expects more than the second unit saves" in line for line in caveats(bold))
