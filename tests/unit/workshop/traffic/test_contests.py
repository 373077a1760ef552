from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.paper_issues import Contests
from ideal_dispatch.replay.drive import World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.unit.workshop.traffic.small import CALENDAR, recording
from workshop.traffic.contests import Call, ContestParams, contest, contested_nodes, example
from workshop.traffic.page import nearest_region

DEPOTS = (Depot("West", 48), Depot("East", 59), Depot("North", 113))
PARAMS = ContestParams(nodes=6, calls=2, hours=((17, 18),))
NAN = float("nan")


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture(scope="module")
def world(grid: RoadNetwork) -> ReplayedTraffic:
    """Two evenings in which streets change a lot."""
    params = SyntheticParams(days=2, hours=((16, 19),), incidents_per_hour=60, seed=1)
    return ReplayedTraffic(synthetic_traffic(grid, CALENDAR, params))


@pytest.fixture(scope="module")
def contested(world: ReplayedTraffic) -> tuple[Contests, tuple[Call, ...]]:
    params = ContestParams(nodes=20, calls=5, hours=((17, 18),))
    return contest(world, DEPOTS, nearest_region(world.network, DEPOTS), params, _rng())


@pytest.fixture(scope="module")
def contests(contested: tuple[Contests, tuple[Call, ...]]) -> Contests:
    return contested[0]


@pytest.fixture(scope="module")
def calls(contested: tuple[Contests, tuple[Call, ...]]) -> tuple[Call, ...]:
    return contested[1]


def _by_hand() -> Contests:
    """Three calls, three depots: the third is in the contest in the second call only."""
    return Contests(
        region=np.array([0, 2, 1], np.int32),
        quoted_s=np.array([[100, 120, NAN], [300, 250, 260], [200, 210, NAN]]),
        optimistic_s=np.array([[90, 95, NAN], [280, 200, 251], [190, 220, NAN]]),
        pessimistic_s=np.array([[110, 130, NAN], [310, 250, 270], [215, 260, NAN]]),
        took_s=np.array([
            [[130, 110, NAN], [300, 250, 240], [200, 200, NAN]],
            [[90, 110, NAN], [240, 250, 260], [200, 150, NAN]],
        ]),
        contends=np.array([[1, 1, 0], [1, 1, 1], [1, 1, 0]], bool),
    )  # fmt: skip


def test_the_three_issues_by_hand() -> None:
    contests = _by_hand()
    assert contests.favourite.tolist() == [0, 1, 0]
    assert contests.rival.tolist() == [1, 2, 1]
    assert contests.region_share() == pytest.approx([2 / 3, 2 / 3])  # a tie is no mistake
    assert contests.lost_s().tolist() == [[20, 10, 0], [0, 10, 50]]
    assert contests.reversal_share() == pytest.approx([2 / 3, 2 / 3])
    assert contests.overlap_s().tolist() == [15, 0, 0]
    assert contests.overlap_share() == pytest.approx(1 / 3)
    assert contests.mean_s() == pytest.approx([(240 + 490 + 400) / 6, (200 + 510 + 350) / 6])
    assert contests.most_telling(World.INSTANTANEOUS) == 0
    assert contests.most_telling(World.EXPERIENCED) == 2


def test_ranges_that_touch_overlap_by_nothing() -> None:
    contests = _by_hand()
    touching = np.where(contests.optimistic_s == 251, 250, contests.optimistic_s)
    changed = replace(contests, optimistic_s=touching)
    assert changed.overlap_share() == pytest.approx(2 / 3)
    assert changed.overlap_s().tolist() == [15, 0, 0]


def test_a_favourite_that_never_loses_has_no_example() -> None:
    contests = _by_hand()
    kept = replace(contests, took_s=np.stack([contests.quoted_s, contests.quoted_s]))
    assert kept.most_telling(World.INSTANTANEOUS) is None
    assert kept.reversal_share().tolist() == [0, 0]


def test_contests_are_what_router_and_drive_say(
    world: ReplayedTraffic, contests: Contests, calls: tuple[Call, ...]
) -> None:
    assert 30 < len(contests) == len(calls) <= 100
    for call in (0, len(contests) // 2, len(contests) - 1):
        node, at = calls[call]
        shortest = np.inf
        for number, depot in enumerate(DEPOTS):
            quote = world.quote(depot.node, node, at)
            shortest = min(shortest, quote.duration_s)
            if not np.isnan(contests.quoted_s[call, number]):
                assert contests.quoted_s[call, number] == quote.duration_s
                told = Assignment(number, quote.path)
                for row, how in enumerate(World):
                    driven = drive(world, world.network, told, node, at, how)
                    assert contests.took_s[row, call, number] == driven.total_s
        inside = contests.quoted_s[call] <= 1.25 * shortest
        assert contests.contends[call].tolist() == inside.tolist()


def test_calls_keep_to_the_hours(calls: tuple[Call, ...]) -> None:
    assert {at.astimezone(CALENDAR.local(at).tzinfo).hour for _, at in calls} == {17}
    assert len({CALENDAR.local(at).date() for _, at in calls}) == 2


def test_the_region_is_driven_even_when_it_is_out_of_the_contest(world: ReplayedTraffic) -> None:
    everywhere_north = np.full(world.network.num_nodes, 2, np.int32)
    contests, _ = contest(world, DEPOTS, everywhere_north, PARAMS, _rng())
    assert not np.isnan(contests.took_s[:, :, 2]).any()
    assert not contests.contends[:, 2].all()


def test_traffic_that_never_changes_keeps_its_promises(grid: RoadNetwork) -> None:
    ratios = np.full((1, 180, grid.num_edges), 1.5)
    frozen = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = ContestParams(nodes=6, calls=2, hours=((17, 18),))
    contests, calls = contest(frozen, DEPOTS, nearest_region(grid, DEPOTS), params, _rng())
    assert contests.reversal_share()[0] == 0.0
    assert example(frozen, DEPOTS, contests, calls, World.INSTANTANEOUS) is None
    assert contests.region_share().tolist() == [1.0, 1.0]


def test_the_example_ends_as_the_race_did(
    world: ReplayedTraffic, contests: Contests, calls: tuple[Call, ...]
) -> None:
    for row, how in enumerate(World):
        call = contests.most_telling(how)
        shown = example(world, DEPOTS, contests, calls, how)
        assert call is not None
        assert shown is not None
        pair = contests.favourite[call], contests.rival[call]
        assert [one.depot for one in shown.drives] == [DEPOTS[number] for number in pair]
        took = [sum(one.seconds) for one in shown.drives]
        assert took == pytest.approx(contests.took_s[row, call, list(pair)])
        assert took[0] > took[1]
        assert shown.drives[0].expected_s[0] == pytest.approx(contests.quoted_s[call, pair[0]])


def test_same_seed_same_contests(world: ReplayedTraffic) -> None:
    region = nearest_region(world.network, DEPOTS)
    one, two = (contest(world, DEPOTS, region, PARAMS, _rng()) for _ in range(2))
    other = contest(world, DEPOTS, region, PARAMS, np.random.default_rng(4))
    assert one[1] == two[1]
    assert np.array_equal(one[0].took_s, two[0].took_s, equal_nan=True)
    assert one[1] != other[1]


def test_contested_nodes_are_near_two_depots(world: ReplayedTraffic) -> None:
    network = world.network
    nodes = contested_nodes(world, DEPOTS, ContestParams(nodes=1000), _rng())
    away = np.sort([network.distances(network.free_flow_times_s, d.node) for d in DEPOTS], axis=0)
    expected = np.flatnonzero((away[1] <= 1.25 * away[0]) & (away[0] > 0))
    assert nodes.tolist() == expected.tolist()


def test_what_cannot_be_raced_is_said(world: ReplayedTraffic) -> None:
    region = nearest_region(world.network, DEPOTS)
    with pytest.raises(InputError, match="at least two depots, 1 given"):
        contest(world, DEPOTS[:1], region, PARAMS, _rng())
    with pytest.raises(InputError, match="no time between 3–4 o'clock.*choose other hours"):
        contest(world, DEPOTS, region, ContestParams(hours=((3, 4),)), _rng())
    with pytest.raises(InputError, match="allow a greater margin"):
        contest(world, (DEPOTS[0], Depot("Twin", 0)), region, ContestParams(margin=1e-9), _rng())
    with pytest.raises(InputError, match="margin above zero"):
        ContestParams(margin=0)


def test_calls_that_are_no_race_are_left_out(grid: RoadNetwork) -> None:
    ratios = np.ones((1, 180, grid.num_edges))
    ratios[:, :, grid.lon[grid.tail] > 114.0055] = 4.0  # the eastern half crawls
    made = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = ContestParams(nodes=10, calls=1, margin=0.02, hours=((17, 18),))
    with pytest.raises(InputError, match="no contest among 2 calls: .* within 2% of each other"):
        contest(made, DEPOTS[:2], nearest_region(grid, DEPOTS[:2]), params, _rng())


def test_drives_that_leave_the_recording_are_left_out(grid: RoadNetwork) -> None:
    ratios = np.ones((1, 130, grid.num_edges))
    ratios[:, 65:] = 100.0  # five past five everything stops
    made = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = ContestParams(nodes=10, calls=4, hours=((17, 18),))
    contests, calls = contest(made, DEPOTS, nearest_region(grid, DEPOTS), params, _rng())
    assert 0 < len(contests) == len(calls) < 40
    assert not np.isnan(contests.took_s[:, contests.contends]).any()
