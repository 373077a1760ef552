import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ideal_dispatch.context import Climatology, Weather, WeatherValue
from ideal_dispatch.errors import FileFormatError, InputError

HERE = (114.17, 22.30)


def observed(at: datetime, **values: float) -> Weather:
    return Weather(**{name: WeatherValue(v, "x", "roof", at) for name, v in values.items()})


@pytest.fixture
def july() -> Climatology:
    start = datetime(2023, 7, 1, tzinfo=UTC)
    readings = [
        observed(start + timedelta(days=day, hours=hour), temperature_c=20.0 + hour + day % 2)
        for day in range(30)
        for hour in range(24)
    ]
    return Climatology.fit(readings, "Test City")


def test_the_mean_of_month_and_hour(july: Climatology) -> None:
    at = datetime(2031, 7, 9, 14, 40, tzinfo=ZoneInfo("Asia/Hong_Kong"))  # 06:40 UTC
    value = july.reading(at, *HERE).temperature_c
    assert value == WeatherValue(26.5, "climatology", "Test City", None)
    assert not july.reading(at, *HERE).wind_kmh.known
    assert july.reading(at.replace(month=8), *HERE) == Weather()


def test_the_hour_follows_the_sun_not_summer_time() -> None:
    zone = ZoneInfo("America/New_York")
    noon = [datetime(2023, 3, day, 17, tzinfo=UTC) for day in (1, 31)]
    assert [at.astimezone(zone).hour for at in noon] == [12, 13]
    climatology = Climatology.fit([observed(noon[0], temperature_c=9.0)])
    assert climatology.reading(noon[1].astimezone(zone), *HERE).temperature_c.value == 9.0


def test_a_saved_climatology_is_the_same(july: Climatology, tmp_path: Path) -> None:
    path, again = tmp_path / "july.json", tmp_path / "again.json"
    july.save(path)
    loaded = Climatology.load(path)
    np.testing.assert_array_equal(loaded.means, july.means)
    assert loaded.place == "Test City"
    content = json.loads(path.read_text())
    older = tmp_path / "older.json"  # as version 0.1 marks it
    older.write_text(json.dumps({"format": content.pop("kind"), **content}))
    np.testing.assert_array_equal(Climatology.load(older).means, july.means)
    loaded.save(again)
    assert path.read_bytes() == again.read_bytes()


def test_only_observed_values_are_fitted() -> None:
    second_hand = Weather(temperature_c=WeatherValue(20.0, "climatology"))
    with pytest.raises(InputError, match="climatology: no observed value to fit"):
        Climatology.fit([second_hand, Weather()])


def test_impossible_means_are_refused() -> None:
    means = np.full((12, 24, 5), np.nan)
    means[0, 0, 1] = -3.0
    with pytest.raises(InputError, match="climatology: rainfall_mm of -3.0 is not possible"):
        Climatology(means)
    with pytest.raises(InputError, match="climatology: expected 12 × 24 × 5 values"):
        Climatology(np.zeros((12, 24)))


def damaged(july: Climatology, path: Path, **changes: object) -> Path:
    july.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def test_other_files_are_refused_in_one_line(july: Climatology, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("", "{", "[]", "{}", "<html>", "\xff", "[" * 100_000):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(FileFormatError, match="x.json: .*; write one with Climatology.save"):
            Climatology.load(path)
    for changes, message in (
        ({"version": 2}, "x.json: written in format 2, this version reads up to 1"),
        ({"variables": ["temperature_c"]}, "a climatology of other variables"),
        ({"means": [1, 2]}, "climatology: expected 12 × 24 × 5 values, got 2"),
        ({"means": "none"}, "x.json: truncated or damaged climatology"),
    ):
        with pytest.raises(FileFormatError, match=message):
            Climatology.load(damaged(july, path, **changes))
    with pytest.raises(InputError, match="no such file"):
        Climatology.load(tmp_path / "none.json")
