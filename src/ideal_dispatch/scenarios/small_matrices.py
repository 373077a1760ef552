"""Products of small dense matrices inside kernels, where a BLAS call costs more than the work."""

import math

import numpy as np

from ideal_dispatch.compiled import kernel

_kernel = kernel(fastmath={"reassoc", "contract"})


@_kernel
def inner(first, second):  # type: ignore[no-untyped-def]
    """The Frobenius inner product ⟨A, B⟩."""
    total = 0.0
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            total += first[i, j] * second[i, j]
    return total


@_kernel
def quadratic(metric, vector):  # type: ignore[no-untyped-def]
    """The value φᵀXφ."""
    total = 0.0
    for i in range(vector.size):
        row = 0.0
        for j in range(vector.size):
            row += metric[i, j] * vector[j]
        total += row * vector[i]
    return total


@_kernel
def add_outer(matrix, vector, factor):  # type: ignore[no-untyped-def]
    """Add ``factor`` · φφᵀ to a matrix in place."""
    for i in range(vector.size):
        scaled = factor * vector[i]
        for j in range(vector.size):
            matrix[i, j] += scaled * vector[j]


@_kernel
def factorise(matrix, scale, factor):  # type: ignore[no-untyped-def]
    """Fill the lower Cholesky factor of I + ``scale`` · matrix.

    Returns the log determinant, −∞ unless that is positive definite.
    """
    size = matrix.shape[0]
    logdet = 0.0
    for j in range(size):
        pivot = 1.0 + scale * matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        if not pivot > 0.0:
            return -np.inf
        logdet += math.log(pivot)
        root = math.sqrt(pivot)
        factor[j, j] = root
        for i in range(j + 1, size):
            value = scale * matrix[i, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            factor[i, j] = value / root
    return logdet


@_kernel
def invert_root(factor, inverse):  # type: ignore[no-untyped-def]
    """Fill L⁻¹ of a lower Cholesky factor L.

    Every inner loop runs along a row from its first entry: loops that begin
    elsewhere are not vectorised.
    """
    for i in range(factor.shape[0]):
        row = inverse[i]
        row[:] = 0.0
        for k in range(i):
            for j in range(k + 1):
                row[j] -= factor[i, k] * inverse[k, j]
        row[i] = 1.0
        for j in range(i + 1):
            row[j] /= factor[i, i]


@_kernel
def invert(factor, scratch, inverse):  # type: ignore[no-untyped-def]
    """Fill the inverse of the matrix whose lower Cholesky factor L is given, and L⁻¹ in scratch."""
    invert_root(factor, scratch)
    size = factor.shape[0]
    for i in range(size):
        row = inverse[i]
        row[:] = 0.0
        for k in range(i, size):
            for j in range(i + 1):
                row[j] += scratch[k, i] * scratch[k, j]
    for i in range(size):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
