from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.recorded import RecordedWorld, RouterParams
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic, Stretch, encode
from tests.unit.traffic.small import CALENDAR, START, recording

NOW = START + timedelta(days=1, minutes=40, seconds=30)


def _without(made: RecordedTraffic, stretch: int, first_bin: int, fill: int) -> RecordedTraffic:
    """The recording with everything from a bin on, and all later stretches, overwritten."""
    changed = []
    for number, one in enumerate(made.stretches):
        codes = one.codes.copy()
        if number == stretch:
            codes[first_bin:] = fill
        elif number > stretch:
            codes[:] = fill
        changed.append(replace(one, codes=codes, truth=one.truth))
    return replace(made, stretches=tuple(changed))


def test_the_future_cannot_change_a_quote(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(NOW)
    expected = RecordedWorld(made).quote(0, grid.num_nodes - 1, NOW)
    for fill in (0, 1, 255):
        other = RecordedWorld(_without(made, stretch, present, fill))
        assert other.quote(0, grid.num_nodes - 1, NOW) == expected


def test_the_past_does_change_a_quote(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(NOW)
    times = RecordedWorld(made).router_times(NOW)
    changed = RecordedWorld(_without(made, stretch, present - 1, 255)).router_times(NOW)
    assert (changed != times).all()


def test_router_pools_the_window_and_shrinks_to_the_long_run(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(NOW)
    codes = made.stretches[stretch].codes[present - 5 : present]
    history = RATIOS[made.stretches[0].codes]
    edge = int(np.flatnonzero((codes > 0).sum(axis=0) >= 2)[0])
    seen = RATIOS[codes[:, edge]]
    own = history[:, edge]
    alike = history[:, grid.road_class == grid.road_class[edge]]
    everyone = (np.nansum(alike) + 1) / ((alike > 0).sum() + 1)
    prior = (np.nansum(own) + everyone) / ((own > 0).sum() + 1)
    expected = (np.nansum(seen) + prior) / ((seen > 0).sum() + 1) * grid.free_flow_times_s[edge]
    assert RecordedWorld(made).router_times(NOW)[edge] == pytest.approx(expected, rel=1e-6)


def test_at_the_start_the_router_falls_back_and_says_so(grid: RoadNetwork) -> None:
    quote = RecordedWorld(recording(grid)).quote(0, 5, START)
    assert "long-run means used" in quote.fell_back
    assert quote.data_age_s == 0


def test_data_age_is_the_age_of_the_last_complete_bin(grid: RoadNetwork) -> None:
    assert RecordedWorld(recording(grid)).quote(0, 5, NOW).data_age_s == 30.0


def test_quantiles_are_of_what_was_said_about_the_path(grid: RoadNetwork) -> None:
    world = RecordedWorld(recording(grid))
    quote = world.quote(0, grid.num_nodes - 1, NOW)
    said = [quote.path.time_s(world.router_times(NOW - timedelta(minutes=5 * k))) for k in range(9)]
    assert quote.optimistic_s == pytest.approx(np.quantile(said, 0.1))
    assert quote.pessimistic_s == pytest.approx(np.quantile(said, 0.9))


def test_the_truth_is_what_was_seen_pooled_forward(grid: RoadNetwork) -> None:
    times = np.tile(grid.free_flow_times_s, (6, 1)) * np.arange(1, 7)[:, None]
    stretch = Stretch(START, encode(times, grid), np.zeros((1, 5)))
    made = RecordedTraffic(grid, CALENDAR, 60, (stretch,))
    world = RecordedWorld(made, RouterParams(forward_s=120))
    for minute, ratio in ((0, 1.5), (3, 4.5), (5, 6.0)):
        at = START + timedelta(minutes=minute, seconds=20)
        expected = ratio * grid.free_flow_times_s[4]
        assert world.realised(4, at) == pytest.approx(expected, rel=0.011)


def test_the_unseen_is_interpolated_and_an_empty_street_is_as_its_class(grid: RoadNetwork) -> None:
    ratio = np.full((5, grid.num_edges), 2.0)
    ratio[1:4, 0] = np.nan
    ratio[0, 0], ratio[4, 0] = 1.0, 4.0
    ratio[:, 1] = np.nan
    stretch = Stretch(START, encode(ratio * grid.free_flow_times_s, grid), np.zeros((1, 5)))
    made = RecordedTraffic(grid, CALENDAR, 60, (stretch,))
    world = RecordedWorld(made, RouterParams(forward_s=60))
    at = START + timedelta(minutes=2)
    assert world.realised(0, at) == pytest.approx(2.0 * grid.free_flow_times_s[0], rel=0.02)
    assert world.realised(1, at) == pytest.approx(2.0 * grid.free_flow_times_s[1], rel=0.02)


def test_windows_shorter_than_a_bin_are_refused(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="window_s 30: at least one bin, 60 s"):
        RecordedWorld(recording(grid), RouterParams(window_s=30))
