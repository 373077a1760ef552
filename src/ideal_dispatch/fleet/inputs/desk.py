"""What a dispatcher's desk knows of a fleet's city beside the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ideal_dispatch.context import Calendar
from ideal_dispatch.fleet.inputs.city_files import HARBOUR_FLEET
from ideal_dispatch.forecast import Model
from ideal_dispatch.toml_tables import read_toml, require

FIRST_YEAR = 2026
"""Every simulated year begins with the first of January of this one."""


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """The clock and the holidays of a city, and the model of its travel times if there is one."""

    calendar: Calendar
    model: Model | None = None


def desk_of(table: Mapping[str, Any], where: str, beside: Path) -> Desk:
    """The desk of the city that :func:`~ideal_dispatch.fleet.inputs.city_files.city_from` reads."""
    if "jemss" not in table and "network" not in table:
        table, beside = read_toml(HARBOUR_FLEET)["city"] | dict(table), HARBOUR_FLEET.parent
    require(
        "time_zone" in table and "country" in table,
        f"[{where}] time_zone and country are missing; a dispatch policy needs to know the day",
    )
    model = table.get("model")
    return Desk(
        Calendar(table["time_zone"], table["country"]).looked_up(FIRST_YEAR, FIRST_YEAR + 1),
        None if model is None else Model.load(beside / model),
    )
