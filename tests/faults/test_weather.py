"""Weather that is stale, down or garbage never keeps a call waiting."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.service_town import Local, Town, application, codes, local, words
from tests.stand_in import Answer, serve
from tests.waiting import wait_for

HOURLY = {
    "temperature_2m": "°C", "precipitation": "mm", "relative_humidity_2m": "%",
    "wind_speed_10m": "km/h", "pressure_msl": "hPa",
}  # fmt: skip


def forecast(hours_ago: float = 0.0) -> str:
    """What Open-Meteo says, with one hour alone."""
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    times = [at.strftime("%Y-%m-%dT%H:%M")]
    hourly = {"time": times, **{name: [20.0 if "msl" not in name else 1000.0] for name in HOURLY}}
    return json.dumps({"utc_offset_seconds": 0, "hourly": hourly, "hourly_units": HOURLY})


@contextmanager
def weathered(town: Town, answer: Answer, stale_s: float = 5400.0) -> Iterator[Local]:
    with serve(lambda _: answer) as server:
        url = f"{server.url}/v1?apikey=s3cret"
        weather = {"source": "open-meteo", "url": url, "every_s": 1.0, "stale_s": stale_s}
        with local(application(town.settings("weather.toml", weather=weather))) as client:
            client.report()
            yield client


@pytest.mark.parametrize(("hours_ago", "stale_s"), [(0.0, 5400.0), (0.9, 60.0)])
def test_weather_counts_until_it_is_stale(town: Town, hours_ago: float, stale_s: float) -> None:
    with weathered(town, Answer(forecast(hours_ago)), stale_s) as client:
        wait_for(lambda: not client.service.weather.problem)
        made = client.advice(town.call(f"weather {stale_s}"))
        assert made["decision"] != "no_advice"
        assert "weather_unavailable" not in codes(made)
        assert ("weather_stale" in codes(made)) is (stale_s == 60.0)
        assert made["made_with"]["ages"]["weather_s"] < 3600


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("down", Answer("who are you? apikey=s3cret", 401)),
        ("hanging", Answer(forecast(), delay_s=60.0)),
        ("dripping", Answer(forecast(), drip_s=0.2)),
        ("garbage", Answer("<html>maintenance</html>")),
        ("nonsense", Answer('{"hourly": {"time": ["x"]}, "hourly_units": []}')),
    ],
)
def test_weather_down_or_garbage(town: Town, name: str, answer: Answer) -> None:
    """Neither answers nor health repeat the key in the address."""
    with weathered(town, answer) as client:
        made = client.advice(town.call(name))
        assert made["decision"] != "no_advice"
        assert "s3cret" not in words(made, "weather_unavailable")
        health = client.get("/readyz")
        assert health.status_code == 200
        assert health.json()["parts"]["weather"] != "ready"
        assert "127.0.0.1" not in health.text, "strangers read it"


def test_weather_refuses_connections(town: Town) -> None:
    weather = {"source": "open-meteo", "url": "http://127.0.0.1:1", "every_s": 1.0}
    with local(application(town.settings("refused.toml", weather=weather))) as client:
        client.report()
        wait_for(lambda: "no answer" in client.service.weather.problem)
        made = client.advice(town.call("refused"))
        assert made["decision"] != "no_advice"
        assert made["made_with"]["ages"]["weather_s"] is not None  # the recording has its own


def test_context_far_outside_training(town: Town) -> None:
    context = {"weather": {"temperature_c": -80.0, "rainfall_mm": 499.0}}
    with local(application(town.settings("outside.toml"))) as client:
        client.report()
        made = client.advice(town.call("outside", context=context))
        assert made["decision"] != "no_advice"
        assert "unusual_context" in codes(made)
