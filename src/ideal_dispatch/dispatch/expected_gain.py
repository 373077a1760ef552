"""What a second ambulance is worth: the expected seconds by which it is sooner.

D = T₁ − T₂ is what the second saves where it is positive. It is taken as

    D = mean + spread · t₃,    log spread = c₀ + c · log(unshared, first width, second width),

with t₃ a Student-t of three degrees: differences of drives have heavy tails.
The mean is the difference of the two (corrected) quotes; only the spread is
fitted, by maximum likelihood on calls that were replayed. With m the mean and
s the spread,

    E[D⁺] = m⁺ + (√3 s − |m| · arctan(√3 s / |m|)) / π,

which follows from ∫ₓ^∞ t f(t) dt = f(x)(ν + x²)/(ν − 1) for a Student-t of ν
degrees and from E[D⁺] = m + E[(−D)⁺].
"""

import json
import os
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, first_where, numbers, whole_number
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import atomic_write, check_source

KIND, VERSION = "ideal-dispatch expected gain", 1
LEAST_ROWS = 10
_ADVICE = "fit and save it again"
_LEAST_S = 1.0  # logarithms of shorter times and widths are taken of this
_RESOLUTION_S = 0.5  # no difference is known better: a perfect quote does not mean certainty


@dataclass(frozen=True, slots=True, eq=False)
class GainFeatures:
    """What is known about two ambulances before they drive: of one pair, or arrays of many.

    ``mean_s`` is the expected T₁ − T₂, ``unshared_s`` the expected time on roads
    that only one of the two uses, both paths' together. The widths are
    pessimistic minus optimistic of the first and the second quote, NaN where
    the router gives none. Single numbers are repeated for all rows of the others.
    """

    mean_s: Any
    unshared_s: Any
    first_width_s: Any
    second_width_s: Any

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        given = [numbers(getattr(self, name), np.float64, name) for name in names]
        try:
            columns = np.broadcast_arrays(*given)
        except ValueError:
            sizes = ", ".join(str(column.size) for column in given)
            raise InputError(f"gain features: columns of {sizes} rows; give equal ones") from None
        if columns[0].ndim > 1:
            raise InputError("gain features: single numbers or one row of them are needed")
        for name, column in zip(names, columns, strict=True):
            width = name.endswith("width_s")
            bad = np.isinf(column) if width else ~np.isfinite(column)
            if name == "unshared_s":
                bad = bad | (column < 0)
            row = first_where(np.atleast_1d(bad))
            if row is not None:
                allowed = {"mean_s": "finite", "unshared_s": "finite and zero or more"}
                raise InputError(
                    f"gain features, row {row}: {name} is {np.atleast_1d(column)[row]}; it must be "
                    + allowed.get(name, "finite, or NaN where not known")
                )
            own = np.array(column)
            own.flags.writeable = False
            object.__setattr__(self, name, own)


@dataclass(frozen=True, slots=True)
class GainModel:
    """The spread of T₁ − T₂, and what follows for a second ambulance.

    ``coefficients`` are c₀ and those of log unshared time, log first and log
    second width. An unknown width counts as ``typical_widths_s``, the geometric
    mean of training. ``rows`` were fitted on.
    """

    coefficients: tuple[float, float, float, float]
    typical_widths_s: tuple[float, float]
    rows: int = 0

    degrees: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for name, size in (("coefficients", 4), ("typical_widths_s", 2)):
            values = numbers(getattr(self, name), np.float64, name)
            if values.shape != (size,) or not np.isfinite(values).all():
                raise InputError(f"gain model: {name} must be {size} finite numbers")
            object.__setattr__(self, name, tuple(values.tolist()))
        if not min(self.typical_widths_s) > 0:
            raise InputError("gain model: typical_widths_s must be above zero")
        if whole_number(self.rows, "gain model: rows") < 0:
            raise InputError(f"gain model: rows is {self.rows}; it must be zero or more")

    @classmethod
    def fit(cls, features: GainFeatures, realised_difference_s: npt.ArrayLike) -> "GainModel":
        """The model of greatest likelihood of the differences T₁ − T₂ that came about.

        The negative log likelihood is convex in the coefficients. Slopes have a
        weak prior around zero (one in units of the spread of their column), so
        that few rows give little more than one common spread. Rows in which
        both drove the same road say nothing and are left out.
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
        columns = _logarithms(features)[used]
        known = ~np.isnan(columns)
        typical = np.where(known, columns, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        centred = np.where(known, columns - typical, 0.0)
        scale = np.sqrt((centred**2).mean(axis=0))
        varies = scale > 1e-6
        scale[~varies] = 1.0
        design = np.column_stack([np.ones(rows), np.where(varies, centred / scale, 0.0)])
        squared = (realised_s - features.mean_s)[used] ** 2 + _RESOLUTION_S**2
        start = np.array([0.5 * np.log(np.median(squared)), 0.0, 0.0, 0.0])
        slopes = np.array([0.0, 1.0, 1.0, 1.0]) / rows

        def loss(b: FloatArray) -> tuple[float, FloatArray]:
            log_spread = design @ b
            unusual = np.logaddexp(0.0, np.log(squared / cls.degrees) - 2 * log_spread)
            pull = (cls.degrees + 1) * -np.expm1(-unusual)  # of the rows on the spread
            half = (cls.degrees + 1) / 2
            value = (log_spread + half * unusual).mean() + 0.5 * (slopes * b**2).sum()
            return float(value), design.T @ (1.0 - pull) / rows + slopes * b

        def curvature(b: FloatArray) -> FloatArray:
            share = 1.0 / (1.0 + np.exp(2 * (design @ b)) * cls.degrees / squared)
            weight = 2.0 * (cls.degrees + 1) * share * (1.0 - share)
            matrix: FloatArray = (design.T * weight) @ design / rows + np.diag(slopes)
            return matrix

        found = minimize(
            loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
        ).x
        raw = np.where(varies, found[1:] / scale, 0.0)
        coefficients = (float(found[0] - raw @ typical), *raw.tolist())
        first, second = np.exp(typical[1:]).tolist()
        return cls(coefficients, (first, second), rows)

    def spread_s(self, features: GainFeatures) -> FloatArray:
        """The scale of T₁ − T₂, one per row; zero where both drive the same road.

        The standard deviation is √3 times as large.
        """
        columns = _logarithms(features)
        typical = np.log([_LEAST_S, *self.typical_widths_s])
        columns = np.where(np.isnan(columns), typical, columns)
        spread = np.exp(self.coefficients[0] + columns @ np.array(self.coefficients[1:]))
        return np.asarray(np.where(features.unshared_s > 0, spread, 0.0))

    def expected_gain_s(self, features: GainFeatures) -> FloatArray:
        """E[(T₁ − T₂)⁺], one per row: never below the mean difference, nor below zero."""
        return expected_positive_part_s(features.mean_s, self.spread_s(features))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal model."""
        content = {
            "kind": KIND,
            "version": VERSION,
            "degrees": self.degrees,
            "coefficients": self.coefficients,
            "typical_widths_s": self.typical_widths_s,
            "rows": self.rows,
        }
        with atomic_write(path) as file:
            file.write(json.dumps(content, indent=2, allow_nan=False).encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "GainModel":
        """Read a model, or say in one line why the file holds none."""
        check_source(path)
        where = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if not isinstance(content, dict) or content.get("kind") != KIND:
                raise FileFormatError(f"{where}: no model of expected gain; {_ADVICE}")
            if content["version"] != VERSION:
                raise FileFormatError(
                    f"{where}: version {content['version']}, this program reads {VERSION}"
                )
            if content["degrees"] != cls.degrees:
                raise FileFormatError(
                    f"{where}: {content['degrees']} degrees, this program knows {cls.degrees}"
                )
            return cls(content["coefficients"], content["typical_widths_s"], content["rows"])
        except (InputError, ValueError, LookupError, RecursionError) as error:
            raise FileFormatError(
                f"{where}: damaged ({type(error).__name__}: {error}); {_ADVICE}"
            ) from None


def expected_positive_part_s(mean_s: npt.ArrayLike, spread_s: npt.ArrayLike) -> FloatArray:
    """E[D⁺] of D = mean + spread · t₃, in closed form."""
    mean, wide = np.asarray(mean_s, np.float64), np.sqrt(3.0) * np.asarray(spread_s, np.float64)
    beyond = (wide - np.abs(mean) * np.arctan2(wide, np.abs(mean))) / np.pi
    return np.asarray(np.maximum(mean, 0.0) + np.maximum(beyond, 0.0))


def _logarithms(features: GainFeatures) -> FloatArray:
    """Logs of unshared time and widths, in the last axis; NaN where not known."""
    columns = (features.unshared_s, features.first_width_s, features.second_width_s)
    return np.stack([np.log(np.maximum(column, _LEAST_S)) for column in columns], axis=-1)
