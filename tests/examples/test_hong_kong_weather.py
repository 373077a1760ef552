"""The weather plug-in of examples/hong_kong_weather.py, against a stand-in of the Observatory."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.context import Weather, WeatherProvider
from ideal_dispatch.context.weather import PATIENCE, OutdatedWeatherError
from ideal_dispatch.plugins import WEATHER, load_plugin
from tests.stand_in import Answer, Server, serve

NOW = datetime(2024, 6, 15, 2, 20, tzinfo=UTC)  # 10:20 in Hong Kong
WAN_CHAI, SHA_TIN = (114.175, 22.277), (114.195, 22.385)
QUICK = replace(PATIENCE, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)
REPORT: dict[str, Any] = {
    "rainfall": {
        "data": [
            {"place": "Central &amp; Western District", "max": 21, "min": 2, "main": "FALSE"},
            {"place": "Wan Chai", "max": 12, "min": 6, "main": "FALSE"},
            {"place": "Sha Tin", "max": 3, "main": ""},
        ],
        "endTime": "2024-06-15T09:45:00+08:00",
    },
    "temperature": {
        "data": [{"place": "Happy Valley", "value": 31}, {"place": "Sha Tin", "value": 29}],
        "recordTime": "2024-06-15T10:00:00+08:00",
    },
    "humidity": {
        "recordTime": "2024-06-15T10:00:00+08:00",
        "data": [{"value": 86, "place": "Hong Kong Observatory"}],
    },
    "updateTime": "2024-06-15T10:02:00+08:00",
}
WIND = """\ufeffDate time,Automatic Weather Station,10-Minute Mean Wind Direction(Compass points),\
10-Minute Mean Speed(km/hour),10-Minute Maximum Gust(km/hour)
202406151010,Central Pier,Northwest,16,21
202406151010,Star Ferry,N/A,N/A,N/A
202406151010,Sha Tin,Calm,Calm,2,
202406151010,Waglan
"""
PRESSURE = """\ufeffDate time,Automatic Weather Station,Mean Sea Level Pressure(hPa)
202406151010,HK Observatory,1006.1
202406151010,Sha Tin,M
"""


@pytest.fixture(autouse=True)
def examples_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    yield
    sys.modules.pop("hong_kong_weather", None)


def provider(server: Server, now: Callable[[], datetime] = lambda: NOW) -> WeatherProvider:
    return load_plugin(
        WEATHER, "hong_kong_weather:HongKongObservatory", {}, "weather.source",
        WeatherProvider,  # type: ignore[type-abstract]
        url=server.url, now=now, patience=QUICK,
    )  # fmt: skip


def says(report: Any = REPORT, wind: str = WIND, status: int = 200) -> Callable[[Any], Answer]:
    def answer(asked: Any) -> Answer:
        if asked.path == "/opendata/weather.php":
            return Answer(json.dumps(report), status)
        return Answer(wind if "wind" in asked.path else PRESSURE, status)

    return answer


def test_five_variables_from_three_documents() -> None:
    with serve(says()) as server:
        observatory = provider(server)
        weather = observatory.reading(NOW, *WAN_CHAI)
        assert observatory.reading(NOW, *WAN_CHAI) == weather
        assert len(server.asked) == 3  # and not again for a while
        there = observatory.reading(NOW, *SHA_TIN)
        assert observatory.reading(NOW - timedelta(days=1), *WAN_CHAI) == Weather()
    assert [value.value for value in weather] == [31, 9, 86, 16, 1006.1]
    assert [value.station for value in weather] == [
        "Happy Valley", "Wan Chai", "Hong Kong Observatory", "Central Pier", "HK Observatory",
    ]  # fmt: skip
    assert [value.age(NOW) for value in weather] == [
        timedelta(minutes=m) for m in (20, 35, 20, 10, 10)
    ]
    assert (there.wind_kmh.value, there.rainfall_mm.value) == (0.0, 3)  # calm is no wind
    assert there.pressure_hpa.station == "HK Observatory"


@pytest.mark.parametrize(
    ("bad", "known"),
    [
        (says(report=[]), [False, False, False, True, True]),
        (says(REPORT | {"humidity": {"data": 3}}), [False, False, False, True, True]),
        (says(wind="a,b"), [True, True, True, False, True]),
    ],
)
def test_a_bad_document_leaves_the_others(bad: Callable[[Any], Answer], known: list[bool]) -> None:
    with serve(bad) as server, pytest.raises(OutdatedWeatherError) as caught:
        provider(server).reading(NOW, *WAN_CHAI)
    assert [value.known for value in caught.value.known] == known


def test_what_was_said_before_an_outage_still_counts() -> None:
    clock, answer = [NOW], [says()]
    with serve(lambda asked: answer[0](asked)) as server:
        observatory = provider(server, lambda: clock[0])
        before = observatory.reading(NOW, *WAN_CHAI)
        clock[0], answer[0] = NOW + timedelta(minutes=30), says(status=503)
        with pytest.raises(OutdatedWeatherError) as caught:
            observatory.reading(clock[0], *WAN_CHAI)
        assert caught.value.known == before
