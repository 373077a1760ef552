"""The prices of a city's units, from its calls, its stations and its response times."""

from typing import Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.price import PriceTables
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.forecast.response_time import ResponseTime

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_BUSIEST = 0.95


def price_tables(city: FleetCity, harm: Literal["deaths", "late"] = "deaths") -> PriceTables:
    """The tables of a city: in lives of cardiac arrests, or in late arrivals of all calls."""
    model, hours = city.responses, np.arange(24)
    fast_s = city.travel.fast_s[np.ix_(city.stations, city.cells)]
    one = model.of(fast_s, station=np.array(city.station_names)[:, None])
    wait_s = city.occupation_s / city.num_units  # until the next of all busy units is free
    by_station = _harm(city, one, 0.0, harm).T  # cells × stations
    order = np.argsort(by_station, axis=1, kind="stable").astype(np.int32)
    sorted_harm = np.take_along_axis(by_station, order, axis=1)
    none = _harm(city, one, wait_s, harm).mean(axis=0)
    none = np.maximum(none, sorted_harm[:, -1])
    calls = city.by_hour / city.by_hour.mean() * city.calls_per_day / 86_400.0
    critical = city.arrests if harm == "deaths" else 1.0
    rate = critical * np.outer(city.weights / city.weights.sum(), calls)
    busy = np.clip(calls * city.occupation_s / np.maximum(city.on_duty, 1.0), 0.0, _BUSIEST)
    return PriceTables(
        order, np.ascontiguousarray(sorted_harm), none, np.ascontiguousarray(rate[:, hours]), busy,
        float(city.occupation_s), np.array([1.0, 0.0, 0.0]),
    )  # fmt: skip


def _harm(city: FleetCity, one: ResponseTime, wait_s: float, harm: str) -> FloatArray:
    """The expected chance of death, or of being late, of calls that wait so long for a unit."""
    before_s = city.work.delay_s + wait_s
    if harm == "late":
        return one.later_than(max(city.priorities[0].late_s - before_s, 1.0))
    spread = np.sqrt(one.own**2 + one.shared**2 + one.surprise * one.wide**2)
    total = np.zeros_like(one.median_s)
    for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
        seconds = before_s + one.median_s * np.exp(spread * node)
        total += weight * np.interp(seconds, np.arange(len(city.risk)), city.risk)
    return np.asarray(total)
