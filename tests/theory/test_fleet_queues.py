"""The event loop of a fleet as a queue: Erlang's formulas and Little's law.

All units and calls are in one place, so the only time is that at the scene. Independent
years give the standard error; a figure may be four of them away from the closed form.
"""

import math

import numpy as np
import pytest

from ideal_dispatch.fleet.calls import DAY_S, draw_calls
from ideal_dispatch.fleet.city import Duration
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.fleet.units import QUEUED, RETURNING, Log, State
from tests.fleets import one_place, town

_BLOCKS = 8
_NEVER = SecondRule("never").compiled("none")


def _erlang_b(units: int, erlangs: float) -> float:
    """The share of calls that find all units busy, where such calls are lost."""
    lost = 1.0
    for count in range(1, units + 1):
        lost = erlangs * lost / (count + erlangs * lost)
    return lost


def _erlang_c(units: int, erlangs: float) -> float:
    """The share of calls that wait, where calls wait."""
    lost, load = _erlang_b(units, erlangs), erlangs / units
    return lost / (1.0 - load * (1.0 - lost))


def _agrees(measured: list[float], exact: float, within: float) -> None:
    """The mean is within four standard errors, and these are a share ``within`` of it or less."""
    error = float(np.std(measured, ddof=1)) / math.sqrt(len(measured))
    assert error < within * exact
    assert np.mean(measured) == pytest.approx(exact, abs=4.0 * error)


@pytest.mark.parametrize("form", ["exponential", "lognormal", "fixed"])
@pytest.mark.parametrize(("units", "erlangs"), [(1, 0.5), (5, 4.0), (12, 8.0)])
def test_calls_are_lost_as_erlang_says_whatever_the_service(
    units: int, erlangs: float, form: str
) -> None:
    city = one_place(units, Duration(900.0, form, 1.0), erlangs, neighbour_s=0.0)  # type: ignore[arg-type]
    lost, busy = [], []
    for year in range(_BLOCKS):
        calls = draw_calls(city, 1, year)
        state, log = Simulator(city).run(calls, _NEVER)
        lost.append(float((log.unit[:, 0] < 0).mean()))
        busy.append(state.busy_s.sum() / calls.at_s[-1])
    _agrees(lost, _erlang_b(units, erlangs), 0.02)
    _agrees(busy, erlangs * (1.0 - _erlang_b(units, erlangs)), 0.01)


@pytest.mark.parametrize(("units", "erlangs"), [(1, 0.5), (5, 3.5), (12, 9.0)])
def test_calls_wait_as_erlang_says(units: int, erlangs: float) -> None:
    service_s = 900.0
    city = one_place(units, Duration(service_s), erlangs)
    waiting, wait_s = [], []
    for year in range(_BLOCKS):
        calls = draw_calls(city, 2, year)
        _, log = Simulator(city).run(calls, _NEVER)
        waited_s = log.sent_s[:, 0] - calls.at_s
        waiting.append(float((waited_s > 0.0).mean()))
        wait_s.append(float(waited_s.mean()))
    exact = _erlang_c(units, erlangs)
    _agrees(waiting, exact, 0.02)
    _agrees(wait_s, exact * service_s / (units - erlangs), 0.03)


def test_units_in_use_are_the_rate_of_calls_times_their_time() -> None:
    """Little's law in a town with drives, a queue and hospitals: what is seen from outside at
    moments a quarter of an hour apart, against the times of the calls."""
    city = town(4)
    simulator, days = Simulator(city), 60
    calls = draw_calls(city, 3, days=days)
    state, log = State.at_home(simulator.world, len(calls)), Log.empty(len(calls))
    moments = np.arange(900.0, days * DAY_S, 900.0)
    seen = []
    for moment in moments:
        simulator.go_on(calls, _NEVER, state, log, moment)
        seen.append(state.count[QUEUED] + (state.status > RETURNING).sum())
    simulator.go_on(calls, _NEVER, state, log)
    cells = city.cells[calls.cell]
    drive_s = city.travel.slow_s[cells, city.hospital[calls.cell]]
    held_s = calls.scene_s + np.where(calls.transported, drive_s + calls.handover_s, 0.0)
    inside_s = log.first_s + held_s - calls.at_s - city.work.delay_s
    in_use = inside_s.sum() / (days * DAY_S)
    assert (log.sent_s[:, 0] > calls.at_s + city.work.delay_s).mean() > 0.05  # the queue is used
    # both are of the same 60 days: only what happens between two looks is missed
    assert np.mean(seen) == pytest.approx(in_use, rel=0.005)
