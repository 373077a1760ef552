"""The prices of a city's units, from its calls, its stations and its response times."""

from typing import Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.price import PriceTables, expected_deaths
from ideal_dispatch.fleet.city import FleetCity

LATE_S = 480.0
"""A first arrival later than this after the call is late, whatever the call's priority."""

Harm = Literal["deaths", "late"]


def price_tables(city: FleetCity, harm: Harm = "deaths") -> PriceTables:
    """The tables of a city: in lives of cardiac arrests, or in late arrivals of all calls."""
    wait_s = city.occupation_s / city.num_units  # until the next of all busy units is free
    calls_per_hour = city.by_hour / city.by_hour.mean() * city.calls_per_day / 24.0
    return PriceTables.of(
        _harm(city, 0.0, harm), _harm(city, wait_s, harm).mean(axis=0), city.weights,
        calls_per_hour, city.on_duty, city.occupation_s,
        critical=city.arrests if harm == "deaths" else 1.0,
    )  # fmt: skip


def _harm(city: FleetCity, wait_s: float, harm: Harm) -> FloatArray:
    """The chance of death, or of being late, by station and cell, of calls that wait so long."""
    station = np.array(city.station_names)[:, None]
    between = np.ix_(city.stations, city.cells)
    before_s = city.work.delay_s + wait_s
    fast = city.responses.of(city.travel.fast_s[between], station=station)
    if harm == "deaths":
        return expected_deaths(fast, before_s, city.curve)
    slow = city.responses.of(city.travel.slow_s[between], station=station)
    limit_s = max(LATE_S - before_s, 1.0)
    lights = sum(one.share for one in city.priorities if one.lights)
    return np.asarray(lights * fast.later_than(limit_s) + (1.0 - lights) * slow.later_than(limit_s))
