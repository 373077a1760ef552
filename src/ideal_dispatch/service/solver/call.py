"""A call as a solver gets it: plain values, so that its process loads no reader of JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

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


def unstorable(text: str) -> bool:
    """Whether it has a NUL or half a character, which not every store can keep."""
    return any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
