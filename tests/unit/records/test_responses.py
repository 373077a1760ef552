import pickle
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

import ideal_dispatch as ideal
from ideal_dispatch import Responses, RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.records.places import junctions
from ideal_dispatch.records.trips import RESPONSE, STAMPS, TARGETS
from tests.unit.records import logs


def test_a_row_a_unit_and_what_follows_from_it(tmp_path: Path) -> None:
    found = logs.responses(tmp_path)
    assert len(found) == 2
    assert found.unit.tolist() == ["A1", "B1"]
    assert found.turnout_s.tolist() == [60, 28]
    assert found.drive_s.tolist() == [210, 180]
    assert found.response_s.tolist() == [270, 208]
    assert found.hour.tolist() == [10, 10]
    assert found.weekday.tolist() == [0, 0]  # the first of May 2023 was a Monday
    first = found[0]
    assert first.received == datetime(2023, 5, 1, 2, tzinfo=UTC)
    assert (first.station, first.from_lon, first.from_road) == ("West", 114.0, False)
    assert first.cancelled is None
    assert [one.unit for one in found] == ["A1", "B1"]


def test_arrays_cannot_be_changed_and_must_fit() -> None:
    found = Responses.of(["1", "2"], dispatched=["2023-05-01T00:00:00"] * 2)
    for name in ("incident", "dispatched", "lon", "remark"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = getattr(found, name)[1]
    with pytest.raises(InputError, match="unit: expected 2 values, got 1"):
        Responses.of(["1", "2"], unit=["A"])
    with pytest.raises(InputError, match="response 0: has no time at all"):
        Responses.of(["1"])
    with pytest.raises(InputError, match="en_route: values must be times"):
        Responses.of(["1"], en_route=["soon"])


def test_sorted_by_call_then_dispatch_then_unit() -> None:
    times = np.array(["2023-05-02", "2023-05-01", "2023-05-01", "2023-05-03"], "M8[s]")
    found = Responses.of(["b", "c", "a", "c"], unit=["1", "2", "3", "0"], dispatched=times)
    assert found.incident.tolist() == ["a", "c", "c", "b"]
    assert found.unit.tolist() == ["3", "2", "0", "1"]


def test_recalled_and_held() -> None:
    at = np.datetime64("2023-05-01T10:00:00")
    never, minute = np.datetime64("NaT"), np.timedelta64(60, "s")
    found = Responses.of(
        ["1", "1", "2", "3", "4"],
        unit=["arrived", "with another", "cleared", "cancelled", "alone"],
        dispatched=[at] * 5,
        on_scene=[at + 5 * minute, *[never] * 4],
        cleared=[never, never, at + 4 * minute, never, never],
        cancelled=[never, never, never, at + 2 * minute, never],
    )
    recalled = dict(zip(found.unit.tolist(), found.recalled.tolist(), strict=True))
    assert recalled == {"arrived": False, "with another": True, "cleared": True,
                        "cancelled": True, "alone": False}  # fmt: skip
    held = dict(zip(found.unit.tolist(), found.held_s.tolist(), strict=True))
    assert (held["cleared"], held["cancelled"]) == (240, 120)
    assert np.isnan([held["arrived"], held["with another"], held["alone"]]).all()


def test_days_are_the_citys(tmp_path: Path) -> None:
    at = np.array(["2023-04-30T15:59:59", "2023-04-30T16:00:00"], "M8[s]")  # midnight there
    found = Responses.of(["1", "2"], dispatched=at, time_zone="Asia/Hong_Kong")
    assert found.hour.tolist() == [23, 0]
    for day in ("2023-05-01", date(2023, 5, 1), np.datetime64("2023-05-01")):
        assert found.until(day).incident.tolist() == ["1"]
        assert found.since(day).incident.tolist() == ["2"]
    with pytest.raises(InputError, match="day 'May': a date such as 2023-05-01 is needed"):
        found.until("May")
    # clocks are put back at 01:00 UTC
    autumn = np.array(["2023-10-29T00:30:00", "2023-10-29T01:30:00"], "M8[s]")
    there = Responses.of(["1", "2"], dispatched=autumn, time_zone="Europe/London")
    assert there.hour.tolist() == [1, 1]


def test_files_and_copies_are_equal(tmp_path: Path) -> None:
    found = logs.responses(tmp_path)
    path = tmp_path / "town.responses"
    found.save(path)
    for again in (Responses.load(path), pickle.loads(pickle.dumps(found))):
        assert again.to_frame().equals(found.to_frame())
        assert again.time_zone == "Asia/Hong_Kong"
        assert dict(again.provenance) == dict(found.provenance)
    before = path.read_bytes()
    found.save(path)
    assert path.read_bytes() == before
    path.write_text("no")
    with pytest.raises(FileFormatError, match="not a responses file; make one with `ideal records"):
        Responses.load(path)
    assert len(found.select([])) == 0


def test_trips_start_where_the_unit_did(tmp_path: Path, grid: RoadNetwork) -> None:
    header = f"{logs.HEADER},start_lon,start_lat"
    rows = logs.PAIR.replace("22.004\n", "22.004,,\n", 1).replace(
        "22.004\n", "22.004,114.0071,22.0021\n"
    )
    rows += (
        "2,A1,West,2023-05-01 11:00:00,2023-05-01 11:00:30,,2023-05-01 11:05:00,,,114.005,22,,\n"
    )
    rows += "3,A1,West,2023-05-01 12:00:00,2023-05-01 12:00:30,,,,,114.005,22,,\n"
    rows += "4,A1,West,2023-05-01 13:00:00,2023-05-01 13:00:30,,2023-05-01 13:05:00,,,114.02,22,,\n"
    rows += "5,A1,,2023-05-01 14:00:00,2023-05-01 14:00:30,,2023-05-01 14:05:00,,,114.001,22,,\n"
    found = logs.responses(tmp_path, rows, header=header)
    assert found.from_road.tolist() == [False, True, False, False, False, False]
    trips, at = found.trips(grid)
    assert at.tolist() == [0, 1, 2]
    assert grid.lon[trips.origin].round(3).tolist() == [114.0, 114.007, 114.0]
    assert trips.observed_s.tolist() == [210, 180, 270]
    assert [TARGETS[i] for i in np.asarray(trips.target)] == [STAMPS, STAMPS, RESPONSE]
    assert trips.provenance["left_out"] == {
        "never on scene": 1,
        "start is not known": 1,
        "scene is farther than 100 m from a road": 1,
    }
    trips.check(grid)
    assert trips.time_zone == "Asia/Hong_Kong"


def test_trips_need_a_country(grid: RoadNetwork) -> None:
    found = Responses.of(["1"], dispatched=["2023-05-01"])
    with pytest.raises(InputError, match="do not say their country; give a calendar"):
        found.trips(grid)
    trips, _ = found.trips(grid, calendar=ideal.Calendar("UTC", "HK"))
    assert len(trips) == 0


def test_places_beside_a_road() -> None:
    """A road of 500 m: within 100 m of it, and within 200 m of a junction."""
    degree_m = 111_195.0
    road = RoadNetwork.from_arrays(
        np.array([0, 1]), np.array([1, 0]), np.full(2, 500.0),
        np.array([0.0, 500 / degree_m]), np.zeros(2),
    )  # fmt: skip
    east_m = np.array([150.0, 250.0, 350.0, 0.0, np.nan, 1e9])
    north_m = np.array([90.0, 0.0, 10.0, 110.0, 0.0, 0.0])
    node = junctions(east_m / degree_m, north_m / degree_m, road, 100.0)
    assert node.tolist() == [0, -1, 1, -1, -1, -1]
