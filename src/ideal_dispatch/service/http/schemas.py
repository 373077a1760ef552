"""The API's JSON that comes in, strictly checked."""

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from ideal_dispatch.service.solver.messages import LONGEST_NAME, Call, Scene, Sent, unstorable

OverrideReason = Literal[
    "unit_unavailable", "road_knowledge", "patient_condition", "capacity", "other"
]

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


def first_fault(errors: Sequence[Any]) -> tuple[str, str]:
    """Where the first of pydantic's errors is, and what it says."""
    where = ".".join(str(part) for part in errors[0]["loc"])
    return where, str(errors[0]["msg"]).removeprefix("Value error, ")


def _as_text(value: Any) -> Any:
    """Moments come as RFC 3339 text; a bare number could be seconds or milliseconds."""
    if isinstance(value, datetime) or (isinstance(value, str) and _MOMENT.match(value)):
        return value
    raise ValueError("a moment is written as text, such as 2026-03-01T08:15:00+08:00")


def _plain_zone(at: datetime) -> datetime:
    """The same moment on the same clock; pydantic's own zones would bring it to a solver."""
    offset = at.utcoffset()
    assert offset is not None  # the schema takes none without
    return at.replace(tzinfo=timezone(offset))


def plain_text(value: Any) -> Any:
    """Text that every store can keep: no NUL, no half characters."""
    if isinstance(value, str) and unstorable(value):
        raise ValueError("a NUL or half a character is in this text")
    return value


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_as_text)]
Number = Annotated[float, Field(allow_inf_nan=False)]

# limits come first, so that the schema tells them
CallId = Annotated[str, Field(min_length=1, max_length=128), BeforeValidator(plain_text)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), BeforeValidator(plain_text)]
Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[0-9a-z]+$")]
Note = Annotated[str, Field(max_length=2000), BeforeValidator(plain_text)]


class In(BaseModel):
    """What comes in: unknown keys are mistakes, and numbers are no texts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Location(In):
    """Where the patient is. Beyond the limits it is longitude and latitude swapped, or wrong."""

    lon: Number = Field(ge=-180, le=180)
    lat: Number = Field(ge=-90, le=90)
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
    """The ambulance that the agency sends: its depot or its unit, and its path.

    The depot may be left out where the unit was told of by PUT /v1/fleet/units. The path comes as
    edges or as a polyline.
    """

    depot: Name | None = None
    unit: Name | None = None
    edges: Annotated[list[int], Field(max_length=20_000)] | None = None
    polyline: Annotated[str, Field(max_length=65_536)] | None = None

    @model_validator(mode="after")
    def _one_path(self) -> "Primary":
        if self.edges is not None and self.polyline is not None:
            raise ValueError("edges and polyline both name the path; give one of them")
        if self.depot is None and self.unit is None:
            raise ValueError("name the depot or the unit of the primary")
        return self


class DepotCount(In):
    """Units that are free at a depot now, one already sent to this call not counted."""

    name: Name
    units: int = Field(ge=0, le=1000)


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


REQUEST_EXAMPLE: JsonDict = {
    "call_id": "2026-000123",
    "idempotency_key": "2026-000123/1",
    "received_at": "2026-03-01T08:15:00+08:00",
    "location": {"lon": 114.15, "lat": 22.28, "accuracy_m": 25},
    "primary": {"depot": "Kelp Point", "unit": "A117"},
    "depots": [{"name": "Kelp Point", "units": 1}, {"name": "Gannet Bay", "units": 2}],
    "note": "12 Lantern Street, 3rd floor",
}


class RecommendationRequest(In):
    """A call. ``primary`` null: we choose one by the router, and say so.

    ``depots`` left out: the units last told by PUT /v1/units, without the
    primary where its depot's count is older than the call.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [REQUEST_EXAMPLE]})

    call_id: CallId
    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    received_at: Moment
    location: Location
    primary: Primary | None = None
    depots: Annotated[list[DepotCount], Field(max_length=500)] | None = None
    context: ContextIn | None = None
    threshold_s: Number | None = Field(default=None, ge=-86_400, le=86_400)
    note: Note | None = None

    def content(self) -> dict[str, Any]:
        """The request for the audit: all but its key."""
        return self.model_dump(mode="json", exclude={"idempotency_key"})

    def call(self) -> Call:
        """The call for a solver."""
        told = None if self.context is None else self.context.weather
        return Call(
            self.call_id,
            _plain_zone(self.received_at),
            Scene(**self.location.model_dump()),
            None if self.primary is None else Sent(**self.primary.model_dump()),
            None if self.depots is None else tuple((one.name, one.units) for one in self.depots),
            None if told is None else told.model_dump(),
            self.threshold_s,
        )


class HumanResponse(In):
    """What the dispatcher did with the advice."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"action": "override", "reason_code": "road_knowledge", "text": "parade"}]
        }
    )

    action: Literal["accept", "override"]
    reason_code: OverrideReason | None = None
    text: Note | None = None

    @model_validator(mode="after")
    def _reasoned(self) -> "HumanResponse":
        if self.action == "override" and self.reason_code is None:
            raise ValueError("an override needs a reason_code")
        return self


class UnitsIn(In):
    """All units that are free at a depot, now or at ``updated_at``."""

    depot: Name
    units: int = Field(ge=0, le=1000)
    updated_at: Moment | None = None


class SimulatedCalls(In):
    """So many invented calls, one every ``every_s``; zero calls stop the simulation."""

    every_s: Number = Field(default=8.0, ge=0.5, le=3600)
    count: int = Field(default=20, ge=0, le=10_000)


class SessionIn(In):
    """A token to be kept in a cookie that no script can read."""

    token: Annotated[str, Field(min_length=1, max_length=200)] | None = None
