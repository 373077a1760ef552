"""How slow places are over time: its memory, and how far places are slow together."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import LocalPlane

LEAST_SEEN = 10
"""A place counts on days on which it was seen so often."""

_MOST_PLACES = 3000
_TOLERANCE_S = 45.0
_NEAR = 0.15

Values = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Slowness:
    """Log of time over free-flow time, (moments, places); NaN where nothing is known.

    ``seconds`` and ``day`` place every moment: seconds from any fixed origin,
    rising, and a number that is the same within a day. ``lon``, ``lat`` and
    ``length_m`` are of the places.
    """

    values: Values
    seconds: FloatArray
    day: npt.NDArray[np.int64]
    lon: FloatArray
    lat: FloatArray
    length_m: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "values", read_only(self.values, np.float32, (None, None), "slowness")
        )
        moments, places = self.values.shape
        for name, dtype, size in (
            ("seconds", np.float64, moments), ("day", np.int64, moments),
            ("lon", np.float64, places), ("lat", np.float64, places),
            ("length_m", np.float64, places),
        ):  # fmt: skip
            object.__setattr__(self, name, read_only(getattr(self, name), dtype, (size,), name))
        if (np.diff(self.seconds) <= 0).any():
            raise InputError("slowness: its moments must be in order of time")

    def swings(self) -> Values:
        """Each place against its own mean of the day, in its own standard deviations.

        NaN on days with fewer than :data:`LEAST_SEEN` observations of the place.
        """
        swings = np.full_like(self.values, np.nan)
        for one in np.unique(self.day):
            rows = self.day == one
            known = ~np.isnan(self.values[rows])
            count = known.sum(axis=0)
            mean = np.where(known, self.values[rows], 0.0).sum(axis=0) / np.maximum(count, 1)
            swings[rows] = np.where(count >= LEAST_SEEN, self.values[rows] - mean, np.nan)
        known = ~np.isnan(swings)
        squares = np.where(known, swings, 0.0) ** 2
        spread = np.sqrt(squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1))
        return np.where(spread > 1e-6, swings / np.maximum(spread, 1e-6), np.nan).astype(np.float32)

    def levels(self) -> Values:
        """Mean of each place on each day against the city's, in standard deviations; (days, …).

        A place needs :data:`LEAST_SEEN` observations, or all where there are fewer.
        """
        rows = []
        for one in np.unique(self.day):
            values = self.values[self.day == one]
            known = ~np.isnan(values)
            count = known.sum(axis=0)
            enough = count >= min(LEAST_SEEN, len(values))
            mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
            spread = mean[enough].std() if enough.any() else 0.0
            middle = mean[enough].mean() if enough.any() else 0.0
            rows.append(np.where(enough & (spread > 0), (mean - middle) / (spread or 1.0), np.nan))
        return np.array(rows, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """Correlation by lag or distance: at ``at[i]`` it is ``value[i]``, from ``pairs[i]`` pairs."""

    at: FloatArray
    value: FloatArray
    pairs: FloatArray

    def near(self, at: float) -> float:
        """The value at the nearest lag or distance, at most 15 % away; NaN where it has none."""
        nearest = np.abs(self.at - at).argmin()
        near = abs(self.at[nearest] - at) <= _NEAR * at
        return float(self.value[nearest]) if near else np.nan


def autocorrelation(slowness: Slowness, lags_min: FloatArray) -> Correlation:
    """How alike the swings of a place are ``lags_min`` apart on the same day.

    Places count by how often they were seen at both moments.
    """
    swings = slowness.swings()
    value, pairs = np.full(lags_min.size, np.nan), np.zeros(lags_min.size)
    for number, lag_s in enumerate(60 * lags_min):
        wanted = slowness.seconds + lag_s
        later = np.searchsorted(slowness.seconds, wanted)
        later = np.minimum(later, slowness.seconds.size - 1)
        before = np.maximum(later - 1, 0)
        away = np.abs(slowness.seconds[[before, later]] - wanted)
        later = np.where(away[0] < away[1], before, later)
        meets = (away.min(axis=0) <= _TOLERANCE_S) & (slowness.day == slowness.day[later])
        earlier = np.flatnonzero(meets & (later != np.arange(later.size)))
        products = swings[earlier] * swings[later[earlier]]
        squares = (swings[earlier] ** 2 + swings[later[earlier]] ** 2) / 2
        pairs[number] = np.count_nonzero(~np.isnan(products))
        if pairs[number]:
            value[number] = np.nansum(products, dtype=float) / np.nansum(squares, dtype=float)
    return Correlation(lags_min, value, pairs)


def together(
    slowness: Slowness, standardised: Values, limits_km: FloatArray, rng: np.random.Generator
) -> Correlation:
    """How alike places are at the same moment, by the distance of their middles.

    ``standardised`` are :meth:`Slowness.swings` (they get slower together) or
    :meth:`Slowness.levels` (slow places lie together). ``limits_km`` bound the
    groups of distance; pairs count by how often both were seen. Of very many
    places a sample is taken.
    """
    seen = np.flatnonzero((~np.isnan(standardised)).any(axis=0))
    if seen.size > _MOST_PLACES:
        seen = np.sort(rng.choice(seen, _MOST_PLACES, replace=False))
    chosen = standardised[:, seen]
    known = (~np.isnan(chosen)).astype(np.float32)
    filled = np.nan_to_num(chosen)
    products, both = filled.T @ filled, known.T @ known
    squares = (filled**2).T @ known  # of the row's place, where both were seen
    plane = LocalPlane(float(slowness.lat[seen].mean())) if seen.size else LocalPlane(0.0)
    points = plane.to_metres(np.column_stack([slowness.lon[seen], slowness.lat[seen]])) / 1000
    total, power, pairs = np.zeros((3, limits_km.size + 1))
    for place in range(seen.size):
        others = slice(place + 1, None)
        km = np.hypot(*(points[others] - points[place]).T)
        group = np.digitize(km, limits_km)
        own = (squares[place, others] + squares[others, place]) / 2
        total += np.bincount(group, products[place, others], limits_km.size + 1)
        power += np.bincount(group, own, limits_km.size + 1)
        pairs += np.bincount(group, both[place, others], limits_km.size + 1)
    value = np.where(pairs > 0, total / np.maximum(power, 1e-12), np.nan)[1:-1]
    return Correlation((limits_km[1:] + limits_km[:-1]) / 2, value, pairs[1:-1])
