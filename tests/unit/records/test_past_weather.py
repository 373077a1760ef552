"""Weather of past calls: unknown values, the climatology in their place, providers that fail."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.errors import InputError, WeatherError
from ideal_dispatch.records.agency import AgencySettings, WeatherSettings
from ideal_dispatch.records.past_weather import readings
from ideal_dispatch.records.prepare import prepare_records
from tests.unit.records.towns import DEPOTS, GOOD, HEADER

HERE = "tests.unit.records.test_past_weather"
NOON = datetime(2023, 7, 3, 12, tzinfo=UTC)


class _Patchy:
    """Knows the temperature of even days, and nothing else; fails on the tenth."""

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        if at.day == 10:
            raise WeatherError("no answer")
        known = at.day % 2 == 0
        return Weather(WeatherValue(20.0 + at.day, "patchy", "", at)) if known else Weather()


def _read(climatology: bool) -> tuple[list[Weather], list[str]]:
    at = [NOON + timedelta(days=n) for n in range(8)]  # 3 … 10 July
    settings = WeatherSettings(f"{HERE}:_Patchy", "climatology" if climatology else "none")
    return readings(_Patchy(), settings, at, np.zeros(8), np.zeros(8))


def test_without_a_fallback_the_unknown_stays_unknown() -> None:
    found, problems = _read(climatology=False)
    assert [weather.temperature_c.known for weather in found] == [False, True] * 3 + [False, False]
    assert problems == ["weather: no answer"]


def test_climatology_fills_what_the_source_does_not_know_and_nothing_else() -> None:
    found, problems = _read(climatology=True)
    assert [weather.temperature_c.value for weather in found[1:6:2]] == [24.0, 26.0, 28.0]
    for index in (0, 2, 4, 6, 7):
        assert found[index].temperature_c.value == 26.0
        assert found[index].temperature_c.source == "climatology"
    assert not found[0].rainfall_mm.known
    assert problems == ["weather: no answer"]


class Broken:
    """A provider of a user's own, with a mistake in it."""

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        known: dict[str, float] = {}
        return Weather(WeatherValue(known["temperature"], "own", "", at))


class Silent:
    """A provider that forgets to answer."""

    def __init__(self, size: int = 1) -> None:
        pass

    def reading(self, at: datetime, lon: float, lat: float) -> None:
        return None


@pytest.mark.parametrize(
    ("weather", "message"),
    [
        ({"source": f"{HERE}:Broken"},
         f"weather.source '{HERE}:Broken': KeyError: 'temperature' (test_past_weather.py, line "),
        ({"source": f"{HERE}:Silent"},
         f"'{HERE}:Silent': reading() gives what cannot be used: None; a Weather is needed"),
        ({"source": f"{HERE}:Silent", "options": {"siz": 2}}, "weather.options.siz is not known"),
        ({"source": f"{HERE}:Silent", "options": {"size": "x"}}, "weather.options.size 'x': a who"),
        ({"source": f"{HERE}:Gone"}, f"weather.source '{HERE}:Gone': module"),
        ({"source": "recorded", "files": ["none.csv"]}, "none.csv: no such file"),
        ({"source": "recorded", "files": ["depots.csv"], "units": {"wind_kmh": "bft"}},
         "wind_kmh cannot be in 'bft'; units: km/h"),
        ({"source": "recorded", "files": ["depots.csv"]}, "depots.csv: no weather in it"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_weather_is_one_line_that_names_the_settings(
    tmp_path: Path, grid: RoadNetwork, weather: dict[str, Any], message: str
) -> None:
    (tmp_path / "depots.csv").write_text(DEPOTS)
    (tmp_path / "records.csv").write_text(f"{HEADER}\n{GOOD}\n")
    table = {
        "agency": {"time_zone": "Asia/Hong_Kong", "country": "HK"},
        "exclusions": {"nearer_than_km": 0.1},
        "weather": weather,
    }
    settings = AgencySettings.of(table, tmp_path / "agency.toml")
    with pytest.raises(InputError) as caught:
        prepare_records(tmp_path / "records.csv", grid, tmp_path / "depots.csv", settings)
    assert str(caught.value).startswith(f"{tmp_path / 'agency.toml'}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
