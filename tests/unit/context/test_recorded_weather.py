import gzip
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ideal_dispatch.context import RecordedWeather
from ideal_dispatch.context.recorded_weather import COWIN, WeatherColumn, WeatherColumns
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
WIND = "obstime,Wind Speed in km/hr\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_real_year_of_cowin(shared_data: Path) -> None:
    weather = RecordedWeather.read(shared_data / "weather" / "cowin_6087_hourly_2023.csv")
    assert weather.dropped == {"temperature_c: flagged F": 5, "rainfall_mm: flagged M": 1}
    storm = weather.reading(datetime(2023, 9, 8, 0, 10, tzinfo=HONG_KONG), *HERE)
    assert storm.rainfall_mm.value == 74.7
    assert storm.rainfall_mm.source == "cowin"
    assert storm.rainfall_mm.station == "cowin_6087_hourly_2023"
    assert storm.rainfall_mm.observed_at == datetime(2023, 9, 8, tzinfo=HONG_KONG)
    assert [value.known for value in storm] == [True, True, True, True, False]


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
    assert sum(weather.dropped.values()) == 8


def test_stamps_with_an_offset_and_other_formats(tmp_path: Path) -> None:
    stamped = f"\ufeff{WIND}2023-01-01T00:00:00Z,5\n2023-01-01T09:00:00+08:00,6\n"
    weather = RecordedWeather.read(written(tmp_path / "a.csv", stamped))
    for hour, value in ((0, 5), (1, 6)):
        at = datetime(2023, 1, 1, hour, tzinfo=UTC)
        assert weather.reading(at, *HERE).wind_kmh.value == value
    compact = WeatherColumns(
        {"wind_kmh": WeatherColumn("ff", "knot")}, "when", "Asia/Hong_Kong", "%Y%m%d%H%M"
    )
    path = written(tmp_path / "b.csv", "when,ff\n202301010800,10\n")
    found = RecordedWeather.read(path, compact).reading(datetime(2023, 1, 1, tzinfo=UTC), *HERE)
    assert found.wind_kmh.value == pytest.approx(18.52)


def test_the_hour_that_comes_twice_and_the_one_that_is_skipped(tmp_path: Path) -> None:
    rows = ["day,clock,wind"]
    rows += [f"2023-11-05,{hour}:00,{i + 1}" for i, hour in enumerate(("00", "01", "01", "02"))]
    rows += ["2023-03-12,02:00,20", "2023-11-05,02:00,9"]
    weather = RecordedWeather.read(written(tmp_path / "autumn.csv", "\n".join(rows)), SIMPLE)
    midnight = datetime(2023, 11, 5, 4, tzinfo=UTC)
    readings = [weather.reading(midnight + timedelta(hours=i), -74, 40.7) for i in range(4)]
    assert [round(r.wind_kmh.value / 3.6) for r in readings] == [1, 2, 3, 4]
    assert sum(weather.dropped.values()) == 2


def test_a_yearly_zip_is_explored(tmp_path: Path) -> None:
    rain = (
        "station_id,obstime,Past 60-Minutes Rainfall (whatever),qcscore\n"
        "6087,2023-09-08T00:00:00,74.7,G\n6001,2023-09-08T00:00:00,12.0,G\n"
        "6001,2023-09-08T01:00:00,99.0,F\n7777,2023-09-08T05:00:00,1.0,G\n"
    )
    stations = (
        "station_id,station_name,latitude,longitude,elevation\n6087,School A,22.33,114.16,10\n"
        "6001,School B,22.28,114.18,20\n9999,School C,,,\n8888,School D,114,222,\n"
    )
    temperature = "station_id,obstime,Air Temperature in degree C,qcscore\n6001,2023-09-08,26.5,G\n"
    path = tmp_path / "2023.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {
            "60rf.csv": rain, "available.csv": stations, "any.csv": temperature,
            "sol.csv": "station_id,x\n1,2", "readme.txt": "hello",
        }.items():  # fmt: skip
            archive.writestr(f"2023/{name}", text)
    weather = RecordedWeather.read(path)
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
    first = written(tmp_path / "y2022.csv", f"{WIND}2022-06-01T00:00:00,5\n")
    second = tmp_path / "y2023.csv.gz"
    second.write_bytes(gzip.compress(f"{WIND}2023-06-01T00:00:00,6\nyesterday,6\n2023\n".encode()))
    weather = RecordedWeather.read([first, second])
    for year, expected in ((2022, 5), (2023, 6)):
        value = weather.reading(datetime(year, 6, 1, tzinfo=HONG_KONG), *HERE).wind_kmh
        assert (value.value, value.station) == (expected, f"y{year}")
    assert weather.dropped == {"rows without a time": 1, "rows that are cut short": 1}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", InputError),
        (b"a,b\n1,2\n", InputError),
        (WIND.encode(), InputError),
        (WIND.encode() + b"2023-01-01,M\n", InputError),
        (WIND.encode() + b"01.02.2023,4\n", FileFormatError),
        (WIND.encode() + b"\xff\xfe\n", FileFormatError),
        (WIND.encode() + b'2023-01-01,"4\n', FileFormatError),
        (b"PK\x03\x04nonsense", FileFormatError),
        (b"\x1f\x8bnonsense", FileFormatError),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: bytes, error: type[Exception]) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        RecordedWeather.read(path)
    assert "\n" not in str(caught.value)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for paths in ([tmp_path / "none.csv"], list[Path]()):
        with pytest.raises(InputError):
            RecordedWeather.read(paths)


@pytest.mark.parametrize(
    ("variables", "zone", "key"),
    [
        ({"snow": WeatherColumn("snow", "mm")}, "UTC", "'snow'"),
        ({"wind_kmh": WeatherColumn("ff", "bft")}, "UTC", "wind_kmh cannot be in 'bft'"),
        ({}, "UTC", "at least one variable"),
        (COWIN.variables, "Mars", "'Mars'"),
    ],
)
def test_a_mapping_that_makes_no_sense(
    variables: dict[str, WeatherColumn], zone: str, key: str
) -> None:
    with pytest.raises(InputError, match=key):
        WeatherColumns(variables, "when", zone)
