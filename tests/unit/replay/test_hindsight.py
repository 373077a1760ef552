from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay import DriveError, World, drive, hindsight_optimum
from ideal_dispatch.traffic.recorded_router import RouterParams
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from tests.unit.replay.small import CALL, recorded
from tests.unit.traffic.small import START, recording


def _simple_paths(
    network: RoadNetwork, node: int, target: int, passed: tuple[int, ...] = ()
) -> Iterator[list[int]]:
    """Edges of every path that passes no node twice."""
    if node == target:
        yield []
        return
    for edge in np.flatnonzero(network.tail == node).tolist():
        head = int(network.head[edge])
        if head not in passed and head != node:
            for rest in _simple_paths(network, head, target, (*passed, node)):
                yield [edge, *rest]


def _times(world: ReplayedTraffic, at: datetime, convention: World) -> FloatArray:
    return world.router_times(at) if convention is World.INSTANTANEOUS else world.realised_times(at)


def _taken_s(world: ReplayedTraffic, edges: list[int], at: datetime, convention: World) -> float:
    elapsed_s = 0.0
    for edge in edges:
        elapsed_s += float(_times(world, at + timedelta(seconds=elapsed_s), convention)[edge])
    return elapsed_s


def _town(rng: np.random.Generator, nodes: int = 7) -> RoadNetwork:
    """A random town with parallel edges; node i has a road to i + 1."""
    more = rng.integers(nodes, size=(2, 9))
    tail = np.concatenate([np.arange(nodes - 1), more[0]])
    head = np.concatenate([np.arange(1, nodes), more[1]])
    return RoadNetwork.from_arrays(tail, head, rng.uniform(200, 900, tail.size))


def _fifo(town: RoadNetwork, rng: np.random.Generator, bin_s: int) -> ReplayedTraffic:
    """Streets that only get slower, so that nobody is overtaken."""
    bins = 2400 // bin_s
    growth = np.cumsum(rng.uniform(0, 12 / bins, (bins, town.num_edges)), axis=0)
    times = town.free_flow_times_s * (rng.uniform(1, 2, town.num_edges) + growth)
    return recorded(town, times, bin_s, RouterParams(bin_s, 0.001, 600.0, bin_s))


@pytest.mark.parametrize("convention", World)
@pytest.mark.parametrize("bin_s", [10, 60])
def test_it_is_the_best_of_all_paths_where_streets_are_fifo(bin_s: int, convention: World) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        town = _town(rng)
        world = _fifo(town, rng, bin_s)
        at = START + timedelta(seconds=73.25)
        shown = [_times(world, at + timedelta(seconds=bin_s * k), convention) for k in range(30)]
        assert (np.diff(shown, axis=0) >= 0).all(), "the world is FIFO"
        best = hindsight_optimum(world, town, [0, 1], 6, at, convention)
        paths = [path for origin in (0, 1) for path in _simple_paths(town, origin, 6)]
        every = [_taken_s(world, path, at, convention) for path in paths]
        assert best.total_s == pytest.approx(min(every), rel=1e-12)
        assert _taken_s(world, best.edges.tolist(), at, convention) == pytest.approx(best.total_s)
        assert best.expected_s == pytest.approx([best.total_s] * best.edges.size)
        for path in paths:
            for follow in (0, 1, 99):
                told = Assignment(0, town.path(path), follow)
                driven = drive(world, town, told, 6, at, convention)
                assert driven.total_s >= best.total_s - 1e-9


def test_it_looks_as_far_ahead_as_it_must() -> None:
    road = RoadNetwork.from_arrays(np.arange(6), np.arange(1, 7), np.full(6, 700.0))
    world = _fifo(road, np.random.default_rng(1), bin_s=10)
    best = hindsight_optimum(world, road, [0], 6, START, World.EXPERIENCED)
    assert best.total_s == _taken_s(world, list(range(6)), START, World.EXPERIENCED)
    assert best.total_s > 2 * 8 * 10  # more than the bins it begins with, doubled


@pytest.mark.parametrize("convention", World)
def test_no_drive_of_a_noisy_city_is_far_better(grid: RoadNetwork, convention: World) -> None:
    world = ReplayedTraffic(recording(grid))
    for node in (30, 66, 101):
        best = hindsight_optimum(world, grid, [0, 119], node, CALL, convention)
        for origin in (0, 119):
            told = Assignment(0, world.quote(origin, node, CALL).path)
            driven = drive(world, grid, told, node, CALL, convention)
            assert best.total_s <= driven.total_s * 1.05


def test_where_a_later_car_overtakes_the_earliest_arrival_is_kept() -> None:
    """0 → 1 in 50 s or in 61 s; 1 → 2 takes 100 s, and 10 s from the second minute on."""
    town = RoadNetwork.from_arrays([0, 0, 1], [1, 1, 2], [500, 610, 100])
    ratio = np.ones((10, 3)) * np.array([50.0, 61.0, 100.0]) / town.free_flow_times_s
    ratio[1:, 2] /= 10.0
    world = recorded(town, ratio * town.free_flow_times_s)
    best = hindsight_optimum(world, town, [0], 2, START, World.EXPERIENCED)
    assert best.edges.tolist() == [0, 2]
    assert best.total_s == pytest.approx(150, rel=0.02)
    later = drive(world, town, Assignment(0, town.path([1, 2]), 2), 2, START, World.EXPERIENCED)
    assert later.total_s == pytest.approx(71, rel=0.02)


def test_who_is_there_needs_nothing(grid: RoadNetwork) -> None:
    best = hindsight_optimum(
        ReplayedTraffic(recording(grid)), grid, [4, 9], 9, CALL, World.INSTANTANEOUS
    )
    assert (best.edges.size, best.total_s) == (0, 0.0)


def test_what_cannot_be_reached(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    late = START + timedelta(minutes=119, seconds=50)
    with pytest.raises(DriveError, match=r"node 119 cannot be reached from any of nodes \[0\] in"):
        hindsight_optimum(world, grid, [0], 119, late, World.EXPERIENCED)
    town = RoadNetwork.from_arrays([1], [0], [100.0])
    island = recorded(town, np.tile(town.free_flow_times_s, (20, 1)))
    with pytest.raises(DriveError, match="node 1 cannot be reached"):
        hindsight_optimum(island, town, [0], 1, START, World.EXPERIENCED)


def test_the_last_seconds_of_a_recording_are_enough_for_the_last_street(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    late = START + timedelta(minutes=119, seconds=59)
    best = hindsight_optimum(world, grid, [0], 1, late, World.EXPERIENCED)
    assert best.edges.size == 1


@pytest.mark.parametrize(
    ("origins", "destination", "message"),
    [([], 3, "no origin given"), ([0], 120, "120 is not a node"), ([-1], 3, "-1 is not a node")],
)
def test_bad_places(grid: RoadNetwork, origins: list[int], destination: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hindsight_optimum(
            ReplayedTraffic(recording(grid)), grid, origins, destination, CALL, World.INSTANTANEOUS
        )


def test_another_network_or_another_time(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    other = RoadNetwork.from_arrays([0], [1], [1.0])
    with pytest.raises(InputError, match="recorded on another network"):
        hindsight_optimum(world, other, [0], 1, CALL, World.INSTANTANEOUS)
    with pytest.raises(InputError, match="is not in the recording"):
        hindsight_optimum(world, grid, [0], 1, START - timedelta(days=1), World.INSTANTANEOUS)


def test_the_best_drive_makes_no_forbidden_turn() -> None:
    """Against every walk of a FIFO town, nodes passed twice included."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        town = _town(rng)
        world = _fifo(town, rng, 60)
        free = hindsight_optimum(world, town, [0], 6, START, World.EXPERIENCED)
        turn = tuple(free.edges[:2].tolist())
        if len(turn) < 2:
            continue
        turned = replace(town, forbidden_turns=(turn,))
        world = replace_network(world, turned)
        walks = [walk for walk in _walks(turned, (), 0, 6, 7) if walk]
        if not walks:
            continue
        best = hindsight_optimum(world, turned, [0], 6, START, World.EXPERIENCED)
        assert turned.forbidden_turn(turned.path(best.edges)) is None
        every = [_taken_s(world, list(walk), START, World.EXPERIENCED) for walk in walks]
        assert best.total_s == pytest.approx(min(every), rel=1e-12)


def replace_network(world: ReplayedTraffic, network: RoadNetwork) -> ReplayedTraffic:
    return ReplayedTraffic(replace(world.recording, network=network), world.params)


def _walks(
    network: RoadNetwork, driven: tuple[int, ...], node: int, target: int, most: int
) -> Iterator[tuple[int, ...]]:
    """Legal walks of at most so many edges."""
    if node == target:
        yield driven
    elif len(driven) < most:
        for edge in np.flatnonzero(network.tail == node).tolist():
            if (*driven, edge)[-2:] not in network.forbidden_turns:
                yield from _walks(network, (*driven, edge), int(network.head[edge]), target, most)
