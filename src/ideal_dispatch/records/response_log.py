"""How an agency's unit log is written: one TOML file, or a ready-made one of ``logs/``."""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Checked, Positive, Range
from ideal_dispatch.records.agency import Agency, Depots, Input, WeatherSettings
from ideal_dispatch.records.past_weather import weather_provider
from ideal_dispatch.records.raw_records import Wanted
from ideal_dispatch.records.response_columns import STAMPS, TEXTS
from ideal_dispatch.toml_tables import (
    built,
    complaints_about,
    read_toml,
    refuse_unknown,
    require,
)

FORMATS = ("london", "lancaster", "nemsis", "datasf")
"""Logs whose mapping comes with the package."""

DURATIONS = ("turnout_s", "drive_s", "response_s")
"""Seconds that a log may give in place of a time: to leave, to drive, both."""

GRID = ("easting", "northing", "start_easting", "start_northing")
FIELDS = (
    *TEXTS, "date", *STAMPS, *DURATIONS, "lon", "lat", "place", "start_lon", "start_lat",
    "start_place", *GRID, "attending",
)  # fmt: skip
"""What may be known of a unit on a call. A column of the same name is found without a mapping."""

_OF_LISTS = tuple(name for name in STAMPS if name != "received")
_LEAK = re.compile(
    r"(arriv|on.?scene).*(order|sequence|rank|position|number\b)|(order|sequence|rank).*(arriv|scene)"
    r"|unit.sequence|(first|second|third|1st|2nd|3rd).{0,12}(arriv|on.?scene|in\b|due)"
)
"""Names of columns that tell who arrived first: an outcome, which nobody knows at the call."""


@dataclass(frozen=True, slots=True)
class UnitNames:
    r"""What a unit's name tells of it, where the log does not say it.

    ``kinds`` and ``stations`` are regular expressions of whole names, the first that fits counts;
    ``stations`` may use the groups of theirs, such as \1. ``kind`` is that of all others. Units of
    the kinds in ``alike`` race each other; without them, units of one kind do.
    """

    kind: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    stations: Mapping[str, str] = field(default_factory=dict)
    alike: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("kinds", "stations"):
            for pattern, told in getattr(self, name).items():
                try:
                    groups = re.compile(pattern).groups
                    re.compile(f"(?:){'()' * groups}").sub(told, "")
                except (re.error, IndexError) as error:
                    raise InputError(f"{name} {pattern!r}: not as in re ({error})") from None

    def kind_of(self, unit: str) -> str:
        """The kind of a unit by its name."""
        return _told(unit, self.kinds) or self.kind

    def station_of(self, unit: str) -> str:
        """The station of a unit by its name, "" where it does not tell."""
        return _told(unit, self.stations)


def _told(unit: str, patterns: Mapping[str, str]) -> str:
    found = ((re.fullmatch(pattern, unit), told) for pattern, told in patterns.items())
    return next((match.expand(told) for match, told in found if match), "")


@dataclass(frozen=True, slots=True)
class Grid:
    """The map projection of eastings and northings, by its EPSG number (27700 is Britain's)."""

    epsg: Annotated[int, Range(0, whole=True)] = 0


@dataclass(frozen=True, slots=True)
class Doubts(Checked):
    """From a station, a straight line faster than ``faster_than_kmh`` is no drive from there."""

    faster_than_kmh: Positive = 120.0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How to read a unit log.

    ``columns`` says which columns hold a field; several are joined. Where a row holds several
    units, ``unit_columns`` has the columns of each, whose order is forgotten, or ``lists`` the
    columns with lists such as ``M5=07:05:17, M8=07:10:02``. Fields that are ``optional`` may have
    no column. ``notes`` go with the responses. ``path`` is the TOML file, which complaints name.
    """

    agency: Agency
    input: Input = field(default_factory=Input)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unit_columns: tuple[Mapping[str, str], ...] = ()
    lists: Mapping[str, str] = field(default_factory=dict)
    units: UnitNames = field(default_factory=UnitNames)
    depots: Depots = field(default_factory=Depots)
    grid: Grid = Grid()
    doubts: Doubts = Doubts()
    weather: WeatherSettings = field(default_factory=WeatherSettings)
    optional: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    path: str = ""

    def __post_init__(self) -> None:
        refuse_unknown(self.columns, FIELDS, "columns")
        refuse_unknown(self.lists, _OF_LISTS, "lists")
        for table in self.unit_columns:
            refuse_unknown(table, FIELDS, "unit_columns")
        both = self.lists and self.unit_columns
        require(not both, "lists and unit_columns: a log has one of them")
        require(not self.lists or "dispatched" in self.lists, "lists.dispatched is missing")

    @classmethod
    def given(
        cls,
        format: str = "",  # noqa: A002
        mapping: "Mapping[str, Any] | str | os.PathLike[str] | LogSettings | None" = None,
    ) -> "LogSettings":
        """The settings of a ready-made format, of a mapping, or of a format and what it changes."""
        if isinstance(mapping, LogSettings):
            return mapping
        if not format and mapping is None:
            known = ", ".join(FORMATS)
            raise InputError(f"how is the log written? give a mapping, or a format of {known}")
        path: str | os.PathLike[str] = ""
        own: Mapping[str, Any] = {}
        if isinstance(mapping, Mapping):
            own = mapping
        elif mapping is not None:
            path, own = mapping, read_toml(mapping)
        with complaints_about(path):
            table = _merged(ready_made(format), own) if format else own
            return built(cls, table, "", path=os.fspath(path))

    def provider(self) -> WeatherProvider | None:
        """The weather of trips, None where the settings want none; files are beside the TOML."""
        with complaints_about(self.path):
            return weather_provider(self.weather, self.agency.time_zone, Path(self.path).parent)

    def wanted(self) -> Wanted:
        """The fields and columns to read; those of unit and list columns have a prefix."""
        columns = {name: self.columns.get(name, ()) for name in FIELDS}
        for number, table in enumerate(self.unit_columns):
            columns |= {f"{number}.{name}": (column,) for name, column in table.items()}
        columns |= {f"list.{name}": (column,) for name, column in self.lists.items()}
        times: tuple[str, ...] = ("received", "dispatched", "en_route")
        if self.lists:
            times = ("date",)
        elements = {name: columns[0] for name, columns in self.columns.items() if len(columns) == 1}
        return Wanted(columns, (("incident",), times), elements, self.optional)

    def leaks(self) -> list[str]:
        """The mapped columns whose names say that they tell the order of arrival.

        Those of ``unit_columns`` are not among them: their order is forgotten.
        """
        named = [*self.columns.values(), tuple(self.lists.values())]
        columns: Iterable[str] = (column for several in named for column in several)
        return [column for column in columns if tells_order(column)]

    def plain(self) -> dict[str, Any]:
        """The settings as JSON holds them, without any path of this machine."""
        result = asdict(self)
        del result["path"]
        result["weather"]["files"] = [os.path.basename(name) for name in self.weather.files]
        return dict(json.loads(json.dumps(result)))


def tells_order(column: str) -> bool:
    """Whether a column's name says that it tells who arrived first."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).replace("_", " ").lower()
    return bool(_LEAK.search(words))


def ready_made(name: str) -> dict[str, Any]:
    """The mapping of a format that comes with the package, as TOML gives it."""
    if name not in FORMATS:
        raise InputError(f"format {name!r} is not known; one of {', '.join(FORMATS)} is needed")
    source = files("ideal_dispatch.records").joinpath("logs", f"{name}.toml")
    return tomllib.loads(source.read_text("utf-8"))


def _merged(usual: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The usual table with the entries of one's own in place of its own."""
    both = {**usual, **own}
    for name, value in own.items():
        if isinstance(value, Mapping) and isinstance(usual.get(name), Mapping):
            both[name] = {**usual[name], **value}
    return both
