"""A city from a table: the embedded one, a JEMSS folder, own files; and what is refused."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork, simulate_fleet
from ideal_dispatch.cities import HARBOUR_MODEL, HARBOUR_STEM, harbour_city
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import city_from, harbour_fleet
from ideal_dispatch.fleet.load import busy_share
from ideal_dispatch.fleet.log import calls_file
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.records import Responses

DEPOTS = (
    "name,lon,lat,units,from,until\n"
    "West,114.0,22.0,2,0,24\nEast,114.011,22.009,1,8,20\nWest,114.0,22.0,1,20,8\n"
)
PRIORITIES = [{"name": "high", "share": 0.5}, {"name": "low", "share": 0.5, "lights": False}]
PAST = (
    "time,lon,lat,priority\n"
    "2024-05-02 13:00:00,114.005,22.004,low\n"
    "2024-05-01 08:30:00,114.0,22.0,high\n"
    "2024-05-02 13:59:59,114.0,22.0,high\n"
    "2024-05-02 09:00:00,115.5,22.0,high\n"  # another town
    "2024-05-04 23:00:00,114.011,22.009,high\n"
)


@pytest.fixture
def town(tmp_path: Path, grid: RoadNetwork) -> Path:
    grid.save(tmp_path / "town.network")
    (tmp_path / "depots.csv").write_text(DEPOTS)
    (tmp_path / "hospitals.csv").write_text("name,lon,lat\nGeneral,114.006,22.005\n")
    (tmp_path / "past.csv").write_text(PAST)
    return tmp_path


def _city(town: Path, **keys: Any) -> FleetCity:
    usual = {
        "network": "town.network", "depots": "depots.csv", "hospitals": "hospitals.csv",
        "priorities": PRIORITIES, "cells": 30,
    }  # fmt: skip
    if not {"records", "list", "calls_per_day"} & set(keys):
        usual["calls_per_day"] = 40
    return city_from(usual | keys, "city", town)


def test_the_embedded_fleet() -> None:
    city, roads = harbour_fleet(), harbour_city()
    assert city.name == roads.name
    assert city.num_units == 11
    assert {depot.name for depot in roads.depots} < set(city.station_names)
    hospitals = [one.node for one in roads.hospitals]
    assert city.travel.lon[city.hospitals] == pytest.approx(roads.network.lon[hospitals])
    assert city.on_duty.min() < city.on_duty.max() == 11
    assert len(city.priorities) == 3
    assert city.by_hour.argmax() in range(9, 18)
    assert busy_share(city) == pytest.approx(0.4, abs=0.03)


def test_the_embedded_fleet_with_changes() -> None:
    table = {"arrests": 0.1, "street_start": False, "curve": "de-maio-2003", "calls_per_day": 80}
    city = city_from(table, "city", Path())
    assert (city.arrests, city.entitled, city.street_start) == (0.1, 0.1, False)
    assert city.calls_per_day == 80
    assert (city.curve.probability(60.0)) != harbour_fleet().curve.probability(60.0)


def test_own_files(town: Path, grid: RoadNetwork) -> None:
    by_hour = [0.5] * 12 + [1.5] * 12
    city = _city(
        town, name="Town", by_hour=by_hour, drive_factor=1.2, slow_factor=2, entitled=0.3,
        redispatch=[["low", "high"]], work={"delay_s": 30, "scene": {"mean_s": 60}},
    )  # fmt: skip
    assert city.name == "Town"
    assert city.station_names == ("West", "East")
    assert city.units.tolist() == [0, 0, 1, 0]
    assert city.shifts.tolist() == [[0.0, 24.0], [0.0, 24.0], [8.0, 20.0], [20.0, 8.0]]
    west, east = city.stations
    free_s = grid.free_flow_times_s
    path = grid.shortest_path(free_s, [0], 119)
    assert city.travel.fast_s[west, east] == pytest.approx(1.2 * path.time_s(free_s))
    assert city.travel.slow_s[west, east] == pytest.approx(2.4 * path.time_s(free_s))
    assert city.redispatch.tolist() == [[False, False], [True, False]]
    assert city.by_hour.tolist() == by_hour
    assert (city.work.delay_s, city.work.scene.mean_s, city.entitled) == (30.0, 60.0, 0.3)
    assert "junctions within 500 m" in city.notes[0]


def test_a_density_says_where_calls_are(town: Path) -> None:
    (town / "people.csv").write_text(
        "lon,lat,weight\n114.0,22.0,30\n114.011,22.009,10\n116.0,22.0,99\n"
    )
    city = _city(town, density="people.csv")
    assert sorted(city.weights.tolist()) == pytest.approx([0.25, 0.75])
    assert city.travel.lon[city.cells[city.weights.argmax()]] == pytest.approx(114.0)
    assert "off the map: 1" in city.notes[0]


def test_records_are_counted(town: Path) -> None:
    city = _city(town, records="past.csv")
    assert city.calls_per_day == pytest.approx(1.0)  # four calls on four days
    assert city.by_hour[[8, 13, 23]].tolist() == [6.0, 12.0, 6.0]
    assert [one.share for one in city.priorities] == [0.75, 0.25]
    assert sorted(city.weights.tolist()) == pytest.approx([0.25, 0.25, 0.5])
    assert "off the map 1" in city.notes[0]
    assert _city(town, records="past.csv", calls_per_day=7).calls_per_day == 7.0


def test_responses_are_calls_once(town: Path) -> None:
    stamps = np.array(["2024-05-01T00:30", "2024-05-01T00:31", "2024-05-01T01:30"], "M8[s]")
    log = Responses.of(
        ["a", "a", "b"], received=stamps, lon=[114.0, 114.0, 114.011], lat=[22.0, 22.0, 22.009],
        call_kind=["stroke", "stroke", "fall"], time_zone="Asia/Hong_Kong",
    )  # fmt: skip
    log.save(town / "log.responses")
    city = _city(town, records="log.responses")
    assert city.calls_per_day == pytest.approx(2.0)
    assert city.by_hour[[8, 9]].tolist() == [12.0, 12.0]  # on the city's clock
    assert [one.share for one in city.priorities] == [0.5, 0.5]
    assert any("name no priority" in note for note in city.notes)
    kinds = [{"name": "stroke", "share": 0.9}, {"name": "fall", "share": 0.1}]
    named = _city(town, records="log.responses", priorities=kinds)
    assert [one.share for one in named.priorities] == [0.5, 0.5]


def test_a_list_is_simulated_as_it_is(town: Path) -> None:
    city = _city(town, list="past.csv")
    calls = draw_calls(city, 1)
    hour = 3600.0
    assert calls.at_s.tolist() == [8.5 * hour, 37 * hour, 38 * hour - 1, 95 * hour]
    assert calls.priority.tolist() == [0, 1, 0, 0]
    places = city.cells[calls.cell]
    assert city.travel.lon[places] == pytest.approx([114.0, 114.005, 114.0, 114.011])
    log = gzip.decompress(calls_file(city, calls)).decode().splitlines()
    assert log[1].startswith("0,2024-05-01T08:30:00.000,")  # on its own days
    assert simulate_fleet(city, "never", 1).rows[0]["groups"]["high"]["calls"] == 3  # all of them


def test_a_model_gives_its_times_and_its_response_times(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(HARBOUR_MODEL, model)
    (model / "response_times.json").unlink()
    table = {
        "network": str(HARBOUR_STEM.with_suffix(".network")), "model": "model",
        "depots": str(HARBOUR_STEM.with_name("harbour_fleet_depots.csv")),
        "hospitals": str(HARBOUR_STEM.with_name("harbour_fleet_hospitals.csv")),
        "priorities": PRIORITIES, "calls_per_day": 50, "cells": 20,
    }  # fmt: skip
    plain = city_from(table, "city", tmp_path)
    ResponseModel(Effects(99.0, 0.3), source="a log of ours").save(model / "response_times.json")
    fitted = city_from(table, "city", tmp_path)
    assert fitted.turnout_s == pytest.approx(99.0)
    assert plain.turnout_s == pytest.approx(74.0)
    assert fitted.notes[-1] == "drives: 1 times the model; turnout: a log of ours"
    one, two = plain.stations[:2]
    slower = plain.travel.fast_s[one, two]
    del table["model"]
    assert slower > city_from(table, "city", tmp_path).travel.fast_s[one, two]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"networks": "x"}, r"city.networks is not known; did you mean network\?"),
        ({"calls_per_day": -1}, r"\[city\] calls_per_day -1.0: more than 0 is needed"),
        ({"by_hour": [1.0] * 23}, "by_hour has 23 numbers, not 24"),
        ({"records": "past.csv", "list": "past.csv"}, "records and list"),
        ({"records": "past.csv", "by_hour": [1] * 24}, "by_hour beside records: hours are counted"),
        ({"list": "past.csv", "calls_per_day": 5}, "calls_per_day beside list: a list has its own"),
        ({"priorities": []}, "priorities is empty; name one or more"),
        ({"priorities": [{"name": "a", "share": 2}]}, r"\[city.priorities\] share 2.0: 0 to 1"),
        ({"redispatch": [["low", "top"]]}, "redispatch low, top: two of high, low are needed"),
        ({"redispatch": [["high", "low"]]}, "redispatch must lead to a more urgent call"),
        ({"curve": "none"}, "survival curve 'none': choose one of"),
        ({"network": "no.network"}, "no.network"),
        ({"work": {"delay": 1}}, r"city.work.delay is not known; did you mean delay_s\?"),
    ],
)
def test_bad_keys_are_refused_in_one_line(town: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises((IdealError, OSError), match=message):
        _city(town, **keys)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "depots.csv",
            "name,lon,lat\nA,118,22\n",
            "depots.csv line 2: .* km from the nearest road",
        ),
        ("depots.csv", "name,lon,lat,units\nA,114,22,1.5\n", "line 2: units 1.5; a whole number"),
        ("depots.csv", "name,lon,lat,units\nA,114,22,0\n", "no depot has a unit"),
        ("depots.csv", "name,lon,lat,from\nA,114,22,25\n", "line 2: from 25.0: 0 to 24 is needed"),
        ("depots.csv", "name,lon\nA,114\n", "no column for 'lat'"),
        ("hospitals.csv", "name,lon,lat\n", "hospitals.csv: no place in it"),
        ("past.csv", PAST.replace("low", "urgent"), "line 2: unknown priority 'urgent'"),
        ("past.csv", PAST.replace("2024-05-02 13:00:00", "noon"), "line 2: time is 'noon'; one su"),
        ("past.csv", PAST.replace("13:00:00", "13:00:00Z"), "names a zone; write the city's own"),
        ("past.csv", "time,lon,lat\n2024-05-01,114,22\n", "a list needs a priority for every call"),
        ("past.csv", "time,lon,lat\n2024-05-01,120,22\n", "nothing lies near a road of town.netw"),
    ],
)
def test_bad_files_are_named_in_one_line(town: Path, file: str, text: str, message: str) -> None:
    (town / file).write_text(text)
    with pytest.raises(InputError, match=message):
        _city(town, list="past.csv")
