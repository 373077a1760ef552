"""The service with a policy, a router and a weather provider of somebody else."""

import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.threshold import ClinicalThreshold, ConstantThreshold
from ideal_dispatch.errors import InputError, TrafficServiceError
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.polling import weather_provider
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.solver.messages import KnownUnits, KnownWeather
from ideal_dispatch.service.solver.solver import Solver
from ideal_dispatch.traffic.source import RouteQuote
from tests.service_town import Town
from tests.unit.service.solver.test_adviser import completed

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_policy"
TABLES: dict[str, Any] = {
    "policy": {"kind": "my_dispatch.policies:CloseRace", "threshold": -600},
    "traffic": {"kind": "my_dispatch.traffic:Timetable", "options": {"rush_factor": 2.0}},
    "weather": {"source": "my_dispatch.weather:Thermometer", "options": {"temperature_c": 31}},
}


class Recorded:
    def __init__(self, recorded: Any) -> None:
        self.quote = recorded.quote


class SlowToBegin:
    """A source that answers no question of the first call, and then by free flow."""

    asked: ClassVar[set[datetime]] = set()

    def __init__(self, network: RoadNetwork) -> None:
        self.network = network

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        self.asked.add(at)
        if len(self.asked) == 1:
            raise TrafficServiceError("not yet")
        times = self.network.free_flow_times_s
        path = self.network.shortest_path(times, origin, destination)
        return RouteQuote(path, path.time_s(times), 0.0, math.nan, math.nan, at, math.nan)


@pytest.fixture
def settings(town: Town, monkeypatch: pytest.MonkeyPatch) -> ServiceSettings:
    monkeypatch.syspath_prepend(EXAMPLE)
    return town.settings("own.toml", **TABLES)


def test_advice_by_a_policy_and_a_router_of_ones_own(settings: ServiceSettings, town: Town) -> None:
    assets = load_assets(settings)
    adviser = Adviser(assets, settings)

    def advice(**changes: Any) -> dict[str, Any]:
        call = RecommendationRequest.model_validate(town.call("x", 65, **changes)).call()
        return adviser.advise(call, KnownUnits({}, None), KnownWeather(), time.monotonic() + 60.0)

    said = advice()
    completed(said)  # or breaks the form of the API
    assert said["decision"] == "send_second"
    for part in ("primary", "second"):  # the policy tells neither: they are the quotes
        assert said["nominal"][f"{part}_s"] > 0.0
        assert said[part]["route"]["quoted_s"] == round(said["nominal"][f"{part}_s"], 1)
    assert advice(threshold_s=600.0)["decision"] == "primary_only"
    assert set(assets.checksums) == {"model", "network", "depots"}
    assets.traffic.close()


def test_the_threshold_of_ones_own_class(settings: ServiceSettings, town: Town) -> None:
    own = town.settings("default.toml", policy={"kind": "my_dispatch.policies:CloseRace"})
    assert load_assets(own).policy.threshold == ConstantThreshold(-45.0)  # type: ignore[attr-defined]
    usual = load_assets(town.settings("interval.toml", policy={"kind": "interval"}))
    assert isinstance(usual.policy.threshold, ClinicalThreshold)  # type: ignore[attr-defined]


def test_a_source_that_is_slow_to_begin_is_asked_again(town: Town) -> None:
    kind = "tests.unit.service.test_plugins:SlowToBegin"
    settings = town.settings("slow.toml", traffic={"kind": kind})
    solver = Solver(settings, load_assets(settings))
    solver._prepare()
    assert (solver.traffic, len(SlowToBegin.asked)) == ("ready", 2)
    solver.close()


def test_weather_of_ones_own(settings: ServiceSettings) -> None:
    provider = weather_provider(settings)
    assert provider is not None
    reading = provider.reading(datetime.now(UTC), 114.0, 22.0)
    assert (reading.temperature_c.value, reading.rainfall_mm.known) == (31.0, False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"policy": {"kind": "my_dispatch.policies:Far"}}, "policy.kind .* no attribute 'Far'"),
        ({"policy": {**TABLES["policy"], "nights": 3}}, "policy.nights is not known; did you mean"),
        ({"traffic": {"kind": "my_dispatch.weather:Thermometer"}}, "not a TrafficSource"),
        (
            {"traffic": {**TABLES["traffic"], "options": {"rush_factors": 2.0}}},
            "wrong.toml: traffic.options.rush_factors is not known; did you mean rush_factor",
        ),
        (
            {"traffic": {"kind": "tests.unit.service.test_plugins:Recorded"}},
            "wrong.toml: traffic.kind '.*:Recorded' needs `recorded`, which only a replay has",
        ),
    ],
)
def test_what_does_not_fit(
    settings: ServiceSettings, town: Town, table: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_assets(town.settings("wrong.toml", **table))
