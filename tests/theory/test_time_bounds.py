"""No scenario leaves physical bounds, and no larger radius would keep to them.

[IDEAL] compactness of the Burg ball: an edge's time under any metric of the ball
is its nominal time multiplied by a factor from m_ρ to M_ρ, and both are attained.
"""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork, ScenarioSet, minimise_linear
from ideal_dispatch.network.time_bounds import TimeBounds


def _scenarios(grid: RoadNetwork, seed: int, radius: float) -> ScenarioSet:
    rng = np.random.default_rng(seed)
    bounds = TimeBounds().on(grid)
    times = bounds.held(grid.free_flow_times_s * np.exp(rng.normal(0, 2, grid.num_edges)))
    units = rng.normal(size=(grid.num_edges, 5))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return ScenarioSet(units * np.sqrt(times)[:, None], radius)


@pytest.mark.parametrize("seed", range(5))
def test_the_greatest_radius_is_attained(grid: RoadNetwork, seed: int) -> None:
    bounds = TimeBounds().on(grid)
    times = _scenarios(grid, seed, 0.0).nominal_times
    radius = bounds.greatest_radius(times)
    assert radius >= 1 / 1.5 - np.log(1 / 1.5) - 1 - 1e-9, "the margin leaves this much"
    scenarios = _scenarios(grid, seed, radius)
    for metric in scenarios.sample(40, np.random.default_rng(seed)):
        seconds = scenarios.times(metric)
        assert (seconds >= bounds.least_s * (1 - 1e-9)).all()
        assert (seconds <= bounds.greatest_s * (1 + 1e-9)).all()
    tight = int(np.argmax(bounds.least_s / times))
    row = scenarios.embeddings[tight]
    fastest = minimise_linear(np.outer(row, row), radius)
    assert fastest.value == pytest.approx(bounds.least_s[tight], rel=1e-6)
    beyond = minimise_linear(np.outer(row, row), 1.01 * radius)
    assert beyond.value < bounds.least_s[tight]
