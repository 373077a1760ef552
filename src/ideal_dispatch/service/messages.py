"""What the parts of the service hand to each other about a call: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ideal_dispatch.context import Weather
from ideal_dispatch.service.units import Unit

LONGEST_NAME = 200
"""Letters of a depot or unit."""

MOST_CLOSED = 5000
"""Edges of one closure."""


@dataclass(frozen=True, slots=True)
class IncidentLocation:
    """Where the patient is, known to ``accuracy_m``."""

    lon: float
    lat: float
    accuracy_m: float | None = None


@dataclass(frozen=True, slots=True)
class AssignedPrimary:
    """The ambulance that the agency sends, by its unit, its depot or both.

    Its path comes as edges or as a polyline.
    """

    depot: str | None = None
    unit: str | None = None
    edges: Sequence[int] | None = None
    polyline: str | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """Edges that the centre closed, and why; ``reason`` may be empty."""

    id: str
    reason: str
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """What a recommendation is asked for; ``weather`` is what the caller knows of it."""

    call_id: str
    received_at: datetime
    location: IncidentLocation
    primary: AssignedPrimary | None = None
    weather: Mapping[str, float | None] | None = None
    threshold_s: float | None = None


@dataclass(frozen=True, slots=True)
class KnownWeather:
    """What is known about the weather now: ``age_s`` of its oldest value, and what is wrong."""

    weather: Weather = field(default_factory=Weather)
    age_s: float | None = None
    problem: str = ""
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """What the database holds at one moment, ``now`` in microseconds, for one decision.

    ``units`` are all units, whatever they do. ``closures`` are those in force.
    """

    now: int
    units: tuple[Unit, ...]
    closures: tuple[Closed, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What was decided about a call, before it is on record.

    ``fields`` are those of the API. ``primary`` is the unit that goes first, where one is known,
    and ``chosen`` says that we chose it. ``second`` is the unit to send, None where none goes.
    It ``needs`` the units that it chose to be free still when it is recorded.
    """

    fields: Mapping[str, Any]
    primary: str | None = None
    chosen: bool = False
    second: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        found: str = self.fields["decision"]
        return found


@dataclass(frozen=True, slots=True)
class Cover:
    """How far the next call is from help: drives of the nearest free unit to junctions.

    Half of them take at most ``median_s``, nine of ten at most ``p90_s``, of all junctions that
    a free unit could reach if no road were closed; None where closures cut off so many.
    """

    median_s: float | None
    p90_s: float | None


@dataclass(frozen=True, slots=True)
class FollowedUnit:
    """A unit of a running dispatch, how it gets on, and how long ago it was sent."""

    unit: Unit
    state: Literal["waiting", "en_route", "arrived", "lost"]
    sent_ago_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """A running dispatch to be looked at again, ``sent_ago_s`` after its first unit was sent.

    ``second`` is None where it was stood down or lost: ``free`` are units that could go. The
    second was to cost ``cost_lives`` for an absence of ``hold_s``; ``last`` is what was said
    before. ``traffic`` are, by unit, the seconds of its way that the live router and the forecast
    said at the call.
    """

    call_id: str
    location: IncidentLocation
    sent_ago_s: float
    first: FollowedUnit
    second: FollowedUnit | None
    free: tuple[Unit, ...] = ()
    cost_lives: float | None = None
    hold_s: float | None = None
    last: Mapping[str, Any] | None = None
    traffic: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CityFacts:
    """The city that advice is given for.

    ``depots`` are places (lon, lat) by name, ``bounds`` west, south, east and north, ``middle``
    the mean of all junctions; ``checksums`` are of the contents of all that decides, by part.
    """

    name: str
    depots: Mapping[str, tuple[float, float]]
    bounds: tuple[float, float, float, float]
    middle: tuple[float, float]
    time_zone: str
    checksums: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoadMap:
    """The roads as GeoJSON, plain and packed; ``checksum`` is the network's."""

    checksum: str
    plain: bytes
    packed: bytes


def unstorable(text: str) -> bool:
    """Whether it has a NUL or half a character, which not every store can keep."""
    return any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
