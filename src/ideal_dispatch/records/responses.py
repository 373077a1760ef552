"""What units did at past calls: sent, left, arrived, cleared, cancelled; a row a unit on a call."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, first_where
from ideal_dispatch.context.calendar import Calendar, zone
from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.errors import InputError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records.agency import Agency
from ideal_dispatch.records.response_columns import (
    PLACES,
    STAMPS,
    TEXTS,
    column,
    kept,
    plain,
    seconds,
)
from ideal_dispatch.records.schema import Times
from ideal_dispatch.records.trips import Trips

if TYPE_CHECKING:
    from ideal_dispatch.records.races import Races
    from ideal_dispatch.records.raw_records import FileOrFrame
    from ideal_dispatch.records.response_log import LogSettings

KIND = ArchiveKind(
    "ideal-dispatch responses", 1, "responses file", "make one with `ideal records responses`"
)
NEGATIVE_TURNOUT = "turnout is negative"
NEGATIVE_DRIVE = "on scene before it left or was sent"
TOO_SHORT = "drive is impossibly short from its station: it may have started on the road"
REMARKS = ("", NEGATIVE_TURNOUT, NEGATIVE_DRIVE, TOO_SHORT)
"""What a row says of itself where its times cannot be those of a drive from its start."""

SNAP_M = 100.0
"""How far the ends of a response may lie from a road."""

Strings = npt.NDArray[np.str_]
Day: TypeAlias = str | date | np.datetime64
"""A day of the city's calendar, such as "2023-05-01"."""


@dataclass(frozen=True, slots=True)
class Response:
    """One unit on one call; times are aware and in UTC, None where they are not known."""

    incident: str
    unit: str
    kind: str
    station: str
    call_kind: str
    district: str
    received: datetime | None
    dispatched: datetime | None
    en_route: datetime | None
    on_scene: datetime | None
    cleared: datetime | None
    cancelled: datetime | None
    lon: float | None
    lat: float | None
    from_lon: float | None
    from_lat: float | None
    from_road: bool
    remark: str
    attending: int
    row: int


@dataclass(frozen=True, eq=False, repr=False)
class Responses:
    """Units on past calls, a row each; the arrays are read-only.

    A text is "" where it is not known, a time NaT, a place NaN. ``kind`` is that of the unit and
    ``call_kind`` that of the call. ``from_lon`` and ``from_lat`` are where the unit started: its
    own position where the log has one (``from_road``), else its station. ``remark`` is an index
    into :data:`REMARKS`. ``attending`` is how many units attended according to the log, 0 where it
    does not say. ``row`` is the row of the source file. No name, address or age is ever in here.
    """

    incident: Strings
    unit: Strings
    kind: Strings
    station: Strings
    call_kind: Strings
    district: Strings
    received: Times
    dispatched: Times
    en_route: Times
    on_scene: Times
    cleared: Times
    cancelled: Times
    lon: FloatArray
    lat: FloatArray
    from_lon: FloatArray
    from_lat: FloatArray
    from_road: BoolArray
    remark: npt.NDArray[np.uint8]
    attending: IntArray
    row: npt.NDArray[np.int64]
    time_zone: str = "UTC"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        zone(self.time_zone)
        n = np.size(self.incident)
        for name in COLUMNS:
            object.__setattr__(self, name, column(name, getattr(self, name), n))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))
        checks: tuple[tuple[str, Any], ...] = (
            ("has no incident", self.incident == ""),
            ("has no time at all", np.isnat(self.at)),
            ("remark is not one of the known ones", self.remark >= len(REMARKS)),
            ("attending must be zero or more", self.attending < 0),
        )
        for what, bad in checks:
            index = first_where(bad)
            if index is not None:
                raise InputError(f"response {index}: {what}")

    @classmethod
    def of(cls, incident: npt.ArrayLike, **columns: Any) -> "Responses":
        """Responses of the columns that are given, in order; the others are not known."""
        n = np.size(np.asarray(incident))
        usual: dict[str, Any] = dict.fromkeys(TEXTS, np.full(n, ""))
        usual |= dict.fromkeys(STAMPS, np.full(n, "NaT", "M8[s]"))
        usual |= dict.fromkeys(PLACES, np.full(n, np.nan))
        usual |= {"from_road": np.zeros(n, bool), "remark": np.zeros(n, np.uint8)}
        usual |= {"attending": np.zeros(n, np.int32), "row": np.arange(n), "incident": incident}
        return cls(**usual | columns).in_order()

    @classmethod
    def read(
        cls,
        source: "FileOrFrame",
        format: str = "",  # noqa: A002 -- the word of the command line
        mapping: "Mapping[str, Any] | str | os.PathLike[str] | LogSettings | None" = None,
        stations: "FileOrFrame | None" = None,
        insist: bool = False,
    ) -> "Responses":
        """The responses of a unit log: a CSV, Excel or NEMSIS file, or a pandas DataFrame.

        ``format`` names a ready-made mapping (london, lancaster, nemsis, datasf); ``mapping`` is
        your own, a TOML file or a table as TOML gives it, and goes before the ready-made one.
        ``stations`` is a table with name, lon and lat. A column that tells the order of arrival
        is refused unless you ``insist``. Rows that cannot be used are left out and counted in
        ``provenance["left_out"]``.
        """
        from ideal_dispatch.records.response_log import LogSettings
        from ideal_dispatch.records.response_reading import read_responses

        settings = LogSettings.given(format, mapping)
        return read_responses(source, settings, stations, insist=insist).responses

    def in_order(self) -> "Responses":
        """The same, sorted by the call's first time, the call, then dispatch, unit and station.

        Of units that all this is the same for, the places and the further times decide.
        """
        first = np.full(self.calls.max(initial=-1) + 1, np.datetime64("2262-01-01", "s"))
        np.minimum.at(first, self.calls, self.at)
        keys = (first[self.calls], self.incident, self.dispatched, self.unit, self.station,
                self.from_lon, self.from_lat, self.en_route, self.on_scene, self.row)  # fmt: skip
        return self.select(np.lexsort(keys[::-1]))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the columns without what was derived from them."""
        values = (getattr(self, column.name) for column in fields(self))
        return type(self), tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def __len__(self) -> int:
        return int(self.incident.size)

    def __repr__(self) -> str:
        return f"Responses({len(self):,} units on {self.calls.max(initial=-1) + 1:,} calls)"

    def __iter__(self) -> Iterator[Response]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> Response:
        values = {name: plain(getattr(self, name)[row]) for name in COLUMNS}
        return Response(**values | {"remark": REMARKS[values["remark"]]})

    # --- what follows from the columns ------------------------------------------------

    @cached_property
    def calls(self) -> npt.NDArray[np.intp]:
        """The call of each row as a number; rows of one call have the same."""
        return kept(np.unique(self.incident, return_inverse=True)[1])

    @cached_property
    def at(self) -> Times:
        """When the call came in, or the first time that is known of the row."""
        found = self.received
        for name in STAMPS[1:]:
            found = np.where(np.isnat(found), getattr(self, name), found)
        return kept(found)

    @cached_property
    def turnout_s(self) -> FloatArray:
        """Seconds from dispatch to leaving, NaN where one is not known."""
        return seconds(self.dispatched, self.en_route)

    @cached_property
    def drive_s(self) -> FloatArray:
        """Seconds from leaving to arrival, NaN where one is not known."""
        return seconds(self.en_route, self.on_scene)

    @cached_property
    def response_s(self) -> FloatArray:
        """Seconds from dispatch to arrival, NaN where one is not known."""
        return seconds(self.dispatched, self.on_scene)

    @cached_property
    def arrived(self) -> BoolArray:
        return kept(~np.isnat(self.on_scene))

    @cached_property
    def recalled(self) -> BoolArray:
        """Sent and never on scene: cancelled, cleared, or another unit of the call arrived."""
        another = np.zeros(self.calls.max(initial=-1) + 1, bool)
        another[self.calls[self.arrived]] = True
        ended = ~np.isnat(self.cleared) | another[self.calls]
        sent = ~np.isnat(self.dispatched) | ~np.isnat(self.en_route)
        return kept(~self.arrived & (~np.isnat(self.cancelled) | (sent & ended)))

    @cached_property
    def held_s(self) -> FloatArray:
        """Seconds from dispatch until a recalled unit was free again, NaN where not known."""
        free = np.where(np.isnat(self.cancelled), self.cleared, self.cancelled)
        return kept(np.where(self.recalled, seconds(self.dispatched, free), np.nan))

    @cached_property
    def local(self) -> Times:
        """:attr:`at` on the city's clock."""
        quarter = self.at.astype("M8[m]").astype(np.int64) // 15  # clocks change at full quarters
        starts, index = np.unique(quarter, return_inverse=True)
        there = zone(self.time_zone)
        moments = (datetime.fromtimestamp(900 * int(start), UTC) for start in starts)
        offsets = [moment.astimezone(there).utcoffset() for moment in moments]
        return kept(self.at + np.array(offsets, "m8[s]")[index])

    @cached_property
    def date(self) -> Times:
        """The city's day of each row."""
        return kept(self.local.astype("M8[D]"))

    @cached_property
    def hour(self) -> IntArray:
        """The hour of the day there, 0 to 23."""
        return kept(((self.local - self.date) // np.timedelta64(1, "h")).astype(np.int32))

    @cached_property
    def weekday(self) -> IntArray:
        """The day of the week there, Monday being 0."""
        return kept(((self.date.astype(np.int64) + 3) % 7).astype(np.int32))

    @property
    def calendar(self) -> Calendar:
        """The city's clock and holidays, as the mapping named them."""
        agency = dict(self.provenance.get("agency", {}))
        if not agency.get("country"):
            raise InputError("the responses do not say their country; give a calendar")
        agency["holiday_categories"] = tuple(agency.get("holiday_categories", ()))
        return Agency(**agency | {"time_zone": self.time_zone}).calendar()

    # --- parts and other forms --------------------------------------------------------

    def select(self, index: npt.ArrayLike) -> "Responses":
        """The rows of ``index``, numbers or a mask, in its order."""
        rows = np.asarray(index)
        rows = rows if rows.size else rows.astype(np.int64)
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def until(self, day: Day) -> "Responses":
        """The rows before this day of the city's calendar."""
        return self.select(self.date < as_day(day))

    def since(self, day: Day) -> "Responses":
        """The rows of this day of the city's calendar and later."""
        return self.select(self.date >= as_day(day))

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame: the columns, and the seconds that follow from them."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        columns["remark"] = np.array(REMARKS)[self.remark]
        names = ("turnout_s", "drive_s", "response_s", "recalled", "held_s")
        return frame(columns | {name: getattr(self, name) for name in names})

    def trips(
        self,
        network: RoadNetwork,
        limit_m: float = SNAP_M,
        calendar: Calendar | None = None,
        weather: WeatherProvider | None = None,
    ) -> tuple[Trips, IntArray]:
        """The arrivals as trips that a model learns from, and the row of each.

        A trip starts at the junction nearest to where the unit started. Its time is the drive, or
        the whole response where the time of leaving is not known; ``target`` says which. Rows with
        a remark, or with an end farther than ``limit_m`` from a road (or twice that from a
        junction), are left out and counted in the trips' ``provenance["left_out"]``.
        """
        from ideal_dispatch.records.response_trips import trips_of

        return trips_of(self, network, limit_m, calendar, weather)

    @property
    def alike(self) -> tuple[str, ...]:
        """The kinds of units that race each other, as the mapping names them."""
        named = self.provenance.get("settings", {}).get("units", {}).get("alike", ())
        return tuple(kind for kind in named if (self.kind == kind).any())

    def races(self, together_s: float = 5.0, kinds: Sequence[str] | None = None) -> "Races":
        """Two units sent to one call at once from different places, both on scene.

        ``kinds`` are kinds of units that race each other; as the mapping names them unless given.
        See :func:`ideal_dispatch.records.races.find_races`.
        """
        from ideal_dispatch.records.races import find_races

        return find_races(self, together_s, self.alike if kinds is None else kinds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into equal responses."""
        manifest = {
            "time_zone": self.time_zone,
            "remarks": REMARKS,
            "provenance": dict(self.provenance),
        }
        arrays = {name: getattr(self, name) for name in COLUMNS}
        KIND.write(path, manifest, arrays | {s: arrays[s].astype(np.int64) for s in STAMPS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Responses":
        """Read responses, or say in one line why the file holds none."""
        with KIND.reading(path) as (manifest, arrays):
            return cls(
                **arrays | {name: arrays[name].astype("M8[s]") for name in STAMPS},
                time_zone=manifest["time_zone"],
                provenance=manifest["provenance"],
            )


COLUMNS = tuple(column.name for column in fields(Response))


def as_day(day: Day) -> np.datetime64:
    """A day as arrays of days are compared with."""
    try:
        return np.datetime64(str(day)[:10], "D")
    except ValueError:
        raise InputError(f"day {day!r}: a date such as 2023-05-01 is needed") from None
