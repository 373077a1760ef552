"""What is known when a call comes in: weather and calendar ([IDEAL] 𝒯)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from numbers import Real
from types import MappingProxyType

from ideal_dispatch.errors import InputError


@dataclass(frozen=True, slots=True)
class WeatherValue:
    """One number and where it came from; NaN where nothing is known.

    ``source`` names the provider, ``station`` the place it was measured or
    modelled for, ``observed_at`` (aware) the time it holds for.
    """

    value: float = math.nan
    source: str = ""
    station: str = ""
    observed_at: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, Real) or math.isinf(self.value):
            raise InputError(f"weather value {self.value!r} is not a number; use NaN for unknown")
        # one NaN, so that equal readings compare equal
        object.__setattr__(self, "value", float(self.value) if self.known else math.nan)
        if self.observed_at is not None:
            require_zone(self.observed_at)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeatherValue):
            return NotImplemented
        return self._compared == other._compared  # as tuples, in which the one NaN equals itself

    @property
    def _compared(self) -> tuple[float, str, str, datetime | None]:
        return self.value, self.source, self.station, self.observed_at

    @property
    def known(self) -> bool:
        return not math.isnan(self.value)

    def age(self, at: datetime) -> timedelta | None:
        """How much older than ``at`` the value is, or None where it has no time."""
        return None if self.observed_at is None else at - self.observed_at


@dataclass(frozen=True, slots=True)
class Weather:
    """The paper's five weather variables, each with its source."""

    temperature_c: WeatherValue = WeatherValue()
    rainfall_mm: WeatherValue = WeatherValue()
    humidity_percent: WeatherValue = WeatherValue()
    wind_kmh: WeatherValue = WeatherValue()
    pressure_hpa: WeatherValue = WeatherValue()

    def __iter__(self) -> Iterator[WeatherValue]:
        return (getattr(self, variable) for variable in WEATHER_VARIABLES)

    def completed_by(self, other: "Weather") -> "Weather":
        """The same, with what is unknown as ``other`` has it."""
        both = zip(self, other, strict=True)
        return Weather(*(own if own.known else theirs for own, theirs in both))


WEATHER_VARIABLES = tuple(f.name for f in fields(Weather))
"""Names of the five variables, units as suffixes; rainfall is of one hour."""


@dataclass(frozen=True, slots=True)
class Context:
    """Weather and calendar of one moment in one city.

    ``at`` is aware and in the city's own time zone: hour, weekday and month
    are read from it as they stand (:meth:`Calendar.context` takes care of it).
    ``extra`` holds further numbers that a configuration asks for.
    """

    at: datetime
    holiday: bool = False
    holiday_eve: bool = False
    weather: Weather = Weather()
    extra: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_zone(self.at)
        for name, value in self.extra.items():
            if not isinstance(value, Real) or math.isinf(value):
                raise InputError(f"context column {name}: {value!r} is not a finite number")
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))


def require_zone(at: datetime) -> None:
    """Refuse a time that says no offset from UTC."""
    if at.tzinfo is None or at.utcoffset() is None:
        raise InputError(f"time {at.isoformat()} has no zone; add its offset from UTC")
