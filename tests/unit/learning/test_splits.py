"""Splits: every trip in one part, days kept whole, the same for the same seed."""

from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.splits import Split, split
from ideal_dispatch.records import Trips

START = np.datetime64("2024-03-01T00:00:00", "s")


def _trips(count: int, hours_apart: float | None = 1.0) -> Trips:
    at = None
    if hours_apart is not None:
        at = START + (3600 * hours_apart * np.arange(count)).astype("m8[s]")
    return Trips(
        origin=np.zeros(count, np.int32),
        destination=np.ones(count, np.int32),
        observed_s=np.full(count, 60.0),
        contexts=np.zeros((count, 27)),
        at=at,
    )


def _sizes(parts: Split) -> tuple[int, int, int]:
    return parts.train.size, parts.validation.size, parts.test.size


@pytest.mark.parametrize("by", ["trip", "day"])
@pytest.mark.parametrize("count", [73, 500, 1001])
@pytest.mark.parametrize("shares", [(0.7, 0.1, 0.2), (0.34, 0.33, 0.33), (0.8, 0.0, 0.2)])
def test_every_trip_is_in_one_part(by: Any, count: int, shares: Any) -> None:
    parts = split(_trips(count), shares, seed=3, by=by)
    everyone = np.concatenate([parts.train, parts.validation, parts.test])
    assert np.array_equal(np.sort(everyone), np.arange(count))
    assert all((np.diff(part) > 0).all() for part in (parts.train, parts.validation, parts.test))
    within = 0.5 if by == "trip" else 24
    for size, share in zip(_sizes(parts), shares, strict=True):
        assert abs(size - share * count) <= 2 * within
        assert (size > 0) == (share > 0)


def test_sizes_by_trip_are_the_shares() -> None:
    parts = split(_trips(1000))
    assert _sizes(parts) == (700, 100, 200)
    assert repr(parts) == "Split(700 train, 100 validation, 200 test)"


def test_the_seed_decides_alone() -> None:
    trips = _trips(200)
    first, again, other = split(trips, seed=5), split(trips, seed=5), split(trips, seed=6)
    assert first.train.tobytes() == again.train.tobytes()
    assert first.test.tobytes() == again.test.tobytes()
    assert not np.array_equal(first.test, other.test)


def test_days_stay_whole_and_are_those_of_the_zone() -> None:
    trips = _trips(24 * 40)
    hong_kong = ZoneInfo("Asia/Hong_Kong")
    for zone, shift in ((None, 0), (hong_kong, 8)):
        parts = split(trips, by="day") if zone is None else split(trips, by="day", zone=zone)
        day = (np.arange(len(trips)) + shift) // 24
        days = [set(day[part]) for part in (parts.train, parts.validation, parts.test)]
        assert sum(map(len, days)) == len(set.union(*days)) == np.unique(day).size


def test_days_of_the_zone_follow_its_clock_changes() -> None:
    trips = _trips(24 * 40 * 2, hours_apart=0.5)  # New York changes on 10 March 2024
    zone = ZoneInfo("America/New_York")
    parts = split(trips, by="day", zone=zone)
    local_days = [
        {str(np.datetime64(at, "s").item().replace(tzinfo=ZoneInfo("UTC")).astimezone(zone).date())
         for at in np.asarray(trips.at)[part]}
        for part in (parts.train, parts.validation, parts.test)
    ]  # fmt: skip
    assert sum(map(len, local_days)) == len(set.union(*local_days)) == 41


def test_three_very_unequal_days_give_three_parts() -> None:
    at = START + np.array([0] * 50 + [86400] * 50 + [2 * 86400] * 900).astype("m8[s]")
    trips = _trips(1000)
    trips = Trips(trips.origin, trips.destination, trips.observed_s, trips.contexts, at=at)
    for seed in range(6):
        sizes = _sizes(split(trips, seed=seed, by="day"))
        assert sorted(sizes) == [50, 50, 900]


def test_as_few_trips_as_parts() -> None:
    assert _sizes(split(_trips(3))) == (1, 1, 1)
    assert _sizes(split(_trips(1), (1.0, 0.0, 0.0))) == (1, 0, 0)
    assert _sizes(split(_trips(2), (0.999, 0.0, 0.001))) == (1, 0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shares": (0.7, 0.1, 0.1)}, "sum to one"),
        ({"shares": (1.2, -0.1, -0.1)}, "zero or more"),
        ({"shares": (0.5, 0.5)}, "three numbers"),
        ({"shares": (np.nan, 0.5, 0.5)}, "sum to one"),
        ({"shares": ("a", "b", "c")}, "shares"),
        ({"shares": (0.0, 0.5, 0.5)}, "training part must not be empty"),
        ({"by": "week"}, "split by 'week': it must be 'trip' or 'day'"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 0.5}, "seed 0.5: a whole number is needed"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split(_trips(30), **arguments)


def test_too_few_trips_or_days() -> None:
    with pytest.raises(InputError, match="2 trips cannot be split into 3 parts"):
        split(_trips(2))
    with pytest.raises(InputError, match="0 trips cannot be split"):
        split(_trips(0))
    with pytest.raises(InputError, match="1 day cannot be split into 3 parts; give more trips"):
        split(_trips(20), by="day")


def test_days_need_times() -> None:
    with pytest.raises(InputError, match="trip 0: its time is not known; split by trip instead"):
        split(_trips(30, hours_apart=None), by="day")
