"""The service with a policy, a router and a weather provider of somebody else."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.dispatch.threshold import ClinicalThreshold, ConstantThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.polling import weather_provider
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.solver.messages import KnownUnits, KnownWeather
from tests.service_town import Town
from tests.unit.service.solver.test_adviser import completed

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_policy"
TABLES: dict[str, Any] = {
    "policy": {"kind": "my_dispatch.policies:CloseRace", "threshold": -600},
    "traffic": {"kind": "my_dispatch.traffic:Timetable", "options": {"rush_factor": 2.0}},
    "weather": {"source": "my_dispatch.weather:Thermometer", "options": {"temperature_c": 31}},
}


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
    assert advice(threshold_s=600.0)["decision"] == "primary_only"
    assert set(assets.checksums) == {"model", "network", "depots"}
    assets.traffic.close()


def test_the_threshold_of_ones_own_class(settings: ServiceSettings, town: Town) -> None:
    own = town.settings("default.toml", policy={"kind": "my_dispatch.policies:CloseRace"})
    assert load_assets(own).policy.threshold == ConstantThreshold(-45.0)  # type: ignore[attr-defined]
    usual = load_assets(town.settings("interval.toml", policy={"kind": "interval"}))
    assert isinstance(usual.policy.threshold, ClinicalThreshold)  # type: ignore[attr-defined]


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
    ],
)
def test_what_does_not_fit(
    settings: ServiceSettings, town: Town, table: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_assets(town.settings("wrong.toml", **table))
