"""[IDEAL] Lemma 1: the scalar equation of Theorem 3 is cheap to solve."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.scenarios import spectrum as kernels
from tests.unit.scenarios.exact import (
    KINDS,
    divergence,
    exact_minimum,
    radii,
    spectra,
    spectrum_of_kind,
)


def _residual(spectrum: list[Decimal], base: Decimal, excess: Decimal) -> tuple[Decimal, Decimal]:
    """Σκ and its derivative at γ = base + excess."""
    gamma = base + excess
    total, slope = Decimal(0), Decimal(0)
    for eigenvalue in spectrum:
        x = gamma / (eigenvalue + gamma)
        total += x - x.ln() - 1
        slope -= eigenvalue**2 / (gamma * (eigenvalue + gamma) ** 2)
    return total, slope


@settings(max_examples=50)
@given(spectra(max_size=8), radii())
def test_the_kernel_s_function_is_the_paper_s_with_its_derivative(
    spectrum: FloatArray, radius: float
) -> None:
    scale = np.abs(spectrum).max()
    if np.abs(spectrum[spectrum != 0]).min() < 1e-20 * scale:
        return  # 60 digits would not do for the plain formulas above
    spectrum = spectrum / scale
    base = max(0.0, -float(spectrum.min()))
    for excess in 10.0 ** np.linspace(-8, 6, 8):
        total, slope = _residual(
            [Decimal(v) for v in spectrum.tolist()], Decimal(base), Decimal(float(excess))
        )
        got, got_slope = kernels._divergence_and_slope(spectrum, base, float(excess))
        assert got == pytest.approx(float(total), rel=1e-14, abs=0)
        assert got_slope == pytest.approx(float(-slope * Decimal(float(excess))), rel=1e-14, abs=0)


@given(spectra())
def test_strictly_decreasing_and_convex_from_infinity_to_zero(spectrum: FloatArray) -> None:
    spectrum = spectrum / np.abs(spectrum).max()
    base = max(0.0, -float(spectrum.min()))
    grid = 10.0 ** np.linspace(-14, 12, 105)
    pairs = [kernels._divergence_and_slope(spectrum, base, float(t)) for t in grid]
    values = np.array([value for value, _ in pairs])
    slopes = -np.array([slope for _, slope in pairs]) / grid  # with respect to γ
    assert (np.diff(values) < 0).all()
    assert (np.diff(slopes) > 0).all()
    assert values[-1] < 1e-20
    # convex: above its tangents, on both sides
    assert (values[1:] >= values[:-1] + slopes[:-1] * np.diff(grid) - 1e-12 * values[:-1]).all()
    assert (values[:-1] >= values[1:] - slopes[1:] * np.diff(grid) - 1e-12 * values[:-1]).all()


@given(spectra(max_size=32))
def test_derivatives_grow_no_faster_than_the_lemma_allows(spectrum: FloatArray) -> None:
    """|φ⁽ᵐ⁾ / (m! φ′)|^(1/(m−1)) ≤ 3 / (2 (γ − γ₀))."""
    spectrum = spectrum / np.abs(spectrum).max()
    base = max(0.0, -float(spectrum.min()))
    for excess in 10.0 ** np.linspace(-8, 6, 15):
        gamma, shifted = base + excess, (spectrum + base) + excess
        weights = spectrum**2 / (gamma * shifted**2)
        first = weights.sum()
        second = (weights * (1 / gamma + 2 / shifted)).sum()
        third = (weights * (2 / gamma**2 + 4 / (gamma * shifted) + 6 / shifted**2)).sum()
        assert second / (2 * first) <= 1.5 / excess * (1 + 1e-12)
        assert (third / (6 * first)) ** 0.5 <= 1.5 / excess * (1 + 1e-12)


@settings(max_examples=40)
@given(spectra(max_size=6), radii())
def test_newton_converges_quadratically_from_within_a_twelfth(
    spectrum: FloatArray, radius: float
) -> None:
    """An end ŷ with ŷ ≤ y* ≤ 13/12 ŷ is an approximate root: errors fall like 2^(1−2^k)."""
    spectrum = spectrum / np.abs(spectrum).max()
    if np.abs(spectrum[spectrum != 0]).min() < 1e-10:
        return
    exact = exact_minimum(spectrum, radius)
    values = [Decimal(v) for v in spectrum.tolist()]
    excess = exact.excess * 12 / 13
    first_error = exact.excess - excess
    for k in range(1, 6):
        total, slope = _residual(values, exact.base, excess)
        excess -= (total - Decimal(radius)) / slope
        bound = first_error * Decimal(2) ** (1 - 2**k)
        assert abs(exact.excess - excess) <= bound + exact.excess * Decimal("1e-25")


def _paper_count(excess: float, length: float) -> float:
    """Interval selections and Newton steps of the lemma for a relative error of 2⁻⁵³.

    Ratios of 13/12 that cover [ε_y³, 1], halved until one is left, then as
    many squarings of ½ as 53 bits need.
    """
    digits = np.log(length / excess) + 53 * np.log(2)
    return float(np.ceil(np.log2(3 * digits / np.log(13 / 12))) + np.ceil(np.log2(53)))


@settings(max_examples=60)
@given(spectra(max_size=12), radii())
def test_no_more_evaluations_than_the_lemma_counts(spectrum: FloatArray, radius: float) -> None:
    iterations = kernels.minimum_of_spectrum(spectrum, radius)[3]
    exact = exact_minimum(spectrum, radius)
    scale = Decimal(float(np.abs(spectrum).max()))
    length = float((exact.highest - exact.base) / scale)
    excess = max(float(exact.excess / scale), 1e-300)
    assert 1 <= iterations <= _paper_count(excess, length)


@settings(max_examples=300)
@given(spectra(), radii())
def test_evaluations_stay_far_below_the_proved_bound(spectrum: FloatArray, radius: float) -> None:
    assert 1 <= kernels.minimum_of_spectrum(spectrum, radius)[3] <= 12 < kernels.MOST_ITERATIONS


@given(spectra(), radii(-300, 3))
def test_the_bracket_holds_the_root_and_is_short_enough_for_the_bound(
    spectrum: FloatArray, radius: float
) -> None:
    shift = 480 - np.frexp(np.abs(spectrum).max())[1]
    scaled = np.ldexp(spectrum, shift)
    base, low, high, guess = kernels._bracket(scaled, radius)
    assert 0 < low <= guess <= high < np.inf
    assert kernels._divergence_and_slope(scaled, base, low)[0] >= radius * (1 - 1e-10)
    assert kernels._divergence_and_slope(scaled, base, high)[0] <= radius
    midpoints = np.ceil(np.log2((np.log(high) - np.log(low)) / 1e-8))
    assert kernels._PATIENCE + midpoints + 1 <= kernels.MOST_ITERATIONS


def test_the_first_guess_is_of_third_order() -> None:
    """Its relative error falls with ρ, where the leading order alone would leave √ρ."""
    spectrum = np.array([-1.0, 0.5, 0.7, 2.0])
    for radius in (1e-4, 1e-6, 1e-8, 1e-10):
        scaled = np.ldexp(spectrum, 478)
        guess = kernels._bracket(scaled, radius)[3]
        error = float(Decimal(guess) / exact_minimum(scaled, radius).excess - 1)
        assert abs(error) < 2 * radius


def test_both_coordinates_of_newton_are_straight_lines_where_they_are_used() -> None:
    """F falls like log(excess) at large radii if all λ > 0, else like one of its powers."""
    spectrum = np.linspace(0.1, 2.0, 16)
    assert kernels.minimum_of_spectrum(spectrum, 100.0)[3] <= 4
    assert kernels.minimum_of_spectrum(spectrum, 1000.0)[3] <= 4
    assert kernels.minimum_of_spectrum(spectrum, 0.01)[3] <= 2
    assert kernels.minimum_of_spectrum(-spectrum, 1000.0)[3] <= 3


def test_all_kinds_of_spectrum_are_solved_from_the_smallest_radius_to_the_largest() -> None:
    rng = np.random.default_rng(7)
    counts = []
    for kind in KINDS:
        for exponent in (-300, -100, *range(-12, 4), 6, 100, 300):
            radius = 10.0**exponent
            for size in (1, 2, 16, 128):
                values, offsets, multiplier, iterations = kernels.minimum_of_spectrum(
                    spectrum_of_kind(kind, rng, size), radius
                )
                counts.append(iterations)
                assert (values > 0).all()
                assert np.isfinite(values).all()
                assert multiplier > 0  # and infinite only where 1e200/√ρ is
                slack = float(divergence(values, offsets) / Decimal(radius) - 1)
                assert slack < 1e-13, (kind, exponent, size)
                if exponent <= 3 and values.min() > 1e-300:
                    assert slack > -1e-13, (kind, exponent, size)
    assert max(counts) <= 14
    assert np.mean(counts) < 4
