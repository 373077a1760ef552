import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import OpenMeteo, Weather
from ideal_dispatch.context.open_meteo import FIELDS
from ideal_dispatch.context.weather import PATIENCE
from ideal_dispatch.errors import WeatherError
from tests.stand_in import Answer, Asked, serve

NOW = datetime(2024, 6, 15, 9, 30, tzinfo=UTC)
HERE = (114.17, 22.30)
QUICK = replace(PATIENCE, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)


def hourly(query: dict[str, str]) -> dict[str, Any]:
    """What the documented service answers; every value tells its own hour."""
    start, end = (date.fromisoformat(query[name]) for name in ("start_date", "end_date"))
    assert query["timezone"] == "GMT"
    times = [
        datetime(start.year, start.month, start.day) + timedelta(hours=i)
        for i in range(24 * ((end - start).days + 1))
    ]
    values: dict[str, list[Any]] = {
        "temperature_2m": [t.hour + t.day / 100 for t in times],
        "precipitation": [0.1 * t.hour for t in times],
        "relative_humidity_2m": [50 + t.hour for t in times],
        "wind_speed_10m": [float(t.hour) for t in times],
        "pressure_msl": [1000.0 + t.hour for t in times],
    }
    return {
        "latitude": 22.25,
        "longitude": 114.125,
        "utc_offset_seconds": 0,
        "timezone": "GMT",
        "hourly_units": {"time": "iso8601"} | dict(FIELDS.values()),
        "hourly": {"time": [f"{t:%Y-%m-%dT%H:%M}" for t in times]} | values,
    }


def good(asked: Asked) -> Answer:
    return Answer(json.dumps(hourly(asked.query)))


def forecast(url: str, now: Callable[[], datetime] = lambda: NOW, **options: Any) -> OpenMeteo:
    return OpenMeteo.forecast(url, patience=QUICK, now=now, **options)


def archive(url: str, **options: Any) -> OpenMeteo:
    return OpenMeteo.archive(url, patience=QUICK, now=lambda: NOW, **options)


def test_a_reading_has_values_units_and_origin() -> None:
    with serve(good) as server:
        weather = forecast(server.url).reading(NOW, *HERE)
    assert [round(value.value, 6) for value in weather] == [9.15, 0.9, 59, 9, 1009]
    assert weather.wind_kmh.source == "open-meteo forecast"
    assert weather.wind_kmh.station == "22.3,114.2"
    assert weather.wind_kmh.observed_at == NOW.replace(minute=0)  # half past: the earlier
    query = server.asked[0].query
    assert query["wind_speed_unit"] == "kmh"
    assert query["temperature_unit"] == "celsius"
    assert query["hourly"].split(",") == [name for name, _ in FIELDS.values()]
    assert (query["latitude"], query["longitude"]) == ("22.3", "114.2")
    assert "apikey" not in query


def test_just_before_midnight_belongs_to_the_next_day() -> None:
    with serve(good) as server:
        provider = forecast(server.url)
        late = datetime(2024, 6, 14, 23, 31, tzinfo=UTC)
        assert provider.reading(late, *HERE).temperature_c.value == pytest.approx(0.15)
        assert provider.reading(late - timedelta(minutes=1), *HERE).wind_kmh.value == 23
    assert [asked.query["start_date"] for asked in server.asked] == ["2024-06-15", "2024-06-14"]


def test_ten_thousand_records_need_few_requests() -> None:
    rng = np.random.default_rng(3)
    with serve(good) as server:
        provider = archive(server.url)
        for minutes in rng.integers(0, 2 * 365 * 24 * 60, 10_000).tolist():
            at = datetime(2022, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
            lon, lat = 114.06 + rng.uniform(0, 0.18), 22.26
            assert provider.reading(at, lon, lat).temperature_c.known
        assert len(server.asked) <= 2 * 25
    assert server.asked[0].query["start_date"].endswith("-01")


def test_moments_out_of_range_cost_no_request() -> None:
    with serve(good) as server:
        for days in (-94, 17):
            assert forecast(server.url).reading(NOW + timedelta(days=days), *HERE) == Weather()
        assert archive(server.url).reading(NOW - timedelta(days=3), *HERE) == Weather()
        assert archive(server.url).reading(datetime(1939, 5, 1, tzinfo=UTC), *HERE) == Weather()
        assert not server.asked
        assert archive(server.url).reading(NOW - timedelta(days=5), *HERE) != Weather()
    assert server.asked[0].query["end_date"] == "2024-06-10"  # not after what the archive has


def test_a_forecast_is_renewed_and_a_settled_month_is_not() -> None:
    clock = [NOW]
    with serve(good) as server:
        live = forecast(server.url, lambda: clock[0])
        past = OpenMeteo.archive(server.url, patience=QUICK, now=lambda: clock[0])
        for _ in range(3):
            live.reading(clock[0], *HERE)
            past.reading(datetime(2023, 5, 5, tzinfo=UTC), *HERE)
            clock[0] += timedelta(minutes=40)
    dates = [asked.query["start_date"] for asked in server.asked]
    assert dates.count("2024-06-15") == 2
    assert dates.count("2023-05-01") == 1


def test_a_commercial_key_is_sent_and_never_shown() -> None:
    with serve(lambda asked: Answer("no", 403)) as server:
        provider = forecast(server.url, api_key="s3cret")
        with pytest.raises(WeatherError) as caught:
            provider.reading(NOW, *HERE)
        assert server.asked[0].query["apikey"] == "s3cret"
    assert "s3cret" not in f"{caught.value} {provider}"


def test_missing_and_impossible_values_are_unknown() -> None:
    def gaps(asked: Asked) -> Answer:
        answer = hourly(asked.query)
        answer["hourly"]["temperature_2m"] = [None] * 24
        answer["hourly"]["pressure_msl"] = [float("nan")] * 24
        answer["hourly"]["wind_speed_10m"] = ["fast", 1e9, {}] * 8
        answer["hourly"]["precipitation"][9] = None
        return Answer(json.dumps(answer))

    with serve(gaps) as server:
        weather = forecast(server.url).reading(NOW, *HERE)
    assert [value.known for value in weather] == [False, True, True, False, False]
    assert weather.rainfall_mm.observed_at == NOW.replace(hour=10, minute=0)  # the next nearest


def changed(**changes: Any) -> Callable[[Asked], Answer]:
    return lambda asked: Answer(json.dumps(hourly(asked.query) | changes))


def short() -> dict[str, Any]:
    """An answer with one value too few."""
    answer = hourly({"start_date": "2024-06-15", "end_date": "2024-06-15", "timezone": "GMT"})
    answer["hourly"]["pressure_msl"].pop()
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        *(lambda asked, text=text: Answer(text) for text in
          ("<html>", "", b"\xff\xfe{", "[" * 100_000, "[]", "{}", json.dumps(short()))),
        changed(hourly={"time": "x"}),
        changed(hourly=None),
        changed(hourly={"time": ["2024-06-15T00:00"]}),
        changed(utc_offset_seconds=28800),
        changed(hourly_units={"temperature_2m": "°F"}),
        changed(error=True, reason="Parameter 'start_date' is out of allowed range"),
    ],
)  # fmt: skip
def test_answers_that_are_no_weather(answer: Callable[[Asked], Answer]) -> None:
    with serve(answer) as server, pytest.raises(WeatherError) as caught:
        forecast(server.url).reading(NOW, *HERE)
    assert server.url in str(caught.value)
    assert "\n" not in str(caught.value)
