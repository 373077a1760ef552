"""Divergence, bounds, membership and the linear minimum: values, edges and bad input."""

from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.scenarios.burg import (
    burg_divergence,
    contains,
    eigenvalue_bounds,
    minimise_linear,
)
from ideal_dispatch.scenarios.spectrum import minimum_of_spectrum
from tests.unit.scenarios import exact
from tests.unit.scenarios.exact import SMALLEST_NORMAL, UNIT, directions, kappa_of, radii

# --- κ and D ------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
def test_kappa_is_accurate_at_every_size(sign: int) -> None:
    edges = [0.1, np.nextafter(0.1, 0), 0.5, np.nextafter(0.5, 1), 1e-150]
    sizes = np.concatenate((10.0 ** np.linspace(-100, -0.0001, 400), edges))
    if sign > 0:
        sizes = np.concatenate((sizes, 10.0 ** np.linspace(0, 300, 50)))
    for size in sizes.tolist():
        y = Decimal(sign * size)
        want = exact.kappa(1 + y, y)
        assert abs(Decimal(kappa_of(sign * size)) / want - 1) < 20 * UNIT


def test_kappa_at_the_ends_of_its_domain() -> None:
    assert kappa_of(0.0) == 0.0
    assert kappa_of(-1.0) == np.inf
    assert kappa_of(-2.0) == np.inf


def test_divergence_is_the_formula() -> None:
    metric = np.array([[2.0, 0.3], [0.3, 0.7]])
    expected = np.trace(metric) - np.log(np.linalg.det(metric)) - 2
    assert burg_divergence(metric) == pytest.approx(expected, rel=1e-14, abs=0)
    assert burg_divergence([[3.0]]) == pytest.approx(2 - np.log(3), rel=1e-14, abs=0)


def test_divergence_vanishes_only_at_the_identity() -> None:
    assert burg_divergence(np.eye(7)) == 0.0


def test_divergence_near_the_identity_is_accurate_relative_to_itself() -> None:
    steps = np.random.default_rng(5).integers(-1000, 1000, (7, 7))
    offset = (steps + steps.T) * 2.0**-42  # so coarse that X − I is exact
    expected = np.trace(offset @ offset) / 2 - np.trace(offset @ offset @ offset) / 3
    assert burg_divergence(np.eye(7) + offset) == pytest.approx(expected, rel=1e-13, abs=0)


@given(directions(8), radii(-3, 0))
def test_divergence_is_invariant_under_inversion_of_roles(
    direction: FloatArray, radius: float
) -> None:
    """D(X, I) + D(X⁻¹, I) = tr X + tr X⁻¹ − 2d."""
    metric = minimise_linear(direction, radius).metric
    inverse = np.linalg.inv(metric)
    total = np.trace(metric) + np.trace(inverse) - 2 * len(metric)
    assert burg_divergence(metric) + burg_divergence(inverse) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("metric", [np.diag([1.0, 0.0]), np.diag([2.0, -1.0]), -np.eye(3)])
def test_divergence_is_infinite_outside_the_cone(metric: FloatArray) -> None:
    assert burg_divergence(metric) == np.inf
    assert not contains(metric, 10.0)


# --- the roots ----------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-300, -200, -100, -30, *range(-16, 4), 6, 20, 300])
def test_eigenvalue_bounds_are_the_roots(exponent: int) -> None:
    radius = 10.0**exponent
    bounds = eigenvalue_bounds(radius)
    for value, offset in (
        (bounds.lower, bounds.lower_offset),
        (bounds.upper, bounds.upper_offset),
    ):
        # the root relative to x − 1: its condition in ρ is ρ x / (x − 1)²
        y = Decimal(offset)
        if value > SMALLEST_NORMAL:
            got = exact.divergence(np.array([value]), np.array([offset]))
            assert abs(got / Decimal(radius) - 1) < 1e-14
            assert value == pytest.approx(float(1 + y), rel=1e-15, abs=1.2e-16)
        else:
            assert exponent >= 3
            assert offset == -1.0
    assert 0 < bounds.lower <= 1 <= bounds.upper
    assert bounds.lower_offset < 0 < bounds.upper_offset


def test_eigenvalue_bounds_known_values() -> None:
    bounds = eigenvalue_bounds(1.0)  # −W₀(−e⁻²) and −W₋₁(−e⁻²)
    assert bounds.lower == pytest.approx(0.15859433956303937, rel=1e-14, abs=0)
    assert bounds.upper == pytest.approx(3.1461932206205825, rel=1e-14, abs=0)
    assert eigenvalue_bounds(0.0).lower == eigenvalue_bounds(0.0).upper == 1.0


@given(radii(-12, 2.8), radii(-12, 2.8))
def test_eigenvalue_bounds_widen_with_the_radius(first: float, second: float) -> None:
    small, large = sorted((first, second))
    if large > small * (1 + 1e-12):
        inner, outer = eigenvalue_bounds(small), eigenvalue_bounds(large)
        assert outer.lower_offset <= inner.lower_offset
        assert outer.lower <= inner.lower
        assert outer.upper_offset > inner.upper_offset


# --- membership ---------------------------------------------------------------------


@given(directions(16), radii(-12, 3))
def test_minimisers_are_members_and_their_extensions_are_not(
    direction: FloatArray, radius: float
) -> None:
    found = minimise_linear(direction, radius)
    assert contains(found.metric, radius)
    beyond = np.eye(len(direction)) + 1.01 * (found.metric - np.eye(len(direction)))
    if found.smallest_eigenvalue > 1e-6:
        assert not contains(beyond, radius)


def test_membership_tolerates_rounding_and_no_more() -> None:
    bounds = eigenvalue_bounds(0.5)
    assert contains(np.diag([bounds.upper * (1 + 4e-16), 1.0]), 0.5)
    assert not contains(np.diag([bounds.upper * (1 + 1e-11), 1.0]), 0.5)
    assert contains(np.diag([1.0 + 1e-15, 1.0]), 0.0)
    assert not contains(np.diag([1.0 + 1e-14, 1.0]), 0.0)


# --- the linear minimum -------------------------------------------------------------


def test_a_zero_direction_gives_the_identity() -> None:
    found = minimise_linear(np.zeros((3, 3)), 2.0)
    assert np.array_equal(found.metric, np.eye(3))
    assert (found.value, found.change, found.multiplier) == (0.0, 0.0, 0.0)
    assert (found.smallest_eigenvalue, found.iterations, found.residual) == (1.0, 0, 0.0)


@pytest.mark.parametrize("radius", [0.0, 1e-310])
def test_a_zero_radius_gives_the_identity(radius: float) -> None:
    direction = np.array([[1.0, 2.0], [2.0, -4.0]])
    found = minimise_linear(direction, radius)
    assert np.array_equal(found.metric, np.eye(2))
    assert found.value == np.trace(direction)
    assert (found.change, found.multiplier, found.iterations) == (0.0, np.inf, 0)


def test_one_dimension_is_the_interval() -> None:
    bounds = eigenvalue_bounds(0.7)
    assert minimise_linear([[5.0]], 0.7).metric[0, 0] == pytest.approx(
        bounds.lower, rel=1e-14, abs=0
    )
    assert minimise_linear([[-5.0]], 0.7).metric[0, 0] == pytest.approx(
        bounds.upper, rel=1e-14, abs=0
    )
    assert minimise_linear([[-5.0]], 0.7).value == pytest.approx(
        -5 * bounds.upper, rel=1e-14, abs=0
    )


def test_a_multiple_of_the_identity_spreads_the_radius_evenly() -> None:
    found = minimise_linear(3.0 * np.eye(8), 4.0)
    assert found.metric == pytest.approx(eigenvalue_bounds(0.5).lower * np.eye(8), rel=1e-14)
    found = minimise_linear(-3.0 * np.eye(8), 4.0)
    assert found.metric == pytest.approx(eigenvalue_bounds(0.5).upper * np.eye(8), rel=1e-14)


@given(directions(8), radii(-30, -20))
def test_small_radii_keep_their_digits(direction: FloatArray, radius: float) -> None:
    """X* − I → −√(2ρ) G/‖G‖ and the change → −√(2ρ) ‖G‖, far below the rounding of X."""
    found = minimise_linear(direction, radius)
    size, width = np.linalg.norm(direction), np.sqrt(2 * radius)
    assert found.change == pytest.approx(-width * size, rel=1e-9, abs=0)
    assert found.multiplier == pytest.approx(size / width, rel=1e-9, abs=0)
    rebuilt = (found.eigenvectors * found.offsets) @ found.eigenvectors.T
    assert rebuilt == pytest.approx(-width * direction / size, abs=1e-9 * width)
    assert found.value == np.trace(direction) or abs(found.change) > 1e-17 * size


def test_value_keeps_the_change_when_the_nominal_value_cancels() -> None:
    found = minimise_linear(np.diag([1e8, -1e8, 1.0]) / 3, 1e-14)
    assert found.value == pytest.approx(1 / 3 + found.change, rel=1e-14, abs=0)
    assert found.change == pytest.approx(-np.sqrt(2e-14) * np.sqrt(2) * 1e8 / 3, rel=1e-6, abs=0)


@given(directions(10), radii(-12, 3))
def test_result_is_consistent(direction: FloatArray, radius: float) -> None:
    found = minimise_linear(direction, radius)
    size = np.linalg.norm(direction)
    largest = found.eigenvalues.max()
    assert np.array_equal(found.metric, found.metric.T)
    assert found.smallest_eigenvalue == found.eigenvalues.min() > 0
    assert found.change < 0
    rebuilt = (found.eigenvectors * found.eigenvalues) @ found.eigenvectors.T
    assert found.metric == pytest.approx(rebuilt, abs=1e-14 * largest)
    assert found.value == pytest.approx(
        np.trace(direction) + found.change, abs=1e-13 * size * max(1.0, largest)
    )
    assert (np.diff(found.eigenvalues) <= 0).all()  # the larger λ, the smaller x


def test_underflowing_eigenvalues_stay_positive_and_inside() -> None:
    found = minimise_linear(np.diag([1.0, 0.0]), 1000.0)
    assert found.smallest_eigenvalue == SMALLEST_NORMAL
    assert found.eigenvalues.max() == 1.0
    assert -1 < found.residual < 0
    assert found.value < 1e-300
    assert contains(found.metric, 1000.0)


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200, 1e307])
def test_extreme_scales(scale: float) -> None:
    direction = np.array([[1.0, 0.5, 0.0], [0.5, -0.3, 0.2], [0.0, 0.2, 0.1]])
    plain, scaled = minimise_linear(direction, 0.2), minimise_linear(direction * scale, 0.2)
    assert scaled.metric == pytest.approx(plain.metric, rel=1e-13, abs=1e-14)
    assert scaled.value == pytest.approx(plain.value * scale, rel=1e-12, abs=0)


def test_a_multiplier_out_of_range_is_infinite() -> None:
    found = minimise_linear([[1e300]], 1e-20)
    assert np.isfinite(found.value)
    found = minimise_linear([[1e300]], 1e-40)
    assert found.multiplier == np.inf
    assert found.offsets[0] == pytest.approx(-np.sqrt(2e-40), rel=1e-12, abs=0)


def test_a_multiplier_too_small_for_a_float_stays_positive() -> None:
    assert minimise_linear([[1e-200]], 500.0).multiplier == SMALLEST_NORMAL


def test_results_cannot_be_changed() -> None:
    found = minimise_linear(np.eye(2), 1.0)
    for array in (found.metric, found.eigenvalues, found.offsets, found.eigenvectors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(FrozenInstanceError):
        found.value = 0.0  # type: ignore[misc]


def test_the_direction_is_left_alone() -> None:
    direction = np.array([[1.0, 0.2], [0.2, -1.0]])
    minimise_linear(direction, 0.3)
    assert np.array_equal(direction, [[1.0, 0.2], [0.2, -1.0]])
    assert direction.flags.writeable


def test_the_kernel_can_be_called_from_kernels() -> None:
    @njit
    def twice(eigenvalues: Any, radius: Any) -> Any:
        values, offsets, multiplier, iterations = minimum_of_spectrum(eigenvalues, radius)
        return 2 * values, 2 * offsets, 2 * multiplier, 2 * iterations

    spectrum = np.array([-1.0, 0.0, 2.0])
    plain, double = minimum_of_spectrum(spectrum, 0.4), twice(spectrum, 0.4)
    for single, pair in zip(plain, double, strict=True):
        assert np.array_equal(2 * single, pair)


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([1.0, 2.0], r"^direction: expected a square matrix, got 2$"),
        (np.zeros((2, 3)), r"^direction: expected a square matrix, got 2 × 3$"),
        (np.zeros((0, 0)), r"^direction: expected a square matrix, got 0 × 0$"),
        (1.0, r"^direction: expected a square matrix, got a scalar$"),
        ([[1.0, np.nan], [np.nan, 1.0]], r"^direction: entry \(0, 1\) is nan$"),
        ([[1.0, 0.0], [0.0, np.inf]], r"^direction: entry \(1, 1\) is inf$"),
        (
            [[1.0, 0.5], [0.25, 1.0]],
            r"^direction: entry \(0, 1\) is 0.5 but \(1, 0\) is 0.25; it must be symmetric$",
        ),
        ([["a"]], r"^direction: could not convert string to float: 'a'$"),
    ],
)
def test_bad_matrices(matrix: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        minimise_linear(matrix, 1.0)
    for function in (burg_divergence, lambda metric: contains(metric, 1.0)):
        with pytest.raises(InputError, match=message.replace("direction", "metric")):
            function(matrix)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (-1e-12, r"^radius is -1e-12; it must be finite and zero or more$"),
        (np.nan, r"^radius is nan; it must be finite and zero or more$"),
        (np.inf, r"^radius is inf; it must be finite and zero or more$"),
        ("wide", r"^radius 'wide' is not a number$"),
        (None, r"^radius None is not a number$"),
    ],
)
def test_bad_radii(radius: Any, message: str) -> None:
    for function in (
        eigenvalue_bounds,
        lambda r: contains(np.eye(2), r),
        lambda r: minimise_linear(np.eye(2), r),
    ):
        with pytest.raises(InputError, match=message):
            function(radius)


@given(st.floats(-1e-11, 1e-11))
def test_asymmetry_of_rounding_size_is_averaged(amount: float) -> None:
    tilted = np.array([[1.0, 0.5 + amount], [0.5, 1.0]])
    level = np.array([[1.0, 0.5 + amount / 2], [0.5 + amount / 2, 1.0]])
    assert burg_divergence(tilted) == pytest.approx(burg_divergence(level), rel=1e-14, abs=0)
