"""Stations, the rule of the nearest value, and documents over HTTP."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.context.weather import (
    NOWHERE,
    PATIENCE,
    OutdatedWeatherError,
    WeatherDocuments,
    WeatherStations,
    measured,
    source_counts,
)
from ideal_dispatch.errors import InputError, WeatherError, WeatherServiceError
from tests.stand_in import Answer, serve

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
HERE = (114.17, 22.30)
HOUR = timedelta(hours=1)
QUICK = replace(PATIENCE, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)


def hours(*values: float) -> dict[int, float]:
    return {int((AT + i * HOUR).timestamp()): value for i, value in enumerate(values)}


def test_values_are_counted_by_source() -> None:
    weather = Weather(temperature_c=WeatherValue(30.0, "a"), wind_kmh=WeatherValue(5.0, "b"))
    counts = source_counts([weather, Weather()])
    assert counts["temperature_c"] == {"a": 1, "unknown": 1}
    assert counts["wind_kmh"] == {"b": 1, "unknown": 1}
    assert counts["pressure_hpa"] == {"unknown": 2}


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
    assert measured(100, "humidity_percent") == 100
    assert math.isnan(measured(101, "humidity_percent"))


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(-91, None), (-90, 10), (0, 10), (30, 10), (31, 11), (90, 11), (210, 12), (211, None)],
)
def test_the_nearest_hour_counts_and_the_earlier_of_two(
    minutes: int, expected: float | None
) -> None:
    stations = WeatherStations({("roof", "temperature_c"): hours(10, 11, 12)}, "test")
    value = stations.reading(AT + timedelta(minutes=minutes), *HERE).temperature_c
    assert (value.value if value.known else None) == expected


def test_the_nearest_station_that_has_a_value_counts() -> None:
    places = {"near": (114.16, 22.30), "far": (114.05, 22.35)}
    stations = WeatherStations(
        {
            ("near", "temperature_c"): hours(math.nan),
            ("near", "wind_kmh"): hours(3),
            ("far", "temperature_c"): hours(30.0),
            ("nowhere", "temperature_c"): hours(1.0),
            ("nowhere", "pressure_hpa"): hours(1000),
        },
        "test",
        lambda name, _: places.get(name, NOWHERE),
    )
    weather = stations.reading(AT, *HERE)
    assert weather.temperature_c == WeatherValue(30.0, "test", "far", AT)
    assert (weather.wind_kmh.station, weather.pressure_hpa.station) == ("near", "nowhere")
    known = stations.reading(AT, -74.0, 40.7)
    assert not known.wind_kmh.known  # of another city
    assert known.pressure_hpa.known


@pytest.mark.parametrize("place", [(math.nan, 22.3), (114.0, math.nan), (222.0, 22.3), (22.3, 114)])
def test_places_are_on_earth_and_times_have_a_zone(place: tuple[float, float]) -> None:
    stations = WeatherStations({}, "test")
    with pytest.raises(InputError, match="not degrees on Earth"):
        stations.reading(AT, *place)
    with pytest.raises(InputError, match="has no zone"):
        stations.reading(AT.replace(tzinfo=None), *HERE)


# --- documents -----------------------------------------------------------------------------


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> datetime:
        return self.now


def degrees(body: bytes) -> WeatherStations:
    """Stations of a document that is one number."""
    return WeatherStations({("roof", "temperature_c"): {int(AT.timestamp()): float(body)}}, "test")


def documents(url: str, clock: Clock | None = None, **options: Any) -> WeatherDocuments:
    return WeatherDocuments(url, "degrees", clock or Clock(), **{"patience": QUICK, **options})


def ask(source: WeatherDocuments, key: str = "a", at: datetime = AT, **params: str) -> float:
    weather = source.reading(at, *HERE, degrees, fresh=HOUR, params=params, key=key)
    return weather.temperature_c.value


def in_turn(*answers: Answer) -> Callable[[Any], Answer]:
    """Each answer once, the last one for ever."""
    left = list(answers)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    ("answers", "error", "requests"),
    [
        ([Answer("21.5")], None, 1),
        ([Answer("busy", 503), Answer("21.5")], None, 2),
        ([Answer("busy", 429, {"Retry-After": "0"}), Answer("21.5")], None, 2),
        ([Answer("<h1>Internal\nError</h1>", 500)], WeatherServiceError, 2),
        ([Answer("limit", 429, {"Retry-After": "3600"})], WeatherServiceError, 1),
        ([Answer('{"error": true}', 400)], WeatherError, 1),
        ([Answer(b"", 301, {"Location": "https://new/?key=k"})], WeatherError, 1),
        ([Answer("<html>no degrees</html>")], WeatherServiceError, 2),
    ],
)
def test_what_is_asked_again_and_what_is_not(
    answers: list[Answer], error: type[Exception] | None, requests: int
) -> None:
    with serve(in_turn(*answers)) as server:
        if error is None:
            assert ask(documents(server.url), b="1 2") == 21.5
        else:
            with pytest.raises(error) as caught:
                ask(documents(server.url), token="secret")
            assert type(caught.value) is error
            assert "secret" not in str(caught.value)
            assert "\n" not in str(caught.value)
    assert len(server.asked) == requests


def test_answers_are_kept_while_fresh() -> None:
    clock = Clock()
    with serve(in_turn(Answer("1"), Answer("2"), Answer("3"))) as server:
        source = documents(server.url, clock)
        for minutes, value in ((0, 1), (59, 1), (1, 2), (-24 * 60, 3)):  # a clock may be set back
            clock.now += timedelta(minutes=minutes)
            assert ask(source) == value


def test_an_outdated_answer_comes_with_the_reason() -> None:
    clock = Clock()
    with serve(in_turn(Answer("5"), Answer("", 503))) as server:
        source = documents(server.url, clock)
        ask(source)
        clock.now += timedelta(minutes=70)
        with pytest.raises(OutdatedWeatherError) as caught:
            ask(source, at=clock.now)
    assert caught.value.known.temperature_c.value == 5


def test_the_documents_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ideal_dispatch.context.weather._CAPACITY", 2)
    with serve(in_turn(Answer("5"))) as server:
        source = documents(server.url)
        for key, requests in (("1", 1), ("2", 2), ("1", 2), ("3", 3), ("1", 3), ("2", 4)):
            ask(source, key)
            assert len(server.asked) == requests
