"""Products of small dense matrices inside kernels, where a BLAS call costs more than the work."""

from ideal_dispatch.compiled import kernel


@kernel(fastmath={"reassoc", "contract"})
def inner(first, second):  # type: ignore[no-untyped-def]
    """The Frobenius inner product ⟨A, B⟩."""
    total = 0.0
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            total += first[i, j] * second[i, j]
    return total


@kernel(fastmath={"reassoc", "contract"})
def quadratic(metric, vector):  # type: ignore[no-untyped-def]
    """The value φᵀXφ."""
    total = 0.0
    for i in range(vector.size):
        row = 0.0
        for j in range(vector.size):
            row += metric[i, j] * vector[j]
        total += row * vector[i]
    return total


@kernel(fastmath={"reassoc", "contract"})
def add_outer(matrix, vector, factor):  # type: ignore[no-untyped-def]
    """Add ``factor`` · φφᵀ to a matrix in place."""
    for i in range(vector.size):
        scaled = factor * vector[i]
        for j in range(vector.size):
            matrix[i, j] += scaled * vector[j]
