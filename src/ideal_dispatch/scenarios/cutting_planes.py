"""The compiled cutting planes of a target radius: paths enter one by one until the bounds meet.

The multipliers of the paths so far come from the maximum of the dual function, by
proximal Newton steps. Symbols as in :mod:`ideal_dispatch.scenarios.target_radius`, but time
is measured in units of the nominal time t̂: there t is the ``stretch`` and μ is without unit.
"""

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.scenarios.metric_paths import MetricRoads, fastest_edges
from ideal_dispatch.scenarios.small_matrices import add_outer, factorise, inner, invert_root
from ideal_dispatch.scenarios.spectrum import divergence_of_spectrum

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_STEPS = 40  # of Newton's method between two cuts; 1 to 6 are usual
_STAGE = 4.0  # growth of the stretch from one maximum to the next
_PIVOT = 1e-13  # I − M closer to singular than this is lost in rounding

_kernel = kernel(error_model="numpy", fastmath={"reassoc", "contract"})


@_kernel
def cutting_planes(  # type: ignore[no-untyped-def]
    roads, first_edges, origin, destination, observed, unit, tolerance, most_cuts
):  # fmt: skip
    """The best metric, the multipliers, edges of all cuts in a row, where each ends, steps."""
    embeddings = MetricRoads(*roads).embeddings
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
        taken, shift, worst = _maximise(
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
    spectrum = np.linalg.eigvalsh(_combined(matrices, multipliers))
    if spectrum[-1] >= 1.0:
        return -np.inf, spectrum
    value, stretched = -divergence_of_spectrum(1.0 - spectrum, -spectrum), 0.0
    for m in spectrum:
        stretched += abs(m) / (1.0 - m)
    for j in range(multipliers.size):
        value += multipliers[j] * excess[j]
    terms = longest + multipliers.size + spectrum.size
    rounding = 2.0 * stretch * multipliers.sum() + terms * spectrum[-1] * stretched
    return value - _EPSILON * rounding, spectrum


# --- the maximum of the dual function -----------------------------------------------


@_kernel
def _maximise(matrices, excess, multipliers, stretch, tolerance):  # type: ignore[no-untyped-def]
    """Move the multipliers to the maximum of g; steps taken, X − I and the largest violation.

    A large stretch is reached by stages from the identity: Newton's method would
    crawl along the boundary M ⪯ I, which the last maximum almost touches.
    """
    steps = 0
    if stretch > _STAGE:
        multipliers[:] = 0.0
        level = _STAGE
        while level < stretch:
            steps += _ascend(matrices, excess + (level - stretch), multipliers, 1.0)[0]
            level *= _STAGE
    taken, shift, worst = _ascend(matrices, excess, multipliers, tolerance)
    return steps + taken, shift, worst


@_kernel
def _ascend(matrices, excess, multipliers, tolerance):  # type: ignore[no-untyped-def]
    """As :func:`_maximise`, from the multipliers at hand.

    Each step goes towards the maximum of the quadratic model over μ ≥ 0, as far
    as g rises: a proximal Newton method of a self-concordant function, which
    converges from everywhere (Tran-Dinh, Kyrillidis and Cevher, 2015). It ends
    when scaling X to meet all cuts would cost a small part of the tolerance;
    2g ≥ Σ μ (t − tr G) at the maximum, as κ(−m) ≤ m²/(2 − 2m).
    """
    count, size = matrices.shape[0], matrices.shape[1]
    gradient, whitened = np.empty(count), np.empty((count, size, size))
    hessian = np.empty((count, count))
    combined = _combined(matrices, multipliers)
    root, factor = np.empty((size, size)), np.zeros((size, size))
    _inverse_root(combined, factor, root)
    step = 0
    while True:
        transposed = root.T.copy()
        shift = transposed @ (root @ combined)
        miss, pull, worst = 0.0, 0.0, -np.inf
        for j in range(count):
            gradient[j] = excess[j] - inner(matrices[j], shift)
            worst = max(worst, gradient[j])
            miss += multipliers[j] * abs(gradient[j])
            pull += multipliers[j] * excess[j]
        miss += max(worst, 0.0) * multipliers.sum()
        if (pull > 0.0 and miss <= 0.05 * tolerance * pull) or step == _MOST_STEPS:
            return step, shift, worst
        step += 1
        for j in range(count):
            whitened[j] = 0.0
            if multipliers[j] > 0.0 or gradient[j] > 0.0:  # others stay out of this step
                whitened[j] = (root @ matrices[j]) @ transposed
            for i in range(j + 1):
                hessian[i, j] = inner(whitened[i], whitened[j])
                hessian[j, i] = hessian[i, j]
        direction = _model_maximum(hessian, gradient, multipliers) - multipliers
        slope, longest = 0.0, np.inf
        for j in range(count):
            slope += gradient[j] * direction[j]
            if direction[j] < 0.0:
                longest = min(longest, -multipliers[j] / direction[j])
        if not slope > 0.0:
            return step, shift, worst
        length = min(
            _line_maximum(np.linalg.eigvalsh(_combined(whitened, direction)), slope), longest
        )
        while True:
            trial = np.maximum(multipliers + length * direction, 0.0)
            combined = _combined(matrices, trial)
            if _inverse_root(combined, factor, root):
                break
            length *= 0.5
        multipliers[:] = trial


@_kernel
def _line_maximum(spectrum, slope):  # type: ignore[no-untyped-def]
    """The α > 0 that maximises g along a direction, whose whitened matrix has eigenvalues π.

    With y = α π_max / (1 − α π_max) and q = π/π_max the derivative vanishes where
    Σ q² y / (1 + y (1 − q)) = slope/π_max. The left side is concave and grows
    without bound, so Newton's method climbs to the root from the left.
    """
    top = spectrum[-1]
    if top <= -1e-6 * spectrum[0]:  # hardly bounded that way: Newton's own step
        return 1.0
    y, change = 0.0, np.inf
    while change > 1e-14 * y:
        value, derivative = 0.0, 0.0
        for eigenvalue in spectrum:
            share = eigenvalue / top
            room = 1.0 + y * (1.0 - share)
            value += share * share * y / room
            derivative += (share / room) ** 2
        change = (slope / top - value) / derivative
        y += max(change, 0.0)
    return y / ((1.0 + y) * top)


@_kernel
def _model_maximum(hessian, gradient, start):  # type: ignore[no-untyped-def]
    """The x ≥ 0 that maximises gradientᵀ(x − start) − (x − start)ᵀ hessian (x − start) / 2.

    The active-set method of Lawson and Hanson. Rows are scaled to a diagonal of
    ones; a trace more keeps linearly dependent cuts apart.
    """
    diagonal = np.diag(hessian)
    scale = np.where(diagonal > 0.0, np.sqrt(diagonal), 1.0)
    system = hessian / np.outer(scale, scale)
    np.fill_diagonal(system, 1.0 + 1e-12)
    linear = gradient + hessian @ start
    point, free = start.copy(), start > 0.0
    for _ in range(4 * start.size + 4):
        index = np.flatnonzero(free)
        ratio, leaving = 1.0, -1
        if index.size:
            solution = np.linalg.solve(system[index][:, index], linear[index] / scale[index])
            solution /= scale[index]
            for a in range(index.size):
                before = point[index[a]]
                if solution[a] <= 0.0 and before <= ratio * (before - solution[a]):
                    ratio, leaving = before / (before - solution[a]), index[a]
            point[index] += ratio * (solution - point[index])
        if leaving >= 0:
            point[leaving] = 0.0
            free[leaving] = False
            continue
        residual = np.where(free, 0.0, linear - hessian @ point)
        entering = np.argmax(residual - 1e-13 * np.abs(linear))
        if residual[entering] <= 1e-13 * abs(linear[entering]):
            break
        free[entering] = True
    return point


@_kernel
def _combined(matrices, multipliers):  # type: ignore[no-untyped-def]
    """M = Σ μG."""
    total = np.zeros(matrices.shape[1:])
    for j in range(multipliers.size):
        if multipliers[j] != 0.0:
            total += multipliers[j] * matrices[j]
    return total


@_kernel
def _inverse_root(combined, factor, root):  # type: ignore[no-untyped-def]
    """Fill ``root`` with L⁻¹ of LLᵀ = I − M; False if M ≺ I is in doubt."""
    if factorise(combined, -1.0, factor) == -np.inf or np.diag(factor).min() ** 2 <= _PIVOT:
        return False
    invert_root(factor, root)
    return True
