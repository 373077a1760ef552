"""Weather of past calls: unknown values, and providers that fail."""

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
from tests.stand_in import Answer, serve
from tests.unit.records.towns import DEPOTS, GOOD, HEADER, run

HERE = "tests.unit.records.test_past_weather"
NOON = datetime(2023, 7, 3, 12, tzinfo=UTC)


class _Patchy:
    """Knows the temperature of even days, and nothing else; fails on the tenth."""

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        if at.day == 10:
            raise WeatherError("no answer")
        known = at.day % 2 == 0
        return Weather(WeatherValue(20.0 + at.day, "patchy", "", at)) if known else Weather()


def test_what_the_source_does_not_know_stays_unknown() -> None:
    at = [NOON + timedelta(days=n) for n in range(8)]  # 3 … 10 July
    settings = WeatherSettings(f"{HERE}:_Patchy")
    found, problems = readings(_Patchy(), settings, at, np.zeros(8), np.zeros(8))
    assert [weather.temperature_c.known for weather in found] == [False, True] * 3 + [False, False]
    assert problems == ["weather: no answer"]


def test_a_source_that_keeps_failing_is_left_alone() -> None:
    asked = []

    class Down:
        def reading(self, at: datetime, lon: float, lat: float) -> Weather:
            asked.append(at)
            raise WeatherError("down")

    found, problems = readings(Down(), WeatherSettings(), [NOON] * 9, np.zeros(9), np.zeros(9))
    assert found == [Weather()] * 9
    assert len(asked) == 5
    assert len(problems) == 2


def test_open_meteo_is_asked_again_after_a_failure(grid: RoadNetwork, tmp_path: Path) -> None:
    """One request fails, with its second try; the month of the next call is answered."""
    answers = [Answer("", 503), Answer("", 503), Answer("<html>")]
    with serve(lambda asked: answers.pop(0) if len(answers) > 1 else answers[0]) as server:
        weather = {"source": "open-meteo", "url": server.url}
        rows = "\n".join(f"{i}{GOOD[1:].replace('2023-01', f'2023-0{i + 1}')}" for i in range(2))
        prepared = run(tmp_path, grid, rows, weather=weather)
    assert len(prepared.trips) == 2
    assert len(prepared.notes) == 2
    assert len(server.asked) == 4


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
    ("weather", "key"),
    [
        ({"source": f"{HERE}:Broken"}, "KeyError: 'temperature' (test_past_weather.py, line "),
        ({"source": f"{HERE}:Silent"}, "a Weather is needed"),
        ({"source": f"{HERE}:Silent", "options": {"siz": 2}}, "weather.options.siz"),
        ({"source": f"{HERE}:Silent", "options": {"size": "x"}}, "weather.options.size"),
        ({"source": f"{HERE}:Gone"}, f"weather.source '{HERE}:Gone'"),
        ({"source": "recorded", "files": ["none.csv"]}, "none.csv"),
        ({"source": "recorded", "files": ["depots.csv"], "units": {"wind_kmh": "bft"}}, "wind_kmh"),
        ({"source": "recorded", "files": ["depots.csv"]}, "depots.csv: no weather in it"),
    ],
)
def test_what_is_wrong_with_the_weather_is_one_line_that_names_the_settings(
    tmp_path: Path, grid: RoadNetwork, weather: dict[str, Any], key: str
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
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)
