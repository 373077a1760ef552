from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path
from ideal_dispatch.replay import hindsight_optimum
from ideal_dispatch.replay.drive import Drive, DriveError, World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.replay.small import (
    CALL,
    OnlyQuotes,
    ScriptedSource,
    ScriptedWorld,
    diamond,
    recorded,
)
from tests.unit.traffic.small import START, recording

BEFORE = [40.0, 50.0, 60.0, 50.0, 5.0, 1.0]
AFTER = [40.0, 200.0, 60.0, 20.0, 5.0, 1.0]
SCRIPT = {0.0: BEFORE, 30.0: AFTER}


def _told(network: RoadNetwork, edges: list[int], follow: int = 0) -> Assignment:
    return Assignment(0, network.path(edges), follow)


def _same(one: Drive, other: Drive) -> None:
    assert one.edges.tolist() == other.edges.tolist()
    assert one.seconds.tolist() == other.seconds.tolist()
    assert one.expected_s == pytest.approx(other.expected_s, rel=1e-12)


# --- the paper's procedures, by hand --------------------------------------------------


def test_the_adaptive_procedure_step_by_step() -> None:
    town = diamond()
    source = ScriptedSource(town, SCRIPT)
    driven = drive(source, town, _told(town, [0, 1]), 3, START, World.INSTANTANEOUS)
    # T = 0: 0→1→3 is promised in 90 s. T = 40, at node 1: the road to 3 now takes
    # 200 s, 1→2→3 takes 25 s. T = 45, at node 2: 20 s more.
    assert driven.edges.tolist() == [0, 4, 3]
    assert driven.seconds.tolist() == [40.0, 5.0, 20.0]
    assert driven.expected_s.tolist() == [90.0, 65.0, 65.0]
    assert driven.total_s == 65.0
    assert source.asked == [(0, 3, 0.0), (1, 3, 40.0), (2, 3, 45.0)]


def test_experienced_traffic_takes_what_happens_and_meets_another_router() -> None:
    town = diamond()
    source = ScriptedWorld(town, SCRIPT, truth=[25.0, 70.0, 60.0, 50.0, 5.0, 1.0])
    driven = drive(source, town, _told(town, [0, 1]), 3, START, World.EXPERIENCED)
    # node 1 is reached after 25 s already, when the road to 3 still looks good
    assert driven.edges.tolist() == [0, 1]
    assert driven.seconds.tolist() == [25.0, 70.0]
    assert driven.expected_s.tolist() == [90.0, 75.0]


def test_the_hybrid_procedure_step_by_step() -> None:
    town = diamond()
    source = ScriptedWorld(town, SCRIPT, truth=[])
    driven = drive(source, town, _told(town, [2, 3], follow=1), 3, START, World.INSTANTANEOUS)
    # the prescribed road to node 2 takes 60 s though 0→1→2 would take 45 s
    assert driven.edges.tolist() == [2, 3]
    assert driven.seconds.tolist() == [60.0, 20.0]
    assert driven.expected_s.tolist() == [110.0, 80.0]


def test_a_router_without_edge_times_is_asked_from_end_to_end_of_the_segment() -> None:
    town = diamond()
    source = ScriptedSource(town, SCRIPT)
    driven = drive(source, town, _told(town, [2, 3], follow=1), 3, START, World.INSTANTANEOUS)
    assert driven.edges.tolist() == [2, 3]
    assert driven.seconds.tolist() == [45.0, 20.0]  # its own way from 0 to 2
    assert source.asked == [(0, 2, 0.0), (2, 3, 0.0), (2, 3, 45.0)]


def test_a_prefix_longer_than_the_path_is_the_whole_path() -> None:
    town = diamond()
    source = ScriptedWorld(town, SCRIPT, truth=[])
    driven = drive(source, town, _told(town, [0, 1], follow=9), 3, START, World.INSTANTANEOUS)
    assert driven.seconds.tolist() == [40.0, 200.0]


def test_the_prefix_ends_where_the_patient_is() -> None:
    town = diamond()
    source = ScriptedWorld(town, SCRIPT, truth=[])
    around = _told(town, [0, 1, 5, 0, 1], follow=5)
    assert drive(source, town, around, 3, START, World.INSTANTANEOUS).edges.tolist() == [0, 1]


def test_who_is_there_drives_nowhere() -> None:
    town = diamond()
    here = Assignment(0, town.path([], 2))
    driven = drive(ScriptedSource(town, SCRIPT), town, here, 2, START, World.INSTANTANEOUS)
    assert (len(driven.edges), driven.total_s) == (0, 0.0)


# --- on a recorded world --------------------------------------------------------------


@pytest.mark.parametrize("world", World)
@pytest.mark.parametrize("follow", [1, 4, 99])
def test_hybrid_is_following_then_adaptive(grid: RoadNetwork, world: World, follow: int) -> None:
    source = ReplayedTraffic(recording(grid))
    last = grid.num_nodes - 1
    other = source.alternative(source.quote(0, last, CALL).path, CALL)
    assert other is not None
    whole = drive(source, grid, Assignment(0, other.path, follow), last, CALL, world)
    prefix = other.path.edges[:follow]
    now = CALL
    for edge, seconds in zip(prefix.tolist(), whole.seconds.tolist(), strict=False):
        shown, real = source.router_times(now)[edge], source.realised(edge, now)
        assert seconds == (shown if world is World.INSTANTANEOUS else real)
        now += timedelta(seconds=seconds)
    assert whole.edges[: prefix.size].tolist() == prefix.tolist()
    if prefix.size == len(other.path):
        assert whole.edges.size == prefix.size
        return
    node = int(grid.head[prefix[-1]])
    start = Assignment(0, source.quote(node, last, now).path)
    rest = drive(source, grid, start, last, now, world)
    assert whole.edges[prefix.size :].tolist() == rest.edges.tolist()
    assert whole.seconds[prefix.size :].tolist() == rest.seconds.tolist()
    elapsed_s = whole.seconds[: prefix.size].sum()
    assert whole.expected_s[prefix.size :] == pytest.approx(rest.expected_s + elapsed_s)


@pytest.mark.parametrize("world", World)
def test_trees_give_the_drives_of_asking_anew_at_every_junction(
    grid: RoadNetwork, world: World
) -> None:
    source = ReplayedTraffic(recording(grid))
    rng = np.random.default_rng(2)
    for origin, destination in rng.integers(grid.num_nodes, size=(12, 2)):
        at = CALL + timedelta(seconds=float(rng.uniform(0, 600)))
        path = source.quote(origin, destination, at).path
        for follow in (0, 3):
            told = Assignment(0, path, follow)
            quick = drive(source, grid, told, destination, at, world)
            _same(quick, drive(OnlyQuotes(source), grid, told, destination, at, world))


def test_trees_break_ties_as_quotes_do() -> None:
    side = 6
    node = np.arange(side * side).reshape(side, side)
    a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    town = RoadNetwork.from_arrays(
        np.concatenate([a, b]), np.concatenate([b, a]), np.full(2 * a.size, 100.0)
    )
    source = recorded(town, np.tile(town.free_flow_times_s, (10, 1)))
    for origin, destination in ((0, 35), (35, 0), (5, 30), (8, 27)):
        told = Assignment(0, source.quote(origin, destination, START).path)
        quick = drive(source, town, told, destination, START, World.INSTANTANEOUS)
        _same(quick, drive(OnlyQuotes(source), town, told, destination, START, World.INSTANTANEOUS))
        assert quick.edges.size == len(told.path)


def test_seconds_pass_on_a_night_when_the_clock_is_set_back() -> None:
    from zoneinfo import ZoneInfo

    at = datetime(2023, 10, 29, 2, 59, 50, tzinfo=ZoneInfo("Europe/Berlin"))

    class Watch(ScriptedSource):
        def times(self, at: datetime) -> np.ndarray:
            return np.array(BEFORE)

    town = diamond()
    source = Watch(town, {})
    drive(source, town, _told(town, [0, 1]), 3, at, World.INSTANTANEOUS)
    seconds = [asked - source.asked[0][2] for _, _, asked in source.asked]
    assert seconds == [0.0, 40.0]


# --- what is refused ------------------------------------------------------------------


def test_a_trip_that_leaves_the_recorded_time(grid: RoadNetwork) -> None:
    source = ReplayedTraffic(recording(grid))
    late = START + timedelta(days=1, minutes=119, seconds=30)
    told = Assignment(0, source.quote(0, grid.num_nodes - 1, late).path)
    with pytest.raises(DriveError, match=r"drive from node 0 to node 119 ends at node \d+ after "):
        drive(source, grid, told, grid.num_nodes - 1, late, World.EXPERIENCED)
    with pytest.raises(DriveError, match="is not in the recording; it has"):
        drive(source, grid, told, grid.num_nodes - 1, late, World.INSTANTANEOUS)


def test_a_router_that_leads_round_and_round() -> None:
    town = RoadNetwork.from_arrays([0, 1, 1], [1, 0, 2], np.full(3, 100.0))

    class Undecided(ScriptedSource):
        def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
            edges = [0, 2] if origin == 0 else [1, 0, 2]
            return RouteQuote(town.path(edges), 9.0, 3.0, np.nan, np.nan, at, 0.0)

    with pytest.raises(DriveError, match="it circles"):
        drive(Undecided(town, {}), town, _told(town, [0, 2]), 2, START, World.INSTANTANEOUS)


def test_a_prefix_into_a_dead_end() -> None:
    town = RoadNetwork.from_arrays([0, 0, 1, 2], [1, 2, 2, 1], np.full(4, 100.0))
    source = ScriptedWorld(town, {0.0: [1.0, 1.0, 1.0, np.inf]}, truth=[1.0] * 4)
    told = Assignment(0, Path(np.array([1, 3], np.int32), 0, 1), follow=1)
    with pytest.raises(DriveError, match="after 0 s: node 1 cannot be reached from node 2"):
        drive(source, town, told, 1, START, World.EXPERIENCED)


@pytest.mark.parametrize(
    ("edges", "follow", "destination", "world", "message"),
    [
        (
            [0],
            0,
            3,
            World.INSTANTANEOUS,
            "ends at node 1",
        ),
        ([0, 1], -1, 3, World.INSTANTANEOUS, "follow -1: zero or more edges can be prescribed"),
        (
            [0, 1],
            0,
            3,
            World.EXPERIENCED,
            "experienced traffic needs a source that knows what really happened",
        ),
    ],
)
def test_what_cannot_be_driven(
    edges: list[int], follow: int, destination: int, world: World, message: str
) -> None:
    town = diamond()
    source = ScriptedSource(town, SCRIPT)
    with pytest.raises(InputError, match=message):
        drive(source, town, _told(town, edges, follow), destination, START, world)


def test_a_path_of_another_network_and_a_time_without_zone() -> None:
    town = diamond()
    source = ScriptedSource(town, SCRIPT)
    foreign = Assignment(0, Path(np.array([0, 3], np.int32), 0, 3))
    with pytest.raises(InputError, match="path breaks after edge 0"):
        drive(source, town, foreign, 3, START, World.INSTANTANEOUS)
    with pytest.raises(InputError, match="no zone"):
        drive(source, town, _told(town, [0, 1]), 3, START.replace(tzinfo=None), World.INSTANTANEOUS)


def test_a_drive_has_a_time_for_every_edge() -> None:
    with pytest.raises(InputError, match="seconds: expected 2 values, got 1"):
        Drive(np.array([0, 1], np.int32), np.array([1.0]), np.array([1.0, 2.0]))


# --- forbidden turns ------------------------------------------------------------------


def _forbidding() -> RoadNetwork:
    """The diamond, where nobody may turn from 0 → 1 into 1 → 2."""
    return RoadNetwork.from_arrays(
        [0, 1, 0, 2, 1, 3], [1, 3, 2, 3, 2, 0], np.full(6, 100.0), forbidden_turns=[(0, 4)]
    )


@pytest.mark.parametrize("follow", [0, 1])
def test_a_router_that_changes_its_mind_makes_no_forbidden_turn(follow: int) -> None:
    town = _forbidding()
    source = ScriptedWorld(town, SCRIPT, truth=[])
    # T = 40, at node 1: from there alone the router would go 1→2→3 in 25 s, not 200 s
    assert source.quote(1, 3, START + timedelta(seconds=40)).path.edges.tolist() == [4, 3]
    told = _told(town, [0, 1], follow)
    driven = drive(source, town, told, 3, START, World.INSTANTANEOUS)
    assert driven.edges.tolist() == [0, 1]
    assert driven.expected_s.tolist() == [90.0, 240.0]


def test_a_router_that_only_quotes_is_followed_as_it_is() -> None:
    town = _forbidding()
    source = ScriptedSource(town, SCRIPT)
    driven = drive(source, town, _told(town, [0, 1]), 3, START, World.INSTANTANEOUS)
    assert town.forbidden_turn(town.path(driven.edges)) == (0, 4)


@pytest.mark.parametrize("world", World)
def test_drives_of_a_recorded_world_make_no_forbidden_turn(grid: RoadNetwork, world: World) -> None:
    rng, turns = np.random.default_rng(4), []
    for edge in range(0, grid.num_edges, 3):
        for _ in range(2):
            turn = [edge]
            for _ in range(int(rng.integers(1, 3))):
                onward = np.flatnonzero(grid.tail == grid.head[turn[-1]])
                turn.append(int(rng.choice(onward)))
            turns.append(tuple(turn))
    town = replace(grid, forbidden_turns=tuple(turns))
    source, legal = ReplayedTraffic(recording(town)), 0
    for origin, destination in rng.integers(town.num_nodes, size=(10, 2)).tolist():
        told = Assignment(0, source.quote(origin, destination, CALL).path)
        assert town.forbidden_turn(told.path) is None
        driven = drive(source, town, told, destination, CALL, world)
        path = town.path(driven.edges, origin)
        assert town.forbidden_turn(path) is None
        best = hindsight_optimum(source, town, [origin], destination, CALL, world)
        assert town.forbidden_turn(town.path(best.edges, origin)) is None
        assert best.total_s <= driven.total_s * 1.05
        free = grid.shortest_path(source.router_times(CALL), origin, destination)
        legal += town.forbidden_turn(free) is None
    assert legal < 10, "the turns are in the way of some"
