"""Weather at a place and time: what a provider is, and how several are combined.

Every provider follows one rule: the value nearest in time counts (of two
equally near the earlier, which was already known), and a value more than
:data:`NEAREST_LIMIT` away is unknown.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

from ideal_dispatch.context.context import WEATHER_VARIABLES, Weather, require_zone
from ideal_dispatch.errors import InputError, WeatherError

NEAREST_LIMIT = timedelta(minutes=90)
"""A value further away in time than this is unknown."""

MISSING = frozenset({"", "n/a", "na", "m", "////", "nan", "null", "none", "-", "--", "***", "#n/a"})
"""How sources write that a value is missing, in lower case."""

PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "temperature_c": (-90.0, 60.0),
    "rainfall_mm": (0.0, 500.0),
    "humidity_percent": (0.0, 100.0),
    "wind_kmh": (0.0, 450.0),
    "pressure_hpa": (850.0, 1100.0),
}
"""Values outside these limits (-999, 32767) are faults of a sensor or a file: unknown."""

_MANY = 100  # different problems counted apart


@runtime_checkable
class WeatherProvider(Protocol):
    """A source of weather."""

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The weather of the nearest hour; what the source does not know is unknown.

        A source that cannot answer raises a :class:`WeatherError`.
        """
        ...


class OutdatedWeatherError(WeatherError):
    """The source failed; ``known`` is what it said before, still within the limit."""

    def __init__(self, message: str, known: Weather) -> None:
        super().__init__(message)
        self.known = known


@dataclass(frozen=True, slots=True)
class FirstKnown:
    """Each variable from the first provider that knows it, with its own source.

    A provider that fails does not lose the others: its :class:`WeatherError`
    is counted in ``problems`` and handed to ``on_problem``. A FirstKnown among
    the providers is taken apart, so all problems are reported here.
    """

    providers: Sequence[WeatherProvider]
    on_problem: Callable[[WeatherError], None] | None = None
    problems: Counter[str] = field(default_factory=Counter, init=False, compare=False)

    def __post_init__(self) -> None:
        flat: list[WeatherProvider] = []
        for provider in self.providers:
            flat.extend(provider.providers if isinstance(provider, FirstKnown) else [provider])
        if not flat:
            raise InputError("weather: no provider is given; a list of at least one is needed")
        object.__setattr__(self, "providers", tuple(flat))

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The weather that any provider knows; asks no further once all is known."""
        check_query(at, lon, lat)
        found = Weather()
        for provider in self.providers:
            if all(value.known for value in found):
                break
            try:
                found = found.completed_by(provider.reading(at, lon, lat))
            except WeatherError as error:
                known = str(error) in self.problems or len(self.problems) < _MANY
                self.problems[str(error) if known else "further problems"] += 1
                if self.on_problem is not None:
                    self.on_problem(error)
                if isinstance(error, OutdatedWeatherError):
                    found = found.completed_by(error.known)
        return found


def source_counts(readings: Iterable[Weather]) -> dict[str, dict[str, int]]:
    """How many values of each variable came from which source, "unknown" included.

    Stored with a model, it shows when training and serving use different sources.
    """
    counts: dict[str, Counter[str]] = {variable: Counter() for variable in WEATHER_VARIABLES}
    for weather in readings:
        for variable, value in zip(WEATHER_VARIABLES, weather, strict=True):
            counts[variable][value.source if value.known else "unknown"] += 1
    return {variable: dict(sorted(counter.items())) for variable, counter in counts.items()}


def check_query(at: datetime, lon: float, lat: float) -> None:
    """Refuse a time without zone and a place that is not on Earth."""
    from ideal_dispatch.network.geodesy import check_degrees  # web workers load no NumPy

    require_zone(at)
    check_degrees(lon, lat)


def measured(value: object, variable: str) -> float:
    """A source's entry as a number, NaN where it is missing, no number or not plausible."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    low, high = PLAUSIBLE[variable]
    return number if low <= number <= high else math.nan


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)
