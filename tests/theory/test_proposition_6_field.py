"""[IDEAL] Proposition 6: the field CF is bounded nearby and its graph is closed.

Algorithm 1 follows one element of CF. Limits of its directions at a tie, from any
side, are in CF there: the hull of the gradients with each of the tied paths fixed.
"""

import itertools

import numpy as np
import pytest

from tests.theory.kinks import across, at_a_kink, ball


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_limits_of_directions_lie_in_the_hull_at_the_tie(seed: int) -> None:
    objective = at_a_kink()
    along = across(objective, seed)
    corners = [objective(objective.here + sign * 1e-9 * along)[1] for sign in (1.0, -1.0)]
    edge = corners[0] - corners[1]
    assert np.linalg.norm(edge) > 0.05 * np.linalg.norm(corners[0]), "a real kink"
    chosen = objective(objective.here)[1]
    for draw in (along, *ball(along.size, 20, seed)):
        limits = [objective(objective.here + 10.0**-power * draw)[1] for power in (5, 7, 9)]
        steps = [np.linalg.norm(b - a) for a, b in itertools.pairwise(limits)]
        assert steps[1] < 0.05 * steps[0] + 1e-7, "they converge"
        for element in (limits[-1], chosen):
            share = (element - corners[1]) @ edge / (edge @ edge)
            assert -1e-4 < share < 1 + 1e-4
            nearest = share * corners[0] + (1 - share) * corners[1]
            np.testing.assert_allclose(element, nearest, atol=1e-5 * float(np.linalg.norm(edge)))


def test_directions_stay_bounded_around_the_tie() -> None:
    objective = at_a_kink()
    at_tie = np.linalg.norm(objective(objective.here)[1])
    for radius in (1e-8, 1e-4, 0.1):
        lengths = [np.linalg.norm(objective(objective.here + radius * draw)[1])
                   for draw in ball(objective.here.size, 40, 3)]  # fmt: skip
        assert max(lengths) < 3.0 * at_tie
