"""The upper level: losses of trip times, and the spatial regulariser."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import meetings


def losses(
    params: TrainParams, predicted: torch.Tensor, observed: torch.Tensor, mean_s: float
) -> torch.Tensor:
    """ℓ(g, t) per trip; see :class:`TrainParams` for the three kinds and their unit."""
    unit = observed if params.loss == "relative" else mean_s
    error = (predicted - observed) / unit
    if params.loss == "squared":
        return 0.5 * error**2
    return torch.nn.functional.huber_loss(
        error, torch.zeros_like(error), reduction="none", delta=params.huber_s / mean_s
    )


class SpatialRegulariser:
    """R(ϑ) = Σ ‖ϑ[e]/√l[e] − ϑ[e′]/√l[e′]‖² over ordered pairs that share an end.

    [IDEAL] equation 7, as the quadratic form 2 tr(UᵀLU) of the graph Laplacian
    L of the edges, U = ϑ/√l, whose gradient in U is 4LU.
    """

    def __init__(self, network: RoadNetwork) -> None:
        adjacent = adjacency(network)
        laplacian = sp.diags_array(adjacent.sum(axis=1)) - adjacent
        root = sp.diags_array(network.length_m**-0.5)
        self._form = (root @ laplacian @ root).tocsr().astype(np.float32)

    def __call__(self, static: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = _QuadraticForm.apply(static, self._form)  # type: ignore[no-untyped-call]
        return 2.0 * value


class _QuadraticForm(torch.autograd.Function):
    """tr(UᵀMU) of a sparse symmetric M: SciPy's product serves value and gradient."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, form: "sp.csr_array") -> torch.Tensor:
        product = torch.from_numpy(form @ rows.detach().numpy())
        ctx.save_for_backward(product)
        return (rows.detach() * product).sum()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (product,) = ctx.saved_tensors
        return 2.0 * gradient * product, None


def adjacency(network: RoadNetwork) -> "sp.csr_array":
    """One where two different edges share an end, zero elsewhere, (E, E)."""
    shared = meetings(network).tocoo()
    other = shared.row != shared.col
    return sp.csr_array(
        (np.ones(int(other.sum())), (shared.row[other], shared.col[other])), shape=shared.shape
    )
