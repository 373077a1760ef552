"""Splits: every trip in one part, days kept whole, the same for the same seed."""

from dataclasses import replace
from datetime import datetime
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
    train, validation, test = (part.size for part in parts.parts)
    return train, validation, test


@pytest.mark.parametrize("by", ["trip", "day"])
@pytest.mark.parametrize("count", [73, 500, 1001])
@pytest.mark.parametrize("shares", [(0.7, 0.1, 0.2), (0.34, 0.33, 0.33), (0.8, 0.0, 0.2)])
def test_every_trip_is_in_one_part(by: Any, count: int, shares: Any) -> None:
    parts = split(_trips(count), shares, seed=3, by=by)
    assert np.array_equal(np.sort(np.concatenate(parts.parts)), np.arange(count))
    assert all((np.diff(part) > 0).all() for part in parts.parts)
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


@pytest.mark.parametrize("zone", ["UTC", "Asia/Hong_Kong", "America/New_York"])
def test_days_stay_whole_and_are_those_of_the_zone(zone: str) -> None:
    trips = _trips(24 * 40 * 2, hours_apart=0.5)  # New York's clocks change on 10 March 2024
    parts = split(replace(trips, provenance={"time_zone": zone}), by="day")
    clock = ZoneInfo(zone)
    days = [
        {datetime.fromtimestamp(second, clock).date() for second in at.astype(int).tolist()}
        for at in (np.asarray(trips.at)[part] for part in parts.parts)
    ]
    assert sum(map(len, days)) == len(set.union(*days)) == (40 if zone == "UTC" else 41)


def test_three_very_unequal_days_give_three_parts() -> None:
    at = START + np.array([0] * 50 + [86400] * 50 + [2 * 86400] * 900).astype("m8[s]")
    trips = replace(_trips(1000), at=at)
    for seed in range(6):
        sizes = _sizes(split(trips, seed=seed, by="day"))
        assert sorted(sizes) == [50, 50, 900]


def test_as_few_trips_as_parts() -> None:
    assert _sizes(split(_trips(3))) == (1, 1, 1)
    assert _sizes(split(_trips(1), (1.0, 0.0, 0.0))) == (1, 0, 0)
    assert _sizes(split(_trips(2), (0.999, 0.0, 0.001))) == (1, 0, 1)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"shares": (0.7, 0.1, 0.1)}, "shares"),
        ({"shares": (1.2, -0.1, -0.1)}, "shares"),
        ({"shares": (0.5, 0.5)}, "shares"),
        ({"shares": (np.nan, 0.5, 0.5)}, "shares"),
        ({"shares": (0.0, 0.5, 0.5)}, "shares"),
        ({"by": "week"}, "split by 'week'"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_bad_arguments(arguments: Any, key: str) -> None:
    with pytest.raises(InputError, match=f"^{key}"):
        split(_trips(30), **arguments)


def test_too_few_trips_or_days() -> None:
    for trips, by in ((_trips(2), "trip"), (_trips(0), "trip"), (_trips(20), "day")):
        with pytest.raises(InputError, match="cannot be split"):
            split(trips, by=by)  # type: ignore[arg-type]


def test_days_need_times() -> None:
    with pytest.raises(InputError, match="^trip 0"):
        split(_trips(30, hours_apart=None), by="day")
