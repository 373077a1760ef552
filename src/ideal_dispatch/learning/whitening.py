"""Directions that fill the space: principal components, each scaled to unit variance."""

import numpy as np

from ideal_dispatch.arrays import FloatArray

_FLAT = 1e-6  # a principal component this much weaker than the first is noise
_ROUNDING = 1e-10  # so is one this much weaker than the layer itself: single precision


def whitening(
    hidden: FloatArray, share: FloatArray, dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Matrix and offset that map rows of ``hidden`` to ``dimension`` whitened coordinates.

    ``share`` weighs the rows and sums to one. Where the rows vary in fewer
    directions, the further coordinates are zero.
    """
    mean = share @ hidden
    values, vectors = np.linalg.eigh((hidden - mean).T @ ((hidden - mean) * share[:, None]))
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    noise = max(_FLAT * values[0], _ROUNDING * float((share @ hidden**2).sum()))
    matrix = np.zeros((dimension, len(mean)))
    for row, value, vector in zip(matrix, values, (vectors * signs).T, strict=False):
        if value > noise:
            row[:] = vector / np.sqrt(value)
    return matrix, -matrix @ mean
