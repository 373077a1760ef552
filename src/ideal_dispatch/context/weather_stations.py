"""Weather stations: which is nearest, and which of its values holds at a moment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.context import Weather, WeatherValue
from ideal_dispatch.context.weather import NEAREST_LIMIT, OutdatedWeatherError, check_query
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.network.geodesy import great_circle_m

Seconds = npt.NDArray[np.int64]
REACH_M = 100_000.0
"""A station further away than this says nothing about a place."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One variable at one station: UTC seconds, sorted, and a finite value at each."""

    at_s: Seconds
    value: FloatArray

    @classmethod
    def of(cls, values: Mapping[int, float]) -> "Series":
        """The series of ``values`` by UTC second; NaN is left out."""
        known = sorted((second, value) for second, value in values.items() if value == value)
        return cls(np.array([s for s, _ in known], np.int64), np.array([v for _, v in known]))

    def nearest(self, second: float, limit: timedelta = NEAREST_LIMIT) -> int | None:
        """Index of the value nearest in time, or None when none is within ``limit``."""
        times = self.at_s
        after = int(np.searchsorted(times, second))
        around = [i for i in (after - 1, after) if 0 <= i < times.size]  # the earlier wins a tie
        best = min(around, key=lambda i: abs(float(times[i]) - second), default=None)
        near = best is not None and abs(float(times[best]) - second) <= limit.total_seconds()
        return best if near else None


@dataclass(frozen=True, slots=True)
class WeatherStation:
    """A station, its place (NaN where unknown), and a series per variable it measures."""

    name: str
    lon: float = math.nan
    lat: float = math.nan
    series: Mapping[str, Series] = field(default_factory=dict, repr=False)


class WeatherStations:
    """Stations of one source, asked for the nearest value.

    For each variable the nearest station that has a value at the time counts;
    stations whose place is unknown come last.
    """

    def __init__(self, stations: Sequence[WeatherStation], source: str) -> None:
        self.source = source
        self.stations = tuple(sorted(stations, key=lambda station: station.name))
        self._by_variable: dict[str, tuple[list[WeatherStation], FloatArray, FloatArray]] = {}
        for variable in sorted({v for station in stations for v in station.series}):
            having = [s for s in self.stations if variable in s.series]
            lons, lats = np.array([(s.lon, s.lat) for s in having]).T
            self._by_variable[variable] = having, lons, lats

    def reading(
        self, at: datetime, lon: float, lat: float, outdated: WeatherError | None = None
    ) -> Weather:
        """The nearest values in time and place; ``outdated`` is why they could not be renewed."""
        check_query(at, lon, lat)
        second = at.timestamp()
        found = {}
        for variable, (having, lons, lats) in self._by_variable.items():
            far_m = great_circle_m(lons, lats, np.float64(lon), np.float64(lat))  # type: ignore[arg-type]
            for index in np.argsort(far_m, kind="stable").tolist():  # NaN sorts last
                station = having[index]
                series = station.series[variable]
                nearest = series.nearest(second)
                if nearest is not None and not far_m[index] > REACH_M:
                    found[variable] = WeatherValue(
                        float(series.value[nearest]),
                        self.source,
                        station.name,
                        datetime.fromtimestamp(int(series.at_s[nearest]), UTC),
                    )
                    break
        if outdated is not None:
            raise OutdatedWeatherError(str(outdated), Weather(**found))
        return Weather(**found)
