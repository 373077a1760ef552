"""Algorithm 2 of the paper, as printed: the difference-of-convex estimate of the gap.

Each step takes the least metric in a direction and the shortest path under it.
Symbols: ``X`` metric, ``G₁`` primary matrix, ``G(z)`` path matrix,
``G⁽ᵏ⁾ = G(z⁽ᵏ⁾) − G₁``, ``W_k`` the decrease that linearising promises.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen, whole_number
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Source
from ideal_dispatch.scenarios import ScenarioSet
from ideal_dispatch.scenarios.metric_paths import MetricRoads, fastest_edges, path_matrix
from ideal_dispatch.scenarios.small_matrices import factorise, inner, invert
from ideal_dispatch.scenarios.spectrum import minimum_of_spectrum

TOLERANCE_S = 1e-6
"""Stop once W_k, the promised gain of a step, is no more seconds than this."""

MOST_STEPS = 50

NO_PATH = np.full(1, -1, np.int32)
"""What a first step has for the path before it."""

_ZERO = 1e-13  # of the primary's time: what rounding leaves of G⁽ᵏ⁾ = 0
_EVEN = 1e-3
_PRIME = 1099511628211  # of the hash FNV-1
_ROUNDING = 1.0 - 1e-12  # keeps λ d̂ below the true remaining time


@dataclass(frozen=True, slots=True, eq=False)
class DcaStep:
    """One iterate: its metric X⁽ᵏ⁾, the gap −f(X⁽ᵏ⁾) under it, and W_k (none for the last).

    ``secondary`` is the shortest path z⁽ᵏ⁾ under the metric, ``seconds`` the time to find it
    and the next metric. A metric is ``restarted`` if it was drawn at random.
    """

    metric: FloatArray
    gap_s: float
    decrease_s: float | None
    restarted: bool
    secondary: Path
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class AttainedGap:
    """The best gap found, attained by ``metric`` and ``secondary``."""

    gap_s: float
    metric: FloatArray
    secondary: Path


def dca_steps(
    network: RoadNetwork,
    scenarios: ScenarioSet,
    depots: Source | Sequence[Source],
    destination: int,
    primary: Path,
    primary_from: Source | None = None,
    *,
    seed: int = 0,
) -> tuple[DcaStep, ...]:
    """Every iterate of Algorithm 2 where ``optimistic_gap(…, method="dca")`` tells the last.

    The gap never falls, and the decreases W_k add up to no more than it gains
    ([IDEAL] Theorem 4).
    """
    problem = GapProblem.ask(network, scenarios, depots, destination, primary, primary_from)
    return traced(problem, generator(seed))


def generator(seed: int) -> np.random.Generator:
    """What random restarts are drawn by."""
    if whole_number(seed, "seed") < 0:
        raise InputError(f"seed {seed}: it must be zero or more")
    return np.random.default_rng(seed)


def estimate(
    problem: GapProblem, rng: np.random.Generator, *, restarts: bool = True
) -> AttainedGap:
    """The DCA estimate from X⁽⁰⁾ = I ([IDEAL] Algorithm 2); a lower bound of the gap.

    At the zero-gap fixed point, where the shortest path is the primary itself,
    the next metric is drawn at random from the ball; without ``restarts`` the
    run ends there. The answer is the last iterate, as printed, not the best.
    """
    *_, (metric, gap_s, _, _, edges) = _iterates(problem, rng, restarts)
    return AttainedGap(gap_s, metric, problem.secondary(edges))


def traced(
    problem: GapProblem, rng: np.random.Generator, *, restarts: bool = True
) -> tuple[DcaStep, ...]:
    """The steps to what :func:`estimate` tells."""
    steps, start = [], time.perf_counter()
    for metric, gap_s, decrease_s, restarted, edges in _iterates(problem, rng, restarts):
        end, secondary = time.perf_counter(), problem.secondary(edges)
        steps.append(DcaStep(frozen(metric), gap_s, decrease_s, restarted, secondary, end - start))
        start = time.perf_counter()
    return tuple(steps)


def _iterates(
    problem: GapProblem, rng: np.random.Generator, restarts: bool
) -> Iterator[tuple[FloatArray, float, float | None, bool, IntArray]]:
    """Metric, gap, decrease, whether it was drawn, and path of every iterate."""
    scenarios, arrays = problem.scenarios, problem.arrays
    metric, smallest, before = np.eye(scenarios.dimension), 1.0, NO_PATH
    restarted = converged = False
    for left in reversed(range(MOST_STEPS + 1)):
        last = converged or not left
        edges, gap_s, decrease_s, stuck, following, smallest = iterate(
            arrays, metric, smallest, before, last
        )
        if stuck and restarts and scenarios.radius > 0:
            following, before = scenarios.sample(1, rng)[0], NO_PATH
            smallest = float(np.linalg.eigvalsh(following)[0])
        else:
            last, before = last or stuck, edges
        yield metric, gap_s, None if last else decrease_s, restarted, edges
        if last:
            return
        converged = not stuck and decrease_s <= TOLERANCE_S
        metric, restarted = following, stuck


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
def iterate(problem, metric, smallest, before, last):  # type: ignore[no-untyped-def]
    """One DCA step from ``metric``, where the step before it took the path ``before``.

    Returns the shortest path, the gap under the metric, W_k, whether it is stuck at
    the zero-gap fixed point G⁽ᵏ⁾ = 0, the next metric and its smallest eigenvalue.
    The metric stays as it is if it is stuck or the ``last`` one, or if the path is the
    one before: that gives the same metric again, bit for bit.
    """
    packed, depots, destination, primary_matrix, radius = problem
    roads = MetricRoads(*packed)
    path, _time = fastest_edges(roads, metric, smallest * _ROUNDING, depots, destination)
    direction = path_matrix(roads.embeddings, path) - primary_matrix
    gap = 0.0 - inner(direction, metric)
    if last or (path.size == before.size and np.all(path == before)):
        return path, gap, 0.0, False, metric, smallest
    if _is_zero(direction, primary_matrix):
        return path, gap, 0.0, True, metric, smallest
    following, smallest = linear_minimum(direction, radius)
    decrease = inner(direction, metric) - inner(direction, following)
    return path, gap, decrease, False, following, smallest


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
