"""Algorithm 2 opened up: every iterate with its path."""

import numpy as np
import pytest

from ideal_dispatch import optimistic_gap
from ideal_dispatch.errors import InputError
from ideal_dispatch.gap import dca_steps
from tests.theory.small_towns import random_town


@pytest.mark.parametrize("seed", range(12))
def test_the_steps_end_at_the_estimate(seed: int) -> None:
    question = random_town(seed).question(0.3)
    steps = dca_steps(*question, seed=seed)
    gap = optimistic_gap(*question, method="dca", seed=seed)
    assert steps[-1].gap_s == gap.lower_s
    assert steps[-1].secondary == gap.secondary
    assert steps[-1].decrease_s is None
    assert all(step.decrease_s is not None for step in steps[:-1])
    with pytest.raises(InputError, match="seed -1: it must be zero or more"):
        dca_steps(*question, seed=-1)


@pytest.mark.parametrize("seed", range(12))
def test_a_step_has_the_shortest_path_under_its_metric(seed: int) -> None:
    network, scenarios, depots, destination, primary = random_town(seed).question(0.3)
    for step in dca_steps(network, scenarios, depots, destination, primary):
        times = scenarios.times(step.metric)
        shortest = network.shortest_path(times, depots, destination)
        assert step.secondary.time_s(times) == pytest.approx(shortest.time_s(times))
        assert step.gap_s == pytest.approx(primary.time_s(times) - shortest.time_s(times))
        assert not step.metric.flags.writeable


def test_without_a_radius_there_is_nothing_to_search() -> None:
    steps = dca_steps(*random_town(1).question(0.0))
    assert len(steps) <= 2
    assert all((step.metric == np.eye(step.metric.shape[0])).all() for step in steps)
