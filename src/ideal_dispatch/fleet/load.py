"""Fleets of another size, and the number of calls that keeps a fleet so busy."""

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.results import year_totals
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.ranges import Range

_DAYS = 120
_WITHIN = 0.002  # the busy share may miss by so much: other seeds differ as much
_AT_MOST = 0.005  # calls are drawn again at every rate, so that the share jumps by about so much
_TRIES = 12
_RANGE = Range(0.01, 0.95, why=": above, calls wait without end")
_ALONE = SecondRule("never").compiled("none")


def busy_share(city: FleetCity, *, seed: int = 0, days: int = _DAYS) -> float:
    """The share of unit time on duty that is busy if no call gets a second unit."""
    simulator = Simulator(city)
    calls = draw_calls(city, seed, days=days)
    totals, _ = year_totals(simulator, calls, *simulator.run(calls, _ALONE), days)
    return float(totals["busy"])


def at_utilisation(city: FleetCity, utilisation: float, *, seed: int = 0) -> FleetCity:
    """The city with as many calls a day as keep its units busy for that share of their time.

    The share is of unit time on duty, without second units, over some months of the same
    seed; it is met within 0.005.
    """
    _RANGE.check(utilisation, "utilisation")
    if city.listed is not None:
        raise InputError(
            f"fleet {city.name}: its calls are a list, which stays as it is; leave out "
            "utilisation, or give records in place of the list"
        )
    per_day = utilisation * 86_400.0 * float(city.on_duty.mean()) / city.occupation_s
    below, above = (0.0, 0.0), (float("inf"), 1.0)  # calls a day and busy share
    found = []
    for _ in range(_TRIES):
        scaled = city.changed(calls_per_day=per_day)
        busy = busy_share(scaled, seed=seed)
        if abs(busy - utilisation) <= _WITHIN:
            return scaled
        found.append((abs(busy - utilisation), busy, scaled))
        below, above = ((per_day, busy), above) if busy < utilisation else (below, (per_day, busy))
        if above[0] < float("inf") and below[0] > 0.0:  # both sides are known: between them
            part = (utilisation - below[1]) / max(above[1] - below[1], 1e-9)
            per_day = below[0] + min(max(part, 0.1), 0.9) * (above[0] - below[0])
        else:
            per_day *= utilisation / busy
    miss, busy, scaled = min(found, key=lambda one: one[0])
    if miss <= _AT_MOST:
        return scaled
    raise InputError(
        f"fleet {city.name}: utilisation {utilisation:g} is not reached, {busy:.3f} is, with "
        f"{scaled.calls_per_day:.0f} calls a day; choose another"
    )


def with_units(city: FleetCity, units: int) -> FleetCity:
    """The same calls with a fleet of another size.

    Every call belongs to the station nearest to it. A further unit goes where there are most
    calls for each unit, the new one counted, and is on duty all day. A unit is taken where
    its absence leaves the fewest calls for each unit of the stations. Of equals the first counts.
    """
    home = city.units.tolist()
    shifts = city.shifts.tolist()
    near = city.travel.fast_s[np.ix_(city.stations, city.cells)].argmin(axis=0)
    calls = np.bincount(near, city.weights, minlength=len(city.stations))
    count = np.bincount(home, minlength=len(city.stations))
    while len(home) < units:
        station = int(np.argmax(calls / (count + 1)))
        home.append(station)
        shifts.append([0.0, 24.0])
        count[station] += 1
    while len(home) > units:
        load = np.where(count > 0, calls / np.maximum(count - 1, 1e-9), np.inf)
        station = int(np.argmin(load))
        last = len(home) - 1 - home[::-1].index(station)
        del home[last], shifts[last]
        count[station] -= 1
    return city.changed(units=np.array(home, np.int32), shifts=np.array(shifts))
