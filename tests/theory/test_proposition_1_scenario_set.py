"""[IDEAL] Proposition 1: the Burg scenario set is nonempty, convex and compact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.scenarios import ScenarioSet
from ideal_dispatch.scenarios.burg import burg_divergence, eigenvalue_bounds, minimise_linear
from tests.unit.scenarios.exact import radii

seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 8)


def _scenarios(seed: int, dimension: int, radius: float) -> ScenarioSet:
    return ScenarioSet(np.random.default_rng(seed).standard_normal((30, dimension)), radius)


def _boundary(rng: np.random.Generator, dimension: int, radius: float) -> FloatArray:
    entries = rng.standard_normal((dimension, dimension))
    return minimise_linear(entries + entries.T, radius).metric


@given(seeds, dimensions, radii(-12, 3) | st.just(0.0))
def test_nonempty(seed: int, dimension: int, radius: float) -> None:
    scenarios = _scenarios(seed, dimension, radius)
    assert scenarios.contains(np.eye(dimension))
    assert np.array_equal(scenarios.times(np.eye(dimension)), scenarios.nominal_times)


def test_a_zero_radius_leaves_the_nominal_times_alone() -> None:
    scenarios = _scenarios(1, 4, 0.0)
    assert not scenarios.contains(1.000001 * np.eye(4))
    for metric in scenarios.sample(5, np.random.default_rng(2)):
        assert np.array_equal(metric, np.eye(4))
    lower, upper = scenarios.time_bounds()
    assert np.array_equal(lower, scenarios.nominal_times)
    assert np.array_equal(upper, scenarios.nominal_times)


@given(seeds, dimensions, radii(-8, 1.5), st.floats(0, 1))
def test_convex(seed: int, dimension: int, radius: float, weight: float) -> None:
    """Segments between boundary points stay inside, and so do their images."""
    rng = np.random.default_rng(seed)
    scenarios = _scenarios(seed, dimension, radius)
    first, second = (_boundary(rng, dimension, radius) for _ in range(2))
    between = weight * first + (1 - weight) * second
    assert scenarios.contains(between)
    image = weight * scenarios.times(first) + (1 - weight) * scenarios.times(second)
    assert scenarios.times(between) == pytest.approx(image, rel=1e-12)


@given(seeds, st.integers(1, 8), radii(-4, 1))
def test_strictly_convex(seed: int, dimension: int, radius: float) -> None:
    """The midpoint of two boundary points is deep inside: D has no flat part."""
    rng = np.random.default_rng(seed)
    first, second = (_boundary(rng, dimension, radius) for _ in range(2))
    largest = max(np.linalg.eigvalsh(first)[-1], np.linalg.eigvalsh(second)[-1])
    # −log det is strongly convex with modulus 1/M² below M I
    depth = np.linalg.norm(first - second) ** 2 / (8 * largest**2)
    middle = burg_divergence((first + second) / 2)
    assert middle <= radius - depth + 1e-9 * radius


@given(seeds, dimensions, radii(-8, 1.5))
def test_bounded_by_the_two_roots(seed: int, dimension: int, radius: float) -> None:
    """m_ρ I ⪯ X ⪯ M_ρ I, hence every time lies between m_ρ ĉ and M_ρ ĉ."""
    scenarios = _scenarios(seed, dimension, radius)
    rng = np.random.default_rng(seed)
    bounds = eigenvalue_bounds(radius)
    lower, upper = scenarios.time_bounds()
    for metric in (_boundary(rng, dimension, radius), *scenarios.sample(3, rng)):
        eigenvalues = np.linalg.eigvalsh(metric)
        rounding = 1e-14 * dimension * eigenvalues[-1]
        assert bounds.lower - rounding <= eigenvalues[0]
        assert eigenvalues[-1] <= bounds.upper + rounding
        slack = rounding * scenarios.nominal_times
        times = scenarios.times(metric)
        assert (times >= lower - slack).all()
        assert (times <= upper + slack).all()


@given(seeds, dimensions, radii(-8, 1.5))
def test_the_bounds_are_attained(seed: int, dimension: int, radius: float) -> None:
    scenarios = _scenarios(seed, dimension, radius)
    lower, upper = scenarios.time_bounds()
    edge = seed % scenarios.num_edges
    direction = scenarios.path_matrix([edge])
    fastest, slowest = minimise_linear(direction, radius), minimise_linear(-direction, radius)
    assert scenarios.contains(fastest.metric)
    assert scenarios.contains(slowest.metric)
    rounding = 1e-13 * scenarios.nominal_times[edge]
    assert fastest.value == pytest.approx(lower[edge], rel=1e-10, abs=rounding)
    assert -slowest.value == pytest.approx(upper[edge], rel=1e-10, abs=0)


@given(dimensions, radii(-8, 1.3), st.sampled_from([-1, 1]))
def test_closed(dimension: int, radius: float, side: int) -> None:
    """A sequence inside may converge to the boundary; it cannot escape through it."""
    bounds = eigenvalue_bounds(radius)
    end = bounds.upper if side > 0 else bounds.lower
    scenarios = _scenarios(0, dimension, radius)
    metric = np.eye(dimension)
    for k in range(1, 30):
        metric[0, 0] = end ** (1 - 0.5**k)
        assert burg_divergence(metric) < radius
        assert scenarios.contains(metric)
    metric[0, 0] = end
    assert burg_divergence(metric) == pytest.approx(radius, rel=1e-9, abs=0)
    assert scenarios.contains(metric)
    assert end > 0
    metric[0, 0] = end**1.001
    assert not scenarios.contains(metric)


def test_singular_matrices_are_infinitely_far() -> None:
    """Closed although positive definite matrices are an open set."""
    for smallest in (1e-3, 1e-30, 1e-300):
        assert burg_divergence(np.diag([1.0, smallest])) == pytest.approx(
            smallest - np.log(smallest) - 1
        )
    assert burg_divergence(np.diag([1.0, 0.0])) == np.inf
