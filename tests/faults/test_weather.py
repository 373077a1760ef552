"""Weather that is stale, down or garbage never keeps a call waiting."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.faults.service_faults import advised, codes, words
from tests.service_town import Local, Town, application, local
from tests.stand_in import Answer, Asked, serve
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


def weathered(
    town: Town,
    name: str,
    answer: Callable[[Asked], Answer],
    check: Callable[[Local], None],
    stale_s: float = 5400.0,
) -> None:
    with serve(answer) as server:
        weather = {
            "source": "open-meteo", "url": server.url, "every_s": 1.0, "stale_s": stale_s,
        }  # fmt: skip
        with local(application(town.settings(name, weather=weather))) as client:
            check(client)


def test_good_weather_for_comparison(town: Town) -> None:
    def check(client: Local) -> None:
        wait_for(lambda: not client.service.weather.known().problem)
        made = advised(client, town.call())
        assert not {"weather_unavailable", "weather_stale"} & set(codes(made))
        assert made.data_ages.weather_s is not None
        assert made.data_ages.weather_s < 3600

    weathered(town, "fine.toml", lambda _: Answer(forecast()), check)


def test_weather_stale(town: Town) -> None:
    """A reading older than the settings allow is known, and left out."""

    def check(client: Local) -> None:
        wait_for(lambda: not client.service.weather.known().problem)
        made = advised(client, town.call())
        assert "weather_stale" in codes(made)
        assert made.decision != "no_advice"
        assert not any(value.known for value in client.service.weather.known().weather)

    weathered(town, "stale.toml", lambda _: Answer(forecast(0.9)), check, stale_s=60.0)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("down", Answer("", 500)),
        ("hanging", Answer(forecast(), delay_s=60.0)),
        ("dripping", Answer(forecast(), drip_s=0.2)),
        ("garbage", Answer("<html>maintenance</html>")),
        ("nonsense", Answer('{"hourly": {"time": ["x"]}, "hourly_units": []}')),
    ],
)
def test_weather_down_or_garbage(town: Town, name: str, answer: Answer) -> None:
    def check(client: Local) -> None:
        made = advised(client, town.call())
        assert made.decision != "no_advice"
        assert "weather_unavailable" in codes(made)
        assert client.get("/readyz").status_code == 200

    weathered(town, f"{name}.toml", lambda _: answer, check)


def test_weather_that_fails_tells_no_keys(town: Town) -> None:
    """An address of the settings may hold a key; neither answers nor health repeat it."""
    with serve(lambda _: Answer("who are you? apikey=s3cret", 401)) as server:
        weather = {"source": "open-meteo", "url": f"{server.url}/v1?apikey=s3cret", "every_s": 1.0}
        with local(application(town.settings("key.toml", weather=weather))) as client:
            problem = client.service.weather.known
            wait_for(lambda: "401" in problem().problem)
            made = advised(client, town.call())
            said = words(made, "weather_unavailable")
            assert "HTTP 401" in said
            assert "s3cret" not in said
            health = client.get("/healthz").json()  # strangers read it: no address either
            assert health["parts"]["weather"] == "not up to date, answers say why"


def test_weather_refuses_connections(town: Town) -> None:
    weather = {"source": "hong-kong-observatory", "url": "http://127.0.0.1:1", "every_s": 1.0}
    with local(application(town.settings("refused.toml", weather=weather))) as client:
        wait_for(lambda: "no answer" in client.service.weather.known().problem)
        made = advised(client, town.call())
        assert made.decision != "no_advice"
        said = words(made, "weather_unavailable")
        assert "/opendata/weather.php: no answer" in said
        assert "(and 2 more)" in said  # of three documents
        assert made.data_ages.weather_s is not None  # the recording has its own


def test_context_far_outside_training(town: Town) -> None:
    context = {"weather": {"temperature_c": -80.0, "rainfall_mm": 499.0}}
    with local(application(town.settings("outside.toml"))) as client:
        made = advised(client, town.call(context=context))
        assert made.decision != "no_advice"
        assert "unusual_context" in codes(made)
        assert "unlike anything in training" in words(made, "unusual_context")
