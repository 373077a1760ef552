"""What a city of a fleet refuses, and what follows from it."""

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import Duration, Priority
from tests.unit.fleet.small import small_city


@pytest.mark.parametrize("form", ["exponential", "lognormal", "fixed"])
def test_durations_have_their_mean(form: str) -> None:
    times = Duration(300.0, form, 0.5).drawn(np.random.default_rng(1), 200_000)  # type: ignore[arg-type]
    assert times.mean() == pytest.approx(300.0, rel=0.01)
    spread = {"exponential": 1.0, "lognormal": 0.5, "fixed": 0.0}[form]
    assert times.std() / 300.0 == pytest.approx(spread, abs=0.01)


def test_another_form_takes_the_same_draws() -> None:
    after = []
    for form in ("exponential", "lognormal", "fixed"):
        rng = np.random.default_rng(1)
        Duration(300.0, form).drawn(rng, 10)
        after.append(rng.random())
    assert len(set(after)) == 1


def test_a_city_is_checked_and_its_arrays_are_read_only() -> None:
    city = small_city()
    assert city.entitled == city.arrests == 0.03
    assert city.shifts.tolist() == [[0.0, 24.0]] * 4
    with pytest.raises(ValueError, match="read-only"):
        city.weights[0] = 5.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": [0, 3]}, r"fleet Row: units must be one or more numbers of 0 … 2"),
        ({"cells": [0, 5], "weights": [1.0, 1.0]}, r"cells must be one or more numbers of 0 … 4"),
        ({"weights": np.zeros(5)}, "weights must be zero or more, and not all zero"),
        ({"by_hour": np.full(24, -1.0)}, "by_hour must be zero or more"),
        ({"shifts": np.array([[0.0, 25.0]] * 4)}, "hours of shifts are from 0 to 24"),
        ({"priorities": (Priority("high", 0.4),)}, "shares of priorities add up to 0.4; 1 is"),
        ({"redispatch": np.eye(2, dtype=bool)}, "Row: redispatch must lead to a more urgent call"),
        ({"calls_per_day": 0.0}, "0.0 calls a day; a number above zero is needed"),
        ({"arrests": 0.6}, "entitled no more than 0.5, the share of the first priority"),
        ({"entitled": 0.01}, "arrests 0.03, entitled 0.01; both are shares"),
    ],
)
def test_a_bad_city_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small_city(**changes)


def test_entitled_follows_arrests_only_where_it_did() -> None:
    assert small_city().changed(arrests=0.1).entitled == 0.1
    assert small_city(entitled=0.3).changed(arrests=0.1).entitled == 0.3


def test_patients_go_to_the_nearest_hospital() -> None:
    assert small_city().hospital.tolist() == [1, 1, 1, 4, 4]


def test_units_on_duty_by_hour() -> None:
    shifts = [[0.0, 24.0], [8.0, 20.0], [20.0, 8.0], [22.0, 6.0]]
    on_duty = small_city(shifts=np.array(shifts)).on_duty
    assert on_duty.tolist() == [3.0] * 6 + [2.0] * 16 + [3.0] * 2


def test_shifts_are_counted_to_the_minute() -> None:
    shifts = [[6.75, 7.0], [23.75, 0.25], [6.25, 6.25], [24.0, 24.0]]
    on_duty = small_city(shifts=np.array(shifts)).on_duty
    assert on_duty[[0, 6, 7, 23]].tolist() == [2.25, 2.25, 2.0, 2.25]
    assert on_duty.sum() == 24 + 24 + 0.25 + 0.5


def test_a_call_takes_its_response_its_work_and_its_way_to_hospital() -> None:
    city = small_city()
    drive = 60.0 * (2.0 + 2.0) / 9.0  # two cells lie a minute from the nearest station
    away = 90.0 * (1.0 + 3.0 + 2.0) / 9.0
    turnout = float(city.responses.of(0.0, quoted=True).mean_s)
    expected = turnout + drive + 720.0 + 0.8 * (away + 720.0)
    assert city.occupation_s == pytest.approx(expected, rel=1e-3)
