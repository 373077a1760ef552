"""The maximum of the dual function of a target radius, by proximal Newton steps.

Symbols as in :mod:`ideal_dispatch.scenarios.target_radius`: ``G`` path matrices,
``μ ≥ 0`` multipliers, ``M = Σ μG``, ``g(μ) = log det(I − M) + t Σμ``.
"""

import math

import numpy as np

from ideal_dispatch.compiled import kernel
from ideal_dispatch.scenarios.small_matrices import inner

_MOST_STEPS = 40  # of Newton's method between two cuts; 1 to 6 are usual
_STAGE = 4.0  # growth of the stretch from one maximum to the next
_PIVOT = 1e-13  # I − M closer to singular than this is lost in rounding

_kernel = kernel(error_model="numpy", fastmath={"reassoc", "contract"})


@_kernel
def maximise(matrices, excess, multipliers, stretch, tolerance):  # type: ignore[no-untyped-def]
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
    """As :func:`maximise`, from the multipliers at hand.

    Each step goes towards the maximum of the quadratic model over μ ≥ 0, as far
    as g rises: a proximal Newton method of a self-concordant function, which
    converges from everywhere (Tran-Dinh, Kyrillidis and Cevher, 2015). It ends
    when scaling X to meet all cuts would cost a small part of the tolerance;
    2g ≥ Σ μ (t − tr G) at the maximum, as κ(−m) ≤ m²/(2 − 2m).
    """
    count, size = matrices.shape[0], matrices.shape[1]
    gradient, whitened = np.empty(count), np.empty((count, size, size))
    hessian = np.empty((count, count))
    combined = combined_matrix(matrices, multipliers)
    root, along, half = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    _inverse_root(combined, root)
    step = 0
    while True:
        transposed, shift = root.T.copy(), np.empty((size, size))
        _product(root, combined, half)
        _product(transposed, half, shift)
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
            half[:] = 0.0
            if multipliers[j] > 0.0 or gradient[j] > 0.0:  # others stay out of this step
                _product(root, matrices[j], half)
            _product(half, transposed, whitened[j])
            for i in range(j + 1):
                hessian[i, j] = inner(whitened[i], whitened[j])
                hessian[j, i] = hessian[i, j]
        direction = _model_maximum(hessian, gradient, multipliers) - multipliers
        slope, longest = 0.0, np.inf
        along[:] = 0.0
        for j in range(count):
            slope += gradient[j] * direction[j]
            _add(along, whitened[j], direction[j])
            if direction[j] < 0.0:
                longest = min(longest, -multipliers[j] / direction[j])
        if not slope > 0.0:
            return step, shift, worst
        length = min(_line_maximum(np.linalg.eigvalsh(along), slope), longest)
        while True:
            trial = np.maximum(multipliers + length * direction, 0.0)
            combined = combined_matrix(matrices, trial)
            if _inverse_root(combined, root):
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
    count = start.size
    scale, linear = np.ones(count), gradient.copy()
    for i in range(count):
        if hessian[i, i] > 0.0:
            scale[i] = math.sqrt(hessian[i, i])
        for j in range(count):
            linear[i] += hessian[i, j] * start[j]
    point, free = start.copy(), start > 0.0
    system, factor = np.empty((count, count)), np.zeros((count, count))
    for _ in range(4 * count + 4):
        index = np.flatnonzero(free)
        size = index.size
        solution = np.empty(size)
        for a in range(size):
            i = index[a]
            for b in range(size):
                system[a, b] = hessian[i, index[b]] / (scale[i] * scale[index[b]])
            system[a, a] = 1.0 + 1e-12
            solution[a] = linear[i] / scale[i]
        _factorise(system[:size, :size], factor)
        for a in range(size):
            for b in range(a):
                solution[a] -= factor[a, b] * solution[b]
            solution[a] /= factor[a, a]
        for a in range(size - 1, -1, -1):
            for b in range(a + 1, size):
                solution[a] -= factor[b, a] * solution[b]
            solution[a] /= factor[a, a]
        ratio, leaving, entering, best = 1.0, -1, -1, 0.0
        for a in range(size):
            i = index[a]
            solution[a] /= scale[i]
            if solution[a] <= 0.0 and point[i] <= ratio * (point[i] - solution[a]):
                ratio, leaving = point[i] / (point[i] - solution[a]), i
        for a in range(size):
            point[index[a]] += ratio * (solution[a] - point[index[a]])
        if leaving >= 0:
            point[leaving] = 0.0
            free[leaving] = False
            continue
        for i in range(count):
            residual = linear[i]
            for a in range(size):
                residual -= hessian[i, index[a]] * point[index[a]]
            if not free[i] and residual > max(best, 1e-13 * abs(linear[i])):
                entering, best = i, residual
        if entering < 0:
            break
        free[entering] = True
    return point


# --- small matrices, without the threads of a BLAS, which cost more than they save ----


@_kernel
def _add(total, matrix, factor):  # type: ignore[no-untyped-def]
    """Add ``factor`` · matrix to the total."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += factor * matrix[i, j]


@_kernel
def _product(first, second, product):  # type: ignore[no-untyped-def]
    """Fill ``product`` with AB."""
    product[:] = 0.0
    for i in range(first.shape[0]):
        for k in range(first.shape[1]):
            if first[i, k] != 0.0:  # half of a triangle
                for j in range(second.shape[1]):
                    product[i, j] += first[i, k] * second[k, j]


@_kernel
def combined_matrix(matrices, multipliers):  # type: ignore[no-untyped-def]
    """M = Σ μG."""
    total = np.zeros(matrices.shape[1:])
    for j in range(multipliers.size):
        if multipliers[j] > 0.0:
            _add(total, matrices[j], multipliers[j])
    return total


@_kernel
def _factorise(matrix, factor):  # type: ignore[no-untyped-def]
    """Fill the lower triangle with L of LLᵀ = matrix; False if a pivot is lost in rounding."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            elif total > _PIVOT:
                factor[i, i] = math.sqrt(total)
            else:
                return False
    return True


@_kernel
def _inverse_root(combined, root):  # type: ignore[no-untyped-def]
    """Fill ``root`` with L⁻¹ of LLᵀ = I − M; False if M ≺ I is in doubt."""
    size = combined.shape[0]
    factor = np.zeros((size, size))
    if not _factorise(np.eye(size) - combined, factor):
        return False
    root[:] = 0.0
    for i in range(size):
        for k in range(i):
            for j in range(k + 1):
                root[i, j] -= factor[i, k] * root[k, j]
        for j in range(i):
            root[i, j] /= factor[i, i]
        root[i, i] = 1.0 / factor[i, i]
    return True
