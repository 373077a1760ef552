"""Where units are, who is free, and how soon each would be there."""

import math

import numpy as np
import pytest

from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.units import (
    AWAY,
    GOING,
    HOME,
    RETURNING,
    SCENE,
    State,
    cost_of,
    expected,
    in_station,
    is_free,
    mean_response,
    next_start,
    place_of,
)
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.fleets import fleet, line

_ROAD = line(0, 1000, *range(100, 1000, 100))


def _under_way(status: int, left_s: float, arrive_s: float) -> tuple[Simulator, State]:
    """One unit of station A on its way to the far end of the road."""
    simulator = Simulator(fleet(_ROAD, [0, 1], stations=2))
    state = State.at_home(simulator.world, 1)
    state.status[0], state.origin[0], state.target[0] = status, 0, 1
    state.left_s[0], state.arrive_s[0] = left_s, arrive_s
    return simulator, state


@pytest.mark.parametrize(
    ("now_s", "place"), [(0.0, 0), (99.0, 0), (220.0, 0), (230.0, 2), (500.0, 5), (1099.0, 10),
                         (1100.0, 1), (2000.0, 1)],
)  # fmt: skip
def test_unit_is_at_the_place_nearest_to_its_way(now_s: float, place: int) -> None:
    simulator, state = _under_way(GOING, 100.0, 1100.0)
    assert place_of(simulator.world, state, 0, now_s) == place


def test_unit_that_takes_no_time_is_there() -> None:
    simulator, state = _under_way(RETURNING, 100.0, 100.0)
    assert place_of(simulator.world, state, 0, 100.0) == 0
    assert place_of(simulator.world, state, 0, 100.5) == 1


def test_unit_is_in_its_station_until_it_has_left() -> None:
    simulator, state = _under_way(GOING, 100.0, 1100.0)
    assert in_station(simulator.world, state, 0, 100.0)
    assert not in_station(simulator.world, state, 0, 101.0)
    assert in_station(simulator.world, state, 1, 101.0)


@pytest.mark.parametrize(
    ("status", "free"), [(HOME, True), (RETURNING, True), (GOING, False), (SCENE, False),
                         (AWAY, False)],
)  # fmt: skip
def test_units_at_home_and_returning_are_free(status: int, free: bool) -> None:
    simulator, state = _under_way(status, 100.0, 1100.0)
    assert is_free(simulator.world, state, 0, 500.0) == free


@pytest.mark.parametrize(
    ("shift", "hours"),
    [((8, 20), range(8, 20)), ((20, 8), [*range(8), *range(20, 24)]), ((0, 24), range(24)),
     ((6, 6), range(24))],
)  # fmt: skip
def test_units_are_free_in_their_hours(shift: tuple[int, int], hours: list[int]) -> None:
    city = fleet(_ROAD, [0], stations=2, shifts=np.array([shift], float))
    simulator = Simulator(city)
    state = State.at_home(simulator.world, 1)
    day = 3 * 86_400.0
    for moment_s in (0.0, 3599.0):
        free = [is_free(simulator.world, state, 0, day + h * 3600.0 + moment_s) for h in range(24)]
        assert np.flatnonzero(free).tolist() == list(hours)
    assert np.flatnonzero(city.on_duty).tolist() == list(hours)


def test_next_shift_is_the_first_after_now() -> None:
    starts = np.array([8.0, 20.0])
    assert next_start(starts, 0.0) == 8 * 3600.0
    assert next_start(starts, 8 * 3600.0) == 20 * 3600.0
    assert next_start(starts, 23 * 3600.0) == 32 * 3600.0
    assert next_start(np.empty(0), 0.0) == math.inf


@pytest.mark.parametrize(("cell", "drive_s"), [(2, 100.0), (6, 500.0), (1, 1000.0)])
def test_expected_response_is_that_of_the_response_model(cell: int, drive_s: float) -> None:
    model = ResponseModel.published()
    city = fleet(_ROAD, [0, 1], stations=2, responses=model)
    simulator = Simulator(city)
    state = State.at_home(simulator.world, 1)
    mean, own, shared = expected(simulator.world, state, 0, cell, 0, 0.0)
    one = model.of(drive_s)
    assert mean == pytest.approx(float(one.mean_s), rel=1e-12)
    assert mean == mean_response(simulator.world, state, 0, cell, 0, 0.0)
    assert (own, shared) == pytest.approx((float(one.own), float(one.shared)), rel=1e-12)


def test_price_leaves_the_state_as_it_is() -> None:
    simulator = Simulator(fleet(_ROAD, [0, 1], stations=2))
    state = State.at_home(simulator.world, 1)
    before = [part.copy() for part in state]
    assert cost_of(simulator.world, simulator.tables, state, 0, -1, 900.0, 0.0) > 0.0
    for name, part, was in zip(State._fields, state, before, strict=True):
        assert name == "scratch" or part.tobytes() == was.tobytes(), name


def test_copy_of_a_state_goes_its_own_way() -> None:
    _, state = _under_way(GOING, 100.0, 1100.0)
    other = state.copy()
    other.status[0], other.clock[0] = HOME, 5.0
    assert state.status[0] == GOING
    assert state.clock[0] == 0.0
