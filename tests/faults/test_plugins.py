"""Plug-ins that fail or hand over odd values: every call is answered, and the log says why."""

from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.deciding.assets import load_assets
from tests.service_town import Town, application, codes, local, words
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
class Broken:
    def reading(self, at, lon, lat):
        return {}["temperature"]


class Silent:
    def reading(self, at, lon, lat):
        return None
"""


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


@pytest.mark.parametrize("policy", ["Counting", "Leaving"])
def test_a_policy_that_no_answer_can_be_made_of(
    town: Town, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = town.settings(f"{policy}.toml", policy={"kind": f"odd_policy:{policy}"})
    with local(application(settings)) as client:
        client.report()
        made = client.advice(town.call(policy))
        assert codes(made)[0] == "internal_error"
    assert any(policy in one.message and one.exc_info for one in caplog.records)


def test_a_traffic_source_that_fails(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    traffic = {"kind": "odd_traffic:Refused", "file": ""}
    with local(application(town.settings("refused.toml", traffic=traffic))) as client:
        client.report()
        made = client.advice(town.call("refused"))
        assert made["decision"] != "no_advice"
        assert "ConnectionRefusedError" in words(made, "traffic_unavailable")
        assert client.get("/healthz").json()["parts"]["traffic"] != "ready"
    assert "ConnectionRefusedError: port 1" in caplog.text


@pytest.mark.parametrize(("name", "why"), [("Broken", "KeyError"), ("Silent", "TypeError")])
def test_a_weather_provider_that_fails_is_named(
    town: Town, name: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    weather = {"source": f"odd_weather:{name}"}
    with local(application(town.settings(f"{name}.toml", weather=weather))) as client:
        client.report()
        wait_for(lambda: name in client.service.weather.problem)
        made = client.advice(town.call(name))
        assert made["decision"] != "no_advice"
        said = words(made, "weather_unavailable")
        assert name in said
        assert why in said
    assert any(one.exc_info for one in caplog.records)


def test_a_module_that_ends_the_program(town: Town) -> None:
    settings = town.settings("script.toml", policy={"kind": "odd_script:Policy"})
    with pytest.raises(InputError, match="odd_script"):
        load_assets(settings)
