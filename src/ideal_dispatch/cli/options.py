"""How options are declared, those that several commands share, and what they name.

Every option has a word for its value, such as FILE, and a sentence of help.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ideal_dispatch.cli.help import SPECIAL
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ideal_dispatch.network import Depot, RoadNetwork


def option(value: str, text: str, *names: str, special: bool = False, **settings: Any) -> Any:
    """An option with a value; ``names`` where they differ from the parameter's.

    ``special`` puts it among those for specialists, ``settings`` are typer's.
    """
    panel = SPECIAL if special else None
    return typer.Option(*names, metavar=value, help=text, rich_help_panel=panel, **settings)


def argument(value: str, text: str) -> Any:
    """What a command is given without naming it."""
    return typer.Argument(metavar=value, help=text)


def flag(name: str, text: str, *, special: bool = False, **settings: Any) -> Any:
    """An option that is given or not."""
    return typer.Option(name, help=text, rich_help_panel=SPECIAL if special else None, **settings)


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


NetworkOption = Annotated[
    Path | None,
    option("FILE", "Your city's .network file; the embedded city by default.", "--network"),
]
DepotsOption = Annotated[
    Path | None,
    option(
        "FILE", "A .csv of depots, columns name, lon and lat; needed with --network.", "--depots"
    ),
]
ForceOption = Annotated[bool, flag("--force", "Overwrite what is there already.")]
OutputFolder = Annotated[Path, option("FOLDER", "The folder to write to.", "-o", "--output")]
SeedOption = Annotated[
    int, option("NUMBER", "Start of all random draws: another number, another result.", min=0)
]
CoresOption = Annotated[
    int | None, option("NUMBER", "Processor cores to use; all of them by default.", min=1)
]
ClusterOption = Annotated[
    str | None,
    option("HOST:PORT", "Work on many machines: the scheduler of a dask cluster.", special=True),
]


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


def told_depots(
    network: "RoadNetwork", network_file: Path | None, file: Path | None
) -> "Sequence[Depot]":
    """The depots of a file, or the embedded city's where no network is given."""
    if file is not None:
        from ideal_dispatch.cities import depots_of

        return depots_of(file, network)
    if network_file is not None:
        raise InputError("--network needs --depots: whose ambulances shall be asked for?")
    from ideal_dispatch.cities import harbour_city

    return harbour_city().depots
