"""Scenario sets: times, bounds, path matrices, samples, correlations and bad input."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch import Path, RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.scenarios import ScenarioSet, burg_divergence, eigenvalue_bounds
from tests.unit.scenarios.exact import radii

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture
def scenarios() -> ScenarioSet:
    return ScenarioSet(np.random.default_rng(3).standard_normal((40, 5)), 0.3)


def _metric(scenarios: ScenarioSet, seed: int = 0) -> FloatArray:
    metric: FloatArray = scenarios.sample(1, np.random.default_rng(seed))[0]
    return metric


# --- what it is ---------------------------------------------------------------------


def test_shape_and_text(scenarios: ScenarioSet) -> None:
    assert (scenarios.num_edges, scenarios.dimension, scenarios.radius) == (40, 5, 0.3)
    assert repr(scenarios) == "ScenarioSet(40 edges × 5, radius 0.3)"


def test_it_cannot_be_changed_and_owns_its_embeddings() -> None:
    given_embeddings = np.ones((3, 2))
    scenarios = ScenarioSet(given_embeddings, 1)
    given_embeddings[:] = 7.0
    assert np.array_equal(scenarios.nominal_times, [2.0, 2.0, 2.0])
    assert isinstance(scenarios.radius, float)
    for array in (scenarios.embeddings, scenarios.nominal_times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(FrozenInstanceError):
        scenarios.radius = 2.0  # type: ignore[misc]


def test_nominal_times_are_squared_norms(scenarios: ScenarioSet) -> None:
    expected = [float(row @ row) for row in scenarios.embeddings]
    assert scenarios.nominal_times == pytest.approx(expected, rel=1e-15)


def test_an_empty_set_of_edges_is_allowed() -> None:
    scenarios = ScenarioSet(np.empty((0, 3)), 0.1)
    assert scenarios.times(np.eye(3)).shape == (0,)
    assert scenarios.effective_rank == 0.0
    assert scenarios.correlation([]).shape == (0, 0)


# --- times --------------------------------------------------------------------------


def test_times_are_quadratic_forms(scenarios: ScenarioSet) -> None:
    metric = _metric(scenarios)
    expected = [float(row @ metric @ row) for row in scenarios.embeddings]
    assert scenarios.times(metric) == pytest.approx(expected, rel=1e-13)
    assert not np.allclose(scenarios.times(metric), scenarios.nominal_times)


@given(seeds, st.integers(1, 8), radii(-6, 1))
def test_rotating_embeddings_and_metric_changes_no_time(
    seed: int, dimension: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    plain = ScenarioSet(rng.standard_normal((10, dimension)), radius)
    turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    turned = ScenarioSet(plain.embeddings @ turn.T, radius)
    metric = _metric(plain, seed)
    rotated = turn @ metric @ turn.T
    assert turned.times(rotated) == pytest.approx(plain.times(metric), rel=1e-10)
    assert turned.contains(rotated)
    assert turned.correlation(range(10)) == pytest.approx(plain.correlation(range(10)), abs=1e-12)
    assert turned.effective_rank == pytest.approx(plain.effective_rank, rel=1e-12)


def test_times_below_zero_by_rounding_become_zero() -> None:
    scenarios = ScenarioSet(np.array([[1.0, -1.0], [1.0, 1.0]]), 50.0)
    nearly_singular = np.array([[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]])
    times = scenarios.times(nearly_singular)
    assert times[0] == 0.0
    assert times[1] == pytest.approx(4.0)


def test_times_refuse_an_indefinite_metric(scenarios: ScenarioSet) -> None:
    with pytest.raises(
        InputError, match=r"^metric: edge 0 would take -\d.* s; it must be positive definite$"
    ):
        scenarios.times(-np.eye(5))


@given(seeds, radii(-8, 1))
def test_time_bounds_hold_and_are_tight_along_the_edge(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    scenarios = ScenarioSet(rng.standard_normal((6, 4)), radius)
    lower, upper = scenarios.time_bounds()
    bounds = eigenvalue_bounds(radius)
    for edge, embedding in enumerate(scenarios.embeddings):
        # stretch the space along this edge alone: one eigenvalue leaves 1
        along = np.outer(embedding, embedding) / (embedding @ embedding)
        for offset, time in ((bounds.lower_offset, lower), (bounds.upper_offset, upper)):
            metric = np.eye(4) + offset * along
            assert scenarios.contains(metric)
            got = scenarios.times(metric)[edge]
            assert got == pytest.approx(time[edge], rel=1e-11, abs=1e-14)
    for metric in scenarios.sample(5, rng):
        times = scenarios.times(metric)
        assert (times >= lower * (1 - 1e-12) - 1e-13).all()
        assert (times <= upper * (1 + 1e-12)).all()


# --- membership and samples ---------------------------------------------------------


def test_contains(scenarios: ScenarioSet) -> None:
    assert scenarios.contains(np.eye(5))
    highest = np.diag([scenarios.eigenvalue_bounds.upper, 1, 1, 1, 1])
    assert scenarios.contains(highest)
    assert not scenarios.contains(1.01 * highest)
    assert not scenarios.contains(np.zeros((5, 5)))


@given(seeds, st.integers(1, 6), radii(-12, 2))
def test_samples_are_inside(seed: int, dimension: int, radius: float) -> None:
    scenarios = ScenarioSet(np.ones((1, dimension)), radius)
    metrics = scenarios.sample(4, np.random.default_rng(seed))
    assert metrics.shape == (4, dimension, dimension)
    assert all(scenarios.contains(metric) for metric in metrics)


def test_samples_follow_the_generator_and_fill_the_radius(scenarios: ScenarioSet) -> None:
    first = scenarios.sample(300, np.random.default_rng(8))
    assert np.array_equal(first, scenarios.sample(300, np.random.default_rng(8)))
    assert not np.array_equal(first, scenarios.sample(300, np.random.default_rng(9)))
    depths = np.sort([burg_divergence(metric) for metric in first]) / 0.3
    # uniform on (0, 1): Kolmogorov's distance stays below 1.95/√n but once in a thousand
    assert np.abs(depths - np.arange(300) / 300).max() < 1.95 / np.sqrt(300)
    assert scenarios.sample(0, np.random.default_rng(1)).shape == (0, 5, 5)


# --- path matrices ------------------------------------------------------------------


def test_path_matrix_gives_the_time_of_the_path(scenarios: ScenarioSet) -> None:
    edges = [4, 0, 17, 17]
    matrix = scenarios.path_matrix(edges)
    assert np.array_equal(matrix, matrix.T)
    for seed in range(3):
        metric = _metric(scenarios, seed)
        assert (matrix * metric).sum() == pytest.approx(scenarios.times(metric)[edges].sum())
    assert np.trace(matrix) == pytest.approx(scenarios.nominal_times[edges].sum())


def test_path_matrix_of_a_path(grid: RoadNetwork) -> None:
    embeddings = np.random.default_rng(0).uniform(1, 2, (grid.num_edges, 3))
    scenarios = ScenarioSet(embeddings, 0.1)
    path = grid.shortest_path(scenarios.nominal_times, 0, grid.num_nodes - 1)
    assert np.array_equal(scenarios.path_matrix(path), scenarios.path_matrix(path.edges))
    assert np.trace(scenarios.path_matrix(path)) == pytest.approx(
        path.time_s(scenarios.nominal_times)
    )
    stay = Path(np.array([], np.int32), 5, 5)
    assert np.array_equal(scenarios.path_matrix(stay), np.zeros((3, 3)))


# --- correlation and rank -----------------------------------------------------------


def test_correlation_is_the_squared_cosine() -> None:
    embeddings = [[1.0, 0.0], [-3.0, 0.0], [0.0, 2.0], [5.0, 5.0], [0.0, 0.0]]
    scenarios = ScenarioSet(np.array(embeddings), 0.1)
    expected = [[1.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.0, 0.5]]
    assert scenarios.correlation([0, 1], [0, 1, 2, 3]) == pytest.approx(np.array(expected))
    assert np.isnan(scenarios.correlation([4], [0, 4])).all()
    assert scenarios.correlation([3]).item() == pytest.approx(1.0)


def test_correlation_agrees_with_scenarios_drawn_from_a_small_ball() -> None:
    rng = np.random.default_rng(12)
    scenarios = ScenarioSet(rng.standard_normal((6, 3)), 1e-6)
    times = np.array([scenarios.times(metric) for metric in scenarios.sample(6000, rng)])
    drawn = np.corrcoef(times.T)
    assert drawn == pytest.approx(scenarios.correlation(range(6)), abs=0.06)
    assert np.ptp(scenarios.correlation(range(6))) > 0.5  # so that agreement means something


def test_correlation_survives_extreme_scales() -> None:
    scenarios = ScenarioSet(np.array([[1e-180, 1e-180], [1e150, 0.0]]), 0.1)
    assert scenarios.correlation([0], [1]).item() == pytest.approx(0.5)


def test_effective_rank() -> None:
    assert ScenarioSet(np.ones((9, 4)), 0.1).effective_rank == pytest.approx(1.0)
    assert ScenarioSet(np.eye(4), 0.1).effective_rank == pytest.approx(4.0)
    assert ScenarioSet(np.zeros((9, 4)), 0.1).effective_rank == 0.0
    uneven = ScenarioSet(np.diag([np.sqrt(3.0), 1.0]), 0.1)
    assert uneven.effective_rank == pytest.approx(np.exp(0.75 * np.log(4 / 3) + 0.25 * np.log(4)))


# --- degenerate and bad input -------------------------------------------------------


def test_zero_embeddings_take_no_time_in_any_scenario() -> None:
    scenarios = ScenarioSet(np.zeros((4, 3)), 2.0)
    assert not scenarios.times(_metric(scenarios)).any()
    assert not np.concatenate(scenarios.time_bounds()).any()


def test_equal_embeddings_move_together() -> None:
    scenarios = ScenarioSet(np.tile([1.0, 2.0, -1.0], (5, 1)), 1.0)
    assert np.ptp(scenarios.times(_metric(scenarios))) == 0.0
    assert scenarios.correlation(range(5)) == pytest.approx(np.ones((5, 5)))


def test_one_dimension() -> None:
    scenarios = ScenarioSet(np.array([[2.0], [-1.0]]), 1.0)
    assert scenarios.times([[0.5]]).tolist() == [2.0, 0.5]
    assert scenarios.correlation([0, 1]).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("embeddings", "radius", "message"),
    [
        ([[1.0], [np.nan]], 1.0, r"^edge 1: embedding must be finite$"),
        ([[1.0, np.inf]], 1.0, r"^edge 0: embedding must be finite$"),
        ([[1.0], [1e200]], 1.0, r"^edge 1: nominal time overflows; scale the embedding down$"),
        ([1.0, 2.0], 1.0, r"^embeddings: expected any × any values, got 2$"),
        (np.empty((3, 0)), 1.0, r"^embeddings: each edge needs at least one number$"),
        ([["a"]], 1.0, r"^embeddings: could not convert string to float: .*'a'\)?$"),
        ([[1.0]], -0.5, r"^radius is -0.5; it must be finite and zero or more$"),
        ([[1.0]], np.nan, r"^radius is nan; it must be finite and zero or more$"),
        ([[1.0]], np.inf, r"^radius is inf; it must be finite and zero or more$"),
    ],
)
def test_bad_sets(embeddings: Any, radius: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScenarioSet(embeddings, radius)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (np.eye(4), r"^metric: expected 5 × 5 values, got 4 × 4$"),
        (np.ones(5), r"^metric: expected a square matrix, got 5$"),
        (np.triu(np.ones((5, 5))), r"^metric: entry \(0, 1\) is 1.0 but .* it must be symmetric$"),
        (np.full((5, 5), np.nan), r"^metric: entry \(0, 0\) is nan$"),
    ],
)
def test_bad_metrics(scenarios: ScenarioSet, metric: FloatArray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenarios.times(metric)
    with pytest.raises(InputError, match=message):
        scenarios.contains(metric)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0, 40], r"^edge 40 is not in the scenario set \(0 … 39\)$"),
        ([-1], r"^edge -1 is not in the scenario set \(0 … 39\)$"),
        ([0.5], r"^edges: values must be whole numbers that fit int32$"),
        ([[0, 1]], r"^edges: expected any values, got 1 × 2$"),
    ],
)
def test_bad_edges(scenarios: ScenarioSet, edges: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenarios.path_matrix(edges)
    with pytest.raises(InputError, match=message):
        scenarios.correlation(edges)
