"""Logs become arrays: every number as worked out by hand, every odd line refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.outcomes import Outcomes
from tests.unit.evaluation.logs import decided, entry, write_experiment, write_run


@pytest.fixture
def lines() -> list[dict[str, Any]]:
    """Two incidents; the second one's printed second is the fastest, its control faster still."""
    return [
        entry(
            "one",
            {"s0": ([1, 2], [100.0, 50.0]), "s1": ([3, 2], [90.0, 30.0])},
            {
                "router": decided("s0", "s1", 0.0, 0.0),
                "paper-ideal": decided("s0", None, 3.0, 5.0),
                "control": decided("s0", "s1", 2.0, None),
            },
            day="2023-05-08",
            hindsight=110.0,
        ),
        entry(
            "two",
            {"s0": 200.0, "s1": 240.0, "s0+aaaaaaaa": 180.0, "s1+bbbbbbbb": 170.0},
            {
                "router": decided("s0", "s1", 0.0, 0.0),
                "paper-ideal": decided("s0", "s0+aaaaaaaa", 7.0, 5.0),
                "control": decided("s0", "s1+bbbbbbbb", -1.0, None),
            },
            day="2023-05-09",
            hindsight=165.0,
        ),
    ]


def test_arrays_by_hand(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines, world="instantaneous"))
    assert (run.name, run.title) == (f"{tmp_path.name}/run", "")
    assert run.incidents == ("one", "two")
    assert run.days == ("2023-05-08", "2023-05-09")
    assert run.day.tolist() == [0, 1]
    assert dict(run.roles) == {"router": "router", "paper": "paper-ideal"}
    paper, control = run.policy("paper-ideal"), run.policy("control")
    assert paper.primary_s.tolist() == [150.0, 200.0]
    np.testing.assert_array_equal(paper.second_s, [np.nan, 180.0])
    assert paper.has_second.tolist() == [False, True]
    assert paper.same_depot.tolist() == [False, True]
    assert paper.sent_above(paper.threshold_s).tolist() == [False, True]
    assert control.threshold_s.tolist() == [-np.inf, -np.inf]
    assert control.overlap.tolist() == [30 / 120, 0.0]
    assert control.same_road.tolist() == [False, False]


def test_three_benchmarks(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines, world="instantaneous"))
    assert run.best_s["paper"].tolist() == [120.0, 180.0]  # not the control's 170
    assert run.best_s["common"].tolist() == [120.0, 170.0]
    assert run.best_s["hindsight"].tolist() == [110.0, 165.0]


def test_the_world_of_the_manifest_is_read(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    folder = write_run(tmp_path / "run" / "test", lines)
    run = Outcomes.load(folder)
    assert (run.world, run.title, run.nearest_region) == ("experienced", "", False)
    assert run.policy("paper-ideal").second_s[1] == 190.0
    tables = {"control": {"threshold": 5}, "router": {}}
    city = {"network": "own.network"}
    write_experiment(tmp_path / "run", name="A town", policies=tables, city=city)
    write_run(folder, lines, world="instantaneous")
    named = Outcomes.load(folder)
    assert (named.world, named.title) == ("instantaneous", "A town, test days")
    assert named.thresholds_given == {"control"}
    assert named.nearest_region
    (tmp_path / "run" / "manifest.json").write_text("{}")
    with pytest.raises(FileFormatError, match="manifest.json"):
        Outcomes.load(folder)
    one = entry("one", {"s0": 100.0}, {"router": decided("s0")}, worlds=("instantaneous",))
    alone = write_run(tmp_path / "alone", [one], world="instantaneous")
    assert set(Outcomes.load(alone).best_s) == {"paper", "common"}


def test_a_frame_has_a_row_per_incident_and_policy(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    pytest.importorskip("pandas", reason="the records extra is not installed")
    made = Outcomes.load(write_run(tmp_path / "run", lines, world="instantaneous")).to_frame()
    assert len(made) == 2 * 3
    two = made.query("incident == 'two'").set_index("policy")
    assert two["sent"].to_dict() == {"router": False, "paper-ideal": True, "control": True}
    assert two["arrival_s"].to_dict() == {"router": 200.0, "paper-ideal": 180.0, "control": 170.0}
    assert set(two["day"]) == {"2023-05-09"}
    alone = made.query("incident == 'one' and policy == 'paper-ideal'")
    assert alone["second_s"].isna().all()


def test_equal_drives_have_equal_totals(tmp_path: Path) -> None:
    seconds = [0.1, 0.2, 0.3, 1e3]
    drives: dict[str, Any] = {"s0": ([1, 2, 3, 4], seconds), "s1": ([4, 3, 2, 1], seconds[::-1])}
    line = entry("one", drives, {"router": decided("s0", "s1")}, worlds=("instantaneous",))
    run = write_run(tmp_path / "run", [line], world="instantaneous")
    found = Outcomes.load(run).policy("router")
    assert found.primary_s[0] == found.second_s[0] == 1000.6
    assert found.overlap.tolist() == [1.0]


def test_entries_are_the_lines(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert run.entries({1}) == {1: lines[1]}
    assert run.number("two") == 1
    with pytest.raises(InputError, match="no incident three"):
        run.number("three")
    with pytest.raises(InputError, match="no policy best"):
        run.policy("best")


def test_a_run_is_read_without_torch(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    folder = write_run(tmp_path / "run", lines)
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from ideal_dispatch.evaluation.outcomes import Outcomes\n"
        "Outcomes.load(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, folder], check=True)


def test_folders_that_hold_no_run(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="manifest.json"):
        Outcomes.load(tmp_path)
    folder = write_run(tmp_path / "run", lines)
    (folder / "incidents.jsonl").unlink()
    with pytest.raises(InputError, match="not finished"):
        Outcomes.load(folder)
    (folder / "incidents.jsonl").write_text("")
    with pytest.raises(InputError, match="no incident"):
        Outcomes.load(folder)


def test_odd_lines_are_named(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    first, second = lines
    lost = {**second["decisions"], "control": decided("s0", "s9")}
    for changed, match in (
        (first, "incident one"),
        ({**second, "decisions": {"router": decided("s0")}}, "policies"),
        ({k: v for k, v in second.items() if k != "drives"}, "'drives'"),
        ({**second, "decisions": lost}, "'s9'"),
        ({**second, "incident": {**second["incident"], "day": "yesterday"}}, "yesterday"),
    ):
        with pytest.raises(FileFormatError, match=f"line 2: .*{match}"):
            Outcomes.load(write_run(tmp_path / "odd", [first, changed]))
    folder = write_run(tmp_path / "cut", lines)
    text = (folder / "incidents.jsonl").read_text()
    (folder / "incidents.jsonl").write_text(text[:-40])
    with pytest.raises(FileFormatError, match="line 2"):
        Outcomes.load(folder)
    (folder / "incidents.jsonl").write_text(text.replace('"score_s":-1.0', '"score_s":1e999'))
    with pytest.raises(FileFormatError, match="line 2: policy control"):
        Outcomes.load(folder)
