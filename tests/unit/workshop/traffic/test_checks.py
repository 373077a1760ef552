from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from tests.unit.workshop.traffic.small import recording
from workshop.traffic.checks import (
    EVENING,
    SPEED_QUANTILES,
    check_traffic,
    check_window,
    road_groups,
    slowness_of,
)

MONDAY, TUESDAY, SUNDAY = date(2023, 5, 8), date(2023, 5, 9), date(2023, 5, 7)
HOLIDAY = date(2023, 5, 1)  # a Monday, Labour Day


def _noise(grid: RoadNetwork, days: int, bins: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0.0, 0.2, (days, bins, grid.num_edges))


def test_speed_by_kind_of_day_hour_and_roads(grid: RoadNetwork) -> None:
    groups = road_groups(grid)
    ratios = np.ones((3, 120, grid.num_edges))
    ratios[0, 60:, groups == 1] = 2.0  # Monday, from 18 o'clock, main roads
    ratios[1:] = 1.25
    made = recording(grid, (HOLIDAY, SUNDAY, MONDAY), ratios[[1, 2, 0]])
    found = check_traffic(made, "town", np.random.default_rng(0))
    assert found.days == (1, 2)
    assert found.relative_speed[0, 1, 17:19] == pytest.approx([1.0, 0.5], rel=0.02)
    assert found.relative_speed[0, 3, 17:19] == pytest.approx([1.0, 1.0], rel=0.02)
    assert found.relative_speed[1, :, 17:19] == pytest.approx(np.full((4, 2), 0.8), rel=0.02)
    assert np.isnan(found.relative_speed[:, :, :17]).all()
    peak, night = found.peak_and_night()
    assert peak == found.relative_speed[0, 0, 18]
    assert np.isnan(night)


def test_a_slow_hour_of_one_day_in_three_is_no_peak(grid: RoadNetwork) -> None:
    days = [MONDAY, TUESDAY, date(2023, 5, 10)]
    usual = np.ones((3, 120, grid.num_edges))
    usual[:, 60:] = 1.5  # 18 o'clock
    made = recording(grid, days, usual)
    noon = recording(grid, [TUESDAY], np.full((1, 60, grid.num_edges), 3.0), first_hour=12)
    order = sorted([*made.stretches, *noon.stretches], key=lambda stretch: stretch.start)
    found = check_traffic(replace(made, stretches=tuple(order)), "town", np.random.default_rng(0))
    assert found.relative_speed[0, 0, 12] == pytest.approx(1 / 3, rel=0.02)
    assert found.peak_hour == 18
    assert found.peak_and_night()[0] == pytest.approx(1 / 1.5, rel=0.02)
    sunday = recording(grid, [SUNDAY], usual[:1])
    assert check_traffic(sunday, "town", np.random.default_rng(0)).peak_hour is None


def test_links_go_with_their_roads(grid: RoadNetwork) -> None:
    groups = road_groups(grid)
    assert groups[:14].tolist() == [1] * 6 + [2] * 4 + [3] * 4


def test_observed_counts_what_the_router_sees(grid: RoadNetwork) -> None:
    ratios = _noise(grid, 1)
    ratios[:, 30:, road_groups(grid) == 2] = np.nan
    found = check_traffic(recording(grid, [MONDAY], ratios), "town", np.random.default_rng(0))
    assert found.observed[1:].tolist() == [1.0, 0.25, 1.0]
    assert found.observed[0] == pytest.approx(1 - 0.75 * (road_groups(grid) == 2).mean())


def test_days_apart_are_measured_at_the_same_hour(grid: RoadNetwork) -> None:
    days = np.ones((2, 120, grid.num_edges))
    days[:, 60:] = 3.0  # every evening is alike
    alike = check_traffic(recording(grid, (MONDAY, TUESDAY), days), "", np.random.default_rng(0))
    days[1] *= 1.5
    apart = check_traffic(recording(grid, (MONDAY, TUESDAY), days), "", np.random.default_rng(0))
    assert (alike.city_spread, alike.edge_spread) == (0.0, 0.0)
    expected = np.log(1.5) / np.sqrt(2)
    assert apart.city_spread == pytest.approx(expected, rel=0.05)
    assert apart.edge_spread == pytest.approx(expected, rel=0.05)
    one = check_traffic(recording(grid, [MONDAY], days[:1]), "", np.random.default_rng(0))
    assert np.isnan(one.city_spread)
    assert np.isnan(one.edge_spread)


def test_white_noise_has_no_memory_and_no_reach(grid: RoadNetwork) -> None:
    made = recording(grid, (MONDAY, TUESDAY), _noise(grid, 2))
    found = check_traffic(made, "town", np.random.default_rng(0))
    assert np.abs(found.memory.value[found.memory.at <= 60]).max() < 0.05
    assert np.abs(found.swings.value[:3]).max() < 0.05


def test_the_evening_is_of_working_days_and_the_minutes_of_the_real_one(grid: RoadNetwork) -> None:
    ratios = _noise(grid, 2)
    ratios[0, 56:111] = 2.0
    ratios[1] = 4.0
    made = recording(grid, (MONDAY, date(2023, 5, 13)), ratios)
    evening = check_traffic(made, "town", np.random.default_rng(0)).evening
    assert evening is not None
    assert evening.relative_speed == pytest.approx(np.full(SPEED_QUANTILES.size, 0.5), rel=0.02)
    morning = recording(grid, [MONDAY], _noise(grid, 1), first_hour=7)
    assert check_traffic(morning, "town", np.random.default_rng(0)).evening is None
    for first_hour in (16, 17):  # the same minutes, wherever a stretch begins
        made = recording(grid, [MONDAY], _noise(grid, 1, 240), first_hour=first_hour)
        assert len(slowness_of(made, EVENING).values) == 55


def test_an_evening_without_a_vehicle_is_none(grid: RoadNetwork) -> None:
    ratios = _noise(grid, 1)
    ratios[0, 56:111] = np.nan
    made = recording(grid, [MONDAY], ratios)
    assert check_traffic(made, "town", np.random.default_rng(0)).evening is None
    with pytest.raises(InputError, match="^town: no speed is known in this window"):
        check_window(slowness_of(made, EVENING), "town", np.random.default_rng(0))


def test_speeds_are_weighted_by_length(grid: RoadNetwork) -> None:
    longer = grid.length_m > np.median(grid.length_m)
    ratios = np.where(longer, 2.5, 1.0) * np.ones((1, 120, 1))
    evening = check_traffic(recording(grid, [MONDAY], ratios), "", np.random.default_rng(0)).evening
    assert evening is not None
    share = grid.length_m[longer].sum() / grid.length_m.sum()
    assert share > 0.52
    assert (evening.relative_speed < 0.5).mean() == pytest.approx(share, abs=0.02)
    assert evening.below_half == pytest.approx(share)


def test_a_simulation_that_broke_off_is_named(grid: RoadNetwork) -> None:
    ratios = _noise(grid, 1)
    ratios[0, 84:] = np.nan
    found = check_traffic(recording(grid, [MONDAY], ratios), "town", np.random.default_rng(0))
    assert found.silences == ("Mon 08 May 2023: no vehicle seen from 18:24 to 19:00",)
    ratios = _noise(grid, 1)
    ratios[0, 84:93] = np.nan  # nine minutes may be chance
    made = recording(grid, [MONDAY], ratios)
    assert check_traffic(made, "town", np.random.default_rng(0)).silences == ()


def test_slowness_is_the_log_of_time_over_free_flow(grid: RoadNetwork) -> None:
    ratios = _noise(grid, 1).clip(0.6)
    ratios[0, 0, 0] = np.nan
    slowness = slowness_of(recording(grid, [MONDAY], ratios), (17.5, 18.0))
    assert slowness.values.shape == (30, grid.num_edges)
    assert slowness.values == pytest.approx(np.log(ratios[0, 30:60]), abs=0.011)
    assert np.isnan(slowness_of(recording(grid, [MONDAY], ratios)).values[0, 0])
