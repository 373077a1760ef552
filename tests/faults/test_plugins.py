"""Plug-ins that fail or hand over odd values: every call is answered, and the log says why."""

from pathlib import Path
from typing import Any

import pytest
from ideal_dispatch.service.solver.pool import SolverPool

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.app import create_app
from tests.faults.service_faults import advised, codes, pooled, words
from tests.service_town import Town, application, local
from tests.waiting import wait_for

POLICY = """
import sys
from dataclasses import dataclass

import numpy as np

from ideal_dispatch import Assignment, Decision


@dataclass(frozen=True)
class Counting:
    '''Sends a second, whose steps are counted by NumPy.'''

    name: str = "counting"

    def decide(self, situation, rng):
        first, second, *_ = range(len(situation.stations))
        primary = situation.sent or Assignment(first, situation.quote(first).path)
        other = second if primary.station == first else first
        path = situation.quote(other).path
        follow = np.int64(1)
        return Decision(self.name, primary, Assignment(other, path, follow), 9.0, 0.0, "counted")


class Leaving:
    '''Ends the program.'''

    name = "leaving"

    def decide(self, situation, rng):
        sys.exit("usage: leaving")
"""
TRAFFIC = """
class Refused:
    def quote(self, origin, destination, at):
        raise ConnectionRefusedError("port 1")
"""
WEATHER = """
from datetime import timedelta, tzinfo

from ideal_dispatch import Weather, WeatherValue


class Own(tzinfo):
    '''A time zone that another process cannot import.'''

    def utcoffset(self, at):
        return timedelta(hours=8)

    def dst(self, at):
        return timedelta(0)


class Roof:
    def reading(self, at, lon, lat):
        return Weather(temperature_c=WeatherValue(20.0, "roof", "here", at.astimezone(Own())))


class Broken:
    def reading(self, at, lon, lat):
        return {}["temperature"]


class Silent:
    def reading(self, at, lon, lat):
        return None
"""
ONE: dict[str, Any] = {"server": {"solvers": 1}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug-ins in the working directory, where the service finds them."""
    modules = {
        "odd_policy": POLICY, "odd_traffic": TRAFFIC, "odd_weather": WEATHER,
        "odd_script": "import sys\nsys.exit('usage: odd_script FILE')\n",
    }  # fmt: skip
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("policy", "logged"),
    [
        ("Counting", "unknown type: <class 'numpy.int64'>"),
        ("Leaving", "SystemExit: usage: leaving"),
    ],
)
def test_a_policy_that_no_answer_can_be_made_of(
    town: Town, policy: str, logged: str, capfd: pytest.CaptureFixture[str]
) -> None:
    table = {"kind": f"odd_policy:{policy}"}
    with pooled(town.settings(f"{policy}.toml", policy=table, **ONE)) as (client, pool):
        made = advised(client, town.call(policy))
        assert codes(made)[0] == "internal_error"
        assert "it was logged" in words(made, "internal_error")
        assert pool.restarts == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if logged in line]
    assert any(f'"call_id": "{policy}"' in line for line in lines)


def test_a_traffic_source_that_fails(town: Town, capfd: pytest.CaptureFixture[str]) -> None:
    traffic = {"kind": "odd_traffic:Refused", "file": ""}
    with pooled(town.settings("refused.toml", traffic=traffic, **ONE)) as (client, pool):
        made = advised(client, town.call("refused"))
        assert made.decision != "no_advice"
        assert words(made, "traffic_unavailable") == (
            "the router failed (ConnectionRefusedError); it was logged; the forecast is used"
        )
        wait_for(lambda: pool.traffic.startswith("the router did not answer"))
    assert "ConnectionRefusedError: port 1" in capfd.readouterr().err


def test_weather_in_types_of_its_own(town: Town) -> None:
    """The solver's process loads no weather provider, and could not import them."""
    weather = {"source": "odd_weather:Roof"}
    with pooled(town.settings("roof.toml", weather=weather, **ONE)) as (client, pool):
        wait_for(lambda: not client.service.weather.known().problem)
        made = advised(client, town.call("roof"))
        assert made.decision != "no_advice"
        assert made.data_ages.weather_s is not None
        assert pool.restarts == 0


@pytest.mark.parametrize(("name", "why"), [("Broken", "KeyError"), ("Silent", "TypeError")])
def test_a_weather_provider_that_fails_is_named(
    town: Town, name: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    weather = {"source": f"odd_weather:{name}"}
    with local(application(town.settings(f"{name}.toml", weather=weather))) as client:
        wait_for(lambda: name in client.service.weather.known().problem)
        made = advised(client, town.call(name))
        assert made.decision != "no_advice"
        said = words(made, "weather_unavailable")
        assert f"provider {name} failed ({why}); it was logged" in said
    assert "weather: unexpected" in caplog.text


def test_a_module_that_ends_the_program(town: Town) -> None:
    settings, pool = (
        town.settings("script.toml", policy={"kind": "odd_script:Policy"}),
        SolverPool(),
    )
    try:
        pool.begin(settings)
        with pytest.raises(InputError, match=r"cannot be loaded \(SystemExit\('usage: odd_script"):
            create_app(settings, pool)
    finally:
        pool.close()
