"""The shape of the scenario set: its rank, and which times it moves together.

The loss fixes the lengths of embeddings, hardly their directions; so these
numbers describe a modelling choice and are reported with every model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.features import midpoints
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.scenarios import ScenarioSet

DISTANCES_M = (0, 250, 500, 1000, 2000, 4000, 8000)
OVERLAPS = (0.0, 1e-9, 0.25, 0.5, 0.75, 1.0)
_PAIRS = 20_000
_PATHS = 80


@dataclass(frozen=True, slots=True)
class Shape:
    """Rank and implied correlation of one scenario set; NaN where no pair fell into a bin.

    ``by_distance`` is the mean correlation of the times of two random edges,
    binned by :data:`DISTANCES_M`; ``by_overlap`` that of two trips, binned by
    the share of the shorter one's length that both drive (:data:`OVERLAPS`).
    The correlation of two trips is ⟨G, G′⟩ / ‖G‖‖G′‖. ``concentration`` is the median of
    ‖G‖_F / tr G over trips: 1 means that a scenario can only rescale the whole trip.
    """

    dimension: int
    effective_rank: float
    concentration: float
    by_distance: FloatArray
    by_overlap: FloatArray


def describe_shape(
    network: RoadNetwork, scenarios: ScenarioSet, paths: Sequence[Path], seed: int = 0
) -> Shape:
    """Measure a scenario set on random pairs of edges and on the given trips."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(network.num_edges, size=(2, _PAIRS))
    lon, lat = midpoints(network).T
    apart = great_circle_m(lon[first], lat[first], lon[second], lat[second])
    units = scenarios.embeddings / np.sqrt(np.maximum(scenarios.nominal_times, 1e-30))[:, None]
    edges = np.einsum("ij,ij->i", units[first], units[second]) ** 2
    counted = (first != second) & ~np.isnan(apart)  # without coordinates nothing is near
    driven = [path for path in paths if len(path)]
    chosen = [driven[i] for i in rng.permutation(len(driven))[:_PATHS]]
    overlap, together, concentration = np.empty(0), np.empty(0), float("nan")
    if len(chosen) > 1:
        matrices = np.array([scenarios.path_matrix(path) for path in chosen])
        flat = matrices.reshape(len(chosen), -1)
        norms = np.linalg.norm(flat, axis=1)
        concentration = float(np.median(norms / np.trace(matrices, axis1=1, axis2=2)))
        member = np.zeros((len(chosen), network.num_edges))
        for row, path in zip(member, chosen, strict=True):
            row[path.edges] = 1.0
        shared = (member * network.length_m) @ member.T
        shorter = np.minimum.outer(shared.diagonal(), shared.diagonal())
        pairs = np.triu_indices(len(chosen), 1)
        overlap = (shared / shorter)[pairs]
        together = ((flat @ flat.T) / np.outer(norms, norms))[pairs]
    return Shape(
        dimension=scenarios.dimension,
        effective_rank=scenarios.effective_rank,
        concentration=concentration,
        by_distance=_binned(apart[counted], edges[counted], DISTANCES_M),
        by_overlap=_binned(overlap, together, OVERLAPS),
    )


def _binned(where: FloatArray, values: FloatArray, edges: Sequence[float]) -> FloatArray:
    """The mean of ``values`` in each bin; the last bin holds its upper edge and beyond."""
    bins = np.clip(np.searchsorted(edges, where, side="right") - 1, 0, len(edges) - 2)
    count = np.bincount(bins, minlength=len(edges) - 1)
    total = np.bincount(bins, weights=values, minlength=len(edges) - 1)
    means: FloatArray = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return means
