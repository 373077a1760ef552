"""Encoded polylines: points of a route as text, as Google (1e5) and Valhalla (1e6) write them.

Each coordinate is the rounded difference to the one before it, zigzagged, in
groups of five bits, lowest first, each plus 63 as a character.
"""

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, first_where, read_only
from ideal_dispatch.errors import InputError

_LONGEST = 7  # groups of five bits: the full circle at 1e7 needs no more
_PRECISIONS = range(1, 8)


def decode(text: str, precision: int = 5) -> FloatArray:
    """Points of an encoded polyline as (k, 2) lon/lat degrees.

    >>> decode("_p~iF~ps|U_ulLnnqC").tolist()
    [[-120.2, 38.5], [-120.95, 40.7]]
    """
    scale = _scale(precision)
    groups = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 63
    wrong = first_where((groups < 0) | (groups > 63))
    if wrong is not None:
        raise InputError(f"polyline: byte {wrong} is not part of an encoded polyline")
    if not groups.size:
        return np.empty((0, 2))
    last = groups < 32
    if not last[-1]:
        raise InputError("polyline: it ends in the middle of a number; was it cut off?")
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    if starts.size % 2:
        raise InputError("polyline: a latitude without its longitude; was it cut off?")
    place = np.arange(groups.size) - np.repeat(starts, np.diff([*starts, groups.size]))
    if place.max() >= _LONGEST:
        raise InputError("polyline: a number is too long; is it an encoded polyline?")
    zigzag = np.add.reduceat((groups & 31) << (5 * place), starts)
    steps = (zigzag >> 1) ^ -(zigzag & 1)
    points: FloatArray = np.cumsum(steps.reshape(-1, 2), axis=0)[:, ::-1] / scale
    wrong = first_where((np.abs(points[:, 0]) > 180.0) | (np.abs(points[:, 1]) > 90.0))
    if wrong is not None:
        lon, lat = points[wrong]
        raise InputError(
            f"polyline: point {wrong} is longitude {lon:g}, latitude {lat:g}; "
            f"is its precision 1e{precision}?"
        )
    return points


def encode(lonlat: npt.ArrayLike, precision: int = 5) -> str:
    """An encoded polyline of (k, 2) lon/lat degrees.

    >>> encode([[-120.2, 38.5], [-120.95, 40.7]])
    '_p~iF~ps|U_ulLnnqC'
    """
    points: FloatArray = read_only(lonlat, np.float64, (None, 2), "polyline")
    if not np.isfinite(points).all() or (np.abs(points) > (180.0, 90.0)).any():
        raise InputError("polyline: longitudes and latitudes must be degrees on Earth")
    whole = np.rint(points[:, ::-1] * _scale(precision)).astype(np.int64)
    steps = np.diff(whole, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel()
    letters = bytearray()
    for value in ((steps << 1) ^ (steps >> 63)).tolist():
        while value >= 32:
            letters.append((value & 31 | 32) + 63)
            value >>= 5
        letters.append(value + 63)
    return letters.decode("ascii")


def _scale(precision: int) -> int:
    if precision not in _PRECISIONS:
        raise InputError(f"polyline precision {precision}: digits from 1 to 7, such as 5 or 6")
    return int(10**precision)
