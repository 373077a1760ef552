"""What one unit away costs the others: the price of a second ambulance.

A unit that is away for H seconds is missed by calls that come in meanwhile. The price is
the rise in the expected harm of those calls. Symbols: ν_i the rate of critical calls in
cell i, R_ig the expected harm if the unit of station g answers, a_j(s) the chance that unit
j is free after s seconds, ρ the share of busy units, h the mean occupation, τ = h (1 − ρ).
The harm at s is V(a) = Σ_i ν_i Σ_g Π_{g' before g} q_g' (1 − q_g) R_ig + …, where q_g is the
chance that no unit of station g is free and stations are in the order of R_ig.

Missing unit u costs f_u = V(a_u = 0) − V(a_u = 1) a second while the gap in the fleet is where
u would be. A call that only u would have answered there, of which δ come a second, is
answered by another unit, and until it is over the gap is where that one would be. So the gap
is displaced with the chance d(s) = δ / κ (1 − e^{−κ s}), κ = δ + 1/h, and then costs f̄, the mean
over the other units as they are free: C = ∫₀ᴴ (1 − d) f_u + d f̄ ds. After H the unit is back while
the one that stood in for it is still busy: a swap, worth d(H) / κ (f_u − f̄), which is taken off.
A unit that is on its way home is alone where it is, so that until it is there it is missed like
the only one of its station.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, frozen, read_only
from ideal_dispatch.compiled import kernel
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponseTime

HOURS = 24
UNCALIBRATED = (1.0, 0.0, 0.0, 0.0, 1.0)
"""Factors that leave a price as it is."""

_POINTS, _SHARES = np.polynomial.legendre.leggauss(4)
_POINTS, _SHARES = 0.5 * (_POINTS + 1.0), 0.5 * _SHARES
_ENOUGH = 1e-3  # a call that is this improbable to need a further station looks no further
_SURE = 1e-9  # no unit is free with a chance above 1 − this: products can be divided again
BUSIEST = 0.95
_SHORT_S, _LONG_S = 360.0, 4800.0  # beyond what was calibrated, the nearest counts
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)


class PriceTables(NamedTuple):
    """What prices are worked out from.

    ``order[i]`` has the stations by growing harm for calls of cell i, ``harm[i]`` their
    harms in that order, ``none[i]`` the harm where no unit is free. ``rate[i, hour]`` are the
    critical calls a second, which are the share ``critical`` of all. ``busy[hour]`` is the share
    of busy units, ``occupation_s`` how long a call takes one; a busy unit can leave its call for
    a critical one with the chance ``redirected``. ``factors`` calibrate: see :func:`calibrated`.
    """

    order: Any
    harm: Any
    none: Any
    rate: Any
    busy: Any
    occupation_s: float
    critical: float
    redirected: float
    factors: Any

    @classmethod
    def of(
        cls,
        harm: FloatArray,
        none: FloatArray,
        weights: npt.ArrayLike,
        calls_per_hour: npt.ArrayLike,
        units: npt.ArrayLike,
        occupation_s: float,
        *,
        critical: float = 1.0,
        redirected: float = 0.0,
        factors: npt.ArrayLike = UNCALIBRATED,
    ) -> "PriceTables":
        """From the harm of a call by station and cell, and by cell where no unit is free.

        ``weights`` says how calls fall on the cells; ``calls_per_hour`` and the number of
        ``units`` on duty are by hour of the day, or one number. Of all calls a share is
        ``critical``: they bear the harm, but all of them take units.
        """
        stations, cells = np.shape(harm)
        by_cell = read_only(harm, np.float64, (stations, cells), "price: harm").T
        share = read_only(weights, np.float64, (cells,), "price: weights of cells")
        hourly = np.broadcast_to(np.asarray(calls_per_hour, np.float64), HOURS) / 3600.0
        duty = np.broadcast_to(np.asarray(units, np.float64), HOURS)
        if not (np.isfinite(hourly) & (hourly >= 0.0)).all():
            raise InputError("price: calls an hour must be finite and zero or more")
        if not (share.sum() > 0.0 and (share >= 0.0).all()):
            raise InputError("price: weights of cells must be zero or more, and not all zero")
        if not (math.isfinite(occupation_s) and occupation_s > 0.0):
            raise InputError(f"price: a call takes a unit {occupation_s} s; more than 0 is needed")
        order = np.argsort(by_cell, axis=1, kind="stable").astype(np.int32)
        ordered = np.take_along_axis(by_cell, order, axis=1)
        rate = critical * np.outer(share / share.sum(), hourly)
        busy = np.clip(hourly * occupation_s / np.maximum(duty, 1.0), 0.0, BUSIEST)
        return cls(
            order, ordered, np.maximum(none, ordered[:, -1]), rate, busy, float(occupation_s),
            float(critical), float(redirected),
            np.array(read_only(factors, np.float64, (len(UNCALIBRATED),), "price: factors")),
        )  # fmt: skip

    @classmethod
    def of_deaths(
        cls,
        response: ResponseTime,
        weights: npt.ArrayLike,
        calls_per_hour: npt.ArrayLike,
        units: npt.ArrayLike,
        occupation_s: float,
        *,
        arrests: float = 0.03,
        curve: SurvivalCurve = CURVES[USUAL_CURVE],
        factors: npt.ArrayLike = UNCALIBRATED,
    ) -> "PriceTables":
        """In lives of cardiac arrests, which are the share ``arrests`` of all calls.

        ``response`` has the responses of stations (rows) to cells (columns). What passes between
        a call and the dispatch is the ``before_drive_s`` of ``curve``. ``factors`` are of a
        calibration, the others as in :meth:`of`.
        """
        # until the next busy one is free
        wait_s = occupation_s / max(float(np.asarray(units, np.float64).mean()), 1.0)
        harm = expected_deaths(response, 0.0, curve)
        none = expected_deaths(response, wait_s, curve).mean(axis=0)
        return cls.of(
            harm, none, weights, calls_per_hour, units, occupation_s, critical=arrests,
            factors=factors,
        )  # fmt: skip

    def cost(
        self,
        free: npt.ArrayLike,
        busy: Iterable[tuple[int, float | None]],
        station: int,
        hold_s: float,
        hour: int,
    ) -> float:
        """What the others lose if a free unit of ``station`` is away for ``hold_s``.

        ``free`` is the number of free units of every station, that unit among them. ``busy``
        has the station of each busy unit on duty and the expected seconds until it is free,
        None where nobody knows: then what a call takes on average.
        """
        stations = self.order.shape[1]
        counts = read_only(free, np.int64, (stations,), "price: free units")
        if not (0 <= station < stations and counts[station] > 0):
            raise InputError(f"price: no free unit at station {station}; name one that has a unit")
        mean_s = self.occupation_s
        away = [(at, mean_s if left_s is None else left_s) for at, left_s in busy]
        at_home = np.repeat(np.arange(stations), counts)
        units = np.concatenate([at_home, [at for at, _ in away]]).astype(np.int32)
        ready_s = np.concatenate([np.zeros(len(at_home)), [max(left, 1.0) for _, left in away]])
        if units.min() < 0 or units.max() >= stations:
            raise InputError(f"price: stations are 0 … {stations - 1}")
        scratch = np.empty((3, max(len(units), stations)))
        unit = int(np.flatnonzero(at_home == station)[0])
        return float(
            price_of(self, frozen(units), ready_s, unit, float(hold_s), hour % HOURS, scratch)
        )


def expected_deaths(response: ResponseTime, before_s: float, curve: SurvivalCurve) -> FloatArray:
    """The chance of death of patients whose response begins ``before_s`` after the call."""
    total: FloatArray = np.zeros_like(response.median_s)
    for chance, own in response.parts:
        spread = np.hypot(own, response.shared)
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            seconds = before_s + response.median_s * np.exp(spread * node)
            total = total + chance * weight * (1.0 - curve.probability(seconds))
    return total


@kernel(counted=False)
def free_after(seconds, ready_s, busy, occupation_s):  # type: ignore[no-untyped-def]
    """The chance that a unit is free after so many seconds.

    It is free now where ``ready_s`` is 0; else it is expected to be free after that time,
    which is taken to be exponential. In the long run it is busy a share ``busy`` of the time.
    """
    if ready_s == np.inf:
        return 0.0
    relax_s = max(occupation_s * (1.0 - busy), 1.0)
    if ready_s <= 0.0:
        return 1.0 - busy * (1.0 - math.exp(-seconds / relax_s))
    gone = math.exp(-seconds / ready_s)
    difference = relax_s / ready_s - 1.0
    if abs(difference) < 1e-6:
        again = seconds / ready_s * gone
    else:
        again = relax_s / ready_s * (math.exp(-seconds / relax_s) - gone) / difference
    return (1.0 - busy) * (1.0 - gone) + busy * again


@kernel(counted=False)
def price_of(tables, unit_station, ready_s, unit, hold_s, hour, scratch):  # type: ignore[no-untyped-def]
    """What the others lose if a unit is away for ``hold_s``, in expected harm.

    ``ready_s`` are the expected seconds until each unit is free: 0 at its station, below zero
    for one that is free on its way home and needs so many seconds, infinite off duty.
    ``scratch`` has three rows as long as there are units and stations.
    """
    occupation_s, home = tables.occupation_s, unit_station[unit]
    stations, units = tables.order.shape[1], unit_station.size
    none_free, missed, free = scratch[0, :stations], scratch[1, :stations], scratch[2, :units]
    total, swap, road = 0.0, 0.0, 0.0
    for k in range(_POINTS.size):
        seconds = hold_s * _POINTS[k]
        none_free[:] = 1.0
        for j in range(units):
            free[j] = free_after(seconds, ready_s[j], tables.busy[hour], occupation_s)
            none_free[unit_station[j]] *= _absent(free[j], tables.redirected)
        asked = _missed(tables, none_free, hour, home, missed)
        own, mean, present = 0.0, 0.0, 0.0
        for j in range(units):
            others = none_free[unit_station[j]] / _absent(free[j], tables.redirected)
            felt = missed[unit_station[j]] * others
            if j == unit:
                own = felt
                asked *= others
                if k == 0 and ready_s[j] < 0.0:
                    road = min(-ready_s[j], hold_s) * missed[home]
            else:
                mean += free[j] * felt
                present += free[j]
        mean /= max(present, _SURE)
        back = asked + 1.0 / occupation_s
        displaced = asked / back * (1.0 - math.exp(-back * seconds))
        total += hold_s * _SHARES[k] * ((1.0 - displaced) * own + displaced * mean)
        # the last point is near enough to the end to say what a swap is worth then
        swap = asked / back**2 * (1.0 - math.exp(-back * hold_s)) * (own - mean)
    return calibrated(tables.factors, max(total - swap, 0.0), road, hold_s, ready_s)


@kernel(counted=False)
def _absent(free, redirected):  # type: ignore[no-untyped-def]
    """The chance that a unit cannot go; above zero, so that products can be divided again."""
    return max((1.0 - free) * (1.0 - redirected), _SURE)


@kernel(counted=False)
def _missed(tables, none_free, hour, home, missed):  # type: ignore[no-untyped-def]
    """For every station what one unit more or less there changes, if it were its only one.

    Returns how many calls of all kinds a second come as far as the station ``home``.
    """
    missed[:] = 0.0
    asked, stations = 0.0, tables.order.shape[1]
    for i in range(tables.order.shape[0]):
        rate = tables.rate[i, hour]
        reach, least, last = 1.0, 1.0, stations
        for k in range(stations):  # how far a call may have to look, also if one has nobody
            reach *= none_free[tables.order[i, k]]
            least = min(least, none_free[tables.order[i, k]])
            if reach < _ENOUGH * least:
                last = k + 1
                break
        behind = tables.none[i] if last == stations else tables.harm[i, last]
        for k in range(last - 1, -1, -1):  # behind: the harm where the first k have nobody
            station = tables.order[i, k]
            empty = none_free[station]
            reach /= empty
            missed[station] += rate * reach * (behind - tables.harm[i, k])
            if station == home:
                asked += rate * reach
            behind = (1.0 - empty) * tables.harm[i, k] + empty * behind
    return asked / max(tables.critical, _SURE)


@kernel(counted=False)
def calibrated(factors, price, road, hold_s, ready_s):  # type: ignore[no-untyped-def]
    """The price as a city's own rollouts corrected it.

    ``factors`` multiply the price times 1, times the logarithm of the absence in quarters of an
    hour, times its square, and times the share of units that are busy, and last what is missed
    on the road.
    """
    present, away = 0, 0
    for unit in range(ready_s.size):
        if ready_s[unit] < np.inf:
            present += 1
            away += ready_s[unit] > 0.0
    share = away / max(present, 1)
    length = math.log(min(max(hold_s, _SHORT_S), _LONG_S) / 900.0)
    by = factors[0] + length * (factors[1] + length * factors[2]) + factors[3] * share
    return price * max(by, 0.05) + max(factors[4], 0.0) * road
