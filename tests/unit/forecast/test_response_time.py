"""Response times of units: turnout, drive, and what a file of them holds."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel, ResponseTime

MODEL = ResponseModel(
    Effects(60.0, 0.4, station={"North": 1.5}, hour={"3": 2.0}, kind={"volunteers": 4.0}),
    drive_scale=0.8,
    beside_s=12.0,
    surprise=0.1,
    wide=0.6,
    source="900 responses of a log",
    until="2023-03-31",
    rows=900,
)


def test_a_response_is_turnout_and_drive() -> None:
    plain = ResponseModel(Effects(60.0, 0.0), slack_s=0.0, drive_spread=0.0, shared=0.0)
    assert plain.of(240.0).mean_s == pytest.approx(300.0)
    assert plain.of(240.0, on_road=True).mean_s == pytest.approx(250.0)
    scaled = MODEL.of(200.0).mean_s - MODEL.of(100.0).mean_s
    assert scaled == pytest.approx(80.0, rel=0.05)  # the surprise lifts both a little
    assert MODEL.of(200.0, quoted=True).mean_s > MODEL.of(200.0).mean_s


def test_turnout_differs_by_station_hour_and_kind_and_multiplies() -> None:
    turnout = MODEL.turnout
    assert turnout.median_s("South", 12, "") == 60.0
    assert turnout.median_s("North", 3, "volunteers") == pytest.approx(60.0 * 1.5 * 2.0 * 4.0)
    rows = turnout.median_s(np.array(["North", "never seen"]), np.array([3, np.nan]), "")
    assert rows.tolist() == pytest.approx([180.0, 60.0])
    assert turnout.median_s(" NORTH ", 12, "") == 90.0, "a station is meant however it is written"


def test_published_spreads_are_those_of_the_docstring() -> None:
    model = ResponseModel.published()
    assert model.source == "published spreads"
    still = ResponseModel(Effects(1e-9, 0.0))  # the drive alone
    for minutes, variation in ((1, 0.6), (3, 0.28), (5, 0.23), (10, 0.21)):
        response = still.of(60.0 * minutes)
        own = ResponseTime(response.median_s, response.own, 0.0)
        assert own.deviation_s / own.mean_s == pytest.approx(variation, abs=0.01)
    assert 74.0 * math.exp(1.2816 * model.turnout.spread) == pytest.approx(132.0)


def test_probability_of_a_late_arrival() -> None:
    unit = ResponseTime(np.array([300.0, 600.0]), 0.2, 0.1)
    late = unit.later_than(600.0)
    assert late[1] == pytest.approx(0.5)
    assert 0.0 < late[0] < 0.01
    assert unit[1:].later_than(600.0).tolist() == [pytest.approx(0.5)]


def test_a_response_without_a_drive_needs_a_log_of_such() -> None:
    with pytest.raises(InputError, match="no drive is known.*give a drive"):
        MODEL.of(np.array([100.0, np.nan]))
    whole = ResponseModel(Effects(60.0, 0.4), unplaced=Effects(400.0, 0.5, {"North": 2.0}))
    found = whole.of(np.array([100.0, np.nan]), station=np.array(["North", "North"]))
    assert found.median_s[1] == pytest.approx(800.0)
    assert found.own[1] == 0.5
    assert found.median_s[0] == whole.of(100.0, station="North").median_s


def test_saved_and_loaded_they_are_equal(tmp_path: Path) -> None:
    for number, model in enumerate((MODEL, ResponseModel.published())):
        MODEL.save(tmp_path / "a.json")
        file = tmp_path / f"{number}.json"
        model.save(file)
        assert ResponseModel.load(file) == model
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "a.json").read_bytes()


def test_a_bad_file_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "responses.json"
    MODEL.save(file)
    content = json.loads(file.read_text())
    for change, words in (
        ({"kind": "something else"}, "not a file of response times"),
        ({"drive_scale": -1.0}, "drive_scale -1.0; a number above zero is needed"),
        ({"shared": -0.1}, "shared"),
        ({"surprise": 1.5}, "surprise 1.5; it must be below 1"),
        ({"turnout": {"seconds": 0.0, "spread": 0.1}}, "a time above zero is needed"),
    ):
        file.write_text(json.dumps(content | change))
        with pytest.raises(FileFormatError, match=words):
            ResponseModel.load(file)


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="a drive takes zero seconds or more"):
        MODEL.of(-1.0)
    with pytest.raises(InputError, match="median_s must be finite and above zero"):
        ResponseTime(math.nan, 0.1, 0.1)
    with pytest.raises(InputError, match="a factor by station is not above zero"):
        Effects(60.0, 0.4, station={"North": 0.0})
