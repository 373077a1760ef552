"""The service without any configuration: the embedded city, for a look around."""

import json
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ideal_dispatch.cities import HARBOUR_MODEL, HARBOUR_STEM
from ideal_dispatch.service import settings as tables
from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.settings import new_token

MORNING = datetime.fromisoformat("2025-03-19T07:30:00+08:00")
"""The rush hour of a training day that was recorded from midnight to midnight."""

_AT_HAND_S = 10.0  # real seconds in which a person can answer an advice, and in which news are new


def demo() -> tuple[tables.ServiceSettings, str]:
    """Settings of Port Almery with its shipped model, on its training days; and a token for it."""
    city = json.loads(HARBOUR_STEM.with_suffix(".json").read_text(encoding="utf-8"))
    token, hashed = new_token()
    settings = tables.ServiceSettings(
        city=tables.CityFiles("", "", city["time_zone"], city["country"], city["name"]),
        model=tables.ModelFiles(str(HARBOUR_MODEL)),
        server=tables.Server(public_metrics=True, log_level="warning"),
        policy={"threshold": {"cost": 0.002}, "method": "multistart"},
        traffic=tables.TrafficTable("recorded", "harbour.traffic"),
        audit=tables.AuditTable("sqlite:///port_almery.db"),
        tokens=(tables.Token("demo", "admin", hashed),),
        folder=tables.state_folder(),
        demo=True,
    )
    return settings, token


def living(speed: float) -> tuple[tables.ServiceSettings, str]:
    """The same for a player, on a clock of that speed, with a temporary record.

    An advice holds, and a position is new, for as long as a person at the desk needs to act.
    """
    settings, token = demo()
    server, units = settings.server, settings.units
    scaled_s = _AT_HAND_S * speed
    return replace(
        settings,
        server=replace(server, expiry_s=max(server.expiry_s, scaled_s)),
        units=replace(units, position_stale_s=max(units.position_stale_s, scaled_s)),
        clock=ClockTable(MORNING, datetime.now(UTC), speed),
        folder=Path(tempfile.mkdtemp(prefix="ideal-simulate-")),
    ), token
