"""Weather of past calls: unknown values, and the climatology in their place."""

from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.records.weather_source import readings

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
    return readings(_Patchy(), at, np.zeros(8), np.zeros(8), climatology)


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
