"""A weather provider: the weather of a moment at a place."""

from dataclasses import dataclass
from datetime import datetime

from ideal_dispatch import Weather, WeatherValue


@dataclass(frozen=True, slots=True)
class Thermometer:
    """A station of one's own that knows the temperature alone.

    A real one would ask an instrument here. What it cannot tell stays unknown;
    where it fails, it raises an ``ideal_dispatch.WeatherError``.
    """

    temperature_c: float = 20.0

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The weather of the nearest hour."""
        value = WeatherValue(self.temperature_c, "thermometer", "the roof", at)
        return Weather(temperature_c=value)
