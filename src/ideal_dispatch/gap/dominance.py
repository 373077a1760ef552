"""Dominance: a partial path that another one to the same node makes superfluous.

Symbols: ``P``, ``P'`` two paths to one node, ``E = G(P) − G(P')``, ``M_ρ`` the largest
eigenvalue of any metric in the ball.

P' is no slower than P in any scenario if log det(I + sE) ≥ ρ for some s > 0, or, as
‖X − I‖_F ≤ M_ρ − 1 in the ball, if tr E ≥ (M_ρ − 1) ‖E‖_F.
"""

import math

from ideal_dispatch.compiled import kernel
from ideal_dispatch.scenarios.small_matrices import factorise

_TRIES = 3
_HOPELESS = 1.2


@kernel(fastmath={"reassoc", "contract"})
def _distance_squared(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(first.size):
        value = second[i] - first[i]
        total += value * value
    return total


@kernel
def dominates(first, second, sooner, radius, width, difference, factor):  # type: ignore[no-untyped-def]
    """Whether the path of matrix ``first`` is proved no slower than ``second`` in any scenario.

    Proved, never guessed; what is missed costs labels. ``sooner`` is how much
    smaller the trace of ``first`` is, and ``width`` is M_ρ − 1.
    """
    square = 0.0
    for i in range(first.shape[0]):  # row by row, as mostly the first few say enough
        square += _distance_squared(first[i], second[i])
        if sooner * sooner < min(_HOPELESS * radius, 0.9) * square:  # hardly ever true then
            return False
    if sooner >= width * math.sqrt(square):
        return True
    for i in range(first.shape[0]):
        for j in range(i + 1):
            difference[i, j] = second[i, j] - first[i, j]
    scale = sooner / square
    for _ in range(_TRIES):
        logdet = factorise(difference, scale, factor)
        if logdet >= radius:
            return True
        scale *= 0.6 if logdet <= 0.0 else 1.7
    return False
