"""The compiled cutting planes of a target radius: paths enter one by one until the bounds meet.

Symbols as in :mod:`ideal_dispatch.scenarios.target_radius`, but time is measured in
units of the nominal time t̂: there t is the ``stretch`` and μ is without unit.
"""

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.scenarios.dual_maximum import combined_matrix, maximise
from ideal_dispatch.scenarios.metric_paths import fastest_edges
from ideal_dispatch.scenarios.small_matrices import add_outer, inner
from ideal_dispatch.scenarios.spectrum import divergence_of_spectrum, kappa

_EPSILON = float(np.finfo(np.float64).eps)

_kernel = kernel(error_model="numpy", fastmath={"reassoc", "contract"})


@_kernel
def cutting_planes(  # type: ignore[no-untyped-def]
    roads, first_edges, origin, destination, observed, unit, tolerance, most_cuts
):  # fmt: skip
    """The best metric, the multipliers, edges of all cuts in a row, where each ends, steps."""
    embeddings = roads.embeddings
    size = embeddings.shape[1]
    stretch = observed / unit
    sources = np.array([origin], np.int32)
    matrices, excess = np.empty((most_cuts + 1, size, size)), np.empty(most_cuts + 1)
    multipliers, ends = np.zeros(most_cuts), np.empty(most_cuts, np.int64)
    edges, cut_edges = np.empty(0, np.int32), first_edges
    longest, iterations, count = 0, 0, 0
    metric, upper = np.eye(size), np.inf
    shift, worst = np.zeros((size, size)), 0.0  # X − I, and the violation of the cuts so far
    excess[0] = fill_cut(embeddings, cut_edges, observed, unit, matrices[0])
    while count < most_cuts:
        # --- the new cut, unless the cuts so far are as far from being met
        violation = excess[count] - inner(matrices[count], shift)
        if violation <= worst:
            break
        edges = np.concatenate((edges, cut_edges))
        ends[count] = edges.size
        longest = max(longest, cut_edges.size)
        count += 1
        # --- the metric of all cuts
        taken, shift, worst = maximise(
            matrices[:count], excess[:count], multipliers[:count], stretch, tolerance
        )
        iterations += taken
        lower, spectrum = dual_bound(
            matrices[:count], excess[:count], multipliers[:count], stretch, longest
        )
        # --- its fastest path
        smallest, largest = 1.0 / (1.0 - spectrum[0]), 1.0 / (1.0 - spectrum[-1])
        cut_edges, time = fastest_edges(
            roads, np.eye(size) + shift, smallest * (1.0 - size * _EPSILON), sources, destination
        )
        excess[count] = fill_cut(embeddings, cut_edges, observed, unit, matrices[count])
        # rounding of the path's time, the metric's included: keeps the scaled metric feasible
        nominal_share = 1.0 - excess[count] / stretch
        margin = _EPSILON * (cut_edges.size + 2 * size * (1.0 + largest * nominal_share))
        scaling = (observed - time) / time + margin
        attained = divergence_of_spectrum(
            (1.0 + scaling) / (1.0 - spectrum), (scaling + spectrum) / (1.0 - spectrum)
        )
        if attained < upper:
            upper = attained
            metric = np.eye(size) + (scaling * np.eye(size) + (1.0 + scaling) * shift)
        if upper - lower <= tolerance * upper:
            break
    return metric, multipliers[:count], edges, ends[:count], iterations


@_kernel
def attained_divergence(metric):  # type: ignore[no-untyped-def]
    """D(X, I) of a metric that is nowhere smaller than the identity."""
    offsets = np.linalg.eigvalsh(metric - np.eye(metric.shape[0]))
    return divergence_of_spectrum(1.0 + offsets, offsets)


@kernel(error_model="numpy")  # a compensated sum must not be reordered
def fill_cut(embeddings, edges, observed, unit, matrix):  # type: ignore[no-untyped-def]
    """Fill ``matrix`` with G/t̂; the excess (t − tr G)/t̂, right to one rounding of t/t̂."""
    matrix[:] = 0.0
    total, lost = observed, 0.0
    for e in edges:
        add_outer(matrix, embeddings[e], 1.0 / unit)
        for x in embeddings[e]:
            term = -x * x
            grown = total + term
            lost += (total - grown) + term if abs(total) >= -term else (term - grown) + total
            total = grown
    return (total + lost) / unit


@_kernel
def dual_bound(matrices, excess, multipliers, stretch, longest):  # type: ignore[no-untyped-def]
    """The dual value less its rounding, and the eigenvalues of M.

    Rounding moves t − tr G by ε t, and M by about (edges + paths + d) ε ‖M‖,
    which moves log det(I − M) + tr M by that times tr X − d.
    """
    spectrum = np.linalg.eigvalsh(combined_matrix(matrices, multipliers))
    if spectrum[-1] >= 1.0:
        return -np.inf, spectrum
    value, stretched = 0.0, 0.0
    for m in spectrum:
        value -= kappa(-m)
        stretched += abs(m) / (1.0 - m)
    for j in range(multipliers.size):
        value += multipliers[j] * excess[j]
    terms = longest + multipliers.size + spectrum.size
    rounding = 2.0 * stretch * multipliers.sum() + terms * spectrum[-1] * stretched
    return value - _EPSILON * rounding, spectrum
