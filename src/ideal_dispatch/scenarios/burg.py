"""The Burg ball around the identity: its divergence, its width and its linear minimum.

Symbols: ``X`` metric, ``G`` direction, ``ρ`` radius, ``γ*`` multiplier,
``D(X, I) = tr X − log det X − d``. What depends on eigenvalues alone, ``F`` among
it, is in :mod:`ideal_dispatch.scenarios.spectrum`.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, frozen, non_negative
from ideal_dispatch.errors import InputError
from ideal_dispatch.scenarios.spectrum import TINY, divergence_of_spectrum, minimum_of_spectrum

_EPSILON = float(np.finfo(np.float64).eps)
_SYMMETRY = 1e-10  # relative asymmetry taken for rounding
_MEMBERSHIP = 1e-12  # relative excess of the divergence taken for rounding


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
    """The roots m_ρ ≤ 1 ≤ M_ρ of x − log x − 1 = ρ ([IDEAL] Lemma 7).

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
        metric=frozen((metric + metric.T) / 2.0),
        value=_ldexp(math.fsum(terms.tolist()), exponent),
        change=_ldexp(math.fsum((spectrum * offsets).tolist()), exponent),
        multiplier=max(_ldexp(multiplier, exponent), TINY) if multiplier else 0.0,
        eigenvalues=frozen(values),
        eigenvectors=frozen(eigenvectors),
        offsets=frozen(offsets),
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
    if (given == given.T).all():  # as a rule: what comes from our own kernels is
        return given.copy()
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
