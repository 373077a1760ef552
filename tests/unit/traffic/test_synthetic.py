from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic import synthetic
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.unit.traffic.small import CALENDAR

PARAMS = SyntheticParams(days=3, first=date(2023, 5, 11), hours=((3, 4), (17, 19)), bin_s=300)


def test_same_seed_same_traffic_and_another_seed_another(grid: RoadNetwork) -> None:
    one, same = (synthetic_traffic(grid, CALENDAR, PARAMS) for _ in range(2))
    other = synthetic_traffic(grid, CALENDAR, replace(PARAMS, seed=1))
    for a, b, c in zip(one.stretches, same.stretches, other.stretches, strict=True):
        np.testing.assert_array_equal(a.codes, b.codes)
        assert (a.codes != c.codes).any()


def test_who_was_seen_leaves_the_truth_as_it_is(grid: RoadNetwork) -> None:
    truth = synthetic_traffic(grid, CALENDAR, replace(PARAMS, seen=1.0))
    partly = synthetic_traffic(grid, CALENDAR, replace(PARAMS, seen=0.4))
    for whole, part in zip(truth.stretches, partly.stretches, strict=True):
        assert np.asarray(whole.truth).all()
        np.testing.assert_array_equal(part.truth, whole.truth)
        assert 0.2 < (part.codes > 0).mean() < 0.6


def test_a_road_is_seen_when_who_entered_it_has_left(grid: RoadNetwork) -> None:
    long = replace(PARAMS, seen=1.0, bin_s=1)
    stretch = synthetic_traffic(grid, CALENDAR, replace(long, days=1, hours=((3, 4),))).stretches[0]
    times_s = RATIOS[np.asarray(stretch.truth)] * grid.free_flow_times_s
    first_seen = (stretch.codes > 0).argmax(axis=0)
    assert (first_seen >= np.floor(times_s.min(axis=0))).all()
    assert first_seen.min() > 0


def test_the_evening_peak_of_a_working_day_is_slower_than_night_and_saturday(
    grid: RoadNetwork,
) -> None:
    made = synthetic_traffic(grid, CALENDAR, replace(PARAMS, seen=1.0, rainy_share=0.0))
    night, peak = (RATIOS[np.asarray(made.stretches[i].truth)].mean() for i in (0, 1))
    saturday = RATIOS[np.asarray(made.stretches[5].truth)].mean()
    assert made.calendar.local(made.stretches[5].start).weekday() == 5
    assert night < 1.15
    assert peak > saturday > night


QUIET = SyntheticParams(
    days=40, hours=((2, 4),), bin_s=600, shocks=0.0, rainy_share=0.0, seen=1.0, spread=0.2
)


def _logs(grid: RoadNetwork, **changes: float) -> FloatArray:
    """Logarithms of the times at night, by day, bin and edge."""
    made = synthetic_traffic(grid, CALENDAR, replace(QUIET, **changes))  # type: ignore[arg-type]
    return np.log([RATIOS[np.asarray(one.truth)] for one in made.stretches]).astype(float)


def test_times_spread_and_are_alike_within_their_reach_and_memory(grid: RoadNetwork) -> None:
    logs = _logs(grid, reach_m=300.0, memory_s=1200.0)
    logs -= logs.mean()
    assert logs.std() == pytest.approx(0.2, rel=0.05)
    later = [(logs[:, k:] * logs[:, : 12 - k]).mean() / (logs**2).mean() for k in (1, 2, 4)]
    assert later == pytest.approx(np.exp([-0.5, -1.0, -2.0]), abs=0.06)
    places = np.column_stack([grid.lon, grid.lat]) * 1.11e5 * [np.cos(np.radians(22.0)), 1.0]
    middles = (places[grid.tail] + places[grid.head]) / 2
    apart_m = np.hypot(*(middles[:, None] - middles).transpose(2, 0, 1))
    alike = np.asarray(np.corrcoef(logs.reshape(-1, grid.num_edges).T))
    for distance_m in (150.0, 300.0, 600.0):
        near = np.abs(apart_m - distance_m) < 30.0
        assert alike[near].mean() == pytest.approx(np.exp(-distance_m / 300.0), abs=0.1)


@pytest.mark.parametrize(("lasting", "daily"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.4)])
def test_parts_of_the_spread_last_for_good_and_for_a_day(
    grid: RoadNetwork, lasting: float, daily: float
) -> None:
    logs = _logs(grid, lasting=lasting, daily=daily, memory_s=60.0, reach_m=100.0)
    whole = 0.04
    for_good = logs.mean(axis=(0, 1)).var()
    of_day = logs.mean(axis=1).var(axis=0).mean()
    assert for_good == pytest.approx(lasting * whole, abs=0.006)
    assert of_day == pytest.approx((daily + (1 - lasting - daily) / 12) * whole, abs=0.006)
    assert logs.var() == pytest.approx(whole, rel=0.15)


def test_a_router_has_an_error_and_a_delay_that_leave_the_truth_as_it_is(
    grid: RoadNetwork,
) -> None:
    long = {"bin_s": 60, "days": 12, "spread": 0.1}
    plain, wrong, biased, late = (
        synthetic_traffic(grid, CALENDAR, replace(QUIET, **long, **changes))  # type: ignore[arg-type]
        for changes in (
            {}, {"router_error": 0.4}, {"router_bias": 0.3}, {"router_delay_s": 300.0}
        )
    )  # fmt: skip
    errors = []
    for other in (wrong, biased):
        assert all(
            np.array_equal(np.asarray(a.truth), np.asarray(b.truth))
            for a, b in zip(plain.stretches, other.stretches, strict=True)
        )
        seen = [
            np.log(RATIOS[b.codes[5:]]) - np.log(RATIOS[a.codes[5:]])
            for a, b in zip(plain.stretches, other.stretches, strict=True)
        ]
        errors.append(np.array(seen))
    assert np.nanstd(errors[0]) == pytest.approx(0.4, rel=0.15)
    assert np.nanstd(errors[1]) == pytest.approx(0.3, rel=0.25)
    by_edge = [np.nanmean(error, axis=(0, 1)).std() for error in errors]
    assert by_edge[0] < 0.2
    assert by_edge[1] == pytest.approx(np.nanstd(errors[1]), rel=0.15)
    for before, after in zip(plain.stretches, late.stretches, strict=True):
        assert not after.codes[:5].any()
        np.testing.assert_array_equal(after.codes[5:], before.codes[:-5])


def test_a_shock_slows_its_edge(grid: RoadNetwork) -> None:
    busy = replace(PARAMS, seen=1.0, shocks=5.0, rainy_share=0.0)
    stretch = synthetic_traffic(grid, CALENDAR, busy).stretches[0]
    shock = stretch.notes["shocks"][0]
    ratios = RATIOS[stretch.codes[shock["bin"] : shock["end"], shock["edge"]]]
    assert ratios.min() > 2.0


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"days": 0}, "days"),
        ({"hours": ()}, "hours"),
        ({"hours": ((5, 3),)}, "hours"),
        ({"hours": ((5, 25),)}, "hours"),
        ({"seen": 0.0}, "seen"),
        ({"seed": -1}, "seed"),
        ({"shocks": float("nan")}, "shocks"),
        ({"rainy_share": 2.0}, "rainy_share"),
        ({"lasting": 0.6, "daily": 0.5}, "lasting"),
        ({"first": date(1, 1, 1)}, "first"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=key):
        replace(PARAMS, **wrong)


NEW_YORK = Calendar("America/New_York", "US")


@pytest.mark.parametrize(
    ("first", "hours_of_days"),
    [(date(2023, 3, 11), [24, 23, 24]), (date(2023, 11, 4), [24, 25, 24])],
)
def test_days_on_which_the_clocks_change(
    grid: RoadNetwork, tmp_path: Path, first: date, hours_of_days: list[int]
) -> None:
    whole = replace(PARAMS, first=first, hours=((0, 24),), bin_s=600, rainy_share=1.0)
    made = synthetic_traffic(grid, NEW_YORK, whole)
    assert [stretch.bins / 6 for stretch in made.stretches] == hours_of_days
    assert [len(stretch.weather) - 1 for stretch in made.stretches] == hours_of_days
    for one, following in pairwise(made.stretches):
        assert made.end(one) == following.start
    made.save(tmp_path / "ny.traffic")
    read = RecordedTraffic.load(tmp_path / "ny.traffic", grid)
    assert read.checksum == made.checksum
    for one, other in zip(read.stretches, made.stretches, strict=True):
        assert one.start.isoformat() == other.start.isoformat()
        assert read.end(one) == made.end(other)
    # the weather of an hour is that of its clock, behind the change too
    day, rain = made.stretches[1], made.stretches[1].weather[:, 1]
    for hour in range(len(rain) - 1):
        at = day.start + timedelta(hours=hour, minutes=5)
        for recording in (made, read):
            assert recording.context(at).weather.rainfall_mm.value == rain[hour]
            assert recording.find(at) == (1, 6 * hour)
    assert NEW_YORK.local(day.start + timedelta(hours=hours_of_days[1] - 1)).hour == 23


def test_rain_is_known_when_its_hour_is_over(
    grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rain from 8 to 9 and from 23 h: streets slow down at once, the context says so later."""
    rain = np.zeros(24)
    rain[[8, 23]] = 5.0
    worlds = []
    for falls in (rain, np.zeros(24)):
        monkeypatch.setattr(synthetic, "_rain", lambda *_, falls=falls: falls)
        whole = replace(PARAMS, days=2, hours=((0, 24),), bin_s=600)
        worlds.append(synthetic_traffic(grid, CALENDAR, whole))
    wet, dry = worlds
    slower = [
        bool((np.asarray(a.truth)[6 * h] > np.asarray(b.truth)[6 * h]).mean() > 0.5)
        for a, b in zip(wet.stretches, dry.stretches, strict=True)
        for h in range(24)
    ]
    start = wet.stretches[0].start + timedelta(minutes=30)
    known = [
        wet.context(start + timedelta(hours=h)).weather.rainfall_mm.value == 5.0 for h in range(48)
    ]
    assert [h for h in range(48) if slower[h]] == [8, 23, 32, 47]
    assert [h for h in range(48) if known[h]] == [9, 24, 33]


def test_an_hour_that_the_clocks_skip_is_not_there(grid: RoadNetwork) -> None:
    night = replace(PARAMS, first=date(2023, 3, 11), hours=((1, 2), (2, 3), (3, 4)))
    made = synthetic_traffic(grid, NEW_YORK, night)
    assert [len(day) for day in made.days] == [3, 2, 3]
    skipped = replace(night, days=1, first=date(2023, 3, 12), hours=((2, 3),))
    with pytest.raises(InputError, match="at least one stretch"):
        synthetic_traffic(grid, NEW_YORK, skipped)
