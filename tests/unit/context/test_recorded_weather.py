import gzip
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ideal_dispatch.context import (
    COWIN,
    Climatology,
    RecordedWeather,
    WeatherColumn,
    WeatherColumns,
)
from ideal_dispatch.errors import FileFormatError, InputError

HERE = (114.17, 22.30)
HONG_KONG = ZoneInfo("Asia/Hong_Kong")
SIMPLE = WeatherColumns(
    {
        "temperature_c": WeatherColumn("temp", "F"),
        "wind_kmh": WeatherColumn(("wind", "ff"), "m/s"),
        "rainfall_mm": WeatherColumn("rain", "inch"),
        "pressure_hpa": WeatherColumn("slp", "Pa"),
        "humidity_percent": WeatherColumn("rh", "fraction"),
    },
    time=("day", "clock"),
    time_zone="America/New_York",
    source="airport",
)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_real_year_of_cowin(shared_data: Path) -> None:
    weather = RecordedWeather.read(shared_data / "weather" / "cowin_6087_hourly_2023.csv")
    assert weather.dropped == {"temperature_c: flagged F": 5, "rainfall_mm: flagged M": 1}
    assert set(weather.found) == {"temperature_c", "rainfall_mm", "humidity_percent", "wind_kmh"}
    storm = weather.reading(datetime(2023, 9, 8, 0, 10, tzinfo=HONG_KONG), *HERE)
    assert storm.rainfall_mm.value == 74.7
    assert storm.rainfall_mm.source == "cowin"
    assert storm.rainfall_mm.station == "cowin_6087_hourly_2023"
    assert storm.rainfall_mm.observed_at == datetime(2023, 9, 8, tzinfo=HONG_KONG)
    assert not storm.pressure_hpa.known
    assert sum(1 for _ in weather) == 8760
    climatology = Climatology.fit(weather, "Hong Kong")
    july = climatology.reading(datetime(2030, 7, 1, 14, tzinfo=HONG_KONG), *HERE)
    assert 28 < july.temperature_c.value < 36
    for hour in range(24):
        at = datetime(2030, 1, 1, hour, tzinfo=HONG_KONG)
        assert climatology.reading(at, *HERE).humidity_percent.known


def test_units_time_columns_and_marks(tmp_path: Path) -> None:
    text = (
        "day,clock,temp,wind,rain,slp,rh\n"
        "2024/01/15,07:00,32,10,0.1,101325,0.5\n"
        "2024/01/15,08:00,N/A,////,Trace,M,\n"
        "2024/01/15,09:00,abc,-5,9999,101325,1.2\n"
    )
    weather = RecordedWeather.read(written(tmp_path / "airport.csv", text), SIMPLE)
    at = datetime(2024, 1, 15, 12, tzinfo=UTC)  # 07:00 in New York
    values = [round(value.value, 6) for value in weather.reading(at, -74.0, 40.7)]
    assert values == [0.0, 2.54, 50.0, 36.0, 1013.25]
    assert weather.reading(at + timedelta(hours=1), -74, 40.7).rainfall_mm.value == 0.0
    assert weather.dropped == {
        "temperature_c: missing": 1,
        "wind_kmh: missing": 1,
        "pressure_hpa: missing": 1,
        "humidity_percent: missing": 1,
        "temperature_c: not a number": 1,
        "wind_kmh: not plausible": 1,
        "rainfall_mm: not plausible": 1,
        "humidity_percent: not plausible": 1,
    }


def test_the_limit_of_the_nearest_hour(tmp_path: Path) -> None:
    text = "obstime,Wind Speed in km/hr\n2023-01-01T00:00:00,5\n2023-01-01T03:00:00,8\n"
    path = written(tmp_path / "a.csv", text)
    start = datetime(2023, 1, 1, tzinfo=HONG_KONG)
    weather = RecordedWeather.read(path)
    for minutes, expected in ((0, 5), (90, 5), (91, 8), (180, 8), (270, 8)):
        at = start + timedelta(minutes=minutes)
        assert weather.reading(at, *HERE).wind_kmh.value == expected, minutes
    assert not weather.reading(start + timedelta(minutes=271), *HERE).wind_kmh.known


def test_stamps_with_an_offset_and_other_formats(tmp_path: Path) -> None:
    stamped = "obstime,Wind Speed in km/hr\n2023-01-01T00:00:00Z,5\n2023-01-01T09:00:00+08:00,6\n"
    weather = RecordedWeather.read(written(tmp_path / "a.csv", "\ufeff" + stamped))
    assert weather.reading(datetime(2023, 1, 1, 0, tzinfo=UTC), *HERE).wind_kmh.value == 5
    assert weather.reading(datetime(2023, 1, 1, 1, tzinfo=UTC), *HERE).wind_kmh.value == 6
    compact = WeatherColumns(
        {"wind_kmh": WeatherColumn("ff", "knot")}, "when", "Asia/Hong_Kong", "%Y%m%d%H%M"
    )
    path = written(tmp_path / "b.csv", "when,ff\n202301010800,10\n")
    value = RecordedWeather.read(path, compact).reading(datetime(2023, 1, 1, tzinfo=UTC), *HERE)
    assert value.wind_kmh.value == pytest.approx(18.52)


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    columns = WeatherColumns(
        {"wind_kmh": WeatherColumn("FF", "m/s")},
        "Zeit",
        "Europe/Berlin",
        delimiter=";",
        decimal=",",
    )
    path = written(tmp_path / "a.csv", "Zeit;FF\n2023-01-01 08:00;2,5\n")
    reading = RecordedWeather.read(path, columns).reading(
        datetime(2023, 1, 1, 7, tzinfo=UTC), 13, 52
    )
    assert reading.wind_kmh.value == 9
    with pytest.raises(InputError, match="delimiter and decimal are one character each"):
        WeatherColumns(columns.variables, "Zeit", "UTC", delimiter="")


def test_the_hour_that_comes_twice_and_the_one_that_is_skipped(tmp_path: Path) -> None:
    rows = ["day,clock,wind"]
    rows += [f"2023-11-05,{hour}:00,{i + 1}" for i, hour in enumerate(("00", "01", "01", "02"))]
    rows += ["2023-03-12,02:00,20", "2023-11-05,02:00,9"]
    path = written(tmp_path / "autumn.csv", "\n".join(rows))
    weather = RecordedWeather.read(path, SIMPLE)
    midnight = datetime(2023, 11, 5, 4, tzinfo=UTC)
    readings = [weather.reading(midnight + timedelta(hours=i), -74, 40.7) for i in range(4)]
    assert [round(r.wind_kmh.value / 3.6) for r in readings] == [1, 2, 3, 4]
    assert weather.dropped == {
        "rows in an hour that summer time skips; is the file in standard time?": 1,
        "wind_kmh: the same hour again": 1,
    }


RAIN = """station_id,obstime,Past 60-Minutes Rainfall (whatever),qcscore
6087,2023-09-08T00:00:00,74.7,G
6001,2023-09-08T00:00:00,12.0,G
6001,2023-09-08T01:00:00,99.0,F
7777,2023-09-08T05:00:00,1.0,G
"""
AVAILABLE = """station_id,station_name,latitude,longitude,elevation
6087,School A,22.33,114.16,10
6001,School B,22.28,114.18,20
9999,School C,,,
8888,School D,114,222,
"""


def cowin_zip(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(f"2023/{name}.csv", text)
        archive.writestr("2023/readme.txt", "hello")
    return path


def test_a_yearly_zip_is_explored(tmp_path: Path) -> None:
    temperature = "station_id,obstime,Air Temperature in degree C,qcscore\n6001,2023-09-08,26.5,G\n"
    path = cowin_zip(
        tmp_path / "2023.zip",
        **{
            "60rf": RAIN,
            "available": AVAILABLE,
            "anything": temperature,
            "sol": "station_id,x\n1,2",
        },
    )
    weather = RecordedWeather.read(path)
    assert weather.found["rainfall_mm"] == (
        f"{path}:2023/60rf.csv column 'Past 60-Minutes Rainfall (whatever)'",
    )
    assert weather.found["temperature_c"][0].endswith(
        "anything.csv column 'Air Temperature in degree C'"
    )
    assert weather.dropped == {
        "rainfall_mm: flagged F": 1,
        "stations without a place": 1,
        "stations not on Earth": 1,
        "sol.csv: no column of ours": 1,
    }
    at = datetime(2023, 9, 8, tzinfo=HONG_KONG)
    kowloon, island = weather.reading(at, 114.16, 22.32), weather.reading(at, 114.18, 22.27)
    assert (kowloon.rainfall_mm.value, kowloon.rainfall_mm.station) == (74.7, "6087")
    assert (island.rainfall_mm.value, island.rainfall_mm.station) == (12.0, "6001")
    assert kowloon.temperature_c.station == "6001"
    later = weather.reading(at + timedelta(hours=5), *HERE)
    assert later.rainfall_mm.station == "7777"  # its place is unknown: the last to be asked
    moved = RecordedWeather.read(path, places={"6001": (114.16, 22.32)})
    assert moved.reading(at, 114.16, 22.32).rainfall_mm.station == "6001"


def test_several_files_and_gzip(tmp_path: Path) -> None:
    header = "obstime,Wind Speed in km/hr\n"
    first = written(tmp_path / "y2022.csv", header + "2022-06-01T00:00:00,5\n")
    second = tmp_path / "y2023.csv.gz"
    second.write_bytes(gzip.compress(f"{header}2023-06-01T00:00:00,6\n".encode()))
    weather = RecordedWeather.read([first, second])
    for year, expected in ((2022, 5), (2023, 6)):
        value = weather.reading(datetime(year, 6, 1, tzinfo=HONG_KONG), *HERE).wind_kmh
        assert (value.value, value.station) == (expected, f"y{year}")


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    text = "obstime,Wind Speed in km/hr\n2023-01-01T00:00:00,5\nyesterday,6\n2023-01-01\n\n"
    weather = RecordedWeather.read(written(tmp_path / "a.csv", text))
    assert weather.dropped == {"rows without a time": 1, "rows that are cut short": 1}


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", InputError, "x.csv: no weather in it; looked for the time in obstime and for Air"),
        (b"a,b\n1,2\n", InputError, "no weather in it"),
        (b"obstime,Wind Speed in km/hr\n", InputError, "no value can be used (no rows)"),
        (
            b"obstime,Wind Speed in km/hr\n2023-01-01,M\n",
            InputError,
            "no value can be used (1 wind_kmh: missing)",
        ),
        (
            b"obstime,Wind Speed in km/hr\n01.02.2023,4\n",
            FileFormatError,
            "x.csv line 2: '01.02.2023' is no time; say the time_format",
        ),
        (b"obstime,Wind Speed in km/hr\n\xff\xfe\n", FileFormatError, "not UTF-8 CSV"),
        (b'obstime,Wind Speed in km/hr\n2023-01-01,"4\n', FileFormatError, "not UTF-8 CSV"),
        (b"PK\x03\x04nonsense", FileFormatError, "x.csv: truncated or damaged"),
        (b"\x1f\x8bnonsense", FileFormatError, "x.csv: truncated or damaged"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, content: bytes, error: type[Exception], message: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        RecordedWeather.read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        RecordedWeather.read(tmp_path / "none.csv")
    with pytest.raises(InputError, match="recorded weather: no file is given"):
        RecordedWeather.read([])


def test_a_mapping_that_makes_no_sense() -> None:
    for variables, message in (
        (
            {"snow": WeatherColumn("snow", "mm")},
            "no variable 'snow'; variables: temperature_c, rainfall",
        ),
        (
            {"wind_kmh": WeatherColumn("ff", "bft")},
            "wind_kmh cannot be in 'bft'; units: km/h, m/s, knot",
        ),
        ({}, "a time column and at least one variable are needed"),
    ):
        with pytest.raises(InputError, match=message):
            WeatherColumns(variables, "when", "UTC")
    with pytest.raises(InputError, match="time zone 'Mars' is not known"):
        WeatherColumns(COWIN.variables, "when", "Mars")
