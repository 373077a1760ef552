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
import torch
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.lower_level import Rows, TrainingError, finite
from ideal_dispatch.learning.trainer import Trainer
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork

_TOLERANCE = 1e-9  # of the flow at every node
_ITERATIONS = 500
_START = 0.2
_DAMPING = 1e-3
_FLAT = 1e-12  # nodes without any flow leave the system singular
_LONGEST = 1e6


class SmoothedTrainer(Trainer):
    """Algorithm 1 in which each trip spreads over ways, by ``gamma_s`` seconds.

    What it predicts is of fastest paths all the same.
    """

    def __init__(self, data: TrainingData, params: TrainParams, gamma_s: float) -> None:
        super().__init__(data, params)
        self._gamma_s = gamma_s

    def _trip_times(
        self, rows: Rows, static: torch.Tensor | None, kept: torch.Tensor | None
    ) -> torch.Tensor:
        """ĝ of the trips; by Danskin's theorem the flow is held fixed like a path."""
        flows = [self._flow(row) for row in rows]
        used = [np.flatnonzero(flow) for flow in flows]
        owner = np.repeat(np.arange(rows.size), [edges.size for edges in used])
        seconds = self.edge_seconds(rows, np.concatenate(used), owner, static, kept)
        shares = np.concatenate([flow[edges] for flow, edges in zip(flows, used, strict=True)])
        seconds = seconds * torch.from_numpy(shares).to(seconds.dtype)
        drives = seconds.new_zeros(rows.size).index_add(0, torch.from_numpy(owner), seconds)
        beside_s = torch.tensor([self._gamma_s * float(flow @ flow) for flow in flows])
        return drives + self.model.constant_s() + beside_s.to(seconds.dtype)

    def _flow(self, row: int) -> FloatArray:
        """The flow of one trip under the current times."""
        level, trips = self.lower_level, self.data.trips
        context = level.contexts[level.group[row]][None]
        times_s = finite(self.model.all_times(context, self.model.edge_part().detach())[0])
        ends = int(trips.origin[row]), int(trips.destination[row])
        return smoothed_flow(self.data.network, times_s, *ends, self._gamma_s)


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
        f"raise gamma_s (now {gamma_s:g})"
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
