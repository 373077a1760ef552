"""What is known beside a call: free units, the weather, the names of depots."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches

from ideal_dispatch.context import Weather

_NAMED = 5  # depots in words


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """Free units by depot name, how old the oldest of that is, and when each was told."""

    units: Mapping[str, int]
    age_s: float | None
    told_at: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownWeather:
    """What is known about the weather now: ``age_s`` of its oldest value, and what is wrong."""

    weather: Weather = field(default_factory=Weather)
    age_s: float | None = None
    problem: str = ""
    stale: bool = False


def named(depots: Iterable[str]) -> str:
    """Depots in words; of many the first."""
    names = list(depots)
    return f"{', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''}"


def unknown_depot(name: str, depots: Iterable[str]) -> str:
    """What to say about a depot that is none."""
    names = list(depots)
    near = get_close_matches(name, names, 1)
    advice = f"did you mean {near[0]}?" if near else f"there are {named(names)}"
    return f"no depot is called {name!r}; {advice}"
