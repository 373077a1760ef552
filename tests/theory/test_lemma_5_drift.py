"""[IDEAL] Lemma 5: smoothing by another radius changes J by at most L_J |r − s|."""

import numpy as np
import pytest

from tests.theory.kinks import at_a_kink, ball


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_two_radii_differ_by_no_more_than_the_lemma_allows(loss: str) -> None:
    objective = at_a_kink(loss=loss)
    draws = ball(objective.here.size, 150, seed=3)
    found = {}
    steepest = 0.0
    for radius in (0.0, 0.05, 0.2, 0.4):
        values, directions = zip(
            *(objective(objective.here + radius * u) for u in draws), strict=True
        )
        found[radius] = np.array(values)
        steepest = max(steepest, *(float(np.linalg.norm(d)) for d in directions))
    for r, at_r in found.items():
        for s, at_s in found.items():
            assert abs(at_r.mean() - at_s.mean()) <= steepest * abs(r - s) + 1e-12
            assert np.abs(at_r - at_s).max() <= 1.02 * steepest * abs(r - s) + 1e-12, "draw by draw"
    assert found[0.4].mean() != found[0.0].mean()
