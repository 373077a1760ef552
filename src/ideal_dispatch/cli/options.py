"""What options of several commands have in common: groups, and what they name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.cities import City
    from ideal_dispatch.network import RoadNetwork


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose options come in groups: each field of a dataclass is an option.

    So options that belong together, and what is made of them, stand in one class.
    """
    signature = inspect.signature(command)
    groups: dict[str, Any] = {
        name: one.annotation
        for name, one in signature.parameters.items()
        if is_dataclass(one.annotation)
    }

    @wraps(command)
    def run(*args: Any, **told: Any) -> None:
        made = {}
        for name, group in groups.items():
            names = [field.name for field in fields(group) if field.name in told]
            made[name] = group(**{field: told.pop(field) for field in names})
        command(*args, **made, **told)

    flat: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        inner = inspect.signature(groups[name]).parameters if name in groups else {name: one}
        flat += [parameter.replace(kind=one.KEYWORD_ONLY) for parameter in inner.values()]
    run.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    return run


def read_moment(name: str, text: str, zone: tzinfo | None = None) -> datetime:
    """A moment with its zone, or in the usual ``zone``; an error says the option's ``name``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        day = "" if zone is None else "2023-05-08 or "
        raise InputError(f"{name} {text}: write it as {day}2023-05-08T08:10+08:00") from None
    if moment.tzinfo is None and zone is None:
        raise InputError(f"{name} {text}: add the zone, as in 2023-05-08T08:10+08:00")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def read_day(name: str, text: str) -> date:
    """A day of the calendar; an error says the option's ``name``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} {text}: write it as 2023-05-08") from None


def read_network(file: Path | None) -> "RoadNetwork":
    """The network of a file, or the embedded city's."""
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork

    return harbour_city().network if file is None else RoadNetwork.load(file)


@dataclass(frozen=True, slots=True)
class CityOptions:
    """Whose roads and depots, and by which model."""

    model_folder: Path | None = None
    network_file: Path | None = None
    depots_file: Path | None = None
    time_zone: str = "Asia/Hong_Kong"
    country: str = "HK"

    def city(self) -> "City":
        """The embedded city with what is told, or the city of a network and its depots."""
        from ideal_dispatch.cities import City, depots_of, harbour_city

        if self.network_file is not None:
            if self.depots_file is None:
                raise InputError("--network needs --depots: whose ambulances are there?")
            return City.from_files(
                self.network_file, self.depots_file, time_zone=self.time_zone,
                country=self.country, model=self.model_folder,
            )  # fmt: skip
        city = replace(harbour_city(), time_zone=self.time_zone, country=self.country)
        if self.depots_file is not None:
            city = replace(city, depots=depots_of(self.depots_file, city.network), region=None)
        return city if self.model_folder is None else replace(city, model_folder=self.model_folder)
