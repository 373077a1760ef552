"""The API's JSON that comes in, strictly checked."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic.config import JsonDict

MOST_CLOSED = 5000
"""Edges of one closure."""

OverrideReason = Literal[
    "unit_unavailable", "road_knowledge", "patient_condition", "capacity", "other"
]
Action = Literal["accept", "override", "stand_down", "keep", "send_one"]

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_UNSAFE = re.compile(  # control characters, line ends, and what reverses the words around it
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_MOST_POINTS = 500


def first_fault(errors: Sequence[Any]) -> tuple[str, str]:
    """Where the first of pydantic's errors is, and what it says."""
    where = ".".join(str(part) for part in errors[0]["loc"])
    return where, str(errors[0]["msg"]).removeprefix("Value error, ")


def _as_text(value: Any) -> Any:
    """Moments come as RFC 3339 text; a bare number could be seconds or milliseconds."""
    if isinstance(value, datetime) or (isinstance(value, str) and _MOMENT.match(value)):
        return value
    raise ValueError("a moment is written as text, such as 2026-03-01T08:15:00+08:00")


def _storable(value: Any) -> Any:
    """A text that every store can keep."""
    if isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("a NUL or half a character is in this text")
    return value


def _one_line(value: Any) -> Any:
    """A name without blanks around it, and without characters that break a line or turn it."""
    if isinstance(value, str):
        value = value.strip()
        if _UNSAFE.search(value):
            raise ValueError("control characters are in this text, or ones that reverse it")
    return value


def _identifier(value: Any) -> Any:
    """The same, all of it printable: two ids that look alike are one."""
    value = _one_line(value)
    if isinstance(value, str) and not value.isprintable():
        raise ValueError("characters that cannot be seen are in this id")
    return value


def _path(value: Any) -> Any:
    """An id that survives as the end of a path: a client or a proxy would resolve dots there."""
    value = _identifier(value)
    if isinstance(value, str) and {"", ".", ".."} & {*value.split("/")} and value:
        raise ValueError("an empty part, . or .. between slashes cannot be in this id")
    return value


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_as_text)]
Number = Annotated[float, Field(allow_inf_nan=False)]

# limits come first, so that the schema has them
CallId = Annotated[str, Field(min_length=1, max_length=128), BeforeValidator(_identifier)]
Key = Annotated[str, Field(min_length=1, max_length=200, pattern="^[ -~]+$")]  # printable ASCII
UnitId = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(_path)]
UnitInPath = Annotated[str, Path(min_length=1, max_length=64), BeforeValidator(_identifier)]
Word = Annotated[str, Field(max_length=64), BeforeValidator(_one_line)]
Name = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(_one_line)]
Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[0-9a-z]+$")]
Note = Annotated[str, Field(max_length=2000), BeforeValidator(_storable)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]


class In(BaseModel):
    """What comes in: unknown keys are mistakes, and numbers are no texts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# --- calls ------------------------------------------------------------------------


class Location(In):
    """Where the patient is. Beyond the limits it is longitude and latitude swapped, or wrong."""

    lon: Longitude
    lat: Latitude
    accuracy_m: Number | None = Field(default=None, ge=0, le=1e6)

    @model_validator(mode="before")
    @classmethod
    def _swapped(cls, values: Any) -> Any:
        given: Any = values if isinstance(values, dict) else {}
        lon, lat = given.get("lon"), given.get("lat")
        numbers = isinstance(lon, int | float) and isinstance(lat, int | float)
        if numbers and abs(lon) <= 90 < abs(lat) <= 180:
            raise ValueError(f"longitude {lon}, latitude {lat} are not on Earth; are they swapped?")
        return values


class Primary(In):
    """The ambulance that the agency sends, by its depot or its unit, and its path.

    The depot may be left out where the unit was reported by `PUT /v1/units`. The path comes as
    edges or as a polyline.
    """

    depot: Name | None = None
    unit: UnitId | None = None
    edges: Annotated[list[int], Field(max_length=20_000)] | None = None
    polyline: Annotated[str, Field(max_length=65_536)] | None = None

    @model_validator(mode="after")
    def _one_path(self) -> "Primary":
        if self.edges is not None and self.polyline is not None:
            raise ValueError("edges and polyline both name the path; give one of them")
        if self.depot is None and self.unit is None:
            raise ValueError("name the depot or the unit of the primary")
        return self


class WeatherIn(In):
    """Weather that the caller knows better than our source."""

    temperature_c: Number | None = Field(default=None, ge=-90, le=60)
    rainfall_mm: Number | None = Field(default=None, ge=0, le=500)
    humidity_percent: Number | None = Field(default=None, ge=0, le=100)
    wind_kmh: Number | None = Field(default=None, ge=0, le=450)
    pressure_hpa: Number | None = Field(default=None, ge=850, le=1100)


class ContextIn(In):
    """What is known about the moment beside the clock."""

    weather: WeatherIn | None = None


CALL_EXAMPLE: JsonDict = {
    "call_id": "2026-000123",
    "location": {"lon": 117.2393, "lat": 21.5845, "accuracy_m": 25},
    "primary": {"depot": "Kelp Point"},
    "note": "12 Lantern Street, 3rd floor",
}


class RecommendationRequest(In):
    """A call. ``received_at`` left out: it was received now.

    ``primary`` null: the router chooses one, and the answer says so. The units that could go are
    those of `PUT /v1/units`.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [CALL_EXAMPLE]})

    call_id: CallId
    idempotency_key: Key | None = None
    received_at: Moment | None = None
    location: Location
    primary: Primary | None = None
    context: ContextIn | None = None
    threshold_s: Number | None = Field(default=None, ge=-86_400, le=86_400)
    note: Note | None = None

    def content(self) -> dict[str, Any]:
        """The request for the record: all but its key."""
        return self.model_dump(mode="json", exclude={"idempotency_key"})


class ReplyIn(In):
    """What the dispatcher did: with an advice, or with the ``question`` of a running dispatch."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"action": "override", "reason_code": "road_knowledge", "text": "parade"}]
        }
    )

    action: Action
    reason_code: OverrideReason | None = None
    question: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    text: Note | None = None

    @model_validator(mode="after")
    def _reasoned(self) -> "ReplyIn":
        if self.action == "override" and self.reason_code is None:
            raise ValueError("an override needs a reason_code")
        return self


# --- units and closures -----------------------------------------------------------


class UnitIn(In):
    """News of a unit; what is left out stays as it was. A new unit needs its depot and status.

    ``status`` is a word of ours or a code of the centre's radio. ``heading`` is in degrees from
    north. ``at`` left out means now.
    """

    depot: Name | None = None
    kind: Word | None = None
    status: Annotated[Word, Field(min_length=1)] | None = None
    call_id: CallId | None = None
    lon: Longitude | None = None
    lat: Latitude | None = None
    heading: Number | None = Field(default=None, ge=0, le=360)
    speed_kmh: Number | None = Field(default=None, ge=0, le=400)
    at: Moment | None = None


class UnitInList(UnitIn):
    """News of the unit ``id``."""

    id: UnitId


class CountIn(In):
    """How many units are free at a depot, where the centre does not name its units."""

    depot: Name
    free: int = Field(ge=0, le=1000)
    at: Moment | None = None


def _kind_of_news(value: Any) -> str:
    return "count" if isinstance(value, dict) and "free" in value else "unit"


News = Annotated[
    Annotated[UnitInList, Tag("unit")] | Annotated[CountIn, Tag("count")],
    Discriminator(_kind_of_news),
]
UNITS_EXAMPLE = [
    {"id": "A117", "depot": "Kelp Point", "status": "at_station"},
    {"depot": "Gannet Bay", "free": 2},
]

_Point = Annotated[tuple[Longitude, Latitude], Field(strict=False)]  # JSON knows lists alone

CLOSURE_EXAMPLE: JsonDict = {
    "reason": "parade",
    "line": [[117.2388, 21.5842], [117.2403, 21.584]],
}


class ClosureIn(In):
    """A road or an area that is closed, now or ``from`` a moment, for good or ``until`` another.

    It is named by exactly one of three: ``edges`` of the network, a ``line`` along the road, which
    closes both of its directions, or a ``polygon`` (points of longitude and latitude). A polygon
    around more than a fifth of all edges needs ``whole_city``.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [CLOSURE_EXAMPLE]})

    since: Moment | None = Field(default=None, alias="from")
    until: Moment | None = None
    reason: Name | None = None
    edges: Annotated[list[int], Field(min_length=1, max_length=MOST_CLOSED)] | None = None
    line: Annotated[list[_Point], Field(min_length=2, max_length=_MOST_POINTS)] | None = None
    polygon: Annotated[list[_Point], Field(min_length=3, max_length=_MOST_POINTS)] | None = None
    whole_city: bool = False

    @model_validator(mode="after")
    def _one_shape(self) -> "ClosureIn":
        if [self.edges, self.line, self.polygon].count(None) != 2:
            raise ValueError("give exactly one of edges, line and polygon")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ValueError("until is not after from")
        return self


# --- the desk ---------------------------------------------------------------------


class SimulatedCalls(In):
    """So many invented calls, one every ``every_s``; zero calls stop the simulation."""

    every_s: Number = Field(default=8.0, ge=0.5, le=3600)
    count: int = Field(default=20, ge=0, le=10_000)


class ClockStep(In):
    """How far a simulated clock is to go ahead at once."""

    step_s: Number = Field(gt=0, le=31 * 86_400)


class SessionIn(In):
    """A token to be kept in a cookie that no script can read."""

    token: Annotated[str, Field(min_length=1, max_length=200)]
