"""The columns of responses: their names, types, and what is worked out from them."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.schema import Times

STAMPS = ("received", "dispatched", "en_route", "on_scene", "cleared", "cancelled")
TEXTS = ("incident", "unit", "kind", "station", "call_kind", "district")
PLACES = ("lon", "lat", "from_lon", "from_lat")
_NUMBERS: Mapping[str, npt.DTypeLike] = {
    **dict.fromkeys(PLACES, np.float64), "from_road": np.bool_, "remark": np.uint8,
    "attending": np.int32, "row": np.int64,
}  # fmt: skip
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def column(name: str, values: Any, n: int) -> Any:
    """A column of responses as it is kept: of its type, read-only, of the right length."""
    if name in _NUMBERS:
        return read_only(values, _NUMBERS[name], (n,), name)
    try:
        made = np.array(values, "M8[s]" if name in STAMPS else str)
    except ValueError:
        raise InputError(f"{name}: values must be times") from None
    if made.shape != (n,):
        raise InputError(f"{name}: expected {n} values, got {made.size}")
    return kept(made)


def plain(value: Any) -> Any:
    """A value as Python has it, None where it is not known."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else value.item().replace(tzinfo=UTC)
    item = value.item()
    return None if item != item else item  # NaN


def seconds(start: Times, end: Times) -> FloatArray:
    """Seconds between two times, NaN where one is not known."""
    return kept((end - start) / np.timedelta64(1, "s"))  # NaT becomes NaN


def kept(derived: _Array) -> _Array:
    """An array that is worked out once, and that nobody changes."""
    derived.flags.writeable = False
    return derived
