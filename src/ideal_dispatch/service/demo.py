"""The service without any configuration: the embedded city, for a look around."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ideal_dispatch.service.assets import Assets, assemble
from ideal_dispatch.service.auth import new_token
from ideal_dispatch.service.live_traffic import ForecastTraffic
from ideal_dispatch.service.recorded_live import RecordedLive
from ideal_dispatch.service.settings import (
    AuditTable,
    CityFiles,
    ModelFiles,
    Server,
    ServiceSettings,
    Token,
    TrafficTable,
    UnitsTable,
    state_folder,
)
from ideal_dispatch.traffic.recording import RecordedTraffic

RUSH_HOURS = ((7, 10), (16, 20))
"""Local hours that are replayed."""


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """Settings and city of a demonstration, and the token to print."""

    settings: ServiceSettings
    assets: Assets
    token: str


def demo() -> Demo:
    """Port Almery with its shipped model, on its recorded training days; a token of its own."""
    from ideal_dispatch.cities import (
        TRAINING_DAYS,
        harbour_city,
        harbour_model_folder,
        harbour_traffic,
    )
    from ideal_dispatch.context import Calendar

    city, folder, shipped = harbour_city(), state_folder(), harbour_model_folder()
    token, hashed = new_token()
    settings = ServiceSettings(
        city=CityFiles("", "", city.time_zone, city.country, city.name),
        model=ModelFiles(str(shipped), str(shipped / "gain.json")),
        server=Server(public_metrics=True),
        policy={"threshold": {"cost": 0.002}, "method": "multistart"},
        traffic=TrafficTable("recorded", "harbour.traffic"),
        units=UnitsTable(default=2),
        audit=AuditTable("sqlite:///demo.db", "demo-spool"),
        tokens=(Token("demo", "admin", hashed),),
        folder=folder,
        demo=True,
    )

    def recording() -> RecordedTraffic:
        """Days after the training days are for tests alone."""
        return harbour_traffic(city).only(range(TRAINING_DAYS))

    calendar = Calendar(city.time_zone, city.country)
    assets = assemble(settings, city.name, city.network, city.depots, calendar, recording)
    return Demo(settings, replace(assets, traffic=_rush_hours(assets, recording)), token)


def _rush_hours(assets: Assets, recording: Callable[[], RecordedTraffic]) -> RecordedLive:
    """Traffic worth looking at, whatever the hour."""
    forecast = ForecastTraffic(assets.network, assets.calendar, assets.model)
    return RecordedLive(assets.network, recording, forecast, RUSH_HOURS)
