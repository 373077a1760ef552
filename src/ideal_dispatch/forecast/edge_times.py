"""ψ compiled: the seconds of single edges, so that a search can ask for those it looks at.

What an edge takes in a context depends on nothing else, not even in its last bit:
asking for one edge or for all of them gives the same number.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ideal_dispatch.compiled import kernel

Array32 = npt.NDArray[np.float32]

# sums may be reordered, so that they run in parallel, but what is no number must stay none
_kernel = kernel(error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})

# tanh as a rational function of single precision (Eigen's): unlike exp, compilers vectorise it
_FLAT = np.float32(9.0)
_P1, _P3, _P5, _P7, _P9, _P11, _P13 = np.array(
    [4.89352455891786e-3, 6.37261928875436e-4, 1.48572235717979e-5, 5.12229709037114e-8,
     -8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16], np.float32,
)  # fmt: skip
_Q0, _Q2, _Q4, _Q6 = np.array(
    [4.89352518554385e-3, 2.26843463243900e-3, 1.18534705686654e-4, 1.19825839466702e-6], np.float32
)
_HALF = np.float32(0.5)


class EdgeTimes(NamedTuple):
    """The inputs of the time of an edge, apart from its context, in the form of the kernels.

    ``edges`` is what each edge adds to the first layer of ψ, ``weight`` and ``bias`` are
    its output layer. A ``polar`` head gives the logarithm of the ratio to ``base_s``, a
    plain one the embedding, whose squared length is the ratio.
    """

    edges: Array32
    weight: Array32
    bias: Array32
    polar: bool
    base_s: Array32
    least_s: Array32
    greatest_s: Array32


@_kernel
def activate(edge, context, hidden):  # type: ignore[no-untyped-def]
    """Fill ``hidden`` with silu(x) = x (1 + tanh(x/2)) / 2 of the sum of both parts."""
    if hidden.itemsize > 4:  # double precision is for tests of the theory
        for i in range(hidden.size):
            x = edge[i] + context[i]
            hidden[i] = x / (1.0 + np.exp(-x))
        return
    for i in range(hidden.size):
        x = edge[i] + context[i]
        y = _HALF * x
        y = -_FLAT if y < -_FLAT else y
        y = _FLAT if y > _FLAT else y
        s = y * y
        p = _P1 + s * (_P3 + s * (_P5 + s * (_P7 + s * (_P9 + s * (_P11 + s * _P13)))))
        q = _Q0 + s * (_Q2 + s * (_Q4 + s * _Q6))
        hidden[i] = _HALF * x * (np.float32(1.0) + y * p / q)


@_kernel
def output(weight, bias, hidden):  # type: ignore[no-untyped-def]
    """One number of ψ's output layer."""
    total = bias
    for i in range(hidden.size):
        total += weight[i] * hidden[i]
    return total


@_kernel
def edge_time(times, edge, context, hidden):  # type: ignore[no-untyped-def]
    """Seconds of one edge in one context; ``hidden`` is room for the hidden layer."""
    edges, weight, bias, polar, base_s, least_s, greatest_s = times
    activate(edges[edge], context, hidden)
    if polar:
        ratio = np.exp(output(weight[0], bias[0], hidden))
    else:
        ratio = hidden.dtype.type(0.0)
        for row in range(bias.size):
            value = output(weight[row], bias[row], hidden)
            ratio += value * value
    seconds = base_s[edge] * ratio
    if seconds < least_s[edge]:
        seconds = least_s[edge]
    return greatest_s[edge] if seconds > greatest_s[edge] else seconds


@kernel
def times_along(times, contexts, which, edges, seconds):  # type: ignore[no-untyped-def]
    """Fill ``seconds`` with the time of each of the edges in the context that ``which`` names."""
    hidden = np.empty(times[0].shape[1], times[0].dtype)
    for i in range(edges.size):
        seconds[i] = edge_time(times, edges[i], contexts[which[i]], hidden)


@kernel
def log_ratios(edges, context, weight, bias, logs):  # type: ignore[no-untyped-def]
    """Fill ``logs`` with a polar head's output for every edge in one context."""
    hidden = np.empty(edges.shape[1], edges.dtype)
    for e in range(logs.size):
        activate(edges[e], context, hidden)
        logs[e] = output(weight, bias, hidden)
