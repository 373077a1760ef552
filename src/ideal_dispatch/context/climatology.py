"""What the weather is usually like: the last resort when no source answers."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import FloatArray, read_only
from ideal_dispatch.context.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.context.weather import check_query, measured
from ideal_dispatch.errors import FileFormatError, InputError

SOURCE = "climatology"
_FILE = JsonKind("ideal-dispatch climatology", 1, "climatology", "write one with Climatology.save")
_SHAPE = (12, 24, len(WEATHER_VARIABLES))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Climatology:
    """Mean weather by month and hour, of one city.

    ``means`` has 12 months × 24 hours × 5 variables, NaN where nothing was
    observed. Hours are of UTC: the sun knows no summer time. The place of a
    query does not matter; ``place`` names the city the means are of.
    """

    means: FloatArray
    place: str = ""

    def __post_init__(self) -> None:
        means = read_only(self.means, np.float64, _SHAPE, "climatology")
        for index, variable in enumerate(WEATHER_VARIABLES):
            known = means[..., index][~np.isnan(means[..., index])]
            bad = next((v for v in known.tolist() if math.isnan(measured(v, variable))), None)
            if bad is not None:
                raise InputError(f"climatology: {variable} of {bad} is not possible")
        object.__setattr__(self, "means", means)

    @classmethod
    def fit(cls, readings: Iterable[Weather], place: str = "") -> "Climatology":
        """The means of observed values, each counted at its own time."""
        sums, counts = np.zeros(_SHAPE), np.zeros(_SHAPE)
        for weather in readings:
            for index, value in enumerate(weather):
                if value.known and value.observed_at is not None:
                    at = value.observed_at.astimezone(UTC)
                    sums[at.month - 1, at.hour, index] += value.value
                    counts[at.month - 1, at.hour, index] += 1
        if not counts.any():
            raise InputError("climatology: no observed value to fit; give recorded weather")
        return cls(np.divide(sums, counts, out=np.full(_SHAPE, math.nan), where=counts > 0), place)

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The mean of the month and hour, without a time of observation."""
        check_query(at, lon, lat)
        moment = at.astimezone(UTC)
        means = self.means[moment.month - 1, moment.hour].tolist()
        unknown, place = WeatherValue(), self.place
        return Weather(*(unknown if m != m else WeatherValue(m, SOURCE, place) for m in means))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that :meth:`load` turns into equal means."""
        known = self.means.astype(object)
        known[np.isnan(self.means)] = None
        content = {"place": self.place, "variables": WEATHER_VARIABLES, "means": known.tolist()}
        _FILE.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Climatology":
        """Read a climatology, or say in one line why the file holds none."""
        with _FILE.reading(path) as content:
            if tuple(content["variables"]) != WEATHER_VARIABLES:
                raise FileFormatError(f"a climatology of other variables; {_FILE.advice}")
            means = np.array(content["means"], dtype=np.float64)  # null becomes NaN
            return cls(means, str(content["place"]))
