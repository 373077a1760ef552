"""A small city to decide in: the grid with three depots and a model that was never trained."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.service.clock import SECOND, moment
from ideal_dispatch.service.deciding.assets import Closed, load_assets
from ideal_dispatch.service.deciding.engine import Advice, Adviser, Picture
from ideal_dispatch.service.deciding.weather import KnownWeather
from ideal_dispatch.service.requests import Location, Primary, RecommendationRequest
from ideal_dispatch.service.settings import ServiceSettings, Token
from ideal_dispatch.service.units import Unit
from ideal_dispatch.toml_tables import built
from tests.service_town import DEPOTS, Town

NOW = 1_772_330_400 * SECOND
"""A Sunday morning of 2026."""

SCENE = 65


@dataclass(frozen=True)
class SmallCity:
    """A folder with everything that settings name."""

    folder: Path
    network: RoadNetwork

    def settings(self, **tables: Any) -> ServiceSettings:
        """The settings with other values in some tables."""
        given: dict[str, Any] = {
            "city": {"name": "Gridtown", "network": "town.network", "depots": "depots.csv",
                     "time_zone": "Asia/Hong_Kong", "country": "HK"},
            "model": {"folder": "model"},
            "traffic": {"kind": "recorded", "file": "town.traffic"},
            "audit": {"url": "sqlite:///town.db"},
        }  # fmt: skip
        for table, values in tables.items():
            given[table] = {**given.get(table, {}), **values}
        token = Token("t", "admin", "0" * 64)
        return built(ServiceSettings, given, "", tokens=(token,), folder=self.folder, demo=False)

    def adviser(self, **tables: Any) -> Adviser:
        return Adviser(load_assets(self.settings(**tables)))

    def place(self, node: int) -> Location:
        return Location(lon=float(self.network.lon[node]), lat=float(self.network.lat[node]))

    def unit(self, id: str = "A1", depot: str = "D0", **more: Any) -> Unit:  # noqa: A002
        """A unit at its station, or seen at a ``node`` ``ago_s`` ago if these are given."""
        node, ago_s = more.pop("node", None), more.pop("ago_s", 0.0)
        since = NOW - round(more.pop("since_s", 0.0) * SECOND)
        if node is not None:
            place = self.place(node)
            seen_at = NOW - round(ago_s * SECOND)
            more = {"status": "available", "lon": place.lon, "lat": place.lat, "seen_at": seen_at,
                    **more}  # fmt: skip
        told = {"status": "at_station", "since": since, "status_at": since, "told_at": NOW}
        return Unit(id, depot, **{**told, **more})

    def call(self, node: int = SCENE, ago_s: float = 0.0, **more: Any) -> RecommendationRequest:
        """A call at a node that came in so long ago."""
        if more.get("primary") is not None:
            more["primary"] = Primary(**more["primary"])
        received_at = moment(NOW - round(ago_s * SECOND))
        return RecommendationRequest(
            call_id="c", received_at=received_at, location=self.place(node), **more
        )

    @property
    def fleet(self) -> tuple[Unit, ...]:
        """Two units at every depot."""
        return tuple(self.unit(f"{name}-{n}", name) for name in DEPOTS for n in (1, 2))


@pytest.fixture(scope="session")
def city(town: Town) -> SmallCity:
    return SmallCity(town.folder, town.network)


@pytest.fixture(scope="session")
def adviser(city: SmallCity) -> Adviser:
    return city.adviser()


Advise = Callable[..., Advice]


@pytest.fixture
def advise(city: SmallCity, adviser: Adviser) -> Advise:
    def asked(
        units: Sequence[Unit] | None = None,
        node: int = SCENE,
        closures: tuple[Closed, ...] = (),
        **more: Any,
    ) -> Advice:
        picture = Picture(NOW, city.fleet if units is None else tuple(units), closures)
        due = time.monotonic() + 60.0
        return adviser.advise(city.call(node, **more), picture, KnownWeather(), due)

    return asked


def codes(advice: Advice) -> list[str]:
    """All codes of what an advice says against itself."""
    return [code for one in advice.fields["degraded"] for code in (one["code"], *one["also"])]
