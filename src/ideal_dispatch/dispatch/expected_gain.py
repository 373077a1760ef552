"""What a second ambulance is worth: the expected seconds by which it is sooner.

D = T₁ − T₂ is what the second saves where it is positive. It is taken as

    D = mean + spread · t₃,    spread² = b₀² + (b₁ · unshared)² + (b₂ · width₁)² + (b₃ · width₂)²,

with t₃ a Student-t of three degrees: differences of drives have heavy tails.
The mean is the difference of the two quotes, each moved towards where the
router has been lately: by a share of what its pessimistic time lies above the
quote, and back by a share of what its optimistic time lies below. A router that
sees only the last minutes takes every lull and every queue for lasting. The two
shares are fitted by a robust regression on calls that were replayed, then the
spread by maximum likelihood. With m the mean and s the spread,

    E[D⁺] = m⁺ + (√3 s − |m| · arctan(√3 s / |m|)) / π,

which follows from ∫ₓ^∞ t f(t) dt = f(x)(ν + x²)/(ν − 1) for a Student-t of ν
degrees and from E[D⁺] = m + E[(−D)⁺].
"""

import math
import os
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import FloatArray, first_where, numbers, whole_number
from ideal_dispatch.errors import FileFormatError, InputError

_FILE = JsonKind(
    "ideal-dispatch expected gain", 1, "model of expected gain", "fit and save it again"
)
_STORED = ("coefficients", "typical_widths_s", "reversion", "rows")
LEAST_ROWS = 10
_USUAL = np.log([2.0, 0.02, 0.3, 0.3])
_PRIOR = 1.2  # standard deviation of the logarithms around what is usual
_SIGNS = np.array([1.0, -1.0])  # what is above draws a quote up, what is below down
_RESOLUTION_S = 0.5  # no difference is known better: a perfect quote does not mean certainty


@dataclass(frozen=True, slots=True, eq=False)
class GainFeatures:
    """What is known about two ambulances before they drive: of one pair, or arrays of many.

    ``mean_s`` is the difference of the quotes T₁ − T₂, ``unshared_s`` the expected
    time on roads that only one of the two uses, both paths' together. ``above``
    is pessimistic time minus quote and ``below`` quote minus optimistic time, of
    the first and the second; either may be negative, and is NaN where the router
    gives none. Single numbers are repeated for all rows of the others.
    """

    mean_s: Any
    unshared_s: Any
    first_above_s: Any
    first_below_s: Any
    second_above_s: Any
    second_below_s: Any

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        given = [getattr(self, name) for name in names]
        if all(isinstance(value, float) for value in given):
            table = np.array(given)  # of one pair: nothing to convert, nothing to repeat
        else:
            table = _table(names, given)
        bad = np.isinf(table)
        bad[:2] |= np.isnan(table[:2])
        bad[1] |= table[1] < 0
        if bad.any():
            number, row = np.argwhere(bad.reshape(len(names), -1))[0].tolist()
            allowed = {"mean_s": "finite", "unshared_s": "finite and zero or more"}
            raise InputError(
                f"gain features, row {row}: {names[number]} is {table[number].flat[row]}; it must "
                "be " + allowed.get(names[number], "finite, or NaN where not known")
            )
        table.flags.writeable = False
        for number, name in enumerate(names):
            object.__setattr__(self, name, table[number, ...])

    @property
    def turns_s(self) -> FloatArray:
        """What is above the first less what is above the second, and the same below."""
        above = np.nan_to_num(self.first_above_s) - np.nan_to_num(self.second_above_s)
        below = np.nan_to_num(self.first_below_s) - np.nan_to_num(self.second_below_s)
        return np.stack([above, below], axis=-1)

    @property
    def widths_s(self) -> FloatArray:
        """From optimistic to pessimistic, of the first and the second; NaN where not known."""
        first = self.first_above_s + self.first_below_s
        return np.stack([first, self.second_above_s + self.second_below_s], axis=-1)


@dataclass(frozen=True, slots=True)
class GainModel:
    """The spread of T₁ − T₂, and what follows for a second ambulance.

    ``coefficients`` are b₀ in seconds and the shares b₁ of the unshared time and
    b₂, b₃ of the first and second width. An unknown width counts as
    ``typical_widths_s``, the root mean square of training. ``reversion`` are the
    shares of what is above and below by which a quote is moved. ``rows`` were
    fitted on.
    """

    coefficients: tuple[float, float, float, float]
    typical_widths_s: tuple[float, float]
    reversion: tuple[float, float] = (0.0, 0.0)
    rows: int = 0

    degrees: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for name, size in (("coefficients", 4), ("typical_widths_s", 2), ("reversion", 2)):
            values = numbers(getattr(self, name), np.float64, name)
            if values.shape != (size,) or not np.isfinite(values).all():
                raise InputError(f"gain model: {name} must be {size} finite numbers")
            object.__setattr__(self, name, tuple(values.tolist()))
        for name in ("coefficients", "typical_widths_s"):
            if min(getattr(self, name)) < 0:
                raise InputError(f"gain model: {name} must be zero or more")
        if whole_number(self.rows, "gain model: rows") < 0:
            raise InputError(f"gain model: rows is {self.rows}; it must be zero or more")

    @classmethod
    def fit(cls, features: GainFeatures, realised_difference_s: npt.ArrayLike) -> "GainModel":
        """The model of greatest likelihood of the differences T₁ − T₂ that came about.

        A weak prior keeps few rows from saying too much: coefficients lie within
        a factor of some ten of what is usual. Rows in which both drove the same
        road say nothing and are left out.
        """
        from scipy.optimize import minimize

        realised_s = numbers(realised_difference_s, np.float64, "realised differences")
        if features.mean_s.ndim != 1 or realised_s.shape != features.mean_s.shape:
            raise InputError(
                f"expected gain: {features.mean_s.size} rows of features and {realised_s.size} "
                "realised differences; one of each for every call is needed"
            )
        bad = first_where(~np.isfinite(realised_s))
        if bad is not None:
            raise InputError(f"realised differences, row {bad}: {realised_s[bad]} is not finite")
        used = features.unshared_s > 0
        rows = int(used.sum())
        if rows < LEAST_ROWS:
            raise InputError(
                f"expected gain: {rows} calls with different roads to fit on; "
                f"at least {LEAST_ROWS} are needed"
            )
        missed_s = (realised_s - features.mean_s)[used]
        reversion = _reversion(features.turns_s[used], missed_s)
        squared = (missed_s - features.turns_s[used] @ (_SIGNS * reversion)) ** 2
        squared += _RESOLUTION_S**2
        widths = features.widths_s[used]
        known = ~np.isnan(widths)
        typical = np.sqrt((np.nan_to_num(widths) ** 2).sum(axis=0) / np.maximum(known.sum(0), 1))
        parts = _parts(features.unshared_s[used], np.where(known, widths, typical))

        def loss(logs: FloatArray) -> tuple[float, FloatArray]:
            each = parts * np.exp(2 * logs)
            variance = each.sum(axis=1)
            ratio = squared / (cls.degrees * variance)
            half = (cls.degrees + 1) / 2
            pull = (logs - _USUAL) / _PRIOR**2 / rows
            value = (0.5 * np.log(variance) + half * np.log1p(ratio)).mean()
            slope = (0.5 - half * ratio / (1 + ratio)) / variance / rows
            return value + 0.5 * float(pull @ (logs - _USUAL)), 2 * slope @ each + pull

        found = minimize(loss, _USUAL, jac=True, method="BFGS", options={"gtol": 1e-9})
        first, second = typical.tolist()
        shares = tuple(reversion.tolist())
        return cls(tuple(np.exp(found.x).tolist()), (first, second), shares, rows)

    def correction_s(self, above_s: float, below_s: float) -> float:
        """Seconds to add to a quote whose range reaches so far above and below it."""
        up, down = self.reversion
        above_s, below_s = (0.0 if math.isnan(one) else one for one in (above_s, below_s))
        return up * above_s - down * below_s

    def mean_s(self, features: GainFeatures) -> FloatArray:
        """Expected T₁ − T₂, one per row."""
        return np.asarray(features.mean_s + features.turns_s @ (_SIGNS * np.array(self.reversion)))

    def spread_s(self, features: GainFeatures) -> FloatArray:
        """The scale of T₁ − T₂, one per row; zero where both drive the same road.

        The standard deviation is √3 times as large.
        """
        widths = features.widths_s
        widths = np.where(np.isnan(widths), np.array(self.typical_widths_s), widths)
        parts = _parts(features.unshared_s, widths)
        spread = np.sqrt(parts @ np.array(self.coefficients) ** 2)
        return np.asarray(np.where(features.unshared_s > 0, spread, 0.0))

    def expected_gain_s(self, features: GainFeatures) -> FloatArray:
        """E[(T₁ − T₂)⁺], one per row: never below the mean difference, nor below zero."""
        return expected_positive_part_s(self.mean_s(features), self.spread_s(features))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal model."""
        _FILE.write(path, {name: getattr(self, name) for name in ("degrees", *_STORED)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "GainModel":
        """Read a model, or say in one line why the file holds none."""
        with _FILE.reading(path) as content:
            if content["degrees"] != cls.degrees:
                raise FileFormatError(
                    f"{content['degrees']} degrees, this program knows {cls.degrees}"
                )
            return cls(*(content[name] for name in _STORED))


def _table(names: list[str], given: list[Any]) -> FloatArray:
    """Columns as rows of equal length, single numbers repeated."""
    numeric = [numbers(values, np.float64, name) for name, values in zip(names, given, strict=True)]
    try:
        columns = np.broadcast_arrays(*numeric)
    except ValueError:
        sizes = ", ".join(str(column.size) for column in numeric)
        raise InputError(f"gain features: columns of {sizes} rows; give equal ones") from None
    if columns[0].ndim > 1:
        raise InputError("gain features: single numbers or one row of them are needed")
    return np.array(columns)


def expected_positive_part_s(mean_s: npt.ArrayLike, spread_s: npt.ArrayLike) -> FloatArray:
    """E[D⁺] of D = mean + spread · t₃, in closed form."""
    mean, wide = np.asarray(mean_s, np.float64), np.sqrt(3.0) * np.asarray(spread_s, np.float64)
    beyond = (wide - np.abs(mean) * np.arctan2(wide, np.abs(mean))) / np.pi
    return np.asarray(np.maximum(mean, 0.0) + np.maximum(beyond, 0.0))


def positive_probability(mean_s: float, spread_s: float) -> float:
    """P(D > 0) of D = mean + spread · t₃, in closed form."""
    wide = math.sqrt(3.0) * spread_s
    if wide == 0.0:
        return float(mean_s > 0.0)
    ratio = mean_s / wide
    return 0.5 + (ratio / (1.0 + ratio**2) + math.atan(ratio)) / math.pi


def _reversion(turns_s: FloatArray, missed_s: FloatArray) -> FloatArray:
    """The shares, from 0 to 1, that explain best what the quotes missed; outliers count little."""
    from scipy.optimize import least_squares

    scale_s = max(float(np.median(np.abs(missed_s))), _RESOLUTION_S)

    def residuals(shares: FloatArray) -> FloatArray:
        # one row each pulls a share weakly to zero
        missed = (missed_s - turns_s @ (_SIGNS * shares)) / scale_s
        return np.concatenate([missed, shares])

    found = least_squares(residuals, [0.1, 0.1], bounds=(0.0, 1.0), loss="soft_l1")
    shares: FloatArray = found.x
    return shares


def _parts(unshared_s: FloatArray, widths_s: FloatArray) -> FloatArray:
    """The squares that the variance is made of, in the last axis."""
    columns = (np.ones_like(unshared_s), unshared_s, widths_s[..., 0], widths_s[..., 1])
    return np.stack(columns, axis=-1) ** 2
