"""How an agency's unit log is written: one TOML file, or a ready-made one of ``logs/``."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain
from typing import Annotated, Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Checked, Positive, Range
from ideal_dispatch.records.agency import FileSettings, merged
from ideal_dispatch.records.raw_records import FileOrFrame, RawRecords, read_cells
from ideal_dispatch.records.responses import STAMPS, TEXTS
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
"""Names of columns that reveal who arrived first: an outcome, unknown at the call."""


@dataclass(frozen=True, slots=True)
class UnitNames:
    r"""What a unit's name says about it, where the log has no column for it.

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
            for pattern, value in getattr(self, name).items():
                try:
                    groups = re.compile(pattern).groups
                    re.compile(f"(?:){'()' * groups}").sub(value, "")
                except (re.error, IndexError) as error:
                    raise InputError(f"{name} {pattern!r}: not as in re ({error})") from None

    def of(self, unit: str) -> tuple[str, str]:
        """The kind and the station of a unit by its name, "" where it does not say."""
        kind, station = (
            next(
                (
                    match.expand(value)
                    for pattern, value in patterns.items()
                    if (match := re.fullmatch(pattern, unit))
                ),
                "",
            )
            for patterns in (self.kinds, self.stations)
        )
        return kind or self.kind, station


@dataclass(frozen=True, slots=True)
class Grid:
    """The map projection of eastings and northings, by its EPSG number (27700 is Britain's)."""

    epsg: Annotated[int, Range(0, whole=True)] = 0


@dataclass(frozen=True, slots=True)
class Doubts(Checked):
    """From a station, a straight line faster than ``faster_than_kmh`` is no drive from there."""

    faster_than_kmh: Positive = 120.0


@dataclass(frozen=True, slots=True)
class LogSettings(FileSettings):
    """How to read a unit log.

    Where a row holds several units, ``unit_columns`` has the columns of each, whose order is
    forgotten, or ``lists`` the columns with lists such as ``M5=07:05:17, M8=07:10:02``. Fields
    that are ``optional`` may have no column. ``notes`` go with the responses.
    """

    unit_columns: tuple[Mapping[str, str], ...] = ()
    lists: Mapping[str, str] = field(default_factory=dict)
    units: UnitNames = field(default_factory=UnitNames)
    grid: Grid = Grid()
    doubts: Doubts = Doubts()
    optional: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
            if format and format not in FORMATS:
                known = ", ".join(FORMATS)
                raise InputError(f"format {format!r} is not known; one of {known} is needed")
            if format:
                source = files("ideal_dispatch.records").joinpath("logs", f"{format}.toml")
                own = merged(tomllib.loads(source.read_text("utf-8")), own)
            return built(cls, own, "", path=os.fspath(path))

    def cells(self, log: FileOrFrame) -> RawRecords:
        """The cells of a log; fields of unit and list columns have a prefix."""
        columns = {name: self.columns.get(name, ()) for name in FIELDS}
        for number, table in enumerate(self.unit_columns):
            columns |= {f"{number}.{name}": (column,) for name, column in table.items()}
        columns |= {f"list.{name}": (column,) for name, column in self.lists.items()}
        times = ("date",) if self.lists else ("received", "dispatched", "en_route")
        elements = {name: columns[0] for name, columns in self.columns.items() if len(columns) == 1}
        return read_cells(
            log, self.input, columns, needed=(("incident",), times), elements=elements,
            optional=self.optional,
        )  # fmt: skip

    def leaks(self) -> list[str]:
        """The mapped columns whose names reveal the order of arrival.

        Those of ``unit_columns`` are not among them: their order is forgotten.
        """
        columns = [*chain(*self.columns.values()), *self.lists.values()]
        return [column for column in columns if tells_order(column)]


def tells_order(column: str) -> bool:
    """Whether a column's name reveals who arrived first."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).replace("_", " ").lower()
    return bool(_LEAK.search(words))
