"""The linear minimum over the Burg ball in 60 digits, by a method of its own.

Slow and plain: bisection on the logarithm of the paper's interval, then Newton.
"""

from decimal import Decimal, getcontext
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.scenarios.spectrum import divergence_of_spectrum

getcontext().prec = 60
UNIT = 2.0**-53
SMALLEST_NORMAL = 2.2250738585072014e-308


class ExactMinimum(NamedTuple):
    """x, x − 1 and γ − γ₀ of Theorem 3, with γ₀, γ_max and Σ(x − 1)²."""

    values: list[Decimal]
    offsets: list[Decimal]
    excess: Decimal
    base: Decimal
    highest: Decimal
    squares: Decimal


def kappa_of(offset: float) -> float:
    """What the package takes for D of the single eigenvalue 1 + y."""
    return float(divergence_of_spectrum(np.array([1.0 + offset]), np.array([offset])))


def kappa(x: Decimal, y: Decimal) -> Decimal:
    """x − log x − 1; by its series where 60 digits would cancel."""
    if abs(y) < Decimal("1e-12"):
        return sum(((-y) ** k / k for k in range(2, 7)), Decimal(0))
    return y - x.ln()


def divergence(values: FloatArray, offsets: FloatArray) -> Decimal:
    """D of eigenvalues given as x and as x − 1, whichever says more."""
    total = Decimal(0)
    for x, y in zip(values.tolist(), offsets.tolist(), strict=True):
        total += (
            kappa(1 + Decimal(y), Decimal(y)) if abs(y) < 0.5 else kappa(Decimal(x), Decimal(x) - 1)
        )
    return total


def _evaluate(
    spectrum: list[Decimal], base: Decimal, excess: Decimal
) -> tuple[Decimal, Decimal, list[Decimal], list[Decimal]]:
    shifted = [(eigenvalue + base) + excess for eigenvalue in spectrum]
    values = [(base + excess) / s for s in shifted]
    offsets = [-eigenvalue / s for eigenvalue, s in zip(spectrum, shifted, strict=True)]
    total = sum((kappa(x, y) for x, y in zip(values, offsets, strict=True)), Decimal(0))
    return total, sum((y * y for y in offsets), Decimal(0)), values, offsets


def exact_minimum(eigenvalues: FloatArray, radius: float) -> ExactMinimum:
    spectrum = [+Decimal(v) for v in eigenvalues.tolist()]  # + rounds, so that λ_min + γ₀ = 0
    target, lowest = Decimal(radius), min(spectrum)
    base = max(Decimal(0), -lowest)
    total_square = sum((v * v for v in spectrum), Decimal(0))
    highest = (-lowest + (lowest * lowest + 4 * total_square / target).sqrt()) / 2
    high = highest - base
    low, factor = high, Decimal(2)
    while _evaluate(spectrum, base, low)[0] < target:
        low, factor = high / factor, factor * factor
    while high / low > Decimal("1.001"):
        middle = (low * high).sqrt()
        if _evaluate(spectrum, base, middle)[0] > target:
            low = middle
        else:
            high = middle
    excess = low
    while True:  # F is convex and decreasing: from the left Newton cannot overshoot
        total, squares, values, offsets = _evaluate(spectrum, base, excess)
        step = (total - target) * (base + excess) / squares
        if abs(step) < excess * Decimal("1e-40"):
            return ExactMinimum(values, offsets, excess, base, highest, squares)
        excess += step


def spectrum_of_kind(kind: str, rng: np.random.Generator, size: int) -> FloatArray:
    """Eigenvalues of one of :data:`KINDS`, never all zero."""
    normal = rng.standard_normal(size)
    one = np.zeros(size)
    one[0] = 1.0
    wide = np.sign(normal) * 10.0 ** rng.uniform(-200, 200, size)
    close = 10.0 ** rng.uniform(-16, -3) * normal
    tiny = 10.0 ** rng.uniform(-200, -1)
    kinds: dict[str, FloatArray] = {
        "mixed": normal,
        "positive": np.abs(normal),
        "negative": -np.abs(normal),
        "rank one, positive": one,
        "rank one, negative": -one,
        "low rank": normal * (np.arange(size) < 3),
        "nearly constant, positive": 1.0 + close,
        "nearly constant, negative": close - 1.0,
        "constant": np.ones(size) * rng.choice([-3.0, 3.0]),
        "few distinct": np.where(normal > 0, 2.0, rng.choice([-1.0, 0.0, 1.0])),
        "one tiny negative": np.where(one > 0, -tiny, np.abs(normal)),
        "one tiny positive": np.where(one > 0, tiny, -np.abs(normal)),
        "four hundred decades": wide,
    }
    spectrum = kinds[kind]
    return spectrum if spectrum.any() else np.ones(size)


KINDS = (
    "mixed", "positive", "negative", "rank one, positive", "rank one, negative", "low rank",
    "nearly constant, positive", "nearly constant, negative", "constant", "few distinct",
    "one tiny negative", "one tiny positive", "four hundred decades",
)  # fmt: skip


@st.composite
def spectra(draw: st.DrawFn, max_size: int = 128) -> FloatArray:
    """Eigenvalues of every awkward kind and of many scales."""
    kind = draw(st.sampled_from(KINDS))
    size = draw(st.integers(1, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 1.0 if kind == "four hundred decades" else 10.0 ** draw(st.integers(-100, 100))
    return spectrum_of_kind(kind, rng, size) * scale


def radii(lowest: float = -12.0, highest: float = 3.0) -> st.SearchStrategy[float]:
    """Radii spread over the decades given by their exponents."""
    return st.floats(lowest, highest).map(lambda exponent: float(10.0**exponent))


def directions(max_size: int = 12) -> st.SearchStrategy[FloatArray]:
    """Random symmetric matrices of any rank, scale one."""

    def build(seed: int, size: int, rank: int, signs: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        factors = rng.standard_normal((size, min(rank, size)))
        ones = np.ones(factors.shape[1])
        weights = (ones, -ones, rng.standard_normal(ones.size))[signs]
        matrix: FloatArray = (factors * weights) @ factors.T
        return (matrix + matrix.T) / 2

    return st.builds(
        build,
        st.integers(0, 2**32 - 1),
        st.integers(1, max_size),
        st.integers(1, max_size),
        st.integers(0, 2),
    )
