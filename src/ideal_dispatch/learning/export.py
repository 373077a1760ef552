"""From a trained network to the artefact that dispatch uses."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.forecast.model import Model
from ideal_dispatch.forecast.radius import RadiusRule
from ideal_dispatch.learning.encoders import RepresentationNetwork, whitening
from ideal_dispatch.learning.problem import LearningProblem

_OFF_ZERO = 1e-3  # keeps the direction of a perfectly average edge defined


def export(network: RepresentationNetwork, problem: LearningProblem) -> Model:
    """The model with a radius of zero; a polar head gets its directions here.

    The loss says nothing about them. They are the principal components of ψ's
    hidden layer over all edges: edges that the model treats alike point alike,
    and no direction dominates.
    """
    weights: dict[str, npt.NDArray[Any]] = {
        name: value.numpy().copy() for name, value in network.state_dict().items()
    }
    if network.architecture.head == "polar":
        weights |= _directions(network, problem)
    weights |= problem.context_scale.rows("context") | problem.edge_scale.rows("edge")
    weights |= _range(network, problem)
    weights |= {
        "location.centre": np.nan_to_num(problem.centre),
        "location.frequencies": problem.frequencies,
    }
    roads = problem.network
    known = not np.isnan(roads.lon).any()
    bounds = (
        (roads.lon.min(), roads.lat.min(), roads.lon.max(), roads.lat.max())
        if known
        else (0.0,) * 4
    )
    return Model(
        architecture=network.architecture,
        encoding=problem.trips.encoding,
        weights=weights,
        base_ratio=problem.base_ratio,
        radius_rule=RadiusRule(constant=0.0),
        seen=problem.seen,
        network_checksum=roads.checksum,
        network_bounds=tuple(float(b) for b in bounds),  # type: ignore[arg-type]
        bounds=problem.bounds,
    )


def _range(
    network: RepresentationNetwork, problem: LearningProblem
) -> dict[str, npt.NDArray[np.float32]]:
    """The least and the greatest time of every edge in a training context, over its base time."""
    distinct = np.unique(problem.contexts[problem.train].astype(np.float32), axis=0)
    edges = network.edge_part().detach()
    least, greatest = np.full(len(edges), np.inf), np.zeros(len(edges))
    for rows in np.array_split(distinct, -(-len(distinct) // 32)):
        times = network.all_times(torch.from_numpy(rows), edges)
        np.minimum(least, times.min(axis=0), out=least)
        np.maximum(greatest, times.max(axis=0), out=greatest)
    return {
        f"range.{name}": (times / problem.base_s).astype(np.float32)
        for name, times in (("least", least), ("greatest", greatest))
    }


@torch.no_grad()
def _directions(
    network: RepresentationNetwork, problem: LearningProblem
) -> dict[str, npt.NDArray[np.float32]]:
    """The polar head's directions: principal components, each scaled to unit variance."""
    contexts = torch.tensor(problem.contexts[problem.train], dtype=torch.float32)
    context = network.context_part(contexts).mean(dim=0)
    hidden = torch.nn.functional.silu(network.edge_part() + context).double().numpy()
    share = problem.base_s / problem.base_s.sum()  # long edges matter as much as many short ones
    matrix, offset = whitening(hidden, share, network.architecture.dimension)
    offset[0] += _OFF_ZERO
    named = {"context": context.numpy(), "weight": matrix, "bias": offset}
    return {f"direction.{name}": value.astype(np.float32) for name, value in named.items()}
