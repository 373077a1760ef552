"""Algorithm 2 of the paper, as printed: the difference-of-convex estimate of the gap.

Each step takes the least metric in a direction and the shortest path under it.
Symbols: ``X`` metric, ``G₁`` primary matrix, ``G(z)`` path matrix,
``G⁽ᵏ⁾ = G(z⁽ᵏ⁾) − G₁``, ``W_k`` the decrease that linearising promises.
"""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.compiled import kernel
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import Path
from ideal_dispatch.scenarios.metric_paths import MetricRoads, fastest_edges, path_matrix
from ideal_dispatch.scenarios.small_matrices import factorise, inner, invert
from ideal_dispatch.scenarios.spectrum import minimum_of_spectrum

TOLERANCE_S = 1e-6
"""Stop once W_k, the promised gain of a step, is no more seconds than this."""

MOST_STEPS = 50

_ZERO = 1e-13  # of the primary's time: what rounding leaves of G⁽ᵏ⁾ = 0
_EVEN = 1e-3
_PRIME = 1099511628211  # of the hash FNV-1
_ROUNDING = 1.0 - 1e-12  # keeps λ d̂ below the true remaining time


@dataclass(frozen=True, slots=True, eq=False)
class DcaStep:
    """One iterate: its metric X⁽ᵏ⁾, the gap −f(X⁽ᵏ⁾) under it, and W_k (none for the last)."""

    metric: FloatArray
    gap_s: float
    decrease_s: float | None
    restarted: bool


@dataclass(frozen=True, slots=True, eq=False)
class AttainedGap:
    """The best gap found, attained by ``metric`` and ``secondary``, and the DCA steps to it."""

    gap_s: float
    metric: FloatArray
    secondary: Path
    steps: tuple[DcaStep, ...] = ()


def estimate(
    problem: GapProblem, rng: np.random.Generator, *, restarts: bool = True
) -> AttainedGap:
    """The DCA estimate from X⁽⁰⁾ = I ([IDEAL] Algorithm 2); a lower bound of the gap.

    At the zero-gap fixed point, where the shortest path is the primary itself,
    the next metric is drawn at random from the ball; without ``restarts`` the
    run ends there. The answer is the last iterate, as printed, not the best.
    """
    scenarios, arrays = problem.scenarios, problem.arrays
    size, room = scenarios.dimension, MOST_STEPS + 1
    metrics = np.empty((room, size, size))
    values, decreases = np.empty(room), np.empty(room)
    restarted = set()
    metric, smallest = np.eye(size), 1.0
    done = 0
    while True:
        stuck, steps, edges = descend(
            arrays, metric, smallest, TOLERANCE_S, MOST_STEPS - done,
            metrics[done:], values[done:], decreases[done:],
        )  # fmt: skip
        done += steps
        if not stuck or not restarts or scenarios.radius == 0:
            break
        done += 1
        restarted.add(done)
        metric = scenarios.sample(1, rng)[0]
        smallest = float(np.linalg.eigvalsh(metric)[0])
    decrease_s = [*decreases[:done].tolist(), None]
    kept = tuple(
        DcaStep(metrics[k], gap_s, decrease_s[k], k in restarted)
        for k, gap_s in enumerate(values[: done + 1].tolist())
    )
    return AttainedGap(kept[-1].gap_s, kept[-1].metric, problem.secondary(edges), kept)


@kernel
def linear_minimum(direction, radius):  # type: ignore[no-untyped-def]
    """The metric of the ball that minimises ⟨direction, X⟩, and its smallest eigenvalue.

    X = (I + G/γ)⁻¹ by Cholesky is quicker than by eigenvectors, and no less
    accurate unless the eigenvalues of X are very unequal.
    """
    values, _, multiplier, _ = minimum_of_spectrum(np.linalg.eigvalsh(direction), radius)
    smallest = values.min()
    metric = np.empty(direction.shape)
    if multiplier > 0.0 and smallest > _EVEN * values.max():
        factor, scratch = np.empty(direction.shape), np.empty(direction.shape)
        if factorise(direction, 1.0 / multiplier, factor) > -np.inf:
            invert(factor, scratch, metric)
            return metric, smallest
    spectrum, vectors = np.linalg.eigh(direction)
    values = minimum_of_spectrum(spectrum, radius)[0]
    metric[:] = (vectors * values) @ vectors.T
    return 0.5 * (metric + metric.T), values.min()


@kernel
def descend(  # type: ignore[no-untyped-def]
    problem, metric, smallest, tolerance, most, metrics, values, decreases
):
    """Run DCA steps from ``metric``; whether it is stuck, how many steps, and the last path.

    Step k writes X⁽ᵏ⁾, the gap f under it and W_k into row k of ``metrics``,
    ``values`` and ``decreases``; the row after the last step holds the final
    metric and gap. It ends by W_k ≤ tolerance, after the ``most`` steps, or stuck
    at the zero-gap fixed point G⁽ᵏ⁾ = 0.
    """
    packed, depots, destination, primary_matrix, radius = problem
    roads = MetricRoads(*packed)
    converged, steps, path = False, 0, np.empty(0, np.int32)
    while True:
        new_path, _time = fastest_edges(roads, metric, smallest * _ROUNDING, depots, destination)
        direction = path_matrix(roads.embeddings, new_path) - primary_matrix
        metrics[steps] = metric
        values[steps] = 0.0 - inner(direction, metric)
        repeats = steps > 0 and new_path.size == path.size and np.all(new_path == path)
        path = new_path
        if converged or steps == most:
            return False, steps, path
        if repeats:  # then so does the metric, bit for bit: W_k = 0
            decreases[steps] = 0.0
            steps += 1
            metrics[steps] = metric
            values[steps] = values[steps - 1]
            return False, steps, path
        if _is_zero(direction, primary_matrix):
            decreases[steps] = 0.0
            return True, steps, path
        next_metric, smallest = linear_minimum(direction, radius)
        decreases[steps] = inner(direction, metric) - inner(direction, next_metric)
        metric, converged = next_metric, decreases[steps] <= tolerance
        steps += 1


@kernel
def descend_to_new_paths(problem, direction, most, seen, count):  # type: ignore[no-untyped-def]
    """At most so many DCA steps from the least metric in ``direction``, until a path was ``seen``.

    A path fixes all that follows, so an earlier descent has been there. Returns the
    gap, the metric and the path that attain it, and how many of ``seen``, the names
    of paths, are filled now.
    """
    packed, depots, destination, primary_matrix, radius = problem
    roads = MetricRoads(*packed)
    path, gap, metric = np.empty(0, np.int32), -np.inf, direction
    for _ in range(most):
        metric, smallest = linear_minimum(direction, radius)
        path, _time = fastest_edges(roads, metric, smallest * _ROUNDING, depots, destination)
        direction = path_matrix(roads.embeddings, path) - primary_matrix
        gap = 0.0 - inner(direction, metric)
        name = _name(path)
        if np.any(seen[:count] == name) or _is_zero(direction, primary_matrix):
            break
        seen[count] = name
        count += 1
    return gap, metric, path, count


@kernel
def _is_zero(direction, primary_matrix):  # type: ignore[no-untyped-def]
    """Whether G⁽ᵏ⁾ is nothing but rounding."""
    return inner(direction, direction) <= (_ZERO * np.trace(primary_matrix)) ** 2


@kernel
def _name(path):  # type: ignore[no-untyped-def]
    """A number for a path; two that share it by chance only end one descent early."""
    name = np.uint64(path.size)
    for e in path:
        name = name * np.uint64(_PRIME) + np.uint64(e)
    return name
