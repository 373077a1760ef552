"""The radius of the scenario set, predicted from the context ([IDEAL] ϱ)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.architecture import Weights, silu
from ideal_dispatch.forecast.edge_times import Array32
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES

TRIP_FEATURES = ("log_nominal_s", "log_length_m", "major_share", "mean_edge_log_m")
_MAJOR = np.isin(ROAD_CLASSES, ("motorway", "trunk", "primary", "secondary"))


@dataclass(frozen=True, slots=True)
class RadiusRule:
    """How a model's radius is made: scale · softplus(network), or one number.

    ``loss`` is what the network was fitted with, ``level`` the quantile or
    coverage it aims at, ``scale`` the conformal factor (1 without), and
    ``constant`` a radius that overrides the network. The network's value is held
    at ``greatest``, its largest for a training trip, where that is known.
    """

    loss: str = "none"
    level: float | None = None
    scale: float = 1.0
    uses_trip: bool = False
    constant: float | None = None
    greatest: float | None = None

    def __post_init__(self) -> None:
        for name in ("scale", "constant", "greatest"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise InputError(f"radius {name} {value}: it must be finite and zero or more")

    def __call__(
        self, weights: Weights, contexts: Array32, trips: FloatArray | None
    ) -> npt.NDArray[np.float64]:
        """One radius per row of θ, with trip features where the rule uses them."""
        if self.constant is not None:
            return np.full(len(contexts), self.scale * self.constant)
        columns: list[npt.NDArray[np.floating]] = [contexts]
        if self.uses_trip:
            mean, inverse = weights["radius.trip_mean"], weights["radius.trip_scale"]
            shape = (len(contexts), mean.size)
            columns.append(np.zeros(shape) if trips is None else (trips - mean) * inverse)
        inputs = np.column_stack(columns).astype(np.float32)
        with np.errstate(over="ignore"):
            hidden = silu(inputs @ weights["radius.0.weight"].T + weights["radius.0.bias"])
        out = hidden @ weights["radius.2.weight"][0] + weights["radius.2.bias"][0]
        radii: FloatArray = np.logaddexp(0.0, out.astype(np.float64))
        return self.scale * (radii if self.greatest is None else np.minimum(radii, self.greatest))


def trip_features(
    network: RoadNetwork, paths: Sequence[Path], times_s: Sequence[FloatArray]
) -> FloatArray:
    """What a radius may know of a trip: columns :data:`TRIP_FEATURES`, one row per path."""
    rows = np.zeros((len(paths), len(TRIP_FEATURES)))
    for row, path, times in zip(rows, paths, times_s, strict=True):
        if not len(path):
            continue
        length = network.length_m[path.edges]
        major = length[_MAJOR[network.road_class[path.edges]]].sum() / length.sum()
        seconds = max(path.time_s(times), 1.0)
        row[:] = np.log(seconds), np.log(length.sum()), major, np.log(length).mean()
    return rows
