"""What options of several commands have in common: groups, limits, and what they name."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


Seed = Annotated[int, typer.Option(min=0)]
Count = Annotated[int, typer.Option(min=1)]
CountOrNone = Annotated[int | None, typer.Option(min=1)]


def read_moment(name: str, text: str) -> datetime:
    """A moment with its zone; an error says the option's ``name``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} {text}: write it as 2023-05-08T08:10+08:00") from None
    if moment.tzinfo is None:
        raise InputError(f"{name} {text}: add the zone, as in 2023-05-08T08:10+08:00")
    return moment


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


def told_city(
    network_file: Path | None,
    depots_file: Path | None,
    *,
    time_zone: str = "Asia/Hong_Kong",
    country: str = "HK",
    model_folder: Path | None = None,
) -> "City":
    """The embedded city with what is told, or the city of a network and its depots."""
    from ideal_dispatch.cities import City, depots_of, harbour_city

    if network_file is not None:
        if depots_file is None:
            raise InputError("--network needs --depots: whose ambulances are there?")
        return City.from_files(
            network_file, depots_file, time_zone=time_zone, country=country, model=model_folder
        )
    city = replace(harbour_city(), time_zone=time_zone, country=country)
    if depots_file is not None:
        city = replace(city, depots=depots_of(depots_file, city.network), region=None)
    return city if model_folder is None else replace(city, model_folder=model_folder)
