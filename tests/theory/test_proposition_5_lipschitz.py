"""[IDEAL] Proposition 5: J is locally Lipschitz, also across ties of paths."""

import itertools

import numpy as np
import pytest

from tests.theory.kinks import across, at_a_kink, ball


@pytest.mark.parametrize("loss", ["squared", "huber", "relative", "log"])
def test_the_objective_changes_no_faster_than_its_steepest_direction(loss: str) -> None:
    """The slope of a chord is at most the largest ‖d‖ along it; a jump at a tie would not be."""
    objective = at_a_kink(loss=loss, smoothness=0.0)
    centre = objective.here
    kinks = 0
    draws = [across(objective), *ball(centre.size, 15, seed=2)]
    for draw in draws:
        ends = centre - 0.3 * draw, centre + 0.31 * draw  # the tie is inside
        points = [ends[0] + t * (ends[1] - ends[0]) for t in np.linspace(0.0, 1.0, 41)]
        values, directions = zip(*(objective(point) for point in points), strict=True)
        steepest = max(np.linalg.norm(d) for d in directions)
        apart = np.linalg.norm(points[1] - points[0])
        assert np.abs(np.diff(values)).max() <= 1.05 * steepest * apart
        turns = [np.linalg.norm(b - a) for a, b in itertools.pairwise(directions)]
        kinks += max(turns) > 5 * np.median(turns)
    assert kinks >= 1, "some chord crosses a kink"


def test_the_objective_is_continuous_at_the_tie() -> None:
    objective = at_a_kink()
    here, along = objective(objective.here)[0], across(objective)
    for step in (1e-2, 1e-4, 1e-6):
        for sign in (1.0, -1.0):
            near = objective(objective.here + sign * step * along)[0]
            assert abs(near - here) < 30.0 * step * max(here, 1.0)
