"""The service without any configuration: the embedded city, for a look around."""

import json

from ideal_dispatch.cities import HARBOUR_MODEL, HARBOUR_STEM
from ideal_dispatch.service import settings as tables
from ideal_dispatch.service.tokens import new_token


def demo() -> tuple[tables.ServiceSettings, str]:
    """Settings of Port Almery with its shipped model, on its training days; and a token for it."""
    city = json.loads(HARBOUR_STEM.with_suffix(".json").read_text(encoding="utf-8"))
    token, hashed = new_token()
    settings = tables.ServiceSettings(
        city=tables.CityFiles("", "", city["time_zone"], city["country"], city["name"]),
        model=tables.ModelFiles(str(HARBOUR_MODEL), str(HARBOUR_MODEL / "response_times.json")),
        server=tables.Server(public_metrics=True, log_level="warning"),
        policy={"threshold": {"cost": 0.002}, "method": "multistart"},
        traffic=tables.TrafficTable("recorded", "harbour.traffic"),
        units=tables.UnitsTable(default=2),
        audit=tables.AuditTable("sqlite:///demo.db", "demo-spool"),
        tokens=(tables.Token("demo", "admin", hashed),),
        folder=tables.state_folder(),
        demo=True,
    )
    return settings, token
