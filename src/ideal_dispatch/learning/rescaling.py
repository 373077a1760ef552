"""A model carried to another place needs one local number: how slow its roads are."""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError

LEAST_TRIPS = 10


def local_scale(observed_s: FloatArray, predicted_s: FloatArray) -> float:
    """The factor on all predictions that makes their absolute errors smallest.

    The weighted median of observed over predicted time, with the predicted
    times as weights: it minimises Σ |t − s·t̂|.
    """
    driven = predicted_s > 0
    if driven.sum() < LEAST_TRIPS:
        raise InputError(
            f"{int(driven.sum())} local trips: at least {LEAST_TRIPS} are needed for a scale"
        )
    ratio, weight = observed_s[driven] / predicted_s[driven], predicted_s[driven]
    order = np.argsort(ratio, kind="stable")
    half = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return float(ratio[order][half])
