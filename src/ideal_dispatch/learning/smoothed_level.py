"""The quadratically smoothed lower level ([IDEAL] Remark 1), for small networks.

ĝ(c) = min cᵀz + γ‖z‖² over flows 0 ≤ z ≤ 1 with A z = b. The minimiser is unique, so ĝ
is differentiable, and its gradient in c is the minimiser itself: a flow over many
paths in place of one. It lies between the fastest time and that time plus γ for each
edge of the fastest path.

The dual has one number per node, the potential π, and is solved by Newton's method:
z = clip((π_tail − π_head − c) / 2γ, 0, 1). A linear system of the size of the network for
every iteration of every trip is what makes it slow.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level import (
    LowerLevel,
    Routes,
    Rows,
    TrainingError,
    finite,
)
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

_TOLERANCE = 1e-9  # of the flow at every node
_ITERATIONS = 500
_START = 0.2
_DAMPING = 1e-3
_FLAT = 1e-12  # nodes without any flow leave the system singular
_LONGEST = 1e6


class SmoothedLowerLevel(LowerLevel):
    """Trips of which only the ends are known: each spreads over ways, by ``gamma_s`` seconds."""

    def __init__(
        self, network: RoadNetwork, trips: Trips, inputs: FloatArray, gamma_s: float
    ) -> None:
        super().__init__(network, trips, inputs)
        self._gamma_s = gamma_s

    def solve(self, model: RepresentationNetwork, rows: Rows) -> tuple[Routes, FloatArray]:
        """The flows of the trips in ``rows``, and ĝ in seconds."""
        parts = model.edge_part().detach()
        edges, shares, seconds = [], [], np.empty(rows.size)
        for position, row in enumerate(rows):
            context = self.contexts[self.group[rows[[position]]]]
            times = finite(model.all_times(context, parts)[0])
            ends = int(self._trips.origin[row]), int(self._trips.destination[row])
            flow = smoothed_flow(self._network, times, *ends, self._gamma_s)
            used = np.flatnonzero(flow)
            edges.append(used)
            shares.append(flow[used])
            seconds[position] = flow @ times + self._gamma_s * (flow @ flow)
        start = np.concatenate([[0], np.cumsum([used.size for used in edges])]).astype(np.int64)
        beside_s = self._gamma_s * np.array([share @ share for share in shares])
        return Routes(np.concatenate(edges), start, np.concatenate(shares), beside_s), seconds


def smoothed_flow(
    network: RoadNetwork, times_s: FloatArray, origin: int, destination: int, gamma_s: float
) -> FloatArray:
    """The flow z of least cᵀz + γ‖z‖² from origin to destination, one number per edge."""
    size, tail, head = network.num_nodes, network.tail, network.head
    if origin == destination:
        return np.zeros(network.num_edges)
    demand = np.zeros(size)
    demand[[origin, destination]] = 1.0, -1.0
    edge = np.arange(network.num_edges)
    sign = np.ones(network.num_edges)
    leaving = sp.csr_array((sign, (tail, edge)), (size, edge.size))
    incidence = leaving - sp.csr_array((sign, (head, edge)), (size, edge.size))

    def flow(potential: FloatArray) -> FloatArray:
        return np.clip((potential[tail] - potential[head] - times_s) / (2 * gamma_s), 0.0, 1.0)

    # the tree of fastest paths with a little flow on each edge: not far from the answer
    potential = network.distances_to(times_s + _START * gamma_s, destination)
    potential = np.where(np.isfinite(potential), potential, 0.0)
    for _ in range(_ITERATIONS):
        z = flow(potential)
        missing = demand - incidence @ z
        error = float(np.abs(missing).max())
        if error < _TOLERANCE:
            return z
        open_edges = sp.diags_array(((z > 0) & (z < 1)) / (2 * gamma_s))
        damping = max(_DAMPING * error, _FLAT) / (2 * gamma_s)
        system = incidence @ open_edges @ incidence.T + damping * sp.eye_array(size)
        step = spsolve(system.tocsc(), missing)
        potential = potential + _best_length(flow, potential, step, demand, incidence) * step
    raise TrainingError(
        f"the smoothed lower level did not converge from node {origin} to {destination}; "
        f"raise smoothing_s (now {gamma_s:g})"
    )


def _best_length(
    flow: Callable[[FloatArray], FloatArray], potential: FloatArray, step: FloatArray,
    demand: FloatArray, incidence: "sp.csr_array",
) -> float:  # fmt: skip
    """How far along a step the dual is greatest: where its slope, which never rises, is zero."""
    along, most = incidence.T @ step, 1.0

    def slope(length: float) -> float:
        return float(demand @ step - along @ flow(potential + length * step))

    while slope(most) > 0 and most < _LONGEST:
        most *= 4
    return float(brentq(slope, 0.0, most, xtol=1e-12)) if slope(most) < 0 else most
