import numpy as np
import pytest

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.gap.dca import linear_minimum
from ideal_dispatch.scenarios import burg
from ideal_dispatch.scenarios.small_matrices import factorise, invert


def _symmetric(size: int, seed: int = 0) -> FloatArray:
    entries = np.random.default_rng(seed).normal(size=(size, size))
    matrix: FloatArray = entries + entries.T
    return matrix


@pytest.mark.parametrize("size", [1, 2, 8, 16, 33])
def test_factor_determinant_and_inverse(size: int) -> None:
    matrix = _symmetric(size)
    scale = 0.5 / np.abs(np.linalg.eigvalsh(matrix)).max()
    shifted = np.eye(size) + scale * matrix
    factor, scratch, inverse = np.zeros((3, size, size))
    assert factorise(matrix, scale, factor) == pytest.approx(np.linalg.slogdet(shifted)[1])
    np.testing.assert_allclose(factor @ factor.T, shifted, atol=1e-14)
    invert(factor, scratch, inverse)
    np.testing.assert_allclose(inverse @ shifted, np.eye(size), atol=1e-13)
    assert np.array_equal(inverse, inverse.T)


def test_a_matrix_that_is_not_positive_definite_has_no_factor() -> None:
    assert factorise(-np.eye(3), 1.0, np.zeros((3, 3))) == -np.inf
    assert factorise(np.diag([1.0, -3.0]), 1.0, np.zeros((2, 2))) == -np.inf


@pytest.mark.parametrize("radius", [0.0, 1e-12, 0.01, 0.3, 3.0, 50.0])
@pytest.mark.parametrize("size", [1, 4, 32])
def test_the_linear_minimum_of_a_descent_is_that_of_theorem_3(size: int, radius: float) -> None:
    """By Cholesky where eigenvalues are even, by eigenvectors where they are not."""
    for seed in range(5):
        direction = 100.0 * _symmetric(size, seed)
        expected = burg.minimise_linear(direction, radius)
        metric, smallest = linear_minimum(direction, radius)
        np.testing.assert_allclose(
            metric, expected.metric, rtol=0, atol=1e-12 * expected.eigenvalues.max()
        )
        assert smallest == pytest.approx(expected.smallest_eigenvalue, rel=1e-9)
        assert burg.contains(metric, radius)
    metric, smallest = linear_minimum(np.zeros((size, size)), radius)
    assert np.array_equal(metric, np.eye(size))
    assert smallest == 1.0
