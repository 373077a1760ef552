"""What the service and its solvers tell each other: plain values, which load no schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ideal_dispatch.context import Weather

LONGEST_NAME = 200
"""Letters of a depot or unit."""


MOST_CLOSED = 5000
"""Edges of one closure."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the patient is, known to ``accuracy_m``."""

    lon: float
    lat: float
    accuracy_m: float | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """The ambulance that the agency sends, by its depot or as a unit that was told of.

    Its path comes as edges or as a polyline.
    """

    depot: str | None
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
    """What a recommendation is asked for.

    ``depots`` are names and free units, ``weather`` what the caller knows of it, None where not.
    ``closures`` are those in force: the service adds them, no caller does.
    """

    call_id: str
    received_at: datetime
    location: Scene
    primary: Sent | None = None
    depots: tuple[tuple[str, int], ...] | None = None
    weather: Mapping[str, float | None] | None = None
    threshold_s: float | None = None
    closures: tuple[Closed, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownUnit:
    """A unit of the fleet that is free, or that was sent to the call.

    ``place`` is its longitude, latitude and heading where it was seen ``age_s`` ago, None where it
    was not. ``waiting`` says that it has yet to leave, ``rolling`` that it drives to a call.
    ``promised`` is the call that counts on it.
    ``silent_s`` is how long ago the last news of it came, 0 of one that never tells its place: that
    one tells only what changes.
    """

    id: str
    station: str
    kind: str = ""
    place: tuple[float, float, float | None] | None = None
    age_s: float | None = None
    waiting: bool = True
    free: bool = True
    promised: str = ""
    silent_s: float = 0.0
    rolling: bool = False


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """Free units by depot name, how old the oldest of that is, and when each was told.

    ``promised`` are other calls by depot, one for each unit that is promised to them. Where the
    centre tells of its units one by one, ``fleet`` has those that count, and the rest is empty.
    """

    units: Mapping[str, int]
    age_s: float | None
    told_at: Mapping[str, datetime] = field(default_factory=dict)
    promised: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fleet: tuple[KnownUnit, ...] | None = None


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
    """A unit of a running dispatch, what it does for ``since_s``, and how long ago it was sent."""

    unit: KnownUnit
    state: Literal["waiting", "en_route", "arrived", "lost"]
    since_s: float
    sent_ago_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """A running dispatch to be looked at again, ``sent_ago_s`` after its first unit was sent.

    ``second`` is None where it was stood down: ``fleet`` are units that could go. ``free`` are the
    free units by station. The second was to cost ``cost_lives`` for an absence of ``hold_s``;
    ``last`` is what was said before, ``closures`` are those in force. ``traffic`` are, by unit, the
    seconds of its way that the live router and the forecast said at the call.
    """

    call_id: str
    location: Scene
    sent_ago_s: float
    first: FollowedUnit
    second: FollowedUnit | None
    free: Mapping[str, int]
    fleet: tuple[KnownUnit, ...] = ()
    cost_lives: float | None = None
    hold_s: float | None = None
    last: Mapping[str, Any] | None = None
    closures: tuple[Closed, ...] = ()
    traffic: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownWeather:
    """What is known about the weather now: ``age_s`` of its oldest value, and what is wrong."""

    weather: Weather = field(default_factory=Weather)
    age_s: float | None = None
    problem: str = ""
    stale: bool = False


@dataclass(frozen=True, slots=True)
class CityFacts:
    """The city that advice is given for.

    ``depots`` are places (lon, lat) by name, ``bounds`` west, south, east and
    north, ``middle`` the mean of all junctions; ``checksums`` are of the
    contents of all that decides, by part.
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
