"""A year of hourly weather that never was: for synthetic records and for tests."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.files import write_csv

SOURCE = "synthetic"
_HOUR_S = 3600


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticWeather:
    """Hourly values from ``start_s`` (UTC) on, a column per variable; a weather provider."""

    start_s: int
    values: FloatArray
    time_zone: str

    @classmethod
    def of_year(cls, year: int, time_zone: str, seed: int) -> "SyntheticWeather":
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
        return cls(
            start_s, np.column_stack([columns[v] for v in WEATHER_VARIABLES]).round(1), time_zone
        )

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The weather of the nearest hour, the same everywhere."""
        hour = round((at.timestamp() - self.start_s) / _HOUR_S)
        if not 0 <= hour < len(self.values):
            return Weather()
        observed = datetime.fromtimestamp(self.start_s + hour * _HOUR_S, UTC)
        pairs = zip(WEATHER_VARIABLES, self.values[hour].tolist(), strict=True)
        return Weather(**{name: WeatherValue(value, SOURCE, "", observed) for name, value in pairs})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV that ``[weather] source = "recorded"`` reads without a mapping."""
        there, rows = zone(self.time_zone), []
        for index, row in enumerate(self.values.tolist()):
            at = datetime.fromtimestamp(self.start_s + index * _HOUR_S, there)
            rows.append([at.isoformat(), SOURCE, *row])
        write_csv(path, ["time", "station", *WEATHER_VARIABLES], rows)


def _smooth(noise: FloatArray, hours: int) -> FloatArray:
    """Moving average around the year, scaled back to unit variance."""
    window = np.ones(hours) / np.sqrt(hours)
    wrapped = np.concatenate([noise, noise[: hours - 1]])
    smooth: FloatArray = np.convolve(wrapped, window, "valid")
    return smooth
