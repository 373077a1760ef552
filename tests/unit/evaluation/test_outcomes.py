"""Logs become arrays: every number as worked out by hand, every odd line refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.evaluation.outcomes import Outcomes
from tests.unit.evaluation.logs import decided, entry, write_run


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


def test_a_run_of_before_version_0_2_is_read(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    new = Outcomes.load(write_run(tmp_path / "new", lines))
    letters = {"instantaneous": "A", "experienced": "B"}
    for line in lines:
        for times in (*line["drives"].values(), line["hindsight"]):
            for name, letter in letters.items():
                times[letter] = times.pop(name)
    old = Outcomes.load(write_run(tmp_path / "old", lines))
    assert old.worlds == new.worlds == ("instantaneous", "experienced")
    assert old.only("B").worlds == old.only("experienced").worlds == ("experienced",)
    for world in old.worlds:
        for name, values in new.best_s[world].items():
            np.testing.assert_array_equal(old.best_s[world][name], values)
    entries = old.entries({1})[1]
    assert list(entries["hindsight"]) == ["instantaneous", "experienced"]


def test_a_frame_has_a_row_per_incident_policy_and_world(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    pytest.importorskip("pandas", reason="the records extra is not installed")
    made = Outcomes.load(write_run(tmp_path / "run", lines)).to_frame()
    assert len(made) == 2 * 3 * 2
    two = made.query("incident == 'two' and world == 'instantaneous'").set_index("policy")
    assert two["sent"].to_dict() == {"router": False, "paper-ideal": True, "control": True}
    assert two["arrival_s"].to_dict() == {"router": 200.0, "paper-ideal": 180.0, "control": 170.0}
    assert set(two["day"]) == {"2023-05-09"}
    alone = made.query("incident == 'one' and policy == 'paper-ideal'")
    assert alone["second_s"].isna().all()
    assert (alone["arrival_s"] == alone["primary_s"]).all()


def test_arrays_by_hand(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert run.name == f"{tmp_path.name}/run"
    assert run.incidents == ("one", "two")
    assert run.days == ("2023-05-08", "2023-05-09")
    assert run.day.tolist() == [0, 1]
    assert run.worlds == ("instantaneous", "experienced")
    assert dict(run.roles) == {"router": "router", "paper": "paper-ideal"}
    paper = run.policy("paper-ideal")
    assert paper.drives["instantaneous"].primary_s.tolist() == [150.0, 200.0]
    assert np.isnan(paper.drives["instantaneous"].second_s[0])
    assert paper.drives["experienced"].second_s[1] == 190.0
    assert paper.has_second.tolist() == [False, True]
    assert paper.same_depot.tolist() == [False, True]
    assert paper.sent_above(paper.threshold_s).tolist() == [False, True]
    control = run.policy("control")
    assert control.threshold_s.tolist() == [-np.inf, -np.inf]
    assert control.drives["instantaneous"].overlap.tolist() == [30 / 120, 0.0]
    assert control.drives["instantaneous"].same_road.tolist() == [False, False]


def test_three_benchmarks(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert run.best_s["instantaneous"]["paper"].tolist() == [120.0, 180.0]  # not the control's 170
    assert run.best_s["instantaneous"]["common"].tolist() == [120.0, 170.0]
    assert run.best_s["experienced"]["hindsight"].tolist() == [110.0, 165.0]
    bare = Outcomes.load(write_run(tmp_path / "bare", lines, types={}, policies={}))
    assert bare.best_s["instantaneous"]["paper"].tolist() == [120.0, 180.0]  # found by its name


def test_a_run_without_hindsight_or_world_b(tmp_path: Path) -> None:
    one = entry("one", {"s0": 100.0}, {"router": decided("s0")}, worlds=("instantaneous",))
    run = Outcomes.load(write_run(tmp_path / "run", [one]))
    assert run.worlds == ("instantaneous",)
    assert set(run.best_s["instantaneous"]) == {"paper", "common"}
    with pytest.raises(InputError, match="no world experienced; it has instantaneous"):
        run.only("experienced")


def test_parts_by_type_and_then_by_name(tmp_path: Path) -> None:
    told = {name: decided("s0") for name in ("mine", "ideal", "gap", "by-day", "paper")}
    types = {"mine": "Ideal", "ideal": "Ideal", "gap": "PaperIdeal", "paper": "RandomTrigger"}
    described = {name: {"type": kind} for name, kind in types.items()}
    by_day = {"type": "ByDay", "policies": {"2023-05-08": {"type": "RouterPolicy"}}}
    folder = write_run(
        tmp_path / "run",
        [entry("one", {"s0": 1.0}, told)],
        policies={**described, "by-day": by_day},
    )
    roles = Outcomes.load(folder).roles
    assert roles["ideal"] == "ideal"
    assert roles["router"] == "by-day"
    assert roles["paper"] == "gap"


def test_equal_drives_have_equal_totals(tmp_path: Path) -> None:
    seconds = [0.1, 0.2, 0.3, 1e3]
    drives: dict[str, Any] = {"s0": ([1, 2, 3, 4], seconds), "s1": ([4, 3, 2, 1], seconds[::-1])}
    line = entry("one", drives, {"router": decided("s0", "s1")}, worlds=("instantaneous",))
    found = (
        Outcomes.load(write_run(tmp_path / "run", [line])).policy("router").drives["instantaneous"]
    )
    assert found.primary_s[0] == found.second_s[0] == 1000.6


def test_entries_are_the_lines(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    run = Outcomes.load(write_run(tmp_path / "run", lines))
    assert run.entries({1}) == {1: lines[1]}
    assert run.number("two") == 1
    with pytest.raises(InputError, match="no incident three; they are named like one"):
        run.number("three")
    with pytest.raises(InputError, match="no policy best; it has router, paper-ideal, control"):
        run.policy("best")


def test_one_world_alone(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert Outcomes.load(write_run(tmp_path / "run", lines)).only("experienced").worlds == (
        "experienced",
    )


def test_a_run_is_read_without_torch(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    folder = write_run(tmp_path / "run", lines)
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from ideal_dispatch.evaluation.outcomes import Outcomes\n"
        "Outcomes.load(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, folder], check=True)


def test_folders_that_hold_no_run(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="run.json is missing"):
        Outcomes.load(tmp_path)
    folder = write_run(tmp_path / "run", lines)
    (folder / "incidents.jsonl").unlink()
    with pytest.raises(InputError, match="the replay is not finished; run it again to go on"):
        Outcomes.load(folder)
    (folder / "incidents.jsonl").write_text("")
    with pytest.raises(InputError, match="no incident in it"):
        Outcomes.load(folder)


def test_odd_lines_are_named(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    first, second = lines

    def refuse(changed: dict[str, Any], match: str) -> None:
        with pytest.raises(FileFormatError, match=match):
            Outcomes.load(write_run(tmp_path / "odd", [first, changed]))

    refuse(first, "line 2: incident one is there twice")
    refuse({**second, "decisions": {"router": decided("s0")}}, "line 2: other policies")
    refuse({k: v for k, v in second.items() if k != "drives"}, "line 2: .*'drives' is missing")
    lost = {**second["decisions"], "control": decided("s0", "s9")}
    refuse({**second, "decisions": lost}, "line 2: .*'s9' is missing")
    nowhere = {**second["incident"], "day": "yesterday"}
    refuse({**second, "incident": nowhere}, "line 2: .*yesterday")
    folder = write_run(tmp_path / "cut", lines)
    text = (folder / "incidents.jsonl").read_text()
    (folder / "incidents.jsonl").write_text(text[:-40])
    with pytest.raises(FileFormatError, match="line 2: no incident of a replay"):
        Outcomes.load(folder)


def test_memory_does_not_grow_with_paths(tmp_path: Path) -> None:
    long = (list(range(4000)), [0.25] * 4000)
    told = {"router": decided("s0", "s1")}
    some = [entry(f"{n}", {"s0": long, "s1": long}, told) for n in range(20)]
    run = Outcomes.load(write_run(tmp_path / "run", some))
    kept = run.day.nbytes
    for drives in run.policy("router").drives.values():
        kept += drives.primary_s.nbytes + drives.second_s.nbytes + drives.overlap.nbytes
    assert kept < 20 * 100
    assert run.policy("router").drives["instantaneous"].overlap.tolist() == [1.0] * 20
    assert run.policy("router").drives["instantaneous"].same_road.all()
