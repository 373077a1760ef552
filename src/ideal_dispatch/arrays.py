"""Array aliases and the checks that every domain type makes at its door."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


def numbers(values: Any, dtype: npt.DTypeLike, what: str) -> Any:
    """``values`` as a plain contiguous array that may share their memory.

    An :class:`InputError` says what is wrong: text, ragged rows, and values
    that change in a whole-number or boolean ``dtype`` are refused.
    """
    try:
        given = np.asarray(values)
    except ValueError:
        raise InputError(f"{what}: rows of different lengths; a regular array is needed") from None
    wanted, kind = np.dtype(dtype), given.dtype.kind
    if given.dtype == wanted and given.flags.c_contiguous and given.flags.aligned:
        return given  # nothing to convert: every query comes by here
    needed = f"values must be {_needed(wanted)}"
    if kind not in "biufOU" or (wanted.kind in "iu" and kind == "b"):
        raise InputError(f"{what}: {needed}")
    try:
        with np.errstate(invalid="ignore"):  # NaN as a whole number: found by the comparison
            array = np.require(given, wanted, ["C", "A", "E"])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: {error if wanted.kind == 'f' else needed}") from None
    exact = wanted.kind == "f" or given.dtype == wanted
    if kind == "U" or not (exact or np.array_equal(array, given)):
        raise InputError(f"{what}: {needed}")
    return array


def _needed(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "true or false"
    return f"whole numbers that fit {dtype}" if dtype.kind in "iu" else "numbers, not text"


def read_only(values: Any, dtype: npt.DTypeLike, shape: tuple[int | None, ...], what: str) -> Any:
    """A read-only, contiguous copy of ``values``, or an :class:`InputError`.

    Values are checked as by :func:`numbers`; ``None`` in ``shape`` leaves that
    axis free.
    """
    array = np.array(numbers(values, dtype, what), order="C")
    if array.ndim != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape, strict=True)
    ):
        wanted = " × ".join("any" if n is None else str(n) for n in shape)
        have = " × ".join(map(str, array.shape)) or "a scalar"
        raise InputError(f"{what}: expected {wanted} values, got {have}")
    array.flags.writeable = False
    return array


def frozen(array: npt.NDArray[Any]) -> Any:
    """A read-only view; the array itself is unchanged.

    Kernels are compiled once for each type of array, and read-only is part of it.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def whole_number(value: Any, what: str) -> int:
    """``value`` as an int; floats, text and booleans are refused."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{what} {value!r} is not a whole number") from None


def first_where(bad: BoolArray) -> int | None:
    """Index of the first true entry, or None."""
    index = int(np.argmax(bad)) if bad.size else 0
    return index if bad.size and bad[index] else None


def non_negative(value: Any, what: str, *, seconds: bool = False) -> float:
    """``value`` as a finite float of zero or more, or an :class:`InputError`."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        of = " of seconds" if seconds else ""
        raise InputError(f"{what} {value!r} is not a number{of}") from None
    if not 0.0 <= number < np.inf:
        unit = " s" if seconds else ""
        raise InputError(f"{what} is {value}{unit}; it must be finite and zero or more")
    return number
