"""[IDEAL] Lemma 4: the smoothed objective's gradient is Lipschitz, J's own is not."""

import numpy as np

from tests.theory.kinks import across, at_a_kink, ball
from workshop.stationarity import SMOOTHNESS

COUNT = 250


def test_the_gradient_of_the_smoothed_objective_is_lipschitz_across_a_kink() -> None:
    objective = at_a_kink()
    size, along = objective.here.size, across(objective)
    draws = ball(size, COUNT, seed=1)
    for radius in (0.05, 0.3):
        seen = 0.0
        for apart in (0.02 * radius, 0.5 * radius):
            ends = objective.here - apart / 2 * along, objective.here + apart / 2 * along
            both = [np.array([objective(end + radius * u)[1] for u in draws]) for end in ends]
            seen = max(seen, *(np.linalg.norm(rows, axis=1).max() for rows in both))
            difference = both[1] - both[0]  # the same draws: their mean is that of the gradients
            error = np.sqrt(difference.var(axis=0).sum() / COUNT)
            bound = SMOOTHNESS * seen * np.sqrt(size) / radius * apart
            assert np.linalg.norm(difference.mean(axis=0)) <= bound + 4 * error
        plain = [objective(objective.here + sign * 1e-7 * along)[1] for sign in (1.0, -1.0)]
        slope = np.linalg.norm(plain[0] - plain[1]) / 2e-7
        assert slope > 10 * SMOOTHNESS * seen * np.sqrt(size) / radius, "without smoothing it jumps"


def test_the_constant_of_the_uniform_ball_is_at_most_one() -> None:
    """κ n!!/(n − 1)!! / √n, with κ = 2/π for even n and 1 for odd ones."""
    ratio = {1: 1.0, 2: 2.0}  # n!!/(n − 1)!!
    for n in range(1, 400):
        if n > 2:
            ratio[n] = ratio[n - 2] * n / (n - 1)
        factor = (2 / np.pi if n % 2 == 0 else 1.0) * ratio[n] / np.sqrt(n)
        assert 0.79 < factor <= SMOOTHNESS
