"""What an agency's records look like and how they become trips: one TOML file."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.plugins import WEATHER, check_name
from ideal_dispatch.ranges import ZERO_OR_MORE, Checked, Positive, Range, ZeroOrMore, check_fields
from ideal_dispatch.toml_tables import built, complaints_about, read_toml, refuse_unknown, require

FIELDS = (
    "call_id", "unit", "call_at", "notified_at", "en_route_at", "on_scene_at", "cpr_at",
    "cancelled_at", "call_to_cpr", "depot", "depot_lon", "depot_lat", "lon", "lat", "floor",
    "district",
)  # fmt: skip
"""What may be known of a call. A column of the same name is found without a mapping."""

_PAPER: Mapping[str, Mapping[str, Any]] = {
    "exclusions": {"months": ["2022-02", "2022-03", "2022-12"], "floors": "always"},
    "floors": {"blank": "unrecognised"},
}
"""What ``exclusions.preset = "paper"`` sets where the settings say nothing else.

[IDEAL] exclusions: the months are those of pandemic anomalies in Hong Kong.
"""

_SOME_TIME = datetime(2023, 4, 5, 16, 7, 8, tzinfo=UTC)  # to try a format on


@dataclass(frozen=True, slots=True)
class Agency:
    """Whose records these are, and the calendar of their city."""

    time_zone: str
    country: str
    name: str = "the agency"
    subdivision: str = ""
    holiday_categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.calendar()

    def calendar(self) -> Calendar:
        """Local time and holidays there."""
        categories = self.holiday_categories or None
        return Calendar(self.time_zone, self.country, self.subdivision or None, categories)


@dataclass(frozen=True, slots=True)
class Input:
    """How the file is written; what is empty is found out by looking at it.

    ``time_formats`` are tried before the built-in ones.
    """

    format: Literal["auto", "csv", "nemsis"] = "auto"
    delimiter: str = ""
    encoding: str = ""
    decimal: Literal["", ".", ","] = ""
    sheet: str = ""
    date_order: Literal["", "dmy", "mdy"] = ""
    time_formats: tuple[str, ...] = ()
    interval_unit: Literal["seconds", "minutes"] = "seconds"

    def __post_init__(self) -> None:
        if len(self.delimiter) > 1 or self.delimiter in set('\r\n"'):
            raise InputError(f"delimiter {self.delimiter!r}: one character is needed")
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):
            raise InputError(f"encoding {self.encoding!r} is not known; try utf-8") from None
        for form in self.time_formats:
            try:
                datetime.strptime(_SOME_TIME.strftime(form), form)
            except ValueError as error:
                raise InputError(f"time_formats {form!r}: not as in strptime ({error})") from None


@dataclass(frozen=True, slots=True)
class Depots:
    """How a record names its depot. ``aliases`` maps call signs and old names to depots."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    limit_m: float = SNAP_LIMIT_M


@dataclass(frozen=True, slots=True)
class Target:
    """Where the travel time comes from: stamps, the paper's subtraction, or the better of both."""

    rule: Literal["auto", "stamps", "subtraction"] = "auto"


@dataclass(frozen=True, slots=True)
class Preparation:
    """Seconds of a response that are not driving, by depot: given, or estimated from the rows."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    estimate: Literal["auto", "paired", "stamps", "regression"] = "auto"
    minimum_rows: Annotated[int, Range(3, whole=True)] = 20

    def __post_init__(self) -> None:
        check_fields(self)
        for depot, seconds in self.seconds.items():
            ZERO_OR_MORE.check(seconds, f"seconds of {depot}")


@dataclass(frozen=True, slots=True)
class Floors(Checked):
    """Seconds per floor: given, or estimated by OLS; and how floors are read.

    ``words`` says which floor an agency's own word means.
    """

    seconds_per_floor: ZeroOrMore | None = None
    estimate: Literal["auto", "paired", "paper"] = "auto"
    blank: Literal["ground", "unrecognised"] = "ground"
    first_is_ground: bool = False
    words: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The paper's four rules, and a limit on the speed.

    ``preset = "paper"`` adds the paper's months, judges every floor and takes an
    empty floor as not recognised. Unlike the paper, a trip of zero or negative
    time and one above ``faster_than_kmh`` are left out with the preset, too.
    """

    preset: Literal["", "paper"] = ""
    months: tuple[str, ...] = ()
    floors: Literal["needed", "always"] = "needed"
    floor_above: ZeroOrMore = 60
    nearer_than_km: ZeroOrMore = 0.5
    farther_than_km: ZeroOrMore = 10.0
    longer_than_min: ZeroOrMore = 30.0
    faster_than_kmh: ZeroOrMore = 150.0

    def __post_init__(self) -> None:
        for month in self.months:
            good = re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month)
            require(bool(good), f"months: {month!r} is not like 2022-02")
        check_fields(self)
        ordered = self.nearer_than_km < self.farther_than_km
        require(ordered, "nearer_than_km must be below farther_than_km")


@dataclass(frozen=True, slots=True)
class Snapping(Checked):
    """How far a place may be from the nearest node of the network."""

    limit_m: Positive = SNAP_LIMIT_M


@dataclass(frozen=True, slots=True)
class WeatherSettings:
    """Where the weather comes from. ``files`` are beside the settings file unless absolute.

    ``source`` is "none", "recorded", "open-meteo", or your provider with its ``options``.
    ``time``, ``columns``, ``units`` and ``quality`` say how a plain file is
    written; the layout of CoWIN files is known.
    """

    source: str = "none"
    files: tuple[str, ...] = ()
    layout: Literal["plain", "cowin"] = "plain"
    name: str = "recorded"
    time: tuple[str, ...] = ("time",)
    time_format: str = ""
    time_zone: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    quality: Mapping[str, str] = field(default_factory=dict)
    good: tuple[str, ...] = ("G",)
    url: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(WEATHER, self.source, ("none", "recorded", "open-meteo"), "source")
        files = self.source != "recorded" or bool(self.files)
        require(files, 'source = "recorded" needs files = ["weather.csv"]')
        for name in ("columns", "units", "quality"):
            refuse_unknown(getattr(self, name), WEATHER_VARIABLES, name)


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How an agency's file is written, whatever is in it.

    ``columns`` says which columns hold a field; several are joined. ``path`` is the TOML file,
    which complaints name, and beside which relative file names begin.
    """

    agency: Agency
    input: Input = Input()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    depots: Depots = field(default_factory=Depots)
    weather: WeatherSettings = field(default_factory=WeatherSettings)
    path: str = ""

    def plain(self) -> dict[str, Any]:
        """The settings as JSON holds them, without any path of this machine."""
        result = asdict(self)
        del result["path"]
        result["weather"]["files"] = [os.path.basename(name) for name in self.weather.files]
        return dict(json.loads(json.dumps(result)))


@dataclass(frozen=True, slots=True)
class AgencySettings(FileSettings):
    """Everything ``ideal records prepare`` needs to know about an agency's records."""

    extra: Mapping[str, str] = field(default_factory=dict)
    target: Target = Target()
    preparation: Preparation = field(default_factory=Preparation)
    floors: Floors = field(default_factory=Floors)
    exclusions: Exclusions = Exclusions()
    snapping: Snapping = Snapping()

    def __post_init__(self) -> None:
        refuse_unknown(self.columns, FIELDS, "columns")
        taken = set(self.extra) & set(FIELDS)
        require(not taken, f"extra: {min(taken, default='')} is one of the fields")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "AgencySettings":
        """Read a TOML file, or say in one line what is wrong with it."""
        return cls.of(read_toml(path), path)

    @classmethod
    def of(cls, table: Mapping[str, Any], path: str | os.PathLike[str] = "") -> "AgencySettings":
        """Settings of a table as TOML gives it; ``path`` is the file it was read from."""
        with complaints_about(path):
            rules = table.get("exclusions", {})
            if isinstance(rules, Mapping) and rules.get("preset") == "paper":
                table = merged(_PAPER, table)
            return built(cls, table, "", path=os.fspath(path))


def merged(usual: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The usual tables, with the user's entries in place of theirs."""
    both = {**usual, **own}
    for name, table in usual.items():
        if isinstance(table, Mapping) and isinstance(own.get(name), Mapping):
            both[name] = {**table, **own[name]}
    return both
