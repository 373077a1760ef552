"""Weather stations: which is nearest, and which of its values holds at a moment."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.context import Weather, WeatherValue
from ideal_dispatch.context.weather import NEAREST_LIMIT, OutdatedWeatherError, check_query
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.network.geodesy import great_circle_m

REACH_M = 100_000.0
"""A station further away than this says nothing about a place."""
NOWHERE = (math.nan, math.nan)
"""The place of a station that is not known."""

Measured = Mapping[tuple[str, str], Mapping[int, float]]
"""Values by UTC second, of a station and a variable; NaN is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One variable at one station: UTC seconds, sorted, and a finite value at each."""

    station: str
    at_s: npt.NDArray[np.int64]
    values: FloatArray

    def nearest(self, second: float) -> int | None:
        """Index of the value nearest in time, or None when none is within the limit."""
        times = self.at_s
        after = int(np.searchsorted(times, second))
        around = [i for i in (after - 1, after) if 0 <= i < times.size]  # the earlier wins a tie
        best = min(around, key=lambda i: abs(float(times[i]) - second), default=None)
        limit_s = NEAREST_LIMIT.total_seconds()
        near = best is not None and abs(float(times[best]) - second) <= limit_s
        return best if near else None


class WeatherStations:
    """Stations of one source, asked for the nearest value.

    For each variable the nearest station that has a value at the time counts;
    stations whose place is unknown come last. ``place`` gives longitude and
    latitude of a station, which may differ by variable.
    """

    def __init__(
        self,
        measured: Measured,
        source: str,
        place: Callable[[str, str], tuple[float, float]] = lambda station, variable: NOWHERE,
    ) -> None:
        self.source = source
        self._series: dict[str, list[Series]] = {}
        for (station, variable), values in sorted(measured.items()):
            known = sorted((second, value) for second, value in values.items() if value == value)
            if known:
                at_s, numbers = zip(*known, strict=True)
                series = Series(station, np.array(at_s, np.int64), np.array(numbers))
                self._series.setdefault(variable, []).append(series)
        self._places = {
            variable: np.array([place(one.station, variable) for one in having]).T
            for variable, having in self._series.items()
        }

    def reading(
        self, at: datetime, lon: float, lat: float, outdated: WeatherError | None = None
    ) -> Weather:
        """The nearest values in time and place; ``outdated`` is why they could not be renewed."""
        check_query(at, lon, lat)
        found, second = {}, at.timestamp()
        for variable, having in self._series.items():
            lons, lats = self._places[variable]
            far_m = lons  # NaN is as far as it is known to be
            if lons.size > 1 or not math.isnan(lons[0]):
                far_m = great_circle_m(lons, lats, np.float64(lon), np.float64(lat))  # type: ignore[arg-type]
            for index in np.argsort(far_m, kind="stable").tolist():  # NaN sorts last
                nearest = having[index].nearest(second)
                if nearest is not None and not far_m[index] > REACH_M:
                    found[variable] = self._value(having[index], nearest)
                    break
        if outdated is not None:
            raise OutdatedWeatherError(str(outdated), Weather(**found))
        return Weather(**found)

    def hours(self) -> Iterator[Weather]:
        """Every hour of every station."""
        for station in sorted({one.station for having in self._series.values() for one in having}):
            hours: dict[int, dict[str, WeatherValue]] = {}
            for variable, having in self._series.items():
                for own in (one for one in having if one.station == station):
                    for index, second in enumerate(own.at_s.tolist()):
                        hours.setdefault(second, {})[variable] = self._value(own, index)
            yield from (Weather(**values) for _, values in sorted(hours.items()))

    def _value(self, series: Series, index: int) -> WeatherValue:
        at = datetime.fromtimestamp(int(series.at_s[index]), UTC)
        return WeatherValue(float(series.values[index]), self.source, series.station, at)
