"""Theorem 4: DCA never loses, and its promised decreases W_k add up to no more than it gains."""

import numpy as np
import pytest

from ideal_dispatch.gap import dca
from ideal_dispatch.gap.problem import GapProblem
from tests.theory.small_towns import random_town


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_descent_and_sum_bound(seed: int, restarts: bool) -> None:
    town = random_town(seed)
    radius = float(np.random.default_rng(seed).choice([0.05, 0.3, 2.0]))
    problem = GapProblem.ask(*town.question(radius))
    steps = dca.traced(problem, np.random.default_rng(seed), restarts=restarts)
    gaps = np.array([step.gap_s for step in steps])
    decreases = np.array([step.decrease_s for step in steps[:-1]], float)
    scale = 1e-9 * (1 + np.abs(gaps).max())
    assert (np.diff(gaps) >= -scale).all(), "f never rises"
    assert (decreases >= -scale).all()
    for m in range(1, len(gaps)):
        assert decreases[:m].sum() <= gaps[m] - gaps[0] + scale
    assert gaps[-1] <= town.exact_gap(radius) + scale
    for step in steps:
        assert problem.scenarios.contains(step.metric)


@pytest.mark.parametrize("seed", range(30))
def test_converged_runs_are_critical(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end the metric is the linear minimum of its own shortest path's direction."""
    town = random_town(seed)
    problem = GapProblem.ask(*town.question(0.3))
    monkeypatch.setattr(dca, "TOLERANCE_S", 1e-12)
    *before, last = dca.traced(problem, np.random.default_rng(seed))
    assert last.gap_s >= -1e-9
    if len(before) == dca.MOST_STEPS:
        return
    own = town.advantage(last.secondary.edges, 0.3)
    assert own == pytest.approx(last.gap_s, abs=1e-6)


def test_the_zero_gap_fixed_point() -> None:
    """Without a restart DCA stays at a primary that is the nominal fastest path."""
    stuck = 0
    for seed in range(40):
        town = random_town(seed)
        nominal = town.scenarios(0.5).nominal_times
        fastest = town.network.shortest_path(nominal, town.depots, town.destination)
        problem = GapProblem.ask(
            town.network, town.scenarios(0.5), town.depots, town.destination, fastest
        )
        (only,) = dca.traced(problem, np.random.default_rng(0), restarts=False)
        assert only.gap_s == 0.0
        again = dca.traced(problem, np.random.default_rng(0))
        assert again[-1].gap_s >= 0.0
        stuck += again[-1].gap_s == 0.0
        assert any(step.restarted for step in again)
    assert stuck < 40, "random restarts find something somewhere"
