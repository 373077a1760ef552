import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Responses
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.frames import frame, pandas
from ideal_dispatch.records.response_log import LogSettings, tells_order
from ideal_dispatch.records.response_reading import read_responses, to_degrees
from ideal_dispatch.records.responses import NEGATIVE_DRIVE, NEGATIVE_TURNOUT, REMARKS, TOO_SHORT
from tests.unit.records import logs
from tests.unit.records.logs import DAY, PAIR
from tests.unit.records.test_nemsis import HEAD, NULLS, REPORT, TAIL

LONDON = (
    "IncidentNumber,DateOfCall,TimeOfCall,IncidentGroup,IncidentStationGround,lon,lat,easting,"
    "northing,FirstPumpArriving_AttendanceTime,FirstPumpArriving_DeployedFromStation,"
    "SecondPumpArriving_AttendanceTime,SecondPumpArriving_DeployedFromStation,NumPumpsAttending"
)
LONDON_ROW = (
    "7-01072023,2023-07-01,00:30:00,Fire,Soho,-0.13,51.51,,,300.0,Soho,250.0,Euston,2.0\n"
    "8-01072023,2023-07-01,00:40:00,Fire,Soho,-0.13,51.51,,,,,,,1.0\n"
)
LONDON_STATIONS = "station,lon,lat\nSoho,-0.132,51.512\nEuston,-0.128,51.529\n"
DATASF = (
    "Call Number,Unit ID,Incident Number,Call Type,Received DtTm,Entry DtTm,Dispatch DtTm,"
    "Response DtTm,On Scene DtTm,Transport DtTm,Hospital DtTm,Available DtTm,Station Area,"
    "Unit Type,Unit sequence in call dispatch,Location"
)
DATASF_ROWS = """\
1,E32,9,Medical Incident,03/12/2023 11:58:00 PM,,03/12/2023 11:59:00 PM,03/13/2023 12:00:10 AM,\
03/13/2023 12:04:00 AM,,,03/13/2023 12:30:00 AM,32,ENGINE,1,"(37.7300, -122.4200)"
1,M09,9,Medical Incident,03/12/2023 11:58:00 PM,,03/12/2023 11:59:00 PM,,\
,,,03/13/2023 12:03:00 AM,32,MEDIC,2,POINT (-122.42 37.73)
"""
LANCASTER = (
    "fdid,incident_num,incident_date,response_level,call_type,Unit_Dispatch_Times,"
    "Unit_Enroute_Times,Unit_Arrive_Times,Unit_Clear_Times"
)
LANCASTER_ROWS = """\
0,5,1/24/11 12:00 AM,MA,33C2,"SW1=23:53:28, SW11=23:53:28, M5=00:04:46, M5=00:20:00",\
"SW1=23:54:37, M5=00:04:48","SW1=23:59:00, M5=00:15:00","SW1=00:30:00, SW11=00:10:00"
0,6,1/24/11 0:00,MA,33C2,,,,
"""


def _london(folder: Path, rows: str = LONDON_ROW, header: str = LONDON) -> Responses:
    return logs.responses(folder, rows, header=header, format="london", stations=LONDON_STATIONS)


def test_london(tmp_path: Path) -> None:
    found = _london(tmp_path)
    assert found.station.tolist() == ["Euston", "Soho"]
    assert found.response_s.tolist() == [250, 300]
    assert found.kind.tolist() == ["engine", "engine"]
    assert found.dispatched.astype(str).tolist() == ["2023-06-30T23:30:00"] * 2  # summer time
    assert found.date.astype(str).tolist() == ["2023-07-01"] * 2
    assert found.from_lon.tolist() == [-0.128, -0.132]
    assert found.attending.tolist() == [2, 2]
    assert found.provenance["left_out"] == {"names no unit": 1}
    assert any("no time of mobilisation" in note for note in found.provenance["notes"])
    assert len(found.races()) == 1


def test_london_forgets_who_arrived_first(tmp_path: Path) -> None:
    """The columns first and second tell the outcome: with them swapped nothing changes."""
    swapped = LONDON_ROW.replace("300.0,Soho,250.0,Euston", "250.0,Euston,300.0,Soho")
    assert swapped != LONDON_ROW
    one, other = (_london(tmp_path, rows) for rows in (LONDON_ROW, swapped))
    assert one.to_frame().equals(other.to_frame())
    assert one.races().rows.tolist() == other.races().rows.tolist()


def test_london_by_grid_and_under_other_names(tmp_path: Path) -> None:
    """The columns of the public file, whose dwellings have a rounded easting alone."""
    header = LONDON.replace("lon,lat,easting,northing", "Longitude,Latitude,Easting_rounded,"
                            "Northing_rounded")  # fmt: skip
    rows = LONDON_ROW.replace("-0.13,51.51,,", ",,529850,180650")
    found = _london(tmp_path, rows, header)
    assert found.lon.round(3).tolist() == [-0.13, -0.13]
    assert found.lat.round(2).tolist() == [51.51, 51.51]


def test_grids_agree_with_degrees() -> None:
    """Trafalgar Square by both of its own published coordinates (Ordnance Survey)."""
    lon, lat = to_degrees(np.array([530034.0]), np.array([180381.0]), 27700)
    assert [round(float(v), 3) for v in (lon[0], lat[0])] == [-0.128, 51.507]
    with pytest.raises(InputError, match="grid.epsg 1 is not a known projection"):
        to_degrees(np.array([0.0]), np.array([0.0]), 1)


def test_stations_on_a_grid(tmp_path: Path) -> None:
    """As an agency in Britain has them: no degrees at all."""
    stations = "station,easting,northing\nSoho,529698,180857\nEuston,529530,182680\n"
    found = logs.responses(tmp_path, LONDON_ROW, header=LONDON, format="london", stations=stations)
    assert found.from_lon.round(2).tolist() == [-0.13, -0.13]
    assert found.from_lat.round(3).tolist() == [51.528, 51.512]
    with pytest.raises(InputError, match="no column for 'lon'"):
        logs.responses(tmp_path, stations=stations)


def test_a_grid_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(MissingExtraError, match="reading grid coordinates needs .*geo"):
        to_degrees(np.array([530034.0]), np.array([180381.0]), 27700)


def test_a_grid_needs_its_number(tmp_path: Path) -> None:
    header = logs.HEADER.replace("lon,lat", "easting,northing")
    with pytest.raises(InputError, match="eastings and northings need grid.epsg"):
        logs.read(tmp_path, PAIR, header)


def test_datasf(tmp_path: Path) -> None:
    found = logs.responses(tmp_path, DATASF_ROWS, header=DATASF, format="datasf", stations=None)
    engine, medic = found
    assert (engine.unit, engine.station, engine.kind) == ("E32", "32", "engine")
    assert (medic.unit, medic.station, medic.kind) == ("M09", "9", "medic")
    assert (engine.lon, engine.lat) == (medic.lon, medic.lat) == (-122.42, 37.73)
    assert found.turnout_s.tolist()[0] == 70
    assert found.drive_s.tolist()[0] == 230
    assert found.recalled.tolist() == [False, True]
    assert found.held_s.tolist()[1] == 240
    assert found.hour.tolist() == [23, 23]
    assert "sequence" not in str(dict(found.provenance))


def test_lancaster_carries_over_midnight(tmp_path: Path) -> None:
    found = logs.responses(
        tmp_path, LANCASTER_ROWS, header=LANCASTER, format="lancaster", stations=None
    )
    units = dict(zip(found.unit.tolist(), found, strict=True))
    assert sorted(units) == ["M5", "SW1", "SW11"]
    assert found.date.astype(str).tolist() == ["2011-01-24", "2011-01-24", "2011-01-25"]
    seconds = dict(zip(found.unit.tolist(), found.response_s.tolist(), strict=True))
    assert seconds["SW1"] == 332
    assert seconds["M5"] == 614  # the first dispatch counts
    held = dict(zip(found.unit.tolist(), found.held_s.tolist(), strict=True))
    assert held["SW11"] == 16 * 60 + 32
    assert {name: one.kind for name, one in units.items()} == {
        "M5": "medic", "SW1": "", "SW11": "ambulance"
    }  # fmt: skip
    assert {one.station for one in found} == {"SW", "Lincoln 5"}
    assert found.provenance["left_out"] == {"names no unit": 1}


def test_nemsis(tmp_path: Path) -> None:
    path = tmp_path / "reports.xml"
    path.write_text(HEAD + REPORT + NULLS + TAIL)
    agency = {"time_zone": "America/Chicago", "country": "US"}
    found = Responses.read(path, "nemsis", {"agency": agency})
    assert found.incident.tolist() == ["INC-1", "INC-2"]
    assert found.turnout_s.tolist()[0] == 90
    assert found.drive_s.tolist()[0] == 330
    first, second = found
    assert (first.station, first.from_lon, first.from_lat) == ("A1", 7.0002, 43.0001)
    assert first.from_road
    assert (first.lon, first.lat) == (7.01, 43.01)
    assert second.lon is None
    assert found.recalled.tolist() == [False, True]
    assert found.held_s[1] == 240
    assert "Secret" not in found.to_frame().to_string()
    with pytest.raises(InputError, match=r"\[agency\] is missing"):
        Responses.read(path, "nemsis")
    stations = frame({"name": ["North"], "call_sign": ["A1"], "lon": [7.0], "lat": [43.0]})
    home = Responses.read(path, "nemsis", {"agency": agency}, stations)
    assert home.station.tolist() == ["North", ""]
    assert not home.from_road.any()


def test_files_frames_and_workbooks_are_one(tmp_path: Path) -> None:
    found = logs.responses(tmp_path)
    settings = LogSettings.given(mapping={"agency": logs.AGENCY})
    table = pandas().read_csv(tmp_path / "log.csv", dtype=str)
    table.to_excel(tmp_path / "log.xlsx", index=False)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    for source in (table, tmp_path / "log.xlsx", tmp_path / "log.csv.gz"):
        again = read_responses(source, settings, tmp_path / "stations.csv").responses
        assert again.to_frame().equals(found.to_frame())


@pytest.mark.parametrize(
    "column",
    ["Unit sequence in call dispatch", "arrival_order", "ArrivalSequence", "Order of arrival",
     "First Arriving Unit", "FirstPumpArriving_AttendanceTime", "second_on_scene", "1st in",
     "on scene rank", "unit_sequence_in_call_dispatch"],
)  # fmt: skip
def test_columns_that_tell_the_outcome_are_refused(tmp_path: Path, column: str) -> None:
    assert tells_order(column)
    header = logs.HEADER.replace("unit", column)
    how: dict[str, Any] = {"header": header, "columns": {"unit": column}}
    with pytest.raises(InputError, match="the order of arrival") as told:
        logs.read(tmp_path, PAIR, **how)
    assert column in str(told.value)
    assert len(logs.read(tmp_path, PAIR, insist=True, **how).responses) == 2


@pytest.mark.parametrize(
    "column",
    ["Arrived at", "On Scene DtTm", "Arrival time", "Order number", "First name", "unit",
     "dispatch_sequence_id", "NumPumpsAttending", "Second floor"],
)  # fmt: skip
def test_columns_that_tell_no_outcome(column: str) -> None:
    assert not tells_order(column)


def test_rows_that_cannot_be_used_stop_no_other(tmp_path: Path) -> None:
    good = f"2,A1,West,{DAY}10:00:00,,,,,,114.005,22.004\n"
    bad = [
        good.replace("2,A1", ",A1"),
        good.replace(f"{DAY}10:00:00", "soon"),
        good.replace(f"{DAY}10:00:00", ""),
        good.replace("2023-05-01", "1023-05-01"),
        good.replace("114.005", "214.005"),
        good.replace("114.005", "here"),
        "3,A1\n",
        PAIR.splitlines(keepends=True)[0],
    ]
    found = logs.read(tmp_path, PAIR + good + "".join(bad))
    assert len(found.responses) == 3
    assert found.rows == 11
    assert found.reasons == {
        "incident is missing": 1,
        "received is not a known form of a time": 1,
        "has no time": 1,
        "received is not between 1970 and 2100": 1,
        "lon is not within ±180 degrees": 1,
        "lon is not a finite number": 1,
        "has more or fewer cells than the header": 1,
        "the same call and unit as in an earlier row": 1,
    }
    assert [row for row, _ in found.left_out] == [5, 6, 7, 8, 9, 10, 11, 12]


def test_times_that_cannot_be_are_remarked(tmp_path: Path) -> None:
    header = f"{logs.HEADER},start_lon,start_lat"
    sent = f"{DAY}10:00:00,{DAY}10:00:30"
    rows = [
        f"1,A1,West,{sent},10:00:00,10:05:00,,,114.005,22.004,,",
        f"2,A1,West,{sent},10:01:00,10:00:50,,,114.005,22.004,,",
        f"3,A1,West,{sent},10:01:00,10:01:05,,,114.005,22.004,,",  # 0.7 km in 5 s
        f"4,A1,West,{sent},10:01:00,10:01:05,,,114.005,22.004,114.0051,22.004",
        f"5,A1,West,{sent},,10:01:00,,,114.011,22.009,,",  # 1.5 km in 30 s, turnout included
        f"6,A1,West,{sent},10:01:00,10:05:00,,,114.005,22.004,,",
    ]
    found = logs.responses(tmp_path, "\n".join(rows) + "\n", header=header)
    assert [REMARKS[i] for i in found.remark] == [
        NEGATIVE_TURNOUT, NEGATIVE_DRIVE, TOO_SHORT, "", TOO_SHORT, ""
    ]  # fmt: skip
    assert f"2 rows: {TOO_SHORT}" in found.provenance["notes"]


def test_stations_by_name_alias_and_unit(tmp_path: Path) -> None:
    rows = "".join(
        f"{i},{unit},{station},{DAY}10:00:00,,,,,,,\n"
        for i, (unit, station) in enumerate([("A1", "WEST"), ("B2", "Old East"), ("E7", ""),
                                             ("X", "Nowhere")])
    )  # fmt: skip
    found = logs.read(
        tmp_path,
        rows,
        units={"stations": {r"E(\d)": "East"}, "kinds": {"A.*": "ambulance"}, "kind": "other"},
        depots={"aliases": {"old east": "East"}},
    )
    assert found.responses.station.tolist() == ["West", "East", "East", "Nowhere"]
    assert found.responses.kind.tolist() == ["ambulance", "other", "other", "other"]
    assert any("does not have: Nowhere (1)" in note for note in found.notes)
    assert np.isnan(found.responses.from_lon[3])
    only = logs.read(tmp_path, rows, depots={"only": ["West"]})
    assert only.responses.station.tolist() == ["West"]
    assert only.reasons == {"of a station that depots.only leaves out": 3}


def test_durations_in_place_of_times(tmp_path: Path) -> None:
    header = "incident,unit,dispatched,turnout_s,drive_s"
    found = logs.responses(tmp_path, f"1,A,{DAY}23:59:30,40,200.4\n", header=header)
    assert (found.turnout_s[0], found.drive_s[0], found.response_s[0]) == (40, 200, 240)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"columns": {"units": "x"}}, "columns.units is not known; did you mean unit"),
        ({"units": {"kinds": {"(": "x"}}}, r"\[units\] kinds '\(': not as in re"),
        ({"units": {"stations": {"a": r"\1"}}}, "stations 'a': not as in re"),
        ({"lists": {"en_route": "x"}}, "lists.dispatched is missing"),
        ({"lists": {"dispatched": "x"}, "unit_columns": [{"unit": "y"}]}, "a log has one of them"),
        ({"doubts": {"faster_than_kmh": 0}}, "faster_than_kmh 0.0: more than 0 is needed"),
        ({"columns": {"unit": "vehicle"}}, "no column 'vehicle' for unit"),
    ],
)
def test_mappings_that_cannot_be(tmp_path: Path, tables: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        logs.read(tmp_path, PAIR, **tables)


def test_formats_that_are_not_known() -> None:
    with pytest.raises(InputError, match="format 'paris' is not known; one of london, lancaster"):
        LogSettings.given("paris")


def test_a_mapping_goes_before_the_ready_made_one(tmp_path: Path) -> None:
    settings = LogSettings.given("datasf", {"agency": {"name": "Elsewhere"}, "notes": []})
    assert settings.agency.name == "Elsewhere"
    assert settings.agency.country == "US"
    assert settings.notes == ()
    (tmp_path / "own.toml").write_text('[agency]\ntime_zone = "Mars"\ncountry = "US"\n')
    with pytest.raises(InputError, match=r"own.toml: \[agency\] time zone 'Mars' is not known"):
        LogSettings.given("nemsis", tmp_path / "own.toml")
