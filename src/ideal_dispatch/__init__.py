"""Proved, selective dual dispatch of ambulances: the IDEAL framework as software."""

from ideal_dispatch.gap import OptimisticGap, explain, optimistic_gap, pairwise_gap
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.scenarios import (
    ScenarioSet,
    TargetRadius,
    burg_divergence,
    minimise_linear,
    target_radius,
)

__version__ = "0.1.0"

__all__ = [
    "Depot",
    "OptimisticGap",
    "Path",
    "RoadNetwork",
    "ScenarioSet",
    "TargetRadius",
    "__version__",
    "burg_divergence",
    "explain",
    "minimise_linear",
    "optimistic_gap",
    "pairwise_gap",
    "target_radius",
]
