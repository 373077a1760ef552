"""The Burg ball around the identity: its divergence, its width and its linear minimum.

Symbols: ``X`` metric, ``ρ`` radius, ``D(X, I) = tr X − log det X − d``. With
``x`` an eigenvalue of X and ``y = x − 1`` its offset, ``D = Σ κ`` where
``κ = y − log(1 + y)``. Of a direction G: eigenvalues ``λ``, multiplier ``γ*``,
its lower end ``γ₀ = max(0, −λ_min)``, here ``base``, and ``excess = γ − γ₀ > 0``.
``F(excess)`` is the divergence of ``γ(G + γI)⁻¹``.

Everything is computed from sums of terms of one sign, so that nothing cancels::

    x = (base + excess) / (λ + base + excess)    x − 1 = −λ / (λ + base + excess)
    dF / d log(excess) = −excess / (base + excess) · Σ (x − 1)²

where ``λ + base`` is a single rounded subtraction.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, non_negative
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError

MOST_ITERATIONS = 80
"""Bound on the evaluations of F in one search, proved in :func:`minimum_of_spectrum`."""

_TINY = float(np.finfo(np.float64).tiny)
_EPSILON = float(np.finfo(np.float64).eps)
_SYMMETRY = 1e-10  # relative asymmetry taken for rounding
_MEMBERSHIP = 1e-12  # relative excess of the divergence taken for rounding
_PATIENCE = 40  # evaluations after which the search only halves its bracket
_SMALL_STEP = 1e-8  # a Newton step this short leaves an error of its square
# Largest eigenvalue after scaling: excess / largest runs from exp(−1000) to 1e150
# for radii from 1000 down to 1e-300, and both ends must be floats.
_SCALE_EXPONENT = 480
_SCALE = 2.0**_SCALE_EXPONENT
_SMALLEST_RADIUS = 1e-300  # below it, squares of x − 1 underflow
_ODD_RECIPROCALS = 1.0 / np.arange(3.0, 35.0, 2.0)


@dataclass(frozen=True, slots=True)
class LinearMinimum:
    """The metric of the Burg ball with the smallest ⟨direction, metric⟩.

    ``metric`` is X* = Q diag(``eigenvalues``) Qᵀ with Q = ``eigenvectors``, in
    the ascending order of the direction's eigenvalues; ``offsets`` are
    ``eigenvalues`` − 1 to full relative accuracy. ``value`` = ⟨G, X*⟩ and
    ``change`` = ⟨G, X* − I⟩ ≤ 0. ``multiplier`` is γ*: zero when the direction
    is, infinite when only the radius is zero. ``residual`` is D(X*, I)/ρ − 1 of
    the eigenvalues, and ``iterations`` counts evaluations of F.

    An eigenvalue or multiplier below 2.2e-308 is given as 2.2e-308: positive,
    and still inside the ball. The entries of ``metric`` carry a rounding of
    1e-16 of its largest eigenvalue, which may hide its smallest one.
    """

    metric: FloatArray
    value: float
    change: float
    multiplier: float
    eigenvalues: FloatArray
    eigenvectors: FloatArray
    offsets: FloatArray
    smallest_eigenvalue: float
    iterations: int
    residual: float


@dataclass(frozen=True, slots=True)
class EigenvalueBounds:
    """The interval [m_ρ, M_ρ] that holds every eigenvalue of every metric in the ball.

    ``lower`` and ``upper`` are the roots of x − log x − 1 = ρ, each attained;
    the offsets are the roots minus one, to full relative accuracy.
    """

    lower: float
    upper: float
    lower_offset: float
    upper_offset: float


# --- the scalar search ------------------------------------------------------------


@kernel(error_model="numpy")
def kappa(offset):  # type: ignore[no-untyped-def]
    """κ = y − log(1 + y) of an eigenvalue 1 + y, to full relative accuracy; ∞ up to y = −1."""
    if offset <= -1.0:
        return np.inf
    return _kappa(offset, math.log(1.0 + offset))


@kernel(error_model="numpy")
def _kappa(offset, logarithm):  # type: ignore[no-untyped-def]
    """The difference y − ``logarithm``; up to |y| = 1/2, where it cancels, by a series.

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
    low, high = max(low * (1.0 - 1e-12), _TINY), high * (1.0 + 1e-12)
    guess = norm / math.sqrt(2.0) - 2.0 / 3.0 * _SCALE * (cubes / squares) - base
    return base, low, high, min(max(guess, low), high)


@kernel(error_model="numpy")
def _search(spectrum, radius):  # type: ignore[no-untyped-def]
    """``base``, the root ``excess`` of F = ρ, and how often F was evaluated."""
    base, low, high, excess = _bracket(spectrum, radius)
    if low == _TINY and _divergence_and_slope(spectrum, base, low)[0] <= radius:
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
    the interval selection of the paper's lemma on complexity, and so does every
    step after the 40th. The bracket spans at most W = 1420 in log(excess), so
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
        values[i] = max((base + excess) / shifted, _TINY)
        offsets[i] = -spectrum[i] / shifted
    return values, offsets, max(math.ldexp(base + excess, -shift), _TINY), iterations


@kernel(error_model="numpy")
def divergence_of_spectrum(values, offsets):  # type: ignore[no-untyped-def]
    """Σ κ of eigenvalues given both as x and as x − 1; infinite unless all x > 0."""
    total = 0.0
    for i in range(values.size):
        if not values[i] > 0.0:
            return np.inf
        total += _kappa(offsets[i], math.log(values[i]))
    return total


# --- metrics ----------------------------------------------------------------------


def burg_divergence(metric: npt.ArrayLike) -> float:
    """D(X, I) = tr X − log det X − d, infinite unless the metric is positive definite.

    Near the identity it is accurate relative to itself, not to d.
    """
    values, offsets = _eigenvalues(symmetric(metric, "metric"))
    return float(divergence_of_spectrum(values, offsets))


def contains(metric: npt.ArrayLike, radius: float) -> bool:
    """Whether some metric within rounding of this one lies in the ball.

    Each eigenvalue may move towards 1 by 4 d ε max(1, x_max), ε = 2.2e-16, and
    the divergence may then exceed ρ by one part in 10¹².
    """
    radius = non_negative(radius, "radius")
    values, offsets = _eigenvalues(symmetric(metric, "metric"))
    rounding = 4.0 * values.size * _EPSILON * max(1.0, float(values[-1]))
    offsets = np.sign(offsets) * np.maximum(np.abs(offsets) - rounding, 0.0)
    values = np.where(values < 1.0, np.minimum(values + rounding, 1.0), 1.0 + offsets)
    return float(divergence_of_spectrum(values, offsets)) <= radius * (1.0 + _MEMBERSHIP)


def eigenvalue_bounds(radius: float) -> EigenvalueBounds:
    """The roots m_ρ ≤ 1 ≤ M_ρ of x − log x − 1 = ρ ([IDEAL] compactness of the ball).

    m_ρ I ⪯ X ⪯ M_ρ I for every X in the ball, whatever its dimension. They are
    the minima of Theorem 3 in the directions +1 and −1 of one dimension.
    """
    radius = non_negative(radius, "radius")
    lower, lower_offset, _, _ = minimum_of_spectrum(np.array([1.0]), radius)
    upper, upper_offset, _, _ = minimum_of_spectrum(np.array([-1.0]), radius)
    return EigenvalueBounds(
        float(lower[0]), float(upper[0]), float(lower_offset[0]), float(upper_offset[0])
    )


def minimise_linear(direction: npt.ArrayLike, radius: float) -> LinearMinimum:
    """The metric X of the ball that minimises ⟨direction, X⟩ ([IDEAL] Theorem 3).

    X* = γ*(G + γ*I)⁻¹, the only minimiser when direction and radius are not
    zero; it lies on the boundary. If either is zero the result is X* = I, which
    is then one minimiser of many, or the only point of the ball. The answer is
    exact for a direction within rounding (d ε ‖G‖) of the given one.

    >>> best = minimise_linear([[1.0, 0.0], [0.0, -1.0]], radius=0.5)
    >>> best.metric.round(3)
    array([[0.646, 0.   ],
           [0.   , 2.21 ]])
    >>> round(best.value, 3), round(best.multiplier, 3)
    (-1.564, 1.826)
    """
    radius = non_negative(radius, "radius")
    matrix = symmetric(direction, "direction")
    size = len(matrix)
    exponent = math.frexp(float(np.abs(matrix).max()))[1]
    spectrum, eigenvectors = np.linalg.eigh(np.ldexp(matrix, -exponent))
    values, offsets, multiplier, iterations = minimum_of_spectrum(spectrum, radius)
    if np.abs(offsets).max() <= 0.5:  # keeps X − I, and the value's change, to full accuracy
        metric = np.eye(size) + (eigenvectors * offsets) @ eigenvectors.T
        terms = np.concatenate((np.ldexp(matrix.diagonal(), -exponent), spectrum * offsets))
    else:
        metric = (eigenvectors * values) @ eigenvectors.T
        terms = spectrum * values
    divergence = float(divergence_of_spectrum(values, offsets))
    return LinearMinimum(
        metric=_frozen((metric + metric.T) / 2.0),
        value=_ldexp(math.fsum(terms.tolist()), exponent),
        change=_ldexp(math.fsum((spectrum * offsets).tolist()), exponent),
        multiplier=max(_ldexp(multiplier, exponent), _TINY) if multiplier else 0.0,
        eigenvalues=_frozen(values),
        eigenvectors=_frozen(eigenvectors),
        offsets=_frozen(offsets),
        smallest_eigenvalue=float(values.min()),
        iterations=int(iterations),
        residual=divergence / radius - 1.0 if iterations else 0.0,
    )


# --- checks -----------------------------------------------------------------------


def symmetric(matrix: npt.ArrayLike, what: str) -> FloatArray:
    """A square, finite, exactly symmetric copy, or an :class:`InputError` naming ``what``.

    Asymmetry up to 1e-10 of the largest entry is averaged away as rounding.
    """
    try:
        given = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
        shape = " × ".join(map(str, given.shape)) or "a scalar"
        raise InputError(f"{what}: expected a square matrix, got {shape}")
    if not np.isfinite(given).all():
        row, column = np.argwhere(~np.isfinite(given))[0]
        raise InputError(f"{what}: entry ({row}, {column}) is {given[row, column]}")
    half = given / 2.0
    skew = np.abs(half - half.T)
    row, column = np.unravel_index(int(skew.argmax()), skew.shape)
    if skew[row, column] > _SYMMETRY * np.abs(half).max():
        raise InputError(
            f"{what}: entry ({row}, {column}) is {given[row, column]} but ({column}, {row}) "
            f"is {given[column, row]}; it must be symmetric"
        )
    average: FloatArray = half + half.T
    return average


def _eigenvalues(metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of X and of X − I, ascending, each to the accuracy of its own matrix."""
    values = np.linalg.eigvalsh(metric)
    offsets = np.linalg.eigvalsh(metric - np.eye(len(metric)))
    return np.asarray(values, np.float64), np.asarray(offsets, np.float64)


def _ldexp(value: float, exponent: int) -> float:
    """``value`` · 2^``exponent``, infinite where that is out of range."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array
