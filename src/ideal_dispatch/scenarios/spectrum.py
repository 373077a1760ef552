"""The Burg ball in the eigenbasis of a direction: its divergence and its linear minimum, compiled.

Symbols: ``ρ`` radius, ``x`` an eigenvalue of the metric X and ``y = x − 1`` its offset;
``D(X, I) = Σ κ`` where ``κ = y − log(1 + y)``. Of a direction G: eigenvalues ``λ``,
multiplier ``γ*``, its lower end ``γ₀ = max(0, −λ_min)``, here ``base``, and
``excess = γ − γ₀ > 0``. ``F(excess)`` is the divergence of ``γ(G + γI)⁻¹``.

Everything is computed from sums of terms of one sign, so that nothing cancels::

    x = (base + excess) / (λ + base + excess)    x − 1 = −λ / (λ + base + excess)
    dF / d log(excess) = −excess / (base + excess) · Σ (x − 1)²

where ``λ + base`` is a single rounded subtraction.
"""

import math

import numpy as np

from ideal_dispatch.compiled import kernel

MOST_ITERATIONS = 80
"""Bound on the evaluations of F in one search, proved in :func:`minimum_of_spectrum`."""

TINY = float(np.finfo(np.float64).tiny)
"""What an eigenvalue or multiplier too small for a float is given as."""

_PATIENCE = 40  # evaluations after which the search only halves its bracket
_SMALL_STEP = 1e-8  # a Newton step this short leaves an error of its square
# Largest eigenvalue after scaling: excess / largest runs from exp(−1000) to 1e150
# for radii from 1000 down to 1e-300, and both ends must be floats.
_SCALE_EXPONENT = 480
_SCALE = 2.0**_SCALE_EXPONENT
_SMALLEST_RADIUS = 1e-300  # below it, squares of x − 1 underflow
_ODD_RECIPROCALS = 1.0 / np.arange(3.0, 35.0, 2.0)


@kernel(error_model="numpy")
def _kappa(offset, logarithm):  # type: ignore[no-untyped-def]
    """κ = y − ``logarithm``; up to |y| = 1/2, where it cancels, by a series.

    With w = y/(2 + y): y − log(1 + y) = w (y − 2w² (1/3 + w²/5 + w⁴/7 + …)),
    and the bracket is a mild correction of y.
    """
    if abs(offset) > 0.5:
        return offset - logarithm
    ratio = offset / (2.0 + offset)
    square = ratio * ratio
    tail = 0.0
    for k in range(6 if abs(offset) < 0.1 else 16, 0, -1):
        tail = tail * square + _ODD_RECIPROCALS[k - 1]
    return ratio * (offset - 2.0 * square * tail)


@kernel(error_model="numpy")
def _divergence_and_slope(spectrum, base, excess):  # type: ignore[no-untyped-def]
    """F and −dF / d log(excess)."""
    gamma = base + excess
    share = excess / gamma
    divergence, slope = 0.0, 0.0
    for eigenvalue in spectrum:
        shifted = (eigenvalue + base) + excess
        offset = -eigenvalue / shifted
        logarithm = 0.0
        if abs(offset) > 0.5:
            x = gamma / shifted
            # the ratio of the extremes may underflow, its logarithm does not
            logarithm = math.log(x) if x > 1e-290 else math.log(gamma) - math.log(shifted)
        divergence += _kappa(offset, logarithm)
        slope += offset * (offset * share)
    return divergence, slope


@kernel(error_model="numpy")
def _bracket(spectrum, radius):  # type: ignore[no-untyped-def]
    """``base``, ends around the root ``excess``, and a first guess between them.

    The upper end is the paper's γ_max. The lower end follows from the extreme
    eigenvalues alone, as x ≤ M_ρ ≤ 1 + ρ + √(2ρ) and
    −log x ≤ −log m_ρ ≤ ρ + min(1, √(2ρ)). The guess solves F to third order
    in λ/γ, and so is nearly the root of a small radius.
    """
    smallest, largest = spectrum[0], spectrum[0]
    squares, cubes = 0.0, 0.0
    for eigenvalue in spectrum:
        smallest, largest = min(smallest, eigenvalue), max(largest, eigenvalue)
        part = eigenvalue / _SCALE
        squares += part * part
        cubes += part * part * part
    base = max(0.0, -smallest)
    norm = _SCALE * (math.sqrt(squares) / math.sqrt(radius))
    high = norm * (2.0 * norm / (abs(smallest) + math.hypot(smallest, 2.0 * norm)))

    width = math.sqrt(2.0 * radius)
    low = base / (radius + width)
    if largest > 0.0:
        decay = radius + min(1.0, width)
        half = math.exp(-0.5 * decay)  # in halves: exp(−decay) alone underflows
        low = max(low, (largest * half) * half / -math.expm1(-decay) - base)
    # the ends meet the root as ρ → 0 or ∞: leave room for their rounding
    low, high = max(low * (1.0 - 1e-12), TINY), high * (1.0 + 1e-12)
    guess = norm / math.sqrt(2.0) - 2.0 / 3.0 * _SCALE * (cubes / squares) - base
    return base, low, high, min(max(guess, low), high)


@kernel(error_model="numpy")
def _search(spectrum, radius):  # type: ignore[no-untyped-def]
    """``base``, the root ``excess`` of F = ρ, and how often F was evaluated."""
    base, low, high, excess = _bracket(spectrum, radius)
    if low == TINY and _divergence_and_slope(spectrum, base, low)[0] <= radius:
        return base, low, 1
    for iteration in range(1, MOST_ITERATIONS + 1):
        divergence, slope = _divergence_and_slope(spectrum, base, excess)
        if divergence > radius:
            low = excess
        else:
            high = excess
        step = (divergence - radius) / slope
        if slope > 0.5 * divergence:  # F falls like a power of excess, not like its logarithm
            step = math.log1p((divergence - radius) / radius) * (divergence / slope)
        if abs(step) <= _SMALL_STEP:
            return base, excess * (1.0 + step), iteration
        excess *= math.exp(step)
        if not low < excess < high or iteration > _PATIENCE:
            excess = math.sqrt(low) * math.sqrt(high)
    return base, excess, MOST_ITERATIONS


@kernel(error_model="numpy")
def minimum_of_spectrum(eigenvalues, radius):  # type: ignore[no-untyped-def]
    """Eigenvalues of X*, the same minus one, γ* and the number of evaluations of F.

    [IDEAL] Theorem 3 in the eigenbasis of the direction: x = γ*/(λ + γ*), with
    γ* the root of F = ρ in (γ₀, γ_max]. Callable from other kernels; arguments
    are not checked. A zero direction gives x = 1 and γ* = 0; a zero radius,
    for which any radius below 1e-300 is taken, x = 1 and γ* = ∞.

    Unlike the paper, the search is Newton's on log F, or F where it falls more
    slowly, against log(excess): nearly straight lines at small and at large
    radii. A step that leaves the bracket gives way to the geometric midpoint,
    the interval selection of the paper's Lemma 1, and so does every step
    after the 40th. The bracket spans at most W = 1420 in log(excess), so
    log₂(W/1e-8) < 38 midpoints exhaust it: :data:`MOST_ITERATIONS`. Usual are 2
    or 3; 10 is the most seen. Accurate to rounding for radii up to 1000; beyond,
    γ* may be too small for a float, and the answer is then inside the ball.
    """
    values, offsets = np.ones(eigenvalues.size), np.zeros(eigenvalues.size)
    largest = 0.0
    for eigenvalue in eigenvalues:
        largest = max(largest, abs(eigenvalue))
    if largest == 0.0 or radius < _SMALLEST_RADIUS:
        return values, offsets, 0.0 if largest == 0.0 else np.inf, 0
    shift = _SCALE_EXPONENT - math.frexp(largest)[1]
    spectrum = np.empty(eigenvalues.size)
    for i in range(eigenvalues.size):
        spectrum[i] = math.ldexp(eigenvalues[i], shift)
    base, excess, iterations = _search(spectrum, radius)
    for i in range(eigenvalues.size):
        shifted = (spectrum[i] + base) + excess
        values[i] = max((base + excess) / shifted, TINY)
        offsets[i] = -spectrum[i] / shifted
    return values, offsets, max(math.ldexp(base + excess, -shift), TINY), iterations


@kernel
def largest_product(direction, radius):  # type: ignore[no-untyped-def]
    """The largest ⟨direction, X⟩ over the ball."""
    spectrum = np.linalg.eigvalsh(direction)
    offsets = minimum_of_spectrum(-spectrum, radius)[1]
    total = 0.0
    for i in range(spectrum.size):
        total += spectrum[i] + spectrum[i] * offsets[i]
    return total


@kernel(error_model="numpy")
def divergence_of_spectrum(values, offsets):  # type: ignore[no-untyped-def]
    """Σ κ of eigenvalues given both as x and as x − 1; infinite unless all x > 0."""
    total = 0.0
    for i in range(values.size):
        if not values[i] > 0.0:
            return np.inf
        total += _kappa(offsets[i], math.log(values[i]))
    return total
