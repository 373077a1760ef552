"""Theorem 1: the policy's pair (τ, z₂) solves the surplus problem."""

import numpy as np
import pytest

from ideal_dispatch import optimistic_gap
from tests.theory.small_towns import random_town


@pytest.mark.parametrize("seed", range(25))
def test_policy_maximises_the_surplus(seed: int) -> None:
    town = random_town(seed)
    radius = float(np.random.default_rng(seed).choice([0.02, 0.1, 0.5]))
    advantages = [town.advantage(edges, radius) for edges in town.all_paths()]
    for threshold_s in (0.0, 5.0, 20.0, 60.0):
        best = max(0.0, max(advantages) - threshold_s)
        gap = optimistic_gap(*town.question(radius))
        sends = gap.lower_s > threshold_s
        own = town.advantage(gap.secondary.edges, radius)
        assert sends * (own - threshold_s) == pytest.approx(best, abs=1e-6)
        decided = optimistic_gap(*town.question(radius), threshold_s=threshold_s)
        assert decided.worth_sending is bool(max(advantages) > threshold_s)


@pytest.mark.parametrize("seed", range(25))
def test_scenario_and_secondary_attain_the_gap(seed: int) -> None:
    """Statement 1: z₂ is fastest under c*, and Δ(z₂) = δ."""
    town = random_town(seed)
    radius = 0.2
    gap = optimistic_gap(*town.question(radius))
    assert town.advantage(gap.secondary.edges, radius) == pytest.approx(gap.lower_s, abs=1e-6)
    times = town.scenarios(radius).times(gap.metric)
    fastest = town.network.distances(times, town.depots)[town.destination]
    assert gap.secondary.time_s(times) == pytest.approx(fastest, rel=1e-9)
    assert town.primary.time_s(times) - fastest == pytest.approx(gap.lower_s, abs=1e-6)
