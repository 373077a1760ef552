"""What is written: quarantined rows, the report, the weather it asked for."""

import csv
import json
from pathlib import Path

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.report import trips_facts, write_quarantine, write_trips
from tests.unit.records.towns import GOOD, HEADER, run, settings


def test_the_quarantine_file(tmp_path: Path, grid: RoadNetwork) -> None:
    rows = [
        GOOD.replace("West Side", "=HYPERLINK(1)"),
        GOOD.replace("114.008", "-7.123456") + "-2",
        GOOD.replace("10:05:00", "10:01:00"),
        GOOD.replace("West Side", "x" * 50) + "Flat B 12 Secret Street",
        "1,2",
        GOOD,
    ]
    prepared = run(tmp_path, grid, "\n".join(rows))
    write_quarantine(prepared, tmp_path / "quarantine.csv")
    text = (tmp_path / "quarantine.csv").read_text()
    found = list(csv.DictReader(text.splitlines()))
    assert [row["row"] for row in found] == ["2", "3", "4", "5", "6"]
    assert [row["verdict"] for row in found] == [*["quarantined"] * 2, "excluded",
                                                 *["quarantined"] * 2]  # fmt: skip
    assert found[0]["depot"] == "'=HYPERLINK(1)"
    assert (found[1]["lon"], found[1]["lat"], found[1]["floor"]) == ("-7.123", "22.004", "-2")
    assert found[2]["reasons"] == "a duration is zero or negative"
    assert found[2]["on_scene_at"] == "2023-01-02T02:01:00Z"
    assert (found[3]["depot"], found[3]["floor"]) == ("(50 characters)", "(23 characters)")
    assert "Secret" not in text
    assert found[4]["reasons"] == "has 2 cells where the header has 9"


def test_a_report_without_trips(tmp_path: Path, grid: RoadNetwork) -> None:
    own = settings(exclusions={"months": ["2023-01"]})
    prepared = run(tmp_path, grid, GOOD, exclusions={"months": ["2023-01"]})
    _, facts = write_trips(prepared, grid, own, tmp_path)
    assert facts["trips"] == 0
    html = (tmp_path / "report.html").read_text()
    assert [one["rule"] for one in facts["exclusion_rules"] if one["removed"]] == ["month"]
    assert "all other columns were not kept" in html
    assert json.loads((tmp_path / "report.json").read_text())["excluded"] == 1


def test_the_report_lists_unknown_words(tmp_path: Path, grid: RoadNetwork) -> None:
    prepared = run(tmp_path, grid, "\n".join([GOOD.replace("West Side", "Westside 1")] * 3))
    _, facts = write_trips(prepared, grid, settings(), tmp_path)
    assert facts["unknown_words"] == [
        {"field": "depot", "word": "Westside 1", "rows": 3, "nearest": "West Side",
         "setting": ["[depots.aliases]", '"Westside 1" = "West Side"']}
    ]  # fmt: skip
    html = (tmp_path / "report.html").read_text()
    assert "Words that were not understood" in html
    assert "[depots.aliases] &#34;Westside 1&#34; = &#34;West Side&#34;" in html
    assert "CSV divided by commas, utf-8, decimal points" in html


def test_the_report_escapes_what_it_quotes(tmp_path: Path, grid: RoadNetwork) -> None:
    script = "<script>alert(1)</script>"
    depots = f"name,lon,lat\n{script},114.0,22.0\n"
    prepared = run(tmp_path, grid, GOOD.replace("West Side", script), depots=depots)
    assert len(prepared.trips) == 1
    write_trips(prepared, grid, settings(), tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert script not in html
    assert "&lt;script&gt;" in html


def test_reasons_are_counted_by_kind(tmp_path: Path, grid: RoadNetwork) -> None:
    rows = [GOOD.replace("114.008", place) for place in ("115", "116.5", "abc", "de")]
    rows += [GOOD.replace("West Side", name) for name in ("Here", "There's")]
    facts = trips_facts(run(tmp_path, grid, "\n".join(rows)), grid, settings())
    assert facts["quarantine_reasons"] == {
        "the nearest road is too far away, beyond the limit of 300 m": 2,
        "lon is not a finite number": 2,
        "its depot is not in the depots file; add it, or name it in depots.aliases": 2,
    }


def test_trips_are_counted_by_district(tmp_path: Path, grid: RoadNetwork) -> None:
    rows = [f"{GOOD},North", f"2{GOOD[1:]},North", f"3{GOOD[1:]},{'x' * 50}"]
    prepared = run(tmp_path, grid, "\n".join(rows), header=f"{HEADER},district")
    _, facts = write_trips(prepared, grid, settings(), tmp_path)
    assert facts["districts"] == {"North": 2, "(50 characters)": 1}


def test_floors_of_one_pattern_are_listed_once(tmp_path: Path, grid: RoadNetwork) -> None:
    row = "{},2023-01-02 10:00,,,2023-01-02 10:10,A1,114.008,22.004,{}"
    floors = [*(f"{n}-{n + 1}/F" for n in range(10, 15)), "roof"]
    prepared = run(tmp_path, grid, "\n".join(row.format(i, text) for i, text in enumerate(floors)))
    words = trips_facts(prepared, grid, settings())["unknown_words"]
    assert [(one["word"], one["rows"]) for one in words] == [("99-99/a", 5), ("roof", 1)]
    assert [one["setting"][1] for one in words] == ['"10-11/F" = ""', '"roof" = ""']


def test_no_form_of_a_time_is_made_up(tmp_path: Path, grid: RoadNetwork) -> None:
    prepared = run(tmp_path, grid, GOOD.replace("2023-01-02 10:00:00", "02.01.23 10h00"))
    (word,) = trips_facts(prepared, grid, settings())["unknown_words"]
    assert (word["field"], word["word"]) == ("call_at", "99.99.99 99a99")
    assert word["setting"] == ["[input]", 'time_formats = [""]']


def test_recorded_weather_with_a_mapping(tmp_path: Path, grid: RoadNetwork) -> None:
    (tmp_path / "w.csv").write_text(
        "when,T,W,flag\n2023-01-02 10:00,59,5,G\n2023-01-02 11:00,68,6,B\n"
    )
    weather = {
        "source": "recorded", "files": [str(tmp_path / "w.csv")], "name": "airport",
        "time": "when", "columns": {"temperature_c": "T", "wind_kmh": "W"},
        "units": {"temperature_c": "F", "wind_kmh": "m/s"}, "quality": {"wind_kmh": "flag"},
    }  # fmt: skip
    prepared = run(tmp_path, grid, GOOD, weather=weather)
    assert prepared.trips.contexts[0, 0] == pytest.approx(15)
    assert prepared.trips.contexts[0, 3] == pytest.approx(18)
    assert prepared.weather_counts["wind_kmh"] == {"airport": 1}
    assert prepared.weather_counts["pressure_hpa"] == {"unknown": 1}
    with pytest.raises(InputError, match="temperature_c cannot be in 'R'"):
        run(tmp_path, grid, GOOD, weather=weather | {"units": {"temperature_c": "R"}})
    with pytest.raises(InputError, match="none.csv: no such file"):
        run(tmp_path, grid, GOOD, weather=weather | {"files": ["none.csv"]})
