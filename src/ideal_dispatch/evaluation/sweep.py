"""The trade between ambulances and seconds: a policy at every threshold."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.metrics import cvar, quantile, regret_s
from ideal_dispatch.evaluation.outcomes import Benchmark, Outcomes
from ideal_dispatch.evaluation.strategies import at_threshold, thresholds


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Operating points of a policy in one world, from no second ambulance to all of them.

    ``extra`` is second ambulances per incident; regrets are against ``benchmark``.
    """

    policy: str
    world: str
    benchmark: Benchmark
    threshold_s: FloatArray
    extra: FloatArray
    mean_regret_s: FloatArray
    cvar95_regret_s: FloatArray
    mean_arrival_s: FloatArray
    p95_arrival_s: FloatArray


def sweep(
    outcomes: Outcomes, policy: str, world: str, benchmark: Benchmark = "paper", points: int = 100
) -> Sweep:
    """At most ``points`` operating points, even in volume where scores allow."""
    one, best = outcomes.policy(policy), outcomes.best_s[world][benchmark]
    found = [at_threshold(one, threshold) for threshold in thresholds(one, points)]
    rows = []
    for strategy in found:
        arrival = strategy.arrival_s[world]
        late = regret_s(arrival, best)
        rows.append(
            (strategy.threshold_s, strategy.extra, late.mean(), cvar(late, 0.95), arrival.mean(),
             quantile(arrival, 0.95))
        )  # fmt: skip
    return Sweep(policy, world, benchmark, *np.array(rows).T)
