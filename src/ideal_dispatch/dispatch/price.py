"""What one unit away costs the others: the price of a second ambulance.

A unit that is away for H seconds is missed by calls that come in meanwhile. The price is
the rise in the expected harm of those calls. Symbols: ν_i the rate of critical calls in
cell i, R_ig the expected harm if the unit of station g answers, a_j(s) the chance that unit
j is free after s seconds, ρ the share of busy units, h the mean occupation, τ = h (1 − ρ).
The harm at s is V(a) = Σ_i ν_i Σ_g Π_{g' before g} q_g' (1 − q_g) R_ig + …, where q_g is the
chance that no unit of station g is free and stations are in the order of R_ig.

Missing unit u costs f_u = V(a_u = 0) − V(a_u = 1) a second while u would be free. While it
would be busy anyway, its absence is felt by the unit that stands in for it: the mean f̄ over
all units. So C = ∫₀ᴴ a_u f_u + (1 − a_u) f̄ ds. After H the unit is back while the one that stood
in for it is still busy: a swap, worth ρ (1 − e^{−H/τ}) τ (f_u − f̄), which is taken off.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.compiled import kernel

_POINTS, _SHARES = np.polynomial.legendre.leggauss(4)
_POINTS, _SHARES = 0.5 * (_POINTS + 1.0), 0.5 * _SHARES
_ENOUGH = 1e-4  # a call that is this improbable to need a further station looks no further


class PriceTables(NamedTuple):
    """What prices are worked out from.

    ``order[i]`` has the stations by growing harm for calls of cell i, ``harm[i]`` their
    harms in that order, ``none[i]`` the harm where no unit is free. ``rate[i, hour]`` are the
    critical calls a second. ``busy[hour]`` is the share of busy units, ``occupation_s`` how
    long a call takes one. ``factors`` calibrate: see :func:`calibrated`.
    """

    order: Any
    harm: Any
    none: Any
    rate: Any
    busy: Any
    occupation_s: float
    factors: Any


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

    ``scratch`` has three rows as long as there are units and stations.
    """
    busy, occupation_s = tables.busy[hour], tables.occupation_s
    stations, units = tables.order.shape[1], unit_station.size
    total, last_own, last_mean = 0.0, 0.0, 0.0
    none_free, missed, free = scratch[0, :stations], scratch[1, :stations], scratch[2, :units]
    for k in range(_POINTS.size + 1):
        # the last round is at the end of the absence, for the swap
        seconds = hold_s * _POINTS[k] if k < _POINTS.size else hold_s
        none_free[:] = 1.0
        for j in range(units):
            free[j] = free_after(seconds, ready_s[j], busy, occupation_s)
            none_free[unit_station[j]] *= 1.0 - free[j]
        _missed(tables, none_free, hour, missed)
        own, mean, present = 0.0, 0.0, 0
        for j in range(units):
            if ready_s[j] == np.inf:
                continue
            others = 1.0
            for other in range(units):
                if other != j and unit_station[other] == unit_station[j]:
                    others *= 1.0 - free[other]
            felt = missed[unit_station[j]] * others
            mean += felt
            present += 1
            if j == unit:
                own = felt
        mean /= max(present, 1)
        if k < _POINTS.size:
            total += hold_s * _SHARES[k] * (free[unit] * own + (1.0 - free[unit]) * mean)
        else:
            last_own, last_mean = own, mean
    relax_s = max(occupation_s * (1.0 - busy), 1.0)
    swap = busy * (1.0 - math.exp(-hold_s / relax_s)) * relax_s * (last_own - last_mean)
    return calibrated(tables.factors, max(total - swap, 0.0), hold_s, ready_s)


@kernel(counted=False)
def _missed(tables, none_free, hour, missed):  # type: ignore[no-untyped-def]
    """For every station what one unit more or less there changes, if it were its only one."""
    missed[:] = 0.0
    stations = tables.order.shape[1]
    for i in range(tables.order.shape[0]):
        rate = tables.rate[i, hour]
        reach, last = 1.0, stations
        for k in range(stations):  # how far a call may have to look
            reach *= none_free[tables.order[i, k]]
            if reach < _ENOUGH:
                last = k + 1
                break
        behind = tables.none[i] if last == stations else tables.harm[i, last]
        # backwards: the harm where the first k stations have nobody, before the reach is known
        for k in range(last - 1, -1, -1):
            station = tables.order[i, k]
            empty = none_free[station]
            rise = behind - tables.harm[i, k]
            before = 1.0
            for j in range(k):
                before *= none_free[tables.order[i, j]]
            missed[station] += rate * before * rise
            behind = (1.0 - empty) * tables.harm[i, k] + empty * behind


@kernel(counted=False)
def calibrated(factors, price, hold_s, ready_s):  # type: ignore[no-untyped-def]
    """The price as a city's own rollouts corrected it.

    ``factors`` multiply 1, the logarithm of the absence in quarters of an hour, and the
    share of units that are busy; (1, 0, 0) leaves the price as it is.
    """
    present, away = 0, 0
    for unit in range(ready_s.size):
        if ready_s[unit] < np.inf:
            present += 1
            away += ready_s[unit] > 0.0
    share = away / max(present, 1)
    by = factors[0] + factors[1] * math.log(max(hold_s, 30.0) / 900.0) + factors[2] * share
    return price * max(by, 0.05)
