"""The price of a unit: right where it can be known, and growing as it must."""

from typing import Any

import numpy as np
import pytest

from ideal_dispatch.fleet.city import Duration, FleetCity, Priority, Work
from ideal_dispatch.fleet.prices import price_tables
from ideal_dispatch.fleet.referee import judged, moments
from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.units import State, cost_of
from tests.fleets import matrix_travel

HOLD_S = 4800.0


def town(calls_per_day: float, units: tuple[int, ...] = (0, 1, 2, 3), **changes: Any) -> FleetCity:
    """A straight road of twelve cells with four stations and a hospital in the middle."""
    at = np.r_[np.arange(12.0), 1.0, 4.0, 7.0, 10.0, 5.5]
    drive_s, places = 90.0 * np.abs(at[:, None] - at), np.arange(17, dtype=np.int32)
    settings: dict[str, Any] = {
        "priorities": (Priority("urgent", 1.0),), "arrests": 0.5, "entitled": 1.0,
        "work": Work(scene=Duration(900.0), handover=Duration(600.0), transported=0.5),
        "street_start": False,
    }  # fmt: skip
    return FleetCity(
        "a road", matrix_travel(drive_s), ("a", "b", "c", "d"), places[12:16],
        np.array(units), places[16:], places[:12], np.ones(12), calls_per_day,
        **(settings | changes),
    )  # fmt: skip


def test_a_nearly_idle_price_is_what_rollouts_say() -> None:
    simulator = Simulator(town(10.0))
    assert simulator.tables.busy.max() < 0.06
    at = moments(simulator, 40, seed=1)
    verdict = judged(simulator, at, [HOLD_S], 500, seed=2)
    referee, count = verdict.deaths.mean(), len(at)
    error = np.sqrt((verdict.deaths_error**2).sum()) / count
    price = np.mean(
        [cost_of(simulator.world, simulator.tables, one.state, one.unit, -1, HOLD_S, one.now_s)
         for one in at]
    )  # fmt: skip
    assert error < 0.05 * referee
    assert price == pytest.approx(referee, abs=4.0 * error + 0.03 * referee)


def test_it_grows_with_the_absence_and_with_the_busy_units() -> None:
    prices = price_tables(town(60.0, (0, 0, 1, 1, 2, 2, 3, 3)))

    def cost(free: list[int], hold_s: float) -> float:
        busy = [(station, 1800.0) for station in range(4) for _ in range(2 - free[station])]
        return prices.cost(free, busy, 1, hold_s, 12)

    by_hold = [cost([2, 2, 2, 2], hold_s) for hold_s in (60.0, 360.0, 900.0, 4800.0)]
    assert by_hold == sorted(by_hold)
    assert by_hold[0] > 0.0
    fleets = [[2, 2, 2, 2], [2, 1, 2, 2], [1, 1, 2, 2], [1, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0]]
    by_free = [cost(free, 900.0) for free in fleets]
    assert by_free == sorted(by_free)
    assert by_free[-1] > 2.0 * by_free[0]


def test_without_calls_nothing_is_missed() -> None:
    tables = price_tables(town(60.0))
    prices = tables._replace(rate=np.zeros_like(tables.rate))
    assert prices.cost([1, 1, 1, 1], [], 0, 900.0, 0) == 0.0


def test_a_price_writes_nothing_into_the_state() -> None:
    simulator = Simulator(town(60.0))
    one = moments(simulator, 1, seed=3)[0]
    before = one.state.copy()
    cost_of(simulator.world, simulator.tables, one.state, one.unit, -1, 900.0, one.now_s)
    for name in State._fields:
        if name != "scratch":
            np.testing.assert_array_equal(getattr(one.state, name), getattr(before, name), name)
