"""The page of a run, its caveats, the calls it shows, and runs side by side."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.call_maps import standing_out
from ideal_dispatch.evaluation.comparison import (
    arrival_comparison,
    saving_comparison,
    write_comparison,
)
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import Interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.report import caveats, report_facts, tables, write_report
from tests.unit.evaluation.logs import decided, entry, town_run, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reports")
    town_run(place / "test", first_day=20)
    town_run(place / "training")
    return place


@pytest.fixture(scope="module")
def judged(folder: Path) -> Judged:
    run, training = (Outcomes.load(folder / name) for name in ("test", "training"))
    return Judged(run, training, CURVES["waalewijn-2001"])


def test_a_report_is_whole(judged: Judged, grid: RoadNetwork, tmp_path: Path) -> None:
    one_world = replace(judged, outcomes=judged.outcomes.only("experienced"))
    made = write_report(one_world, tmp_path / "report", grid, "call-003")
    assert {path.suffix for path in made} == {".csv", ".tex", ".png", ".pdf", ".html"}
    assert all(path.stat().st_size > 0 for path in made)
    assert (tmp_path / "report" / "figures" / "incident-call-003.png") in made
    html = made[-1].read_text()
    for heading in ("When the first ambulance arrives", "As in the paper", "Controls",
                    "Calls on the map", "How to read the numbers"):  # fmt: skip
        assert heading in html
    assert "were set on the run" in html
    assert "The call you named. call-003, 2023-05-20 08:00." in html
    assert "http" not in html.replace("http://www.w3.org", "")


def test_a_report_is_called_as_its_experiment(
    judged: Judged, grid: RoadNetwork, tmp_path: Path
) -> None:
    run = town_run(tmp_path / "run" / "experienced" / "test", days=2)
    told = tmp_path / "run" / "experiment.json"
    told.write_text(json.dumps({"name": "A small <town>"}))
    named = Outcomes.load(run)
    assert (named.title, named.name) == ("A small <town>, test days", "experienced/test")
    one_world = Judged(named.only("experienced"))
    html = write_report(one_world, tmp_path / "report", grid)[-1].read_text()
    assert "<title>Replay report: A small &lt;town&gt;, test days</title>" in html
    assert judged.outcomes.title == ""  # part of no experiment: the folder is its name
    told.write_text("{}")
    with pytest.raises(FileFormatError, match="experiment.json: not the experiment of a replay"):
        Outcomes.load(run)


def test_big_numbers_say_against_what(judged: Judged) -> None:
    (_, alone), (within, _), (one, saved), (rival, against) = report_facts(judged)
    assert re.fullmatch(r"\d+:\d\d min", alone)
    assert within == "of calls it reaches within 8 min of driving"
    assert one.startswith("than that one ambulance: ideal, with a second one on ")
    assert rival.startswith("than interval with about as many ambulances: ideal; mean of all calls")
    for label, value in ((one, saved), (rival, against)):
        assert re.fullmatch(r"\d+\.\d\d s (sooner|later)", value)
        low, high = re.findall(r"[\d.]+ s (sooner|later)", label)
        assert ("no difference is shown" in label) == (low != high)


@pytest.mark.slow
def test_the_same_report_twice(judged: Judged, tmp_path: Path) -> None:
    one_world = Judged(judged.outcomes.only("instantaneous"))
    made, again = (write_report(one_world, tmp_path / name) for name in ("one", "two"))
    for one, other in zip(made, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    html = made[-1].read_text()
    assert "Give it with --network" in html
    assert "were set on this run itself" in html
    assert "experienced traffic" not in html


def test_an_unknown_call_stops_before_anything_is_written(judged: Judged, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no incident nine"):
        write_report(judged, tmp_path / "none", incident="nine")
    assert not (tmp_path / "none").exists()


def test_tables_of_both_worlds(judged: Judged) -> None:
    names = [table.name for group in tables(judged).values() for table in group]
    assert len(names) == len(set(names)) == 18
    assert {"arrival-instantaneous", "saved-experienced", "second-experienced"} <= set(names)


# --- caveats ------------------------------------------------------------------------


def test_caveats_of_a_calibrated_run(judged: Judged, folder: Path, tmp_path: Path) -> None:
    assert caveats(judged) == [
        "4 days are few: at least 10 are needed before a difference may be claimed."
    ]
    same = Judged(judged.outcomes, judged.outcomes)
    assert any("shares 4 days with this one, 2023-05-20" in line for line in caveats(same))
    lost = Outcomes.load(town_run(tmp_path / "lost", days=10, dropped=[{"incident": "x"}] * 3))
    lines = caveats(Judged(lost))
    assert "set on the very calls they are judged on" in lines[0]
    assert "3 of 63 incidents could not be replayed" in lines[1]
    assert len(lines) == 2


def test_volumes_that_are_missed_are_told(judged: Judged, tmp_path: Path) -> None:
    other = Outcomes.load(town_run(tmp_path / "other", shift=60.0))
    (line,) = (one for one in caveats(Judged(judged.outcomes, other)) if "than asked for" in one)
    assert re.search(r"furthest off is ideal, \+\d+ %, with \+\d+\.\d %\.", line)


def test_caveats_of_a_run_that_lacks_parts(tmp_path: Path) -> None:
    lines = [entry("one", {"s0": 5.0}, {"router": decided("s0")})]
    said = " ".join(caveats(Judged(Outcomes.load(write_run(tmp_path / "run", lines)))))
    assert "1 day is few" in said
    assert "the paper's printed policy is not in this run" in said.lower()
    assert "No interval-selective policy" in said


def test_a_calibration_without_the_policy_is_refused(judged: Judged, tmp_path: Path) -> None:
    lines = [entry("one", {"s0": 5.0}, {"router": decided("s0")})]
    other = Outcomes.load(write_run(tmp_path / "run", lines))
    with pytest.raises(InputError, match="no policy interval; it has router"):
        tables(Judged(judged.outcomes, other))


# --- calls that stand out -----------------------------------------------------------


def test_calls_that_stand_out(judged: Judged) -> None:
    found = standing_out(judged, "ideal", "instantaneous")
    numbers = [number for group in found.values() for number in group]
    assert len(numbers) == len(set(numbers))
    own, other = judged.at("ideal", 0.25), judged.at("interval", 0.25)
    primary = judged.outcomes.policy("ideal").drives["instantaneous"].primary_s
    saved = primary - own.arrival_s["instantaneous"]
    assert saved[found["largest saving"][0]] == saved.max() > 0
    lost = own.arrival_s["instantaneous"] - other.arrival_s["instantaneous"]
    assert lost[found["largest loss"][0]] == lost.max() > 0
    assert all(own.sent[number] for number in found["typical"])


def test_without_a_rival_a_loss_is_a_missed_chance(tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 100.0, "s1": 90.0 - i}, {"ideal": decided("s0", "s1", -float(i))})
        for i in range(8)
    ]
    lone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)))
    assert standing_out(lone, "ideal", "instantaneous")["largest loss"] == [7, 6, 5, 4]


# --- side by side -------------------------------------------------------------------


def test_side_by_side(judged: Judged, folder: Path, tmp_path: Path) -> None:
    runs = [judged, Judged(Outcomes.load(folder / "training").only("instantaneous"))]
    table = arrival_comparison(runs, "instantaneous")
    assert [name.rsplit("/", 1)[1] for name in table.header[1:]] == [
        "test: mean s", "test: P95 s", "training: mean s", "training: P95 s"
    ]  # fmt: skip
    router = judged.outcomes.policy("router").drives["instantaneous"].primary_s
    assert next(row for row in table.rows if row[0] == "router")[1] == router.mean()
    only = saving_comparison(runs, "experienced")
    assert all(isinstance(row[1], Interval) and row[2] is None for row in only.rows)
    made = write_comparison(runs, tmp_path / "both")
    assert made[-1].name == "comparison.html"
    html = made[-1].read_text()
    assert "Instantaneous traffic (a road takes what the router shows" in html
    assert "training: Thresholds for a volume were set on the very calls" in html
    assert all(path.stat().st_size > 0 for path in made)


def test_runs_of_one_name_are_numbered(judged: Judged, tmp_path: Path) -> None:
    heads = arrival_comparison([judged, judged], "instantaneous").header
    assert heads[1].endswith("test (1): mean s")
    assert heads[4].endswith("test (2): P95 s")
    assert np.unique(heads).size == len(heads)
    with pytest.raises(InputError, match="no run to compare"):
        write_comparison([], tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_run_of_baselines_alone(grid: RoadNetwork, tmp_path: Path) -> None:
    lines = [
        entry(f"{i}", {"s0": 100.0 + i, "s1": 90.0},
              {"router": decided("s0", "s1"), "router-dual": decided("s0", "s1", 0.0, None)})
        for i in range(3)
    ]  # fmt: skip
    alone = Judged(Outcomes.load(write_run(tmp_path / "run", lines)).only("instantaneous"))
    html = write_report(alone, tmp_path / "report", grid)[-1].read_text()
    assert "Calls as router saw them in instantaneous traffic" in html
    assert "No interval-selective policy is in this run" in html
