from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.races import Races
from ideal_dispatch.replay.drive import World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.unit.workshop.traffic.small import CALENDAR, recording
from workshop.traffic.page import nearest_region
from workshop.traffic.races import Call, RaceParams, contested_nodes, example, race

DEPOTS = (Depot("West", 48), Depot("East", 59), Depot("North", 113))
PARAMS = RaceParams(nodes=6, calls=2, hours=((17, 18),))
NAN = float("nan")


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture(scope="module")
def world(grid: RoadNetwork) -> ReplayedTraffic:
    """Two evenings in which streets change a lot."""
    params = SyntheticParams(days=2, hours=((16, 19),), incidents_per_hour=60, seed=1)
    return ReplayedTraffic(synthetic_traffic(grid, CALENDAR, params))


@pytest.fixture(scope="module")
def raced(world: ReplayedTraffic) -> tuple[Races, tuple[Call, ...]]:
    params = RaceParams(nodes=20, calls=5, hours=((17, 18),))
    return race(world, DEPOTS, nearest_region(world.network, DEPOTS), params, _rng())


@pytest.fixture(scope="module")
def races(raced: tuple[Races, tuple[Call, ...]]) -> Races:
    return raced[0]


@pytest.fixture(scope="module")
def calls(raced: tuple[Races, tuple[Call, ...]]) -> tuple[Call, ...]:
    return raced[1]


def _by_hand() -> Races:
    """Three calls, three depots: the third is in the race in the second call only."""
    return Races(
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
    races = _by_hand()
    assert races.favourite.tolist() == [0, 1, 0]
    assert races.rival.tolist() == [1, 2, 1]
    assert races.region_share() == pytest.approx([2 / 3, 2 / 3])  # a tie is no mistake
    assert races.lost_s().tolist() == [[20, 10, 0], [0, 10, 50]]
    assert races.reversal_share() == pytest.approx([2 / 3, 2 / 3])
    assert races.overlap_s().tolist() == [15, 0, 0]
    assert races.overlap_share() == pytest.approx(1 / 3)
    assert races.mean_s() == pytest.approx([(240 + 490 + 400) / 6, (200 + 510 + 350) / 6])
    assert races.most_telling(World.INSTANTANEOUS) == 0
    assert races.most_telling(World.EXPERIENCED) == 2


def test_ranges_that_touch_overlap_by_nothing() -> None:
    races = _by_hand()
    touching = np.where(races.optimistic_s == 251, 250, races.optimistic_s)
    changed = replace(races, optimistic_s=touching)
    assert changed.overlap_share() == pytest.approx(2 / 3)
    assert changed.overlap_s().tolist() == [15, 0, 0]


def test_a_favourite_that_never_loses_has_no_example() -> None:
    races = _by_hand()
    kept = replace(races, took_s=np.stack([races.quoted_s, races.quoted_s]))
    assert kept.most_telling(World.INSTANTANEOUS) is None
    assert kept.reversal_share().tolist() == [0, 0]


def test_races_are_what_router_and_drive_say(
    world: ReplayedTraffic, races: Races, calls: tuple[Call, ...]
) -> None:
    assert 30 < len(races) == len(calls) <= 100
    for call in (0, len(races) // 2, len(races) - 1):
        node, at = calls[call]
        shortest = np.inf
        for number, depot in enumerate(DEPOTS):
            quote = world.quote(depot.node, node, at)
            shortest = min(shortest, quote.duration_s)
            if not np.isnan(races.quoted_s[call, number]):
                assert races.quoted_s[call, number] == quote.duration_s
                told = Assignment(number, quote.path)
                for row, how in enumerate(World):
                    driven = drive(world, world.network, told, node, at, how)
                    assert races.took_s[row, call, number] == driven.total_s
        inside = races.quoted_s[call] <= 1.25 * shortest
        assert races.contends[call].tolist() == inside.tolist()


def test_calls_keep_to_the_hours(calls: tuple[Call, ...]) -> None:
    assert {at.astimezone(CALENDAR.local(at).tzinfo).hour for _, at in calls} == {17}
    assert len({CALENDAR.local(at).date() for _, at in calls}) == 2


def test_the_region_is_driven_even_when_it_is_out_of_the_race(world: ReplayedTraffic) -> None:
    everywhere_north = np.full(world.network.num_nodes, 2, np.int32)
    races, _ = race(world, DEPOTS, everywhere_north, PARAMS, _rng())
    assert not np.isnan(races.took_s[:, :, 2]).any()
    assert not races.contends[:, 2].all()


def test_traffic_that_never_changes_keeps_its_promises(grid: RoadNetwork) -> None:
    ratios = np.full((1, 180, grid.num_edges), 1.5)
    frozen = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = RaceParams(nodes=6, calls=2, hours=((17, 18),))
    races, calls = race(frozen, DEPOTS, nearest_region(grid, DEPOTS), params, _rng())
    assert races.reversal_share()[0] == 0.0
    assert example(frozen, DEPOTS, races, calls, World.INSTANTANEOUS) is None
    assert races.region_share().tolist() == [1.0, 1.0]


def test_the_example_ends_as_the_race_did(
    world: ReplayedTraffic, races: Races, calls: tuple[Call, ...]
) -> None:
    for row, how in enumerate(World):
        call = races.most_telling(how)
        shown = example(world, DEPOTS, races, calls, how)
        assert call is not None
        assert shown is not None
        pair = races.favourite[call], races.rival[call]
        assert [one.depot for one in shown.drives] == [DEPOTS[number] for number in pair]
        took = [sum(one.seconds) for one in shown.drives]
        assert took == pytest.approx(races.took_s[row, call, list(pair)])
        assert took[0] > took[1]
        assert shown.drives[0].expected_s[0] == pytest.approx(races.quoted_s[call, pair[0]])


def test_same_seed_same_races(world: ReplayedTraffic) -> None:
    region = nearest_region(world.network, DEPOTS)
    one, two = (race(world, DEPOTS, region, PARAMS, _rng()) for _ in range(2))
    other = race(world, DEPOTS, region, PARAMS, np.random.default_rng(4))
    assert one[1] == two[1]
    assert np.array_equal(one[0].took_s, two[0].took_s, equal_nan=True)
    assert one[1] != other[1]


def test_contested_nodes_are_near_two_depots(world: ReplayedTraffic) -> None:
    network = world.network
    nodes = contested_nodes(world, DEPOTS, RaceParams(nodes=1000), _rng())
    away = np.sort([network.distances(network.free_flow_times_s, d.node) for d in DEPOTS], axis=0)
    expected = np.flatnonzero((away[1] <= 1.25 * away[0]) & (away[0] > 0))
    assert nodes.tolist() == expected.tolist()


def test_what_cannot_be_raced_is_said(world: ReplayedTraffic) -> None:
    region = nearest_region(world.network, DEPOTS)
    with pytest.raises(InputError, match="at least two depots, 1 given"):
        race(world, DEPOTS[:1], region, PARAMS, _rng())
    with pytest.raises(InputError, match="no time between 3–4 o'clock.*race at other hours"):
        race(world, DEPOTS, region, RaceParams(hours=((3, 4),)), _rng())
    with pytest.raises(InputError, match="allow a greater margin"):
        race(world, (DEPOTS[0], Depot("Twin", 0)), region, RaceParams(margin=1e-9), _rng())
    with pytest.raises(InputError, match="margin above zero"):
        RaceParams(margin=0)


def test_calls_that_are_no_race_are_left_out(grid: RoadNetwork) -> None:
    ratios = np.ones((1, 180, grid.num_edges))
    ratios[:, :, grid.lon[grid.tail] > 114.0055] = 4.0  # the eastern half crawls
    made = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = RaceParams(nodes=10, calls=1, margin=0.02, hours=((17, 18),))
    with pytest.raises(InputError, match="no race among 2 calls: .* within 2% of each other"):
        race(made, DEPOTS[:2], nearest_region(grid, DEPOTS[:2]), params, _rng())


def test_drives_that_leave_the_recording_are_left_out(grid: RoadNetwork) -> None:
    ratios = np.ones((1, 130, grid.num_edges))
    ratios[:, 65:] = 100.0  # five past five everything stops
    made = ReplayedTraffic(recording(grid, [date(2023, 5, 8)], ratios, first_hour=16))
    params = RaceParams(nodes=10, calls=4, hours=((17, 18),))
    races, calls = race(made, DEPOTS, nearest_region(grid, DEPOTS), params, _rng())
    assert 0 < len(races) == len(calls) < 40
    assert not np.isnan(races.took_s[:, races.contends]).any()
