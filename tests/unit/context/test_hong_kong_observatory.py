import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ideal_dispatch.context import FirstKnown, Weather, hong_kong_observatory
from ideal_dispatch.context.hong_kong_weather import _places
from ideal_dispatch.context.weather_stations import PATIENCE
from ideal_dispatch.errors import WeatherError
from tests.unit.context.stand_in import Answer, StandIn, stand_in

NOW = datetime(2024, 6, 15, 2, 20, tzinfo=UTC)  # 10:20 in Hong Kong
WAN_CHAI, SHA_TIN, NEW_YORK = (114.175, 22.277), (114.195, 22.385), (-74.0, 40.7)
QUICK = replace(PATIENCE, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)

REPORT: dict[str, Any] = {
    "rainfall": {
        "data": [
            {
                "unit": "mm",
                "place": "Central &amp; Western District",
                "max": 21,
                "min": 2,
                "main": "FALSE",
            },
            {"unit": "mm", "place": "Wan Chai", "max": 12, "min": 6, "main": "FALSE"},
            {"unit": "mm", "place": "Sha Tin", "max": 3, "main": ""},
        ],
        "startTime": "2024-06-15T08:45:00+08:00",
        "endTime": "2024-06-15T09:45:00+08:00",
    },
    "icon": [54],
    "uvindex": "",
    "warningMessage": "",
    "temperature": {
        "data": [
            {"place": "King's Park", "value": 30, "unit": "C"},
            {"place": "Happy Valley", "value": 31, "unit": "C"},
            {"place": "Sha Tin", "value": 29, "unit": "C"},
        ],
        "recordTime": "2024-06-15T10:00:00+08:00",
    },
    "humidity": {
        "recordTime": "2024-06-15T10:00:00+08:00",
        "data": [{"unit": "percent", "value": 86, "place": "Hong Kong Observatory"}],
    },
    "updateTime": "2024-06-15T10:02:00+08:00",
}
WIND = """\ufeffDate time,Automatic Weather Station,10-Minute Mean Wind Direction(Compass points),\
10-Minute Mean Speed(km/hour),10-Minute Maximum Gust(km/hour)
202406151010,Central Pier,Northwest,16,21
202406151010,Star Ferry,N/A,N/A,N/A
202406151010,North Point,////,////,
202406151010,Sha Tin,Calm,Calm,2,
202406151010,Tate's Cairn,Southwest,60,70
202406151010,Waglan
"""
PRESSURE = """\ufeffDate time,Automatic Weather Station,Mean Sea Level Pressure(hPa)
202406151010,HK Observatory,1006.1
202406151010,Sha Tin,M
202406151010,New Station,1010.0
"""


def says(
    report: Answer | dict[str, Any] | None = None,
    wind: Answer | str = WIND,
    pressure: Answer | str = PRESSURE,
) -> Callable[[str, dict[str, str]], Answer]:
    def answer(path: str, query: dict[str, str]) -> Answer:
        if path == "/opendata/weather.php" and query == {"dataType": "rhrread", "lang": "en"}:
            given = REPORT if report is None else report
            return given if isinstance(given, Answer) else Answer(json.dumps(given))
        tables = {
            "/hko_data/regional-weather/latest_10min_wind.csv": wind,
            "/hko_data/regional-weather/latest_1min_pressure.csv": pressure,
        }
        table = tables.get(path, Answer("not found", 404))
        return table if isinstance(table, Answer) else Answer(table)

    return answer


def observatory(server: StandIn, now: Callable[[], datetime] = lambda: NOW) -> FirstKnown:
    return hong_kong_observatory(server.url, patience=QUICK, now=now)


def test_five_variables_from_three_documents() -> None:
    with stand_in(says()) as server:
        provider = observatory(server)
        weather = provider.reading(NOW, *WAN_CHAI)
        assert provider.reading(NOW, *WAN_CHAI) == weather
        assert len(server.asked) == 3  # and not again for a while
    assert [value.value for value in weather] == [31, 9, 86, 16, 1006.1]
    assert [value.station for value in weather] == [
        "Happy Valley", "Wan Chai", "Hong Kong Observatory", "Central Pier", "HK Observatory",
    ]  # fmt: skip
    assert {value.source for value in weather} == {"hong kong observatory"}
    ages = [value.age(NOW) for value in weather]
    assert ages == [timedelta(minutes=m) for m in (20, 35, 20, 10, 10)]
    assert not provider.problems


def test_calm_is_no_wind_and_missing_marks_go_to_the_next_station() -> None:
    with stand_in(says()) as server:
        weather = observatory(server).reading(NOW, *SHA_TIN)
    assert (weather.wind_kmh.value, weather.wind_kmh.station) == (0.0, "Sha Tin")
    assert weather.rainfall_mm.value == 3
    assert weather.pressure_hpa.station == "HK Observatory"


def test_stations_of_unknown_place_come_last() -> None:
    lines = PRESSURE.splitlines()
    with stand_in(says(pressure="\n".join([lines[0], lines[3]]))) as server:
        assert observatory(server).reading(NOW, *SHA_TIN).pressure_hpa.station == "New Station"
    mountains = WIND.splitlines()
    with stand_in(says(wind="\n".join([mountains[0], mountains[5]]))) as server:
        assert observatory(server).reading(NOW, *SHA_TIN).wind_kmh.value == 60


def test_old_readings_are_unknown_and_past_calls_cost_no_request() -> None:
    with stand_in(says()) as server:
        provider = observatory(server, lambda: NOW + timedelta(minutes=100))
        weather = provider.reading(NOW + timedelta(minutes=100), *WAN_CHAI)
        assert weather == Weather()  # the server says what it said 100 minutes ago
        asked = len(server.asked)
        assert provider.reading(NOW - timedelta(days=30), *WAN_CHAI) == Weather()
        assert len(server.asked) == asked


def test_another_city_is_not_served() -> None:
    lines = PRESSURE.splitlines()
    with stand_in(says(pressure="\n".join(lines[:3]))) as server:
        assert observatory(server).reading(NOW, *NEW_YORK).temperature_c.known is False


@pytest.mark.parametrize("empty", ["", None, [], {"data": [], "recordTime": "2024-06-15T10:00"}])
def test_blocks_that_turn_empty(empty: object) -> None:
    with stand_in(says(REPORT | {"temperature": empty})) as server:
        provider = observatory(server)
        weather = provider.reading(NOW, *WAN_CHAI)
    assert [value.known for value in weather] == [False, True, True, True, True]
    assert not provider.problems


def test_entries_that_are_no_numbers() -> None:
    entries = [{"place": "Happy Valley", "value": v} for v in ("", "N/A", None, "NaN")]
    good = {"place": "Sha Tin", "value": "29"}
    under_repair = [{"place": "Wan Chai", "max": 99, "main": "TRUE"}]
    report = REPORT | {
        "temperature": REPORT["temperature"] | {"data": [*entries, good]},
        "rainfall": REPORT["rainfall"] | {"data": under_repair},
    }
    with stand_in(says(report)) as server:
        weather = observatory(server).reading(NOW, *WAN_CHAI)
    assert weather.temperature_c.station == "Sha Tin"
    assert not weather.rainfall_mm.known


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Answer("<html>", 200), "no weather of the Observatory (not JSON)"),
        (Answer("", 200), "no weather of the Observatory (not JSON)"),
        (Answer("[]", 200), "no weather of the Observatory (no updateTime)"),
        (Answer(json.dumps(REPORT)[:300], 200), "not JSON"),
        (Answer(json.dumps(REPORT | {"humidity": {"data": 3}}), 200), "no weather of the Obs"),
        (Answer(json.dumps(REPORT | {"rainfall": {"endTime": "now"}}), 200), "no weather of the"),
        (Answer("sorry", 500), "HTTP 500 'sorry'; given up after 2 of 2 tries"),
        (Answer("slow down", 429, {"Retry-After": "900"}), "it asks to wait 900 s; given up"),
        (Answer("gone", 404), "HTTP 404 'gone'; check the address"),
    ],
)
def test_a_bad_report_leaves_wind_and_pressure(bad: Answer, message: str) -> None:
    heard: list[WeatherError] = []
    with stand_in(says(bad)) as server:
        provider = hong_kong_observatory(
            server.url, patience=QUICK, now=lambda: NOW, on_problem=heard.append
        )
        weather = provider.reading(NOW, *WAN_CHAI)
    assert [value.known for value in weather] == [False, False, False, True, True]
    ((problem, count),) = provider.problems.items()
    assert message in problem
    assert "/opendata/weather.php" in problem
    assert count == len(heard) == 1


@pytest.mark.parametrize(
    "bad", ["", "a,b\n1,2\n", "<html></html>", WIND.replace("202406151010", "999999999999")]
)
def test_a_bad_table_leaves_the_rest(bad: str) -> None:
    with stand_in(says(wind=bad, pressure=Answer(b"\xff\xfe"))) as server:
        provider = observatory(server)
        weather = provider.reading(NOW, *WAN_CHAI)
    assert [value.known for value in weather] == [True, True, True, False, False]
    assert len(provider.problems) == 2


def test_what_was_said_before_an_outage_still_counts() -> None:
    clock, down = [NOW], [False]
    working = says()
    with stand_in(lambda p, q: Answer("", 503) if down[0] else working(p, q)) as server:
        provider = observatory(server, lambda: clock[0])
        before = provider.reading(NOW, *WAN_CHAI)
        clock[0], down[0] = NOW + timedelta(minutes=30), True
        during = provider.reading(clock[0], *WAN_CHAI)
        assert during == before
        assert during.temperature_c.age(clock[0]) == timedelta(minutes=50)
        assert len(provider.problems) == 3
        clock[0] = NOW + timedelta(hours=3)
        assert provider.reading(clock[0], *WAN_CHAI) == Weather()


def test_places_lie_in_hong_kong() -> None:
    for lon, lat in _places().values():
        assert 113.8 < lon < 114.45
        assert 22.15 < lat < 22.6
    assert sum(kind == "district" for kind, _ in _places()) == 18
