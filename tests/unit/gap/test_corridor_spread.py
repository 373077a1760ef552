"""The spread of ways on: never more than any way has, and what it is worth."""

import itertools

import numpy as np
import pytest

from benchmarks.networks import smooth_embeddings, street_grid
from ideal_dispatch import ScenarioSet
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.gap import corridor
from ideal_dispatch.gap.problem import GapProblem
from tests.theory.small_towns import Town, random_town


def ways_on(town: Town, node: int) -> list[FloatArray]:
    """G(S) of every simple way from the node to the destination."""
    from_node = Town(town.network, town.embeddings, [node], town.destination, town.primary)
    scenarios = town.scenarios(0.1)
    return [scenarios.path_matrix(edges) for edges in from_node.all_paths()]


@pytest.mark.parametrize("seed", range(12))
def test_no_way_on_is_spread_less(seed: int) -> None:
    town = random_town(seed)
    problem = GapProblem.ask(*town.question(0.1))
    everywhere = np.arange(town.network.num_edges, dtype=np.int32)
    least = corridor.least_spread(problem, everywhere)
    assert least[town.destination] == 0.0
    for node in range(town.network.num_nodes):
        for matrix in ways_on(town, node):
            time_s = np.trace(matrix)
            slack = 1e-9 * (1 + time_s**2)
            assert (matrix**2).sum() <= time_s**2 - 2 * least[node] + slack


def test_a_single_road_is_spread_exactly_so() -> None:
    """Where there is one way on, its pairs of edges are all there is."""
    town = random_town(3)
    problem = GapProblem.ask(*town.question(0.1))
    least = corridor.least_spread(problem, town.primary.edges)
    matrix = town.scenarios(0.1).path_matrix(town.primary)
    exact = (np.trace(matrix) ** 2 - (matrix**2).sum()) / 2
    assert len(town.primary) > 2
    assert 0.99 * exact - 1e-6 <= least[town.primary.origin] <= exact
    beside = np.setdiff1d(np.arange(7), [*town.primary.nodes(town.network)])
    assert np.isinf(least[beside]).all()


def test_one_dimension_has_no_spread() -> None:
    town = random_town(5)
    line = Town(
        town.network, np.linalg.norm(town.embeddings, axis=1)[:, None], town.depots,
        town.destination, town.primary,
    )  # fmt: skip
    problem = GapProblem.ask(*line.question(0.1))
    everywhere = np.arange(town.network.num_edges, dtype=np.int32)
    assert not corridor.least_spread(problem, everywhere).any()


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e12, 1e75, 1e150])
def test_any_scale_of_time_is_safe(scale: float) -> None:
    """Neither too long nor too short for single precision: a way on is never lost."""
    town = random_town(3)
    far = Town(town.network, town.embeddings * scale, town.depots, town.destination, town.primary)
    problem = GapProblem.ask(*far.question(0.1))
    everywhere = np.arange(town.network.num_edges, dtype=np.int32)
    least = corridor.least_spread(problem, everywhere)
    assert np.isfinite(least).all()
    matrix = far.scenarios(0.1).path_matrix(town.primary) / scale**2
    assert least[town.primary.origin] / scale**2 / scale**2 <= np.trace(matrix) ** 2


def test_blocks_of_directions_agree_with_one_search_each() -> None:
    """More edges than a block, on a grid where ways on also lead away from the destination."""
    network = street_grid(400)
    scenarios = ScenarioSet(smooth_embeddings(network, 6), 0.1)
    primary = network.shortest_path(scenarios.nominal_times, 0, network.num_nodes - 1)
    problem = GapProblem.ask(network, scenarios, [0], network.num_nodes - 1, primary)
    everywhere = np.arange(network.num_edges, dtype=np.int32)
    costs = np.empty(network.num_edges)
    for edge in everywhere:
        along = (scenarios.embeddings @ scenarios.embeddings[edge]) ** 2
        off = np.maximum(scenarios.nominal_times - along / scenarios.nominal_times[edge], 0.0)
        ahead = network.distances_to(off, problem.destination)[network.head[edge]]
        costs[edge] = scenarios.nominal_times[edge] * ahead
    exact = network.distances_to(costs, problem.destination)
    least = corridor.least_spread(problem, everywhere)
    assert (least <= exact).all()
    assert (least >= 0.9 * exact - 1e-3).all()


def test_the_least_gain_is_less_than_any_log_determinant() -> None:
    rng = np.random.default_rng(0)
    for size, scale in itertools.product((1, 2, 5, 12), (1e-4, 0.1, 1.0, 10.0)):
        for _ in range(40):
            half = rng.normal(size=(size, size)) * rng.uniform(0, 1, size)
            matrix = scale * half @ half.T
            length, square = float(np.trace(matrix)), float((matrix**2).sum())
            apart = min(1.0, max(0.0, length**2 - square))
            gain = corridor.least_gain(length, apart)
            assert gain <= np.linalg.slogdet(np.eye(size) + matrix)[1] * (1 + 1e-9) + 1e-15
            assert gain >= np.log1p(length) * (1 - 1e-12)


@pytest.mark.parametrize("apart", [0.0, 1e-12, 0.01, 0.3, 1.0])
def test_the_gain_grows_with_the_length_and_is_turned_round(apart: float) -> None:
    lengths = np.geomspace(max(np.sqrt(apart), 1e-3), 50.0, 4000)
    gains = np.array([corridor.least_gain(length, apart) for length in lengths])
    assert (np.diff(gains) >= 0).all()
    for gain in (1e-3, 0.2, 1.0, 3.0):
        length = corridor.longest(gain, apart)
        assert corridor.least_gain(length, apart) >= gain
        assert length == corridor.longest(gain, apart) <= np.expm1(gain)
        assert corridor.least_gain(0.999 * length, apart) < gain
