"""Array aliases and the checks that every domain type makes at its door."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


def read_only(values: Any, dtype: npt.DTypeLike, shape: tuple[int | None, ...], what: str) -> Any:
    """A read-only, contiguous copy of ``values``, or an :class:`InputError`.

    Integers are refused when they do not fit ``dtype``; ``None`` in ``shape``
    leaves that axis free.
    """
    try:
        given = np.asarray(values)
        array = np.array(given, dtype=dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: {error}") from None
    if array.dtype.kind in "iu" and given.dtype != array.dtype:
        same = given.astype(array.dtype) if given.dtype.kind == "U" else given
        if not np.array_equal(array, same):
            raise InputError(f"{what}: values must be whole numbers that fit {array.dtype}")
    if array.ndim != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape, strict=True)
    ):
        wanted = " × ".join("any" if n is None else str(n) for n in shape)
        have = " × ".join(map(str, array.shape)) or "a scalar"
        raise InputError(f"{what}: expected {wanted} values, got {have}")
    array.flags.writeable = False
    return array


def first_where(bad: BoolArray) -> int | None:
    """Index of the first true entry, or None."""
    index = int(np.argmax(bad)) if bad.size else 0
    return index if bad.size and bad[index] else None
