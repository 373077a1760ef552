"""The event loop of a fleet against Larson's hypercube with calls that take two units.

The hypercube is exact: a state says which units are busy, services are exponential, a call of
cell i takes the first free unit of the cell's list, a call entitled to two the first two, or
one where one is left; a call that finds nobody goes to a neighbour. Its balance is solved.
Drives of seconds beside services of ten hours give the simulated fleet the same lists.
"""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import spsolve

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.fleet.calls import DAY_S, draw_calls
from ideal_dispatch.fleet.city import Duration, FleetCity, Work
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from tests.fleets import certain, fleet

_SERVICE_S = 36_000.0
_BLOCKS, _DAYS = 8, 6_000
_LONGEST_S = 20.0


def _lists(units: int, cells: int) -> IntArray:
    """For every cell the units in the order in which they are taken."""
    rng = np.random.default_rng(units)
    return np.array([rng.permutation(units) for _ in range(cells)])


def _city(lists: IntArray, weights: FloatArray, erlangs: float, two: float) -> FleetCity:
    """A station for each unit; drives of a few seconds have the order of the lists."""
    cells, units = lists.shape
    fast_s = np.zeros((units + cells, units + cells))
    fast_s[lists, units + np.arange(cells)[:, None]] = 2.0 + np.linspace(0, _LONGEST_S - 2, units)
    return fleet(
        fast_s, np.arange(units), slow_s=np.zeros_like(fast_s), stations=units,
        responses=certain(1e-6, 1e-6), calls_per_day=erlangs * DAY_S / _SERVICE_S,
        weights=np.r_[np.zeros(units), weights], arrests=two,
        work=Work(0.0, Duration(_SERVICE_S), 0.0, assist=Duration(_SERVICE_S), neighbour_s=0.0),
    )  # fmt: skip


def _hypercube(
    lists: IntArray, weights: FloatArray, erlangs: float, two: float
) -> tuple[FloatArray, FloatArray, float]:
    """How busy each unit is, which share of each cell's calls it takes, and the share lost."""
    cells, units = lists.shape
    rows, columns, rates = [], [], []
    taken = []  # (state, cell, unit, probability in that state)
    for state in range(1 << units):
        for unit in range(units):
            if state >> unit & 1:
                rows.append(state)
                columns.append(state ^ 1 << unit)
                rates.append(1.0)
        for cell in range(cells):
            free = [unit for unit in lists[cell] if not state >> unit & 1]
            for wanted, share in ((1, 1.0 - two), (2, two)):
                if free:
                    rows.append(state)
                    columns.append(state | sum(1 << int(unit) for unit in free[:wanted]))
                    rates.append(erlangs * weights[cell] * share)
                taken += [(state, cell, unit, share) for unit in free[:wanted]]
    size = 1 << units
    moves = csr_matrix((rates, (rows, columns)), shape=(size, size))
    out = np.asarray(moves.sum(axis=1)).ravel()
    balance = (moves - diags(out)).T.tolil()
    balance[0] = 1.0  # one balance follows from the others; the shares add up to one
    shares = spsolve(balance.tocsc(), np.r_[1.0, np.zeros(size - 1)])
    assert np.abs(moves.T @ shares - out * shares).max() < 1e-12
    bits = (np.arange(size)[:, None] >> np.arange(units)) & 1
    sent = np.zeros((cells, units))
    for state, cell, unit, share in taken:
        sent[cell, unit] += shares[state] * share
    return shares @ bits, sent, float(shares[-1])


@pytest.mark.parametrize(
    ("units", "erlangs", "two"), [(2, 1.0, 0.5), (5, 2.5, 0.0), (5, 2.5, 0.3), (10, 5.0, 0.2)]
)
def test_fleet_that_sends_two_is_larsons_hypercube(units: int, erlangs: float, two: float) -> None:
    weights = np.array([0.5, 0.3, 0.2])
    lists = _lists(units, len(weights))
    exact_busy, exact_sent, exact_lost = _hypercube(lists, weights, erlangs, two)
    city = _city(lists, weights, erlangs, max(two, 1e-9))
    simulator, rule = Simulator(city), SecondRule("always").compiled("none")
    busy, sent, lost = [], [], []
    for block in range(_BLOCKS):
        calls = draw_calls(city, 5, block, days=_DAYS)
        state, log = simulator.run(calls, rule)
        busy.append(state.busy_s / (_DAYS * DAY_S))
        lost.append((log.unit[:, 0] < 0).mean())
        cell = calls.cell - units
        table = np.zeros((len(weights), units))
        for role in (0, 1):
            went = log.unit[:, role] >= 0
            np.add.at(table, (cell[went], log.unit[went, role]), 1.0)
        sent.append(table / np.bincount(cell)[:, None])
    for measured, exact in ((busy, exact_busy), (sent, exact_sent), (lost, exact_lost)):
        error = np.std(measured, axis=0, ddof=1) / math.sqrt(_BLOCKS)
        assert np.max(error) < 0.01
        off = np.abs(np.mean(measured, axis=0) - exact)
        # many figures are looked at: five standard errors, and what the drives add to a service
        assert (off < 5.0 * error + _LONGEST_S / _SERVICE_S).all()
