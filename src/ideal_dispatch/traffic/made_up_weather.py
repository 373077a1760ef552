"""A year of made-up hourly weather: for simulated traffic and for samples."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.calendar import zone

_HOUR_S = 3600


@dataclass(frozen=True, slots=True, eq=False)
class MadeUpWeather:
    """Hourly values from ``start_s`` (UTC) on, a column per variable."""

    start_s: int
    values: FloatArray

    @classmethod
    def of_year(cls, year: int, time_zone: str, seed: int) -> "MadeUpWeather":
        """A subtropical year: warm wet summers, showers that last some hours, a daily course."""
        rng = np.random.default_rng(seed)
        there = zone(time_zone)
        start_s, end_s = (
            int(datetime(y, 1, 1, tzinfo=there).timestamp()) for y in (year, year + 1)
        )
        hours = np.arange((end_s - start_s) // _HOUR_S)
        season = -np.cos(2 * np.pi * (hours / 24 - 20) / 365)  # −1 in January, 1 in July
        daily = -np.cos(2 * np.pi * ((hours - 3) % 24) / 24)
        slow = _smooth(rng.normal(size=hours.size), 48)
        showers = _smooth(rng.normal(size=hours.size), 4) + 0.4 * season > 1.75
        rain = np.where(showers, rng.gamma(1.2, 4.0, hours.size), 0.0)
        columns = {
            "temperature_c": 23 + 6 * season + 2.2 * daily + 1.5 * slow - 1.5 * showers,
            "rainfall_mm": np.minimum(rain, 90),
            "humidity_percent": np.clip(74 + 8 * season - 7 * daily + 12 * showers, 25, 100),
            "wind_kmh": np.abs(12 + 5 * slow + 4 * daily + 6 * showers),
            "pressure_hpa": 1013 - 7 * season + 2.5 * slow,
        }
        return cls(start_s, np.column_stack([columns[v] for v in WEATHER_VARIABLES]).round(1))


def _smooth(noise: FloatArray, hours: int) -> FloatArray:
    """Moving average around the year, scaled back to unit variance."""
    window = np.ones(hours) / np.sqrt(hours)
    wrapped = np.concatenate([noise, noise[: hours - 1]])
    smooth: FloatArray = np.convolve(wrapped, window, "valid")
    return smooth
