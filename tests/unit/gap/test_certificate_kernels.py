"""Dominance: proved, never guessed, and not missed where it is plain."""

import itertools

import numpy as np
import pytest

from ideal_dispatch.gap.certificate_kernels import dominates
from ideal_dispatch.scenarios import burg
from tests.theory.small_towns import random_town


def proved(first: object, second: object, radius: float) -> bool:
    one, other = np.asarray(first), np.asarray(second)
    width = burg.eigenvalue_bounds(radius).upper_offset
    sooner = float(np.trace(other) - np.trace(one))
    work = np.empty_like(one), np.zeros_like(one)
    return sooner >= 0 and bool(dominates(one, other, sooner, radius, width, *work))


@pytest.mark.parametrize("radius", [1e-9, 0.01, 0.3, 0.75, 3.0])
@pytest.mark.parametrize("seed", range(8))
def test_dominance_is_true_and_not_missed_where_it_is_plain(seed: int, radius: float) -> None:
    """Against the least of ⟨E, X⟩ over the set, for all pairs of paths of a town."""
    town = random_town(seed)
    matrices = [town.scenarios(radius).path_matrix(edges) for edges in town.all_paths()[:25]]
    width = burg.eigenvalue_bounds(radius).upper_offset
    found = 0
    for first, second in itertools.permutations(matrices, 2):
        difference = second - first
        least = burg.minimise_linear(difference, radius).value
        claimed = proved(first, second, radius)
        assert not claimed or least >= -1e-9 * (1 + np.trace(second))
        if np.trace(difference) >= width * np.linalg.norm(difference) * (1 + 1e-9):
            assert claimed
        found += claimed
    assert found or radius > 1
    assert proved(matrices[0], matrices[0], radius)  # a path and its equal
