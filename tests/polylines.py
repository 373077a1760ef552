"""Routes as routing services write them."""

import numpy as np
import numpy.typing as npt


def encode_polyline(lonlat: npt.ArrayLike, precision: int = 5) -> str:
    """An encoded polyline of (k, 2) lon/lat degrees.

    >>> encode_polyline([[-120.2, 38.5], [-120.95, 40.7]])
    '_p~iF~ps|U_ulLnnqC'
    """
    points = np.asarray(lonlat, np.float64).reshape(-1, 2)
    whole = np.rint(points[:, ::-1] * 10**precision).astype(np.int64)
    steps = np.diff(whole, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel()
    letters = bytearray()
    for value in ((steps << 1) ^ (steps >> 63)).tolist():
        while value >= 32:
            letters.append((value & 31 | 32) + 63)
            value >>= 5
        letters.append(value + 63)
    return letters.decode("ascii")
