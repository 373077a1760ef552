"""The three networks ϑ, θ, ψ in torch; :mod:`forecast.architecture` is their twin."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.compiled import plain
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.edge_times import Array32, EdgeTimes, times_along
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.forecast.radius import RadiusRule

if TYPE_CHECKING:
    from ideal_dispatch.learning.training_data import TrainingData

_FLAT = 1e-6  # a principal component this much weaker than the first is noise
_ROUNDING = 1e-10  # so is one this much weaker than the layer itself: single precision
_OFF_ZERO = 1e-3  # keeps the direction of a perfectly average edge defined


class RepresentationNetwork(nn.Module):
    """φ(𝒯)[e] = ψ(ϑ[e], θ(𝒯)) and the nominal times ĉ = ‖φ‖² ([IDEAL] equations 3–5).

    With the polar head ĉ = c₀ exp(a), where ψ gives a and c₀ are ``base_s``,
    and the loss never sees the direction of φ. Unlike the paper, the plain
    head too is scaled by √c₀: it then starts at sensible times in any city. And
    unlike the paper, no time leaves the physical bounds of its edge. Seconds of
    a trip beside its drive are softplus(``trip_constant``) minutes; they start at
    ``constant_s`` or 42 s, whichever is less; 0 leaves the constant out.
    """

    def __init__(
        self, architecture: Architecture, edges: FloatArray, base_s: FloatArray,
        bounds_s: tuple[FloatArray, FloatArray], columns: int, seed: int, constant_s: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.architecture = architecture
        d, width = architecture.dimension, architecture.width
        self.static, self.dynamic = (
            nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, d))
            for inputs in (edges.shape[1], columns)
        )
        self.cross = _Cross(d, width, d if architecture.head == "plain" else 1)
        for name, rows in (
            ("inputs", edges), ("base_s", base_s), ("least_s", bounds_s[0]),
            ("greatest_s", bounds_s[1]),
        ):  # fmt: skip
            self.register_buffer(name, torch.tensor(rows, dtype=torch.float32), persistent=False)
        self._initialise(torch.Generator().manual_seed(seed))
        self.trip_constant = None
        if constant_s:
            start = min(constant_s / 60.0, math.log(2.0))
            self.trip_constant = nn.Parameter(torch.full((1,), math.log(math.expm1(start))))

    inputs: torch.Tensor
    base_s: torch.Tensor
    least_s: torch.Tensor
    greatest_s: torch.Tensor

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            else:
                scale = 1.4 / parameter.shape[1] ** 0.5
                parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
        out = self.cross.out
        if self.architecture.head == "polar":
            out.weight.mul_(0.1)  # times start near the base
            return
        hidden = nn.functional.silu(self.edge_part()).double().numpy()
        share = (self.base_s / self.base_s.sum()).double().numpy()
        matrix, offset = whitening(hidden, share, out.out_features)
        size = max(np.sqrt((matrix**2).any(axis=1).sum()), 1.0)  # ‖ψ‖² starts at one on average
        out.weight.copy_(torch.from_numpy(matrix / size))
        out.bias.copy_(torch.from_numpy(offset / size))
        if not matrix.any():
            out.bias[0] = 1.0  # all edges are alike

    def representation(self, edges: torch.Tensor | None = None) -> torch.Tensor:
        """ϑ of the given edges, or of all."""
        rows: torch.Tensor = self.static(
            self.inputs if edges is None else self.inputs.index_select(0, edges)
        )
        return rows

    def edge_part(self, edges: torch.Tensor | None = None) -> torch.Tensor:
        """What edges add to the first layer of ψ."""
        part: torch.Tensor = self.cross.edge(self.representation(edges))
        return part

    def context_part(
        self, contexts: torch.Tensor, kept: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What contexts add to the first layer of ψ; ``kept`` multiplies θ's hidden layer."""
        first, activation, last = self.dynamic
        hidden = activation(first(contexts))
        part: torch.Tensor = self.cross.context(last(hidden if kept is None else hidden * kept))
        return part

    def constant_s(self) -> torch.Tensor:
        """Seconds of every trip beside its drive."""
        if self.trip_constant is None:
            return self.base_s.new_zeros(())
        return 60.0 * nn.functional.softplus(self.trip_constant[0])

    def times(self, hidden: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Seconds of ``edges``, (n,), from the sums of both parts, (n, width)."""
        out, activated = self.cross.out, nn.functional.silu(hidden)
        if self.architecture.head == "polar":
            ratio = (activated @ out.weight[0] + out.bias).exp()
        else:
            ratio = (out(activated) ** 2).sum(dim=-1)
        base_s, least_s, greatest_s = (rows.index_select(0, edges) for rows in self._rows)
        return (base_s * ratio).clamp(least_s, greatest_s)

    @property
    def _rows(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.base_s, self.least_s, self.greatest_s

    @torch.no_grad()
    def edge_times(self, edges: torch.Tensor) -> EdgeTimes:
        """The current times without gradient; ``edges`` is :meth:`edge_part` of all edges."""
        out = self.cross.out
        part, weight, bias, *rows = (
            array.detach().numpy() for array in (edges, out.weight, out.bias, *self._rows)
        )
        return EdgeTimes(part, weight, bias, self.architecture.head == "polar", *rows)

    @torch.no_grad()
    def context_rows(self, contexts: torch.Tensor) -> Array32:
        """:meth:`context_part` as kernels take it."""
        rows: Array32 = self.context_part(contexts).numpy()
        return rows

    def all_times(self, contexts: torch.Tensor, edges: torch.Tensor) -> FloatArray:
        """Seconds of every edge under every context, (C, E), without gradient.

        ``edges`` is :meth:`edge_part` of all edges, computed once for many calls.
        """
        times, parts = plain(self.edge_times(edges)), self.context_rows(contexts)
        seconds = np.empty((len(contexts), len(edges)))
        every = np.arange(len(edges))
        for number, row in enumerate(seconds):
            times_along(times, parts, np.full_like(every, number), every, row)
        return seconds


class _Cross(nn.Module):
    """ψ: a first layer that is a sum of two parts, and an output layer."""

    def __init__(self, dimension: int, width: int, outputs: int) -> None:
        super().__init__()
        self.edge = nn.Linear(dimension, width)
        self.context = nn.Linear(dimension, width, bias=False)
        self.out = nn.Linear(width, outputs)


def whitening(
    hidden: FloatArray, share: FloatArray, dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Directions that fill the space: principal components, each scaled to unit variance.

    Returns matrix and offset that map rows of ``hidden`` to ``dimension`` whitened coordinates.
    ``share`` weighs the rows and sums to one. Where the rows vary in fewer
    directions, the further coordinates are zero.
    """
    mean = share @ hidden
    values, vectors = np.linalg.eigh((hidden - mean).T @ ((hidden - mean) * share[:, None]))
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    noise = max(_FLAT * values[0], _ROUNDING * float((share @ hidden**2).sum()))
    matrix = np.zeros((dimension, len(mean)))
    for row, value, vector in zip(matrix, values, (vectors * signs).T, strict=False):
        if value > noise:
            row[:] = vector / np.sqrt(value)
    return matrix, -matrix @ mean


# --- what dispatch uses ----------------------------------------------------------


def export(network: RepresentationNetwork, data: "TrainingData") -> Model:
    """The model with a radius of zero; a polar head gets its directions here.

    The loss does not determine them. They are the principal components of ψ's
    hidden layer over all edges: edges that the model treats alike point alike,
    and no direction dominates.
    """
    weights: dict[str, npt.NDArray[Any]] = {
        name: value.numpy().copy() for name, value in network.state_dict().items()
    }
    if network.architecture.head == "polar":
        weights |= _directions(network, data)
    weights |= data.context_scale.rows("context") | data.edge_scale.rows("edge")
    weights |= _range(network, data)
    weights |= {
        "location.centre": np.nan_to_num(data.centre),
        "location.frequencies": data.frequencies,
    }
    roads = data.network
    corners = (roads.lon.min(), roads.lat.min(), roads.lon.max(), roads.lat.max())
    west, south, east, north = map(float, np.nan_to_num(corners))
    return Model(
        architecture=network.architecture,
        encoding=data.trips.encoding,
        weights=weights,
        base_ratio=data.base_ratio,
        radius_rule=RadiusRule(constant=0.0),
        seen=data.seen,
        network_checksum=roads.checksum,
        network_bounds=(west, south, east, north),
        bounds=data.bounds,
    )


def _range(
    network: RepresentationNetwork, data: "TrainingData"
) -> dict[str, npt.NDArray[np.float32]]:
    """The least and the greatest time of every edge in a training context, over its base time."""
    distinct = np.unique(data.contexts[data.train].astype(np.float32), axis=0)
    edges = network.edge_part().detach()

    def extremes(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        times = network.all_times(torch.from_numpy(rows), edges)
        return times.min(axis=0), times.max(axis=0)

    least, greatest = np.full(len(edges), np.inf), np.zeros(len(edges))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for low, high in pool.map(extremes, np.array_split(distinct, -(-len(distinct) // 32))):
            np.minimum(least, low, out=least)
            np.maximum(greatest, high, out=greatest)
    return {
        f"range.{name}": (times / data.base_s).astype(np.float32)
        for name, times in (("least", least), ("greatest", greatest))
    }


@torch.no_grad()
def _directions(
    network: RepresentationNetwork, data: "TrainingData"
) -> dict[str, npt.NDArray[np.float32]]:
    """The polar head's directions: principal components, each scaled to unit variance."""
    contexts = torch.tensor(data.contexts[data.train], dtype=torch.float32)
    context = network.context_part(contexts).mean(dim=0)
    hidden = torch.nn.functional.silu(network.edge_part() + context).double().numpy()
    share = data.base_s / data.base_s.sum()  # long edges matter as much as many short ones
    matrix, offset = whitening(hidden, share, network.architecture.dimension)
    offset[0] += _OFF_ZERO
    named = {"context": context.numpy(), "weight": matrix, "bias": offset}
    return {f"direction.{name}": value.astype(np.float32) for name, value in named.items()}
