"""Units that arrived, what was known of each at its call, and plain ways to expect its time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records import Trips
from ideal_dispatch.records.responses import Responses

LONGEST_S = 3600.0
"""A unit that takes longer was not on its way to an emergency."""

_CONSTANTS_S = np.arange(0.0, 181.0, 10.0)
_NEVER = np.datetime64("NaT", "s")
_PRIOR = 30.0  # arrivals: the factor of all hours counts like so many of each hour

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Units that arrived, a row each.

    ``rows`` are their places in the log. ``straight_m`` is how far the scene is from
    where they started, ``road_m`` and ``free_flow_s`` the length and the time of the fastest
    path on empty roads: NaN where they are not known. ``trips`` are the same
    units on the ``network``, both None without one.
    """

    responses: Responses
    rows: Rows
    took_s: FloatArray
    straight_m: FloatArray
    road_m: FloatArray
    free_flow_s: FloatArray
    network: RoadNetwork | None = None
    trips: Trips | None = None

    @classmethod
    def of(cls, responses: Responses, network: RoadNetwork | None = None) -> "Arrivals":
        """All units whose time from dispatch to scene is known and can be one.

        On a ``network``, those whose start and scene are near a junction.
        """
        took_s = responses.response_s
        with np.errstate(invalid="ignore"):
            usable = responses.arrived & (took_s > 0.0) & (took_s <= LONGEST_S)
        straight_m = great_circle_m(
            responses.from_lon, responses.from_lat, responses.lon, responses.lat
        )
        unknown = np.full(len(responses), np.nan)
        if network is None:
            rows: Rows = np.flatnonzero(usable)
            unknown = unknown[rows]
            return cls(responses, rows, took_s[rows], straight_m[rows], unknown, unknown)
        # remarks and odd times of leaving were found out after the call: they may not choose
        # what is judged
        left = np.where(responses.en_route < responses.on_scene, responses.en_route, _NEVER)
        plain = replace(responses, remark=np.zeros(len(responses), np.uint8), en_route=left)
        trips, placed = plain.trips(network)
        kept = usable[placed]
        trips, rows = trips.select(kept), placed[kept].astype(np.int64)
        times_s = network.free_flow_times_s
        paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        return cls(
            responses,
            rows,
            took_s[rows],
            straight_m[rows],
            np.array([network.length_m[path.edges].sum() for path in paths]),
            np.array([path.time_s(times_s) for path in paths]),
            network,
            trips,
        )

    def __len__(self) -> int:
        return int(self.rows.size)

    def select(self, index: npt.NDArray[Any]) -> "Arrivals":
        """The rows of ``index``, numbers or a mask."""
        names = ("rows", "took_s", "straight_m", "road_m", "free_flow_s")
        trips = None if self.trips is None else self.trips.select(index)
        return replace(self, **{name: getattr(self, name)[index] for name in names}, trips=trips)

    def places(self, rows: npt.NDArray[Any]) -> Rows:
        """Where rows of the log are in here; −1 where they are not."""
        where = np.full(len(self.responses) + 1, -1)
        where[self.rows] = np.arange(len(self))
        return np.asarray(where[rows])

    def of_log(self, name: str) -> Any:
        """A column of the log for each unit."""
        return getattr(self.responses, name)[self.rows]

    @property
    def on_roads(self) -> tuple[RoadNetwork, Trips]:
        """The network and the units' trips on it, or an error where there is none."""
        if self.network is None or self.trips is None:
            raise InputError("times of roads need the network; give it with --network")
        return self.network, self.trips

    @property
    def sound(self) -> BoolArray:
        """Where nothing is said against the row: what may be learned from."""
        return np.asarray(self.of_log("remark") == 0)


def as_if_arrived(responses: Responses) -> Responses:
    """The same units, each with an arrival: for asking what was to be expected of them.

    The time of arrival is made up and says nothing.
    """
    n = len(responses)
    sent = np.where(np.isnat(responses.dispatched), responses.at, responses.dispatched)
    return replace(
        responses,
        dispatched=sent,
        en_route=np.full(n, "NaT", "M8[s]"),
        on_scene=(sent + np.timedelta64(60, "s")).astype("M8[s]"),
        remark=np.zeros(n, np.uint8),
    )


Predict = Callable[[Arrivals], FloatArray]
"""Seconds from dispatch to scene, for every unit."""


def by_hour(learned_from: Arrivals, base: str) -> tuple[Predict, Predict]:
    """A constant plus a base (``straight_m``, …) times a factor of the hour: whole, and drive.

    The constant and the factors are those of least absolute error. Factors of hours
    with few arrivals are drawn to that of all hours.
    """
    values, took_s = getattr(learned_from, base), learned_from.took_s
    hours = learned_from.of_log("hour").astype(int)
    known = values > 0.0  # not NaN, and not at the station's own door
    if not known.any():
        raise InputError(f"{base}: no unit to learn from has one; give more rows before the date")
    values, took_s, hours = values[known], took_s[known], hours[known]
    best: tuple[float, float, FloatArray] | None = None
    for constant_s in _CONSTANTS_S:
        factors = _factors(took_s - constant_s, values, hours)
        error = float(np.abs(constant_s + values * factors[hours] - took_s).mean())
        if best is None or error < best[0]:
            best = error, float(constant_s), factors
    assert best is not None
    _, constant_s, factors = best

    def drive(asked: Arrivals) -> FloatArray:
        return np.asarray(getattr(asked, base) * factors[asked.of_log("hour").astype(int)])

    return lambda asked: constant_s + drive(asked), drive


def _factors(seconds: FloatArray, base: FloatArray, hours: npt.NDArray[np.int64]) -> FloatArray:
    """For every hour, and −1 for an hour that is not known, the factor of least error."""
    usual = _best_factor(seconds, base)
    factors = np.full(25, usual)
    for hour in np.unique(hours[hours >= 0]):
        here = hours == hour
        weight = here.sum() / (here.sum() + _PRIOR)
        factors[hour] = weight * _best_factor(seconds[here], base[here]) + (1 - weight) * usual
    return np.asarray(np.maximum(factors, 1e-6))


def _best_factor(seconds: FloatArray, base: FloatArray) -> float:
    """The factor of least Σ |seconds − factor · base|: a weighted median."""
    ratio = seconds / base
    order = np.argsort(ratio, kind="stable")
    weight = np.cumsum(base[order])
    return float(ratio[order][np.searchsorted(weight, weight[-1] / 2.0)])
