"""A model carried to another place needs one local number: how slow its roads are."""

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.scores import best_factor

LEAST_TRIPS = 10


def local_scale(observed_s: FloatArray, predicted_s: FloatArray) -> float:
    """The factor on all predictions that makes their absolute errors smallest."""
    driven = predicted_s > 0
    if driven.sum() < LEAST_TRIPS:
        raise InputError(
            f"{int(driven.sum())} local trips: at least {LEAST_TRIPS} are needed for a scale"
        )
    return best_factor(observed_s[driven], predicted_s[driven])
