import math
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch.context import (
    FirstKnown,
    Weather,
    WeatherValue,
    source_counts,
)
from ideal_dispatch.context.weather import OutdatedWeatherError, measured
from ideal_dispatch.context.weather_stations import NOWHERE, Series, WeatherStations
from ideal_dispatch.errors import InputError, WeatherError

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
HERE = (114.17, 22.30)


class Says:
    """A provider that always says the same, or fails."""

    def __init__(self, source: str, error: WeatherError | None = None, /, **values: float) -> None:
        self.asked = 0
        self.error = error
        known = {name: WeatherValue(v, source, "roof", AT) for name, v in values.items()}
        self.weather = Weather(**known)

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.weather


ALL = {
    "temperature_c": 20.0,
    "rainfall_mm": 0.0,
    "humidity_percent": 80.0,
    "wind_kmh": 9.0,
    "pressure_hpa": 1010.0,
}


def test_each_variable_comes_from_the_first_that_knows_it() -> None:
    first, second = Says("a", temperature_c=30.0), Says("b", temperature_c=10.0, wind_kmh=5.0)
    weather = FirstKnown([first, second]).reading(AT, *HERE)
    assert weather.temperature_c == WeatherValue(30.0, "a", "roof", AT)
    assert weather.wind_kmh == WeatherValue(5.0, "b", "roof", AT)
    assert not weather.pressure_hpa.known
    assert source_counts([weather, Weather()]) == {
        "temperature_c": {"a": 1, "unknown": 1},
        "rainfall_mm": {"unknown": 2},
        "humidity_percent": {"unknown": 2},
        "wind_kmh": {"b": 1, "unknown": 1},
        "pressure_hpa": {"unknown": 2},
    }


def test_nobody_is_asked_in_vain() -> None:
    last = Says("b", **ALL)
    assert FirstKnown([Says("a", **ALL), last]).reading(AT, *HERE).wind_kmh.source == "a"
    assert last.asked == 0


def test_a_failure_is_reported_and_loses_nobody_else() -> None:
    heard: list[WeatherError] = []
    broken = Says("a", WeatherError("station burnt down"))
    provider = FirstKnown([broken, Says("b", **ALL)], heard.append)
    for _ in range(3):
        assert provider.reading(AT, *HERE).temperature_c.source == "b"
    assert provider.problems == {"station burnt down": 3}
    assert len(heard) == 3
    everything_down = FirstKnown([broken])
    assert everything_down.reading(AT, *HERE) == Weather()
    assert everything_down.problems == {"station burnt down": 1}


def test_what_an_outdated_source_still_knows_is_used() -> None:
    known = Weather(temperature_c=WeatherValue(25.0, "a", "roof", AT - timedelta(minutes=40)))
    old = Says("a", OutdatedWeatherError("no answer", known))
    provider = FirstKnown([old, Says("b", **ALL)])
    weather = provider.reading(AT, *HERE)
    assert weather.temperature_c.age(AT) == timedelta(minutes=40)
    assert weather.wind_kmh.source == "b"
    assert provider.problems == {"no answer": 1}


def test_nested_providers_report_at_the_top() -> None:
    inner = FirstKnown([Says("a", WeatherError("down"))])
    outer = FirstKnown([inner, Says("b", **ALL)])
    assert outer.reading(AT, *HERE).wind_kmh.source == "b"
    assert outer.problems == {"down": 1}
    assert inner.problems == Counter()


def test_endless_problems_do_not_fill_the_memory() -> None:
    says = Says("a", WeatherError(""))
    provider = FirstKnown([says])
    for i in range(300):
        says.error = WeatherError(f"problem {i}")
        provider.reading(AT, *HERE)
    assert len(provider.problems) == 101
    assert sum(provider.problems.values()) == 300


def test_other_errors_are_not_hidden() -> None:
    class Faulty:
        def reading(self, at: datetime, lon: float, lat: float) -> Weather:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        FirstKnown([Faulty()]).reading(AT, *HERE)
    with pytest.raises(InputError, match="weather: no provider is given"):
        FirstKnown([])


@pytest.mark.parametrize("place", [(math.nan, 22.3), (114.0, math.nan), (222.0, 22.3), (22.3, 114)])
def test_places_must_be_on_earth(place: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="not degrees on Earth"):
        FirstKnown([Says("a")]).reading(AT, *place)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(InputError, match="time 2024-05-01T12:00:00 has no zone"):
        FirstKnown([Says("a")]).reading(AT.replace(tzinfo=None), *HERE)


@pytest.mark.parametrize(
    "entry",
    ["", "N/A", "M", "////", "nan", None, True, [], {}, "1e999", math.inf, 10**400, -999, "x"],
)
def test_entries_that_are_no_measurement(entry: object) -> None:
    assert math.isnan(measured(entry, "temperature_c"))


def test_entries_that_are() -> None:
    assert measured("21.5", "temperature_c") == 21.5
    assert measured(0, "rainfall_mm") == 0
    assert math.isnan(measured(-0.1, "rainfall_mm"))
    assert math.isnan(measured(101, "humidity_percent"))


def hours(*values: float) -> dict[int, float]:
    return {int((AT + timedelta(hours=i)).timestamp()): v for i, v in enumerate(values)}


def test_the_nearest_hour_counts_and_the_earlier_of_two() -> None:
    series = Series("roof", np.array(list(hours(0, 0, 0))), np.array([0.0, 1.0, 2.0]))
    for minutes, expected in ((-90, 0), (0, 0), (29, 0), (30, 0), (31, 1), (90, 1), (210, 2)):
        second = (AT + timedelta(minutes=minutes)).timestamp()
        assert series.nearest(second) == expected, minutes
    for minutes in (-91, 211):
        assert series.nearest((AT + timedelta(minutes=minutes)).timestamp()) is None
    assert Series("roof", np.array([], np.int64), np.array([])).nearest(AT.timestamp()) is None


def test_the_nearest_station_that_has_a_value_counts() -> None:
    places = {"near": (114.16, 22.30), "far": (114.05, 22.35)}
    measured = {
        ("near", "temperature_c"): hours(math.nan),
        ("near", "wind_kmh"): hours(3),
        ("far", "temperature_c"): hours(30.0),
        ("nowhere", "temperature_c"): hours(1.0),
        ("nowhere", "pressure_hpa"): hours(1000),
    }
    stations = WeatherStations(measured, "test", lambda name, _: places.get(name, NOWHERE))
    weather = stations.reading(AT, *HERE)
    assert (weather.temperature_c.value, weather.temperature_c.station) == (30.0, "far")
    assert weather.wind_kmh.station == "near"
    assert weather.pressure_hpa.station == "nowhere"
    assert weather.pressure_hpa.observed_at == AT


def test_stations_of_another_city_say_nothing() -> None:
    measured = {("HK", "temperature_c"): hours(30.0)}
    stations = WeatherStations(measured, "test", lambda name, _: (114.17, 22.30))
    assert stations.reading(AT, -74.0, 40.7) == Weather()
    assert np.isclose(stations.reading(AT, *HERE).temperature_c.value, 30)
