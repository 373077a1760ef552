from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Calendar, RoadNetwork
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


def test_neighbouring_edges_and_minutes_are_alike(grid: RoadNetwork) -> None:
    quiet = replace(PARAMS, days=6, hours=((0, 4),), seen=1.0, incidents_per_hour=0.0)
    made = synthetic_traffic(grid, CALENDAR, quiet)
    logs = np.concatenate([np.log(RATIOS[np.asarray(s.truth)]) for s in made.stretches])
    logs -= logs.mean(axis=0)
    correlation = np.corrcoef(logs.T)
    touching = np.zeros_like(correlation, dtype=bool)
    for end in (grid.tail, grid.head):
        for other in (grid.tail, grid.head):
            touching |= end[:, None] == other[None, :]
    np.fill_diagonal(touching, False)
    apart = ~touching & ~np.eye(len(touching), dtype=bool)
    assert correlation[touching].mean() > correlation[apart].mean() + 0.05
    one_bin_later = (logs[1:] * logs[:-1]).mean() / (logs**2).mean()
    assert one_bin_later > 0.6


def test_an_incident_slows_its_edge(grid: RoadNetwork) -> None:
    busy = replace(PARAMS, seen=1.0, incidents_per_hour=5.0, rainy_share=0.0)
    stretch = synthetic_traffic(grid, CALENDAR, busy).stretches[0]
    incident = stretch.notes["incidents"][0]
    ratios = RATIOS[stretch.codes[incident["bin"] : incident["end"], incident["edge"]]]
    assert ratios.min() > 2.0


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"days": 0}, "days 0: at least 1 is needed"),
        ({"hours": ((5, 3),)}, "hours 5–3"),
        ({"seen": 0.0}, "seen 0.0: more than 0 and at most 1"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        replace(PARAMS, **wrong)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": -1}, "seed -1: zero or more is needed"),
        ({"incidents_per_hour": float("nan")}, "incidents_per_hour"),
        ({"rainy_share": 2.0}, "rainy_share 2.0: 0 to 1 is needed"),
        ({"first": date(1, 1, 1)}, "first 0001-01-01: too near the calendar's end"),
    ],
)
def test_laws_that_are_none_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(PARAMS, **change)


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
