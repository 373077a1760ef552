"""The compiled descent of Algorithm 2: linear minimum, shortest path, and again.

Symbols: ``X`` metric, ``G₁`` primary matrix, ``G(z)`` path matrix,
``G⁽ᵏ⁾ = G(z⁽ᵏ⁾) − G₁``, ``W_k`` the decrease that linearising promises.
"""

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.scenarios.metric_paths import fastest_edges, path_matrix
from ideal_dispatch.scenarios.small_matrices import factorise, inner, invert
from ideal_dispatch.scenarios.spectrum import minimum_of_spectrum

CONVERGED, RESTART, EXHAUSTED = 0, 1, 2
_ZERO = 1e-13  # of the primary's time: what rounding leaves of G⁽ᵏ⁾ = 0
_EVEN = 1e-3
_PRIME = 1099511628211  # of the hash FNV-1
_ROUNDING = 1.0 - 1e-12  # keeps λ d̂ below the true remaining time


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
    """Run DCA steps from ``metric``; how it ended, how many steps, and the last path.

    Step k writes X⁽ᵏ⁾, the gap f under it and W_k into row k of ``metrics``,
    ``values`` and ``decreases``; the row after the last step holds the final
    metric and gap. Ends ``CONVERGED`` by W_k ≤ tolerance, asks for a ``RESTART``
    at the zero-gap fixed point G⁽ᵏ⁾ = 0, or is ``EXHAUSTED``.
    """
    roads, depots, destination, primary_matrix, radius = problem
    end = EXHAUSTED
    steps = 0
    path = np.empty(0, np.int32)
    for _ in range(most):
        new_path, _time = fastest_edges(roads, metric, smallest * _ROUNDING, depots, destination)
        direction = path_matrix(roads.embeddings, new_path) - primary_matrix
        metrics[steps] = metric
        values[steps] = 0.0 - inner(direction, metric)
        repeats = steps > 0 and new_path.size == path.size and np.all(new_path == path)
        path = new_path
        if repeats:  # then so does the metric, bit for bit: W_k = 0
            decreases[steps] = 0.0
            steps += 1
            metrics[steps] = metric
            values[steps] = values[steps - 1]
            return CONVERGED, steps, path
        if _is_zero(direction, primary_matrix):
            decreases[steps] = 0.0
            return RESTART, steps, path
        next_metric, next_smallest = linear_minimum(direction, radius)
        decreases[steps] = inner(direction, metric) - inner(direction, next_metric)
        steps += 1
        metric, smallest = next_metric, next_smallest
        if decreases[steps - 1] <= tolerance:
            end = CONVERGED
            break
    path, _time = fastest_edges(roads, metric, smallest * _ROUNDING, depots, destination)
    metrics[steps] = metric
    values[steps] = 0.0 - inner(path_matrix(roads.embeddings, path) - primary_matrix, metric)
    return end, steps, path


@kernel
def descend_to_new_paths(problem, direction, most, seen, count):  # type: ignore[no-untyped-def]
    """At most so many DCA steps from the least metric in ``direction``, until a path was ``seen``.

    A path fixes all that follows, so an earlier descent has been there. Returns the
    gap, the metric and the path that attain it, and how many of ``seen``, the names
    of paths, are filled now.
    """
    roads, depots, destination, primary_matrix, radius = problem
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
