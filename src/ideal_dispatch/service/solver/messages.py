"""What the service and its solvers tell each other: plain values, which load no schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ideal_dispatch.context import Weather

LONGEST_NAME = 200
"""Letters of a depot or unit."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the patient is, known to ``accuracy_m``."""

    lon: float
    lat: float
    accuracy_m: float | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """The ambulance that the agency sends, and its path as edges or as a polyline."""

    depot: str
    unit: str | None = None
    edges: Sequence[int] | None = None
    polyline: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What a recommendation is asked for.

    ``depots`` are names and free units, ``weather`` what the caller knows of it, None where not.
    """

    call_id: str
    received_at: datetime
    location: Scene
    primary: Sent | None = None
    depots: tuple[tuple[str, int], ...] | None = None
    weather: Mapping[str, float | None] | None = None
    threshold_s: float | None = None


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """Free units by depot name, how old the oldest of that is, and when each was told.

    ``promised`` are other calls by depot, one for each unit that is promised to them.
    """

    units: Mapping[str, int]
    age_s: float | None
    told_at: Mapping[str, datetime] = field(default_factory=dict)
    promised: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
