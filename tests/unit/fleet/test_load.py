"""The number of calls that keeps a fleet as busy as asked."""

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import CallList, Duration, Work
from ideal_dispatch.fleet.inputs.city_files import harbour_fleet
from ideal_dispatch.fleet.load import at_utilisation, busy_share
from tests.unit.fleet.small import small_city


@pytest.mark.parametrize("utilisation", [0.1, 0.4, 0.8])
def test_the_busy_share_is_met(utilisation: float) -> None:
    city = at_utilisation(small_city(), utilisation, seed=3)
    assert busy_share(city, seed=3) == pytest.approx(utilisation, abs=0.005)
    assert city.calls_per_day == at_utilisation(small_city(), utilisation, seed=3).calls_per_day


def test_shifts_count_as_time_on_duty() -> None:
    shifts = np.array([[0.0, 24.0], [0.0, 24.0], [8.0, 20.0], [20.0, 8.0]])
    city = at_utilisation(small_city(shifts=shifts), 0.5)
    all_day = at_utilisation(small_city(), 0.5)
    assert busy_share(city) == pytest.approx(0.5, abs=0.005)
    # three units on duty at a time in place of four
    assert city.calls_per_day / all_day.calls_per_day == pytest.approx(0.75, abs=0.04)


@pytest.mark.parametrize("utilisation", [0.0, 0.99, 1.5])
def test_what_cannot_be_reached_is_refused(utilisation: float) -> None:
    with pytest.raises(InputError, match=r"utilisation .*: 0.01 to 0.95 is needed: above, calls"):
        at_utilisation(small_city(), utilisation)


def test_a_share_between_two_numbers_of_calls_is_refused() -> None:
    weeks = Work(scene=Duration(20 * 86_400.0, "fixed"))  # one call more is 4 % more
    with pytest.raises(InputError, match="is not reached, .* is, with .* calls a day; choose anot"):
        at_utilisation(small_city(work=weeks), 0.3)


def test_a_list_stays_as_it_is() -> None:
    listed = CallList(np.array([10.0]), np.array([0]), np.array([0]))
    with pytest.raises(InputError, match="its calls are a list, which stays as it is"):
        at_utilisation(small_city(listed=listed), 0.3)


def test_the_nearest_of_what_was_tried_is_good_enough() -> None:
    """With this seed no number of calls hits the share within two thousandths."""
    city = at_utilisation(harbour_fleet(), 0.7, seed=1)
    assert busy_share(city, seed=1) == pytest.approx(0.7, abs=0.005)
