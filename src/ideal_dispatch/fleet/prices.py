"""The prices of a city's units, from its calls, its stations and its response times."""

from typing import Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.price import BUSIEST, PriceTables, expected_deaths
from ideal_dispatch.fleet.city import FleetCity

LATE_S = 480.0
"""A first arrival later than this after the call is late, whatever the call's priority."""

Harm = Literal["deaths", "late"]

_ROUNDS = 20


def price_tables(city: FleetCity, harm: Harm = "deaths") -> PriceTables:
    """The tables of a city: in lives of cardiac arrests, or in late arrivals of all calls."""
    occupation_s = loaded_occupation_s(city)
    wait_s = occupation_s / city.on_duty.mean()  # until the next of all busy units is free
    calls_per_hour = city.by_hour / city.by_hour.mean() * city.calls_per_day / 24.0
    left = sum(one.share for one, may in zip(city.priorities, city.redispatch[:, 0], strict=True)
               if may)  # fmt: skip
    away_s = city.travel.slow_s[city.cells, city.hospital] @ city.weights / city.weights.sum()
    after_s = city.work.transported * (float(away_s) + city.work.handover.mean_s)
    response_s = occupation_s - city.work.scene.mean_s - after_s
    return PriceTables.of(
        _harm(city, 0.0, harm), _harm(city, wait_s, harm).mean(axis=0), city.weights,
        calls_per_hour, city.on_duty, occupation_s,
        critical=city.arrests if harm == "deaths" else 1.0,
        redirected=left * response_s / occupation_s if harm == "deaths" else 0.0,
    )  # fmt: skip


def loaded_occupation_s(city: FleetCity) -> float:
    """How long a call takes a unit on average, if units are as busy as the calls keep them.

    The nearest one is then often busy, and another comes from farther. ``city.occupation_s`` is
    of a fleet that waits at home.
    """
    units = np.bincount(city.units, minlength=len(city.stations)) * (
        city.on_duty.mean() / city.num_units
    )
    between = np.ix_(city.stations, city.cells)
    lights = sum(one.share for one in city.priorities if one.lights)
    fast_s, slow_s = city.travel.fast_s[between], city.travel.slow_s[between]
    order = np.argsort(fast_s, axis=0, kind="stable")
    drive_s = np.take_along_axis(lights * fast_s + (1.0 - lights) * slow_s, order, axis=0)
    weights, usual_s = city.weights / city.weights.sum(), city.occupation_s
    nearest_s = fast_s.min(axis=0) @ weights
    occupation_s = usual_s
    for _ in range(_ROUNDS):
        busy = min(city.calls_per_day * occupation_s / 86_400.0 / city.on_duty.mean(), BUSIEST)
        empty = busy ** units[order]
        before = np.vstack([np.ones(len(weights)), np.cumprod(empty, axis=0)[:-1]])
        chance = before * (1.0 - empty)
        mean_s = ((chance * drive_s).sum(axis=0) / chance.sum(axis=0)) @ weights
        occupation_s = usual_s + city.responses.drive_scale * float(mean_s - nearest_s)
    return occupation_s


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
