"""Erlang's shadow price: what one more busy unit costs a system that loses calls when full.

With n of c units busy at offered load a, one more full occupation loses B(a, c) / B(a, n) later
calls, where B is Erlang's loss formula. The price of the only unit of a town is exact by it.
"""

import math

import numpy as np
import pytest

from ideal_dispatch.dispatch.price import PriceTables

HOUR_S = 3600.0


def lost_share(load: float, units: int) -> float:
    """B(a, c)."""
    lost = 1.0
    for count in range(1, units + 1):
        lost = load * lost / (count + load * lost)
    return lost


@pytest.mark.parametrize("units", [1, 3, 8])
@pytest.mark.parametrize("load", [0.2, 1.0, 6.0])
def test_the_shadow_price_solves_the_chain(units: int, load: float) -> None:
    # time in occupations: rates load upwards, n downwards; calls are lost at the top
    chain = np.diag([load] * units, 1) + np.diag(np.arange(1.0, units + 1.0), -1)
    chain -= np.diag(chain.sum(axis=1))
    losses = np.r_[np.zeros(units), load]
    mean = load * lost_share(load, units)
    # the later losses of each state above the mean, zero for the empty system
    excess = np.linalg.solve(chain[1:, 1:], (mean - losses)[1:])
    prices = np.diff(np.r_[0.0, excess])
    expected = [lost_share(load, units) / lost_share(load, busy) for busy in range(units)]
    np.testing.assert_allclose(prices, expected, rtol=1e-6)


@pytest.mark.parametrize("hold_s", [60.0, 900.0, 7200.0])
@pytest.mark.parametrize("load", [0.1, 0.7, 2.0])
def test_the_price_of_an_only_unit_is_exact(hold_s: float, load: float) -> None:
    occupation_s = 1500.0
    calls_s = load / occupation_s
    tables = PriceTables.of(
        np.zeros((1, 1)), np.ones(1), [1.0], HOUR_S * calls_s, 1.0, occupation_s
    )
    # the unit at home is busy with this chance after some time; calls are then lost as well
    back = calls_s + 1.0 / occupation_s
    busy_at_end = calls_s / back * (1.0 - math.exp(-back * hold_s))
    busy_s = calls_s / back * (hold_s - (1.0 - math.exp(-back * hold_s)) / back)
    shadow = lost_share(load, 1) / lost_share(load, 0)
    exact = calls_s * (hold_s - busy_s) - busy_at_end * shadow
    assert tables.cost([1], [], 0, hold_s, 0) == pytest.approx(exact, rel=1e-2)
