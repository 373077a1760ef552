import json
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Responses, RoadNetwork
from ideal_dispatch.records.report import report_files, responses_facts, write_responses
from tests.unit.records import logs
from tests.unit.records.logs import DAY, PAIR


def _rows() -> str:
    """Call 1 with two ambulances, call 2 with one that was recalled after four minutes."""
    recalled = f"2,A1,West,{DAY}22:00:00,{DAY}22:00:00,22:02:00,,22:05:00,22:04:00,114.003,22.002\n"
    return PAIR + recalled + "3,A1,,soon,,,,,,,\n"


def test_what_is_counted(tmp_path: Path, grid: RoadNetwork) -> None:
    facts = responses_facts(logs.read(tmp_path, _rows()), grid)
    assert (facts["rows"], facts["calls"], facts["responses"], facts["left_out"]) == (4, 3, 3, 1)
    assert facts["reasons"] == {"received is not a known form of a time": 1}
    assert facts["all"]["turnout_s"] == {"rows": 3, "p50": 60.0, "p90": 108.0}
    assert facts["all"]["recalled_share"] == pytest.approx(1 / 3, abs=1e-4)
    assert facts["all"]["held_s"] == {"rows": 1, "p50": 240.0, "p90": 240.0}
    assert list(facts["by_station"]) == ["West", "East"]
    assert facts["by_station"]["East"]["response_s"]["p50"] == 208
    assert facts["by_hour"][10]["responses"] == 2
    assert facts["by_hour"][22]["responses"] == 1
    assert facts["by_hour"][3]["turnout_s"] is None
    assert facts["completeness"]["on scene"] == pytest.approx(2 / 3, abs=1e-4)
    assert facts["races"] == 1
    assert facts["trips"] == {"trips": 2, "left_out": {"never on scene": 1}, "races": 1}


def test_the_files(tmp_path: Path, grid: RoadNetwork) -> None:
    read, path = logs.read(tmp_path, _rows()), tmp_path / "town.responses"
    shown = write_responses(read, path, grid)
    page, numbers, left_out = report_files(path)
    assert (page.name, numbers.name, left_out.name) == (
        "town.html", "town.json", "town.left_out.csv"
    )  # fmt: skip
    facts = responses_facts(read, grid)
    assert json.loads(numbers.read_text()) == facts
    assert left_out.read_text().startswith("row,reasons\n5,received is not a known form")
    assert len(Responses.load(path)) == 3
    assert list(shown.figures) == ["map"]
    assert shown.tables["kinds"].header[-2:] == ["recalled %", "held, min"]
    assert shown.tables["kinds"].rows[0][-2:] == (facts["all"]["recalled_share"], 4.0)
    assert [row[0] for row in shown.tables["stations"].rows] == ["West", "East"]
    before = {file: file.read_bytes() for file in (path, page, numbers, left_out)}
    write_responses(logs.read(tmp_path, _rows()), path, grid)
    assert {file: file.read_bytes() for file in before} == before


def test_a_log_of_arrivals_alone_tells_no_recalls(tmp_path: Path) -> None:
    header = "incident,unit,dispatched,response_s"
    rows = "".join(f"{i},A,{DAY}1{i}:00:00,{200 + i}\n" for i in range(5))
    read = logs.read(tmp_path, rows, header, stations=None)
    facts, shown = responses_facts(read), write_responses(read, tmp_path / "x.responses")
    assert facts["all"]["recalled_share"] is None
    assert facts["all"]["turnout_s"] is None
    assert not shown.figures
    assert shown.tables["kinds"].header == ["kind of unit", "units", "dispatch to scene, min",
                                            "9 of 10, min"]  # fmt: skip


def test_a_report_without_responses(tmp_path: Path) -> None:
    write_responses(logs.read(tmp_path, "1,A1\n"), tmp_path / "x.responses")
    facts = json.loads((tmp_path / "x.json").read_text())
    assert facts["responses"] == 0
    assert facts["first_call"] is None
    assert "has more or fewer cells than the header" in (tmp_path / "x.html").read_text()


def test_rows_with_a_remark_are_not_timed(tmp_path: Path) -> None:
    early = f"4,A1,West,{DAY}10:00:00,{DAY}10:00:30,10:00:00,10:05:00,,,114.005,22.004\n"
    facts = responses_facts(logs.read(tmp_path, PAIR + early))
    assert facts["all"]["turnout_s"]["rows"] == 2
    assert facts["remarks"]["turnout is negative"] == 1


def test_texts_of_the_log_are_escaped(tmp_path: Path) -> None:
    rows = PAIR.replace("West", "<script>alert(1)</script>")
    write_responses(logs.read(tmp_path, rows), tmp_path / "x.responses")
    assert "<script>" not in (tmp_path / "x.html").read_text()
    assert np.isfinite(json.loads((tmp_path / "x.json").read_text())["all"]["response_s"]["p50"])
