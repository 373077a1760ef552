"""Algorithm 2 of the paper, as printed: the difference-of-convex estimate of the gap."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.gap import descent
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import Path

TOLERANCE_S = 1e-6
"""Stop once W_k, the promised gain of a step, is no more seconds than this."""

MOST_STEPS = 50


@dataclass(frozen=True, slots=True, eq=False)
class DcaStep:
    """One iterate: its metric X⁽ᵏ⁾, the gap −f(X⁽ᵏ⁾) under it, and W_k (none for the last)."""

    metric: FloatArray
    gap_s: float
    decrease_s: float | None
    restarted: bool


@dataclass(frozen=True, slots=True, eq=False)
class DcaEstimate:
    """The gap attained by ``metric`` and ``secondary``, and how it was reached.

    ``converged`` is False when the steps ran out first.
    """

    gap_s: float
    metric: FloatArray
    secondary: Path
    converged: bool
    steps: tuple[DcaStep, ...]


def estimate(
    problem: GapProblem,
    rng: np.random.Generator,
    *,
    restarts: bool = True,
    tolerance_s: float = TOLERANCE_S,
    most_steps: int = MOST_STEPS,
) -> DcaEstimate:
    """The DCA estimate from X⁽⁰⁾ = I ([IDEAL] Algorithm 2); a lower bound of the gap.

    At the zero-gap fixed point, where the shortest path is the primary itself,
    the next metric is drawn at random from the ball; without ``restarts`` the
    run ends there. The answer is the last iterate, as printed, not the best.
    """
    scenarios, arrays = problem.scenarios, problem.arrays
    size = scenarios.dimension
    room = most_steps + 1
    metrics = np.empty((room, size, size))
    values, decreases = np.empty(room), np.empty(room)
    restarted = set()
    metric, smallest = np.eye(size), 1.0
    done = 0
    descend: Any = descent.descend
    while True:
        end, steps, edges = descend(
            arrays, metric, smallest, tolerance_s, most_steps - done,
            metrics[done:], values[done:], decreases[done:],
        )  # fmt: skip
        done += steps
        if end != descent.RESTART or not restarts or scenarios.radius == 0:
            break
        done += 1
        restarted.add(done)
        metric = scenarios.sample(1, rng)[0]
        smallest = float(np.linalg.eigvalsh(metric)[0])
    decrease_s = [*decreases[:done].tolist(), None]
    kept = [
        DcaStep(metrics[k], gap_s, decrease_s[k], k in restarted)
        for k, gap_s in enumerate(values[: done + 1].tolist())
    ]
    return DcaEstimate(
        gap_s=kept[-1].gap_s,
        metric=kept[-1].metric,
        secondary=problem.secondary(edges),
        converged=end != descent.EXHAUSTED,
        steps=tuple(kept),
    )
