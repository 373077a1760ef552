import pickle
from dataclasses import replace
from datetime import UTC, timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import Path
from ideal_dispatch.traffic.recorded_router import RouterParams
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic, Stretch, encode
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
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
    expected = ReplayedTraffic(made).quote(0, grid.num_nodes - 1, NOW)
    for fill in (0, 1, 255):
        other = ReplayedTraffic(_without(made, stretch, present, fill))
        assert other.quote(0, grid.num_nodes - 1, NOW) == expected


def test_the_past_does_change_a_quote(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(NOW)
    times = ReplayedTraffic(made).router_times(NOW)
    changed = ReplayedTraffic(_without(made, stretch, present - 1, 255)).router_times(NOW)
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
    assert ReplayedTraffic(made).router_times(NOW)[edge] == pytest.approx(expected, rel=1e-6)


def test_at_the_start_the_router_falls_back_and_says_so(grid: RoadNetwork) -> None:
    quote = ReplayedTraffic(recording(grid)).quote(0, 5, START)
    assert "long-run means used" in quote.fell_back
    assert np.isnan(quote.data_age_s)  # it has no data


def test_data_age_is_that_of_the_newest_vehicle(grid: RoadNetwork) -> None:
    made = recording(grid)
    assert ReplayedTraffic(made).quote(0, 5, NOW).data_age_s == 30.0
    silent = _without(made, 1, 37, 0)  # nobody from minute 37 on
    quote = ReplayedTraffic(silent).quote(0, 5, NOW)
    assert quote.data_age_s == 3.5 * 60
    assert quote.fell_back == ""
    quote = ReplayedTraffic(silent).quote(0, 5, NOW + timedelta(minutes=5))
    assert quote.data_age_s == 8.5 * 60
    assert "no vehicle seen in the last 300 s" in quote.fell_back
    begin = START + timedelta(days=1, seconds=20)  # the last one was seen the day before
    assert ReplayedTraffic(made).quote(0, 5, begin).data_age_s == 22 * 3600 + 20


def test_quantiles_are_of_what_was_said_about_the_path(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    quote = world.quote(0, grid.num_nodes - 1, NOW)
    said = [quote.path.time_s(world.router_times(NOW - timedelta(minutes=5 * k))) for k in range(9)]
    assert quote.optimistic_s == pytest.approx(np.quantile(said, 0.1))
    assert quote.pessimistic_s == pytest.approx(np.quantile(said, 0.9))


def test_ranges_of_days_are_of_the_same_time_on_earlier_days(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid), RouterParams(ranges="days", now_share=0.25))
    third_day = NOW + timedelta(days=1)
    quote = world.quote(0, grid.num_nodes - 1, third_day)
    around = [timedelta(minutes=5 * k) for k in range(-6, 7)]
    moments = [third_day - timedelta(days=back) + shift for back in (1, 2) for shift in around]
    said = [quote.path.time_s(world.router_times(at)) for at in moments]
    for share, given in ((0.05, quote.optimistic_s), (0.95, quote.pessimistic_s)):
        expected = np.quantile(said, share) ** 0.75 * quote.duration_s**0.25
        assert given == pytest.approx(expected)
    usual = ReplayedTraffic(recording(grid)).quote(0, grid.num_nodes - 1, third_day)
    assert (usual.path, usual.duration_s) == (quote.path, quote.duration_s)
    assert usual.optimistic_s != quote.optimistic_s


def test_ranges_of_days_need_earlier_days(grid: RoadNetwork) -> None:
    first_day = NOW - timedelta(days=1)
    by_days = ReplayedTraffic(recording(grid), RouterParams(ranges="days"))
    assert by_days.quote(0, 1, first_day) == ReplayedTraffic(recording(grid)).quote(0, 1, first_day)
    with pytest.raises(InputError, match="ranges 'weeks': choose last-hour or days"):
        RouterParams(ranges="weeks")  # type: ignore[arg-type]


def test_neither_kind_of_range_sees_the_future(grid: RoadNetwork) -> None:
    made, params = recording(grid), RouterParams(ranges="days")
    stretch, present = made.find(NOW)
    other = ReplayedTraffic(_without(made, stretch, present, 255), params)
    assert other.quote(0, 9, NOW) == ReplayedTraffic(made, params).quote(0, 9, NOW)


def test_the_truth_is_what_was_seen_pooled_forward(grid: RoadNetwork) -> None:
    times = np.tile(grid.free_flow_times_s, (6, 1)) * np.arange(1, 7)[:, None]
    stretch = Stretch(START, encode(times, grid), np.zeros((1, 5)))
    made = RecordedTraffic(grid, CALENDAR, 60, (stretch,))
    world = ReplayedTraffic(made, RouterParams(forward_s=120))
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
    world = ReplayedTraffic(made, RouterParams(forward_s=60))
    at = START + timedelta(minutes=2)
    assert world.realised(0, at) == pytest.approx(2.0 * grid.free_flow_times_s[0], rel=0.02)
    assert world.realised(1, at) == pytest.approx(2.0 * grid.free_flow_times_s[1], rel=0.02)


def test_whole_bins_of_a_window_count(grid: RoadNetwork) -> None:
    made, at = recording(grid), START + timedelta(minutes=40)
    one, same, more = (
        ReplayedTraffic(made, RouterParams(window_s=seconds)).router_times(at)
        for seconds in (120, 179, 180)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != more).any()


def test_windows_shorter_than_a_bin_are_refused(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="window_s 30: at least one bin, 60 s"):
        ReplayedTraffic(recording(grid), RouterParams(window_s=30))
    with pytest.raises(InputError, match="memory_s nan: at least one bin"):
        ReplayedTraffic(recording(grid), RouterParams(memory_s=float("nan")))
    with pytest.raises(InputError, match="prior_bins 0.0: more than 0 is needed"):
        ReplayedTraffic(recording(grid), RouterParams(prior_bins=0.0))


# --- another route, and the way on ------------------------------------------------------


def test_an_alternative_is_the_best_path_where_the_first_costs_more(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid), RouterParams(alternative_factor=1.4))
    first = world.quote(0, grid.num_nodes - 1, NOW)
    other = world.alternative(first.path, NOW)
    assert other is not None
    times = world.router_times(NOW)
    dear = times.copy()
    dear[first.path.edges] *= 1.4
    assert other.path == grid.shortest_path(dear, 0, grid.num_nodes - 1)
    assert other.path != first.path
    assert other.duration_s == pytest.approx(other.path.time_s(times))  # at true prices
    assert other.duration_s >= first.duration_s
    assert other.asked_at == NOW
    assert other.optimistic_s <= other.pessimistic_s


def test_there_may_be_no_alternative(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid), RouterParams(alternative_factor=1.0001))
    first = world.quote(0, 1, NOW)
    assert world.alternative(first.path, NOW) is None
    assert world.alternative(grid.path([], 5), NOW) is None
    with pytest.raises(InputError, match="path edge 9999 is not in the network"):
        world.alternative(Path(np.array([9999], np.int32), 0, 1), NOW)


def test_the_future_cannot_change_an_alternative(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(NOW)
    path = ReplayedTraffic(made).quote(0, grid.num_nodes - 1, NOW).path
    expected = ReplayedTraffic(made).alternative(path, NOW)
    other = ReplayedTraffic(_without(made, stretch, present, 255))
    assert other.alternative(path, NOW) == expected


def test_a_penalty_that_is_none(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="alternative_factor 1.0: more than 1 is needed"):
        ReplayedTraffic(recording(grid), RouterParams(alternative_factor=1.0))


def test_the_way_on_is_the_start_of_a_quote(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    for minutes in (0, 3, 50):
        at = (NOW + timedelta(minutes=minutes)).astimezone(UTC)
        for node in range(0, grid.num_nodes - 1, 7):
            quote = world.quote(node, grid.num_nodes - 1, at)
            edge, seconds, duration_s = world.way_on(node, grid.num_nodes - 1, at)
            assert (edge, seconds) == (quote.path.edges[0], quote.next_segment_s)
            assert duration_s == pytest.approx(quote.duration_s, rel=1e-12)


def test_the_way_on_needs_a_zone_and_somewhere_to_go(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    with pytest.raises(InputError, match="no zone; add its offset from UTC"):
        world.way_on(0, 5, NOW.replace(tzinfo=None))
    with pytest.raises(InputError, match="node 5 is the destination: there is no way on from it"):
        world.way_on(5, 5, NOW)


def test_there_may_be_no_way_on() -> None:
    town = RoadNetwork.from_arrays([1], [0], [100.0])
    stretch = Stretch(START, np.ones((5, 1), np.uint8), np.zeros((1, 5)))
    world = ReplayedTraffic(RecordedTraffic(town, CALENDAR, 60, (stretch,)))
    with pytest.raises(UnreachableError, match="node 1 cannot be reached from node 0"):
        world.way_on(0, 1, START)


def test_every_moment_is_found_as_the_recording_finds_it(grid: RoadNetwork) -> None:
    made = recording(grid)
    world = ReplayedTraffic(made)
    rng = np.random.default_rng(0)
    for seconds in [0.0, 59.999999, 60.0, 7199.999999, *rng.uniform(0, 2.2 * 86400, 60)]:
        at = START + timedelta(seconds=float(seconds))
        try:
            expected = made.find(at)
        except InputError:
            with pytest.raises(InputError, match="is not in the recording"):
                world.realised_times(at)
            continue
        stretch, present = expected
        assert (world.realised_times(at) == world._filled(stretch)[present]).all()


def test_a_world_can_be_sent_to_another_process(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid), RouterParams(window_s=600))
    world.quote(0, 5, NOW)
    copy = pickle.loads(pickle.dumps(world))
    assert copy.recording.checksum == world.recording.checksum
    assert copy.quote(0, 5, NOW) == world.quote(0, 5, NOW)
    assert copy.realised(3, NOW) == world.realised(3, NOW)
    assert dict(copy.recording.stretches[0].notes) == {"demand": 1.0}


def test_the_way_on_knows_forbidden_turns(grid: RoadNetwork) -> None:
    """The first edge of a tree without them would often lead into one."""
    rng = np.random.default_rng(3)
    turns = []
    for edge in range(grid.num_edges):
        onward = np.flatnonzero((grid.tail == grid.head[edge]) & (grid.head != grid.tail[edge]))
        turns.append((edge, int(rng.choice(onward))))
    town = replace(grid, forbidden_turns=tuple(turns))
    world, free, differ = ReplayedTraffic(recording(town)), ReplayedTraffic(recording(grid)), 0
    for node in range(town.num_nodes - 1):
        quote = world.quote(node, town.num_nodes - 1, NOW)
        edge, seconds, duration_s = world.way_on(node, town.num_nodes - 1, NOW)
        assert (edge, seconds) == (quote.path.edges[0], quote.next_segment_s)
        assert duration_s == pytest.approx(quote.duration_s, rel=1e-12)
        differ += edge != free.way_on(node, town.num_nodes - 1, NOW)[0]
    assert differ > 5
