"""What units did at past calls: sent, left, arrived, cleared, cancelled; a row a unit on a call."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, first_where, read_only
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.context.calendar import Calendar, zone
from ideal_dispatch.context.weather import WeatherProvider, source_counts
from ideal_dispatch.errors import InputError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.ranges import POSITIVE, ZERO_OR_MORE
from ideal_dispatch.records.agency import Agency, WeatherSettings
from ideal_dispatch.records.past_weather import readings
from ideal_dispatch.records.places import junctions
from ideal_dispatch.records.schema import Times
from ideal_dispatch.records.trips import RESPONSE, TARGETS, Trips
from ideal_dispatch.records.trips import STAMPS as BY_STAMPS

if TYPE_CHECKING:
    from ideal_dispatch.records.raw_records import FileOrFrame
    from ideal_dispatch.records.response_log import LogSettings

KIND = ArchiveKind(
    "ideal-dispatch responses", 1, "responses file", "make one with `ideal records responses`"
)
STAMPS = ("received", "dispatched", "en_route", "on_scene", "cleared", "cancelled")
TEXTS = ("incident", "unit", "kind", "station", "call_kind", "district")
_PLACES = ("lon", "lat", "from_lon", "from_lat")
_NUMBERS: Mapping[str, npt.DTypeLike] = {
    **dict.fromkeys(_PLACES, np.float64), "from_road": np.bool_, "remark": np.uint8,
    "attending": np.int32, "row": np.int64,
}  # fmt: skip
NEGATIVE_TURNOUT = "turnout is negative"
NEGATIVE_DRIVE = "on scene before it left or was sent"
TOO_SHORT = "drive is impossibly short from its station: it may have started on the road"
REMARKS = ("", NEGATIVE_TURNOUT, NEGATIVE_DRIVE, TOO_SHORT)
"""Why the times of a row cannot be those of a drive from its start."""

SNAP_M = 100.0
"""How far the ends of a response may lie from a road."""

APART = "two units or more, but not sent together"
ONE_START = "the units started at the same place, or it is not known where"
MANY = "more than two units sent together"
NEVER = "a unit never arrived (not observed, not lost)"
IMPOSSIBLE = "a unit was on scene before it was sent"
OTHERS = "the log says that another number of units attended"
_SAME_M = 100.0  # nearer starts are one place

Strings = npt.NDArray[np.str_]
Day: TypeAlias = str | date | np.datetime64
"""A day of the city's calendar, such as "2023-05-01"."""
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


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
            values = getattr(self, name)
            if name in _NUMBERS:
                values = read_only(values, _NUMBERS[name], (n,), name)
            else:
                try:
                    values = _kept(np.array(values, "M8[s]" if name in STAMPS else str))
                except ValueError:
                    raise InputError(f"{name}: values must be times") from None
                if values.shape != (n,):
                    raise InputError(f"{name}: expected {n} values, got {values.size}")
            object.__setattr__(self, name, values)
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
        usual |= dict.fromkeys(_PLACES, np.full(n, np.nan))
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
        ``stations`` is a table with name, lon and lat. A column with the order of arrival
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
        values = {name: getattr(self, name)[row].item() for name in COLUMNS}
        for name, value in values.items():
            if isinstance(value, datetime):
                values[name] = value.replace(tzinfo=UTC)
            elif value != value:  # NaN
                values[name] = None
        return Response(**values | {"remark": REMARKS[values["remark"]]})

    # --- what follows from the columns ------------------------------------------------

    @cached_property
    def calls(self) -> npt.NDArray[np.intp]:
        """The call of each row as a number; rows of one call have the same."""
        return _kept(np.unique(self.incident, return_inverse=True)[1])

    @cached_property
    def at(self) -> Times:
        """When the call came in, or the first time that is known of the row."""
        found = self.received
        for name in STAMPS[1:]:
            found = np.where(np.isnat(found), getattr(self, name), found)
        return _kept(found)

    @cached_property
    def turnout_s(self) -> FloatArray:
        """Seconds from dispatch to leaving, NaN where one is not known."""
        return seconds_between(self.dispatched, self.en_route)

    @cached_property
    def drive_s(self) -> FloatArray:
        """Seconds from leaving to arrival, NaN where one is not known."""
        return seconds_between(self.en_route, self.on_scene)

    @cached_property
    def response_s(self) -> FloatArray:
        """Seconds from dispatch to arrival, NaN where one is not known."""
        return seconds_between(self.dispatched, self.on_scene)

    @cached_property
    def arrived(self) -> BoolArray:
        return _kept(~np.isnat(self.on_scene))

    @cached_property
    def recalled(self) -> BoolArray:
        """Sent and never on scene: cancelled, cleared, or another unit of the call arrived."""
        another = np.zeros(self.calls.max(initial=-1) + 1, bool)
        another[self.calls[self.arrived]] = True
        ended = ~np.isnat(self.cleared) | another[self.calls]
        sent = ~np.isnat(self.dispatched) | ~np.isnat(self.en_route)
        return _kept(~self.arrived & (~np.isnat(self.cancelled) | (sent & ended)))

    @cached_property
    def held_s(self) -> FloatArray:
        """Seconds from dispatch until a recalled unit was free again, NaN where not known."""
        free = np.where(np.isnat(self.cancelled), self.cleared, self.cancelled)
        return _kept(np.where(self.recalled, seconds_between(self.dispatched, free), np.nan))

    @cached_property
    def local(self) -> Times:
        """:attr:`at` on the city's clock."""
        quarter = self.at.astype("M8[m]").astype(np.int64) // 15  # clocks change at full quarters
        starts, index = np.unique(quarter, return_inverse=True)
        there = zone(self.time_zone)
        moments = (datetime.fromtimestamp(900 * int(start), UTC) for start in starts)
        offsets = [moment.astimezone(there).utcoffset() for moment in moments]
        return _kept(self.at + np.array(offsets, "m8[s]")[index])

    @cached_property
    def date(self) -> Times:
        """The city's day of each row."""
        return _kept(self.local.astype("M8[D]"))

    @cached_property
    def hour(self) -> IntArray:
        """The hour of the day there, 0 to 23."""
        return _kept(((self.local - self.date) // np.timedelta64(1, "h")).astype(np.int32))

    @cached_property
    def weekday(self) -> IntArray:
        """The day of the week there, Monday being 0."""
        return _kept(((self.date.astype(np.int64) + 3) % 7).astype(np.int32))

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
        rules: WeatherSettings = WeatherSettings(),  # noqa: B008 -- it is frozen
    ) -> tuple[Trips, IntArray]:
        """The arrivals as trips that a model learns from, and the row of each.

        A trip starts at the junction nearest to where the unit started. Its time is the drive, or
        the whole response where the time of leaving is not known; ``target`` says which. Rows with
        a remark, or with an end farther than ``limit_m`` from a road (or twice that from a
        junction), are left out and counted in the trips' ``provenance["left_out"]``. ``rules``
        say what stands in for unknown weather.
        """
        POSITIVE.check(limit_m, "limit_m")
        calendar, usable = calendar or self.calendar, np.ones(len(self), bool)
        stamped = ~np.isnan(self.drive_s)
        took_s = np.where(stamped, self.drive_s, self.response_s)
        origin = junctions(self.from_lon, self.from_lat, network, limit_m)
        destination = junctions(self.lon, self.lat, network, limit_m)
        left_out: dict[str, int] = {}
        for why, rows in {
            "never on scene": ~self.arrived,
            "has a remark: its times are not those of a drive from there": self.remark > 0,
            "its stamps give no travel time": ~(took_s > 0),
            "start is not known": np.isnan(self.from_lon + self.from_lat),
            f"start is farther than {limit_m:g} m from a road": origin < 0,
            "scene is not known": np.isnan(self.lon + self.lat),
            f"scene is farther than {limit_m:g} m from a road": destination < 0,
            "starts and ends at one junction": origin == destination,
        }.items():
            if (usable & rows).any():
                left_out[why] = int((usable & rows).sum())
            usable &= ~rows
        kept = np.flatnonzero(usable).astype(np.int32)
        moments = [at.replace(tzinfo=UTC) for at in self.at[kept].tolist()]
        known, notes = readings(weather, rules, moments, self.lon[kept], self.lat[kept])
        contexts = [calendar.context(at, w) for at, w in zip(moments, known, strict=True)]
        encoding = ContextEncoding()
        target = np.where(stamped[kept], TARGETS.index(BY_STAMPS), TARGETS.index(RESPONSE))
        said = ("source", "source_checksum", "agency")
        trips = Trips(
            origin=origin[kept],
            destination=destination[kept],
            observed_s=took_s[kept],
            contexts=encoding.encode(contexts),
            encoding=encoding,
            at=self.at[kept],
            target=target.astype(np.uint8),
            row=self.row[kept],
            network_checksum=network.checksum,
            provenance={
                **{key: self.provenance[key] for key in said if key in self.provenance},
                "time_zone": self.time_zone,
                "weather": source_counts(known),
                "responses": len(self),
                "left_out": left_out,
                "notes": notes,
            },
        )
        return trips, kept

    @property
    def alike(self) -> tuple[str, ...]:
        """The kinds of units that race each other, as the mapping names them."""
        named = self.provenance.get("settings", {}).get("units", {}).get("alike", ())
        return tuple(kind for kind in named if (self.kind == kind).any())

    def races(self, together_s: float = 5.0, kinds: Sequence[str] | None = None) -> "Races":
        """The clean races: exactly two units, dispatched within ``together_s`` of each other.

        Units of one kind race each other. ``kinds`` are kinds that count as one, such as
        ("ambulance", "medic"), and then only units of these race; as the mapping names them
        unless given. A call is no race where the two started at the same place, one of them never
        arrived, more were sent with them, or the log says that another number attended; such
        calls are counted.
        """
        ZERO_OR_MORE.check(together_s, "together_s")
        kinds = self.alike if kinds is None else kinds
        kind, sent = np.unique(self.kind, return_inverse=True)[1], ~np.isnat(self.dispatched)
        if kinds:
            known = sorted(set(self.kind.tolist()) - {""})
            unknown = set(kinds) - set(known)
            if unknown:
                raise InputError(
                    f"kinds: no unit is of kind {min(unknown)!r}; the log has "
                    f"{', '.join(known) or 'none'}"
                )
            kind, sent = np.zeros(len(self), np.int64), sent & np.isin(self.kind, kinds)
        rows = np.flatnonzero(sent)
        order = rows[np.lexsort((self.dispatched[rows], kind[rows], self.calls[rows]))]
        keys = np.column_stack([self.calls[order], kind[order]])
        starts = np.flatnonzero(np.any(np.diff(keys, axis=0, prepend=-1), axis=1))
        found: list[list[int]] = []
        left_out: Counter[str] = Counter()
        for group in np.split(order, starts[1:]):
            if group.size > 1:
                gap_s = seconds_between(self.dispatched[group[0]], self.dispatched[group])
                pair = group[gap_s <= together_s]
                why = self._no_race(pair)
                if why:
                    left_out[why] += 1
                else:
                    found.append(sorted(pair.tolist(), key=self._identity))
        return Races(self, np.array(sorted(found), np.int64).reshape(-1, 2), left_out, together_s)

    def _no_race(self, sent: npt.NDArray[np.intp]) -> str:
        """Why units sent together are no race; "" where they are one."""
        if sent.size != 2:
            return APART if sent.size < 2 else MANY
        if set(self.attending[sent].tolist()) - {0, 2}:
            return OTHERS
        if not self.arrived[sent].all():
            return NEVER
        if (self.response_s[sent] < 0).any():
            return IMPOSSIBLE
        lon, lat, (a, b) = self.from_lon[sent], self.from_lat[sent], self.station[sent].tolist()
        apart = bool(a and b and a != b)
        if not np.isnan(lon + lat).any():
            apart = bool(great_circle_m(lon[:1], lat[:1], lon[1:], lat[1:])[0] >= _SAME_M)
        return "" if apart else ONE_START

    def _identity(self, row: int) -> tuple[str, str, float, float]:
        """What is known of a unit at the call."""
        place = float(self.from_lon[row]), float(self.from_lat[row])
        return str(self.station[row]), str(self.unit[row]), *place

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Races:
    """Races among responses, two candidates each.

    ``rows`` has the two rows of ``responses`` that race, a line each, ordered by station, unit and
    start: by what was known at the call, never by arrival. ``left_out`` counts the calls with
    two units or more that are no race, by reason.
    """

    responses: Responses
    rows: npt.NDArray[np.int64]
    left_out: Mapping[str, int] = field(default_factory=dict)
    together_s: float = 5.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", read_only(self.rows, np.int64, (None, 2), "rows"))
        object.__setattr__(self, "left_out", MappingProxyType(dict(self.left_out)))
        if self.rows.size and not 0 <= self.rows.min() <= self.rows.max() < len(self.responses):
            raise InputError("rows: a race names a row that the responses do not have")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Races({len(self):,} races)"

    @property
    def response_s(self) -> FloatArray:
        """Seconds from dispatch to arrival of both candidates, a line a race."""
        return self.responses.response_s[self.rows]

    @property
    def at(self) -> Times:
        """When the calls came in."""
        return self.responses.at[self.rows[:, 0]]

    @property
    def date(self) -> Times:
        """The city's day of the calls."""
        return self.responses.date[self.rows[:, 0]]

    def select(self, index: npt.ArrayLike) -> "Races":
        """The races of ``index``, numbers or a mask."""
        chosen = np.asarray(index)
        return replace(self, rows=self.rows[chosen if chosen.size else chosen.astype(np.int64)])


def seconds_between(start: Times, end: Times) -> FloatArray:
    """Seconds between two times, NaN where one is not known."""
    return _kept((end - start) / np.timedelta64(1, "s"))  # NaT becomes NaN


def _kept(derived: _Array) -> _Array:
    """An array that is worked out once, and that nothing may change."""
    derived.flags.writeable = False
    return derived


def as_day(day: Day) -> np.datetime64:
    """A day as arrays of days are compared with."""
    try:
        return np.datetime64(str(day)[:10], "D")
    except ValueError:
        raise InputError(f"day {day!r}: a date such as 2023-05-01 is needed") from None
