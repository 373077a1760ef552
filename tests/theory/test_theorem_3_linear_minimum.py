"""[IDEAL] Theorem 3: the minimiser of a linear function over the Burg ball."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.scenarios.burg import burg_divergence, contains, minimise_linear
from ideal_dispatch.scenarios.spectrum import minimum_of_spectrum
from tests.unit.scenarios.exact import (
    SMALLEST_NORMAL,
    UNIT,
    directions,
    divergence,
    exact_minimum,
    radii,
    spectra,
)


@settings(max_examples=150)
@given(spectra(max_size=24), radii())
def test_eigenvalues_offsets_and_multiplier_are_exact_to_rounding(
    spectrum: FloatArray, radius: float
) -> None:
    """Errors stay below 32 roundings times the condition number with respect to ρ.

    d log γ / d log ρ = ρ/Σy², d log x / d log ρ = |y| ρ/Σy² and
    d log |y| / d log ρ = x ρ/Σy²: what a last-digit change of ρ would do.
    """
    values, offsets, multiplier, _ = minimum_of_spectrum(spectrum, radius)
    exact = exact_minimum(spectrum, radius)
    sensitivity = float(Decimal(radius) / exact.squares)

    def units(got: float, want: Decimal, condition: float) -> float:
        return float(abs(Decimal(got) / want - 1)) / UNIT / max(1.0, condition)

    for i in range(spectrum.size):
        x, y = exact.values[i], exact.offsets[i]
        if x > Decimal(SMALLEST_NORMAL):
            assert units(values[i], x, sensitivity * float(abs(y))) < 32
        else:
            assert values[i] == SMALLEST_NORMAL
        if abs(y) > Decimal("1e-300"):
            assert units(offsets[i], y, sensitivity * float(x)) < 32
        else:
            assert abs(offsets[i]) < 1e-299
    gamma = exact.base + exact.excess
    if gamma > Decimal(SMALLEST_NORMAL):
        assert units(multiplier, gamma, sensitivity) < 32


@given(spectra(), radii())
def test_the_constraint_is_active(spectrum: FloatArray, radius: float) -> None:
    values, offsets, _, _ = minimum_of_spectrum(spectrum, radius)
    slack = float(divergence(values, offsets) / Decimal(radius) - 1)
    if values.min() > SMALLEST_NORMAL:
        assert abs(slack) < 1e-13
    else:  # an eigenvalue too small for a float was raised: inside, not outside
        assert -1 < slack < 1e-13


@given(spectra(), radii())
def test_stationarity_in_the_eigenbasis(spectrum: FloatArray, radius: float) -> None:
    """λ + γ(1 − 1/x) = 0, that is λx = −γy."""
    values, offsets, multiplier, _ = minimum_of_spectrum(spectrum, radius)
    assert (values > 0).all()
    assert multiplier > 0
    plain = (values > SMALLEST_NORMAL) & (np.abs(spectrum) > 1e-100 * multiplier)
    left = spectrum[plain] * values[plain]
    assert left == pytest.approx(-multiplier * offsets[plain], rel=1e-14, abs=1e-290)


@given(spectra(), radii())
def test_multiplier_lies_in_the_interval_of_the_paper(spectrum: FloatArray, radius: float) -> None:
    _, offsets, multiplier, _ = minimum_of_spectrum(spectrum, radius)
    lowest, scale = spectrum.min(), np.abs(spectrum).max()
    share = lowest / scale
    norm = np.sqrt(((spectrum / scale) ** 2).sum() / radius)
    # (−λ_min + √(λ_min² + 4q))/2 without its cancellation for λ_min > 0
    if share > 0:
        highest = scale * 2 * norm / (share + np.hypot(share, 2 * norm)) * norm
    else:
        highest = scale * (-share + np.hypot(share, 2 * norm)) / 2
    assert max(0.0, -lowest) <= multiplier <= highest * (1 + 1e-13)
    # γ > γ₀ strictly, though the float may not show it: 1/x = 1 + λ_min/γ > 0
    assert np.isfinite(offsets).all()


@given(directions(), radii(-8, 0.7))
def test_kkt_conditions_of_the_matrix(direction: FloatArray, radius: float) -> None:
    found = minimise_linear(direction, radius)
    size = float(np.linalg.norm(direction))
    identity = np.eye(len(direction))
    stationarity = direction + found.multiplier * (identity - np.linalg.inv(found.metric))
    rounding = 1e-13 * (size + found.multiplier) / found.smallest_eigenvalue**2
    assert np.linalg.norm(stationarity) <= rounding
    assert found.multiplier > 0
    assert contains(found.metric, radius)
    assert burg_divergence(found.metric) == pytest.approx(radius, rel=1e-6, abs=0)
    assert abs(found.residual) < 1e-13
    closed_form = found.multiplier * np.linalg.inv(direction + found.multiplier * identity)
    assert found.metric == pytest.approx(closed_form, rel=1e-9, abs=1e-11)
    assert found.value == pytest.approx(float((direction * found.metric).sum()), abs=1e-12 * size)


@given(directions(), radii(-6, 1), st.integers(0, 2**32 - 1))
def test_every_other_feasible_metric_is_strictly_worse(
    direction: FloatArray, radius: float, seed: int
) -> None:
    """⟨G, X⟩ − ⟨G, X*⟩ = γ (D(X, X*) + ρ − D(X, I)): the three-point identity."""
    rng = np.random.default_rng(seed)
    best = minimise_linear(direction, radius)
    inverse = np.linalg.inv(best.metric)
    for fraction in (1.0, rng.random()):
        entries = rng.standard_normal(direction.shape)
        other = minimise_linear(entries + entries.T, radius * fraction)
        advantage = float((direction * (other.metric - best.metric)).sum())
        product = inverse @ other.metric
        from_best = np.trace(product) - np.linalg.slogdet(product)[1] - len(direction)
        expected = best.multiplier * (from_best + radius * (1 - fraction))
        size = float(np.linalg.norm(direction)) + best.multiplier
        rounding = 1e-12 * size / best.smallest_eigenvalue
        assert advantage == pytest.approx(expected, rel=1e-6, abs=rounding)
        if expected > 2 * rounding:
            assert advantage > 0


@given(directions(), radii(-6, 1), st.floats(-3, 3))
def test_weak_and_strong_duality(direction: FloatArray, radius: float, shift: float) -> None:
    """γ log det(I + G/γ) − γρ never exceeds the minimum, and meets it at γ*."""
    found = minimise_linear(direction, radius)
    spectrum = np.linalg.eigvalsh(direction)
    base = max(0.0, -spectrum[0])

    def dual(gamma: float) -> float:
        return float(gamma * np.log1p(spectrum / gamma).sum() - gamma * radius)

    rounding = 1e-11 * (np.abs(spectrum).max() + found.multiplier * max(radius, 1e-3))
    assert dual(found.multiplier) == pytest.approx(found.value, abs=rounding)
    elsewhere = base + (found.multiplier - base) * np.exp(shift)
    assert dual(float(elsewhere)) <= found.value + rounding


def test_two_dimensions_by_brute_force() -> None:
    direction, radius = np.array([[1.0, 0.4], [0.4, -0.5]]), 0.8
    found = minimise_linear(direction, radius)
    best = np.inf
    for angle in np.linspace(0, np.pi, 181):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        rotated = np.diag(turn.T @ direction @ turn)
        grid = np.linspace(0.05, 4, 400)
        first, second = np.meshgrid(grid, grid)
        inside = first - np.log(first) + second - np.log(second) - 2 <= radius
        best = min(best, (first * rotated[0] + second * rotated[1])[inside].min())
    assert found.value <= best <= found.value + 5e-3


@given(directions(6), radii(-6, 2), st.integers(-600, 600))
def test_scaling_the_direction_changes_only_value_and_multiplier(
    direction: FloatArray, radius: float, exponent: int
) -> None:
    plain = minimise_linear(direction, radius)
    scaled = minimise_linear(np.ldexp(direction, exponent), radius)
    assert np.array_equal(plain.metric, scaled.metric)
    assert scaled.value == np.ldexp(plain.value, exponent)
    assert scaled.change == np.ldexp(plain.change, exponent)
    assert scaled.multiplier == np.ldexp(plain.multiplier, exponent)


@given(directions(6), radii(-6, 1), st.integers(0, 2**32 - 1))
def test_rotating_the_direction_rotates_the_minimiser(
    direction: FloatArray, radius: float, seed: int
) -> None:
    entries = np.random.default_rng(seed).standard_normal(direction.shape)
    turn = np.linalg.qr(entries)[0]
    plain = minimise_linear(direction, radius)
    turned = minimise_linear(turn @ direction @ turn.T, radius)
    size = float(np.linalg.norm(direction))
    assert turned.value == pytest.approx(plain.value, abs=1e-12 * size)
    condition = plain.eigenvalues.max() / plain.smallest_eigenvalue
    assert turned.metric == pytest.approx(turn @ plain.metric @ turn.T, abs=1e-12 * condition)
