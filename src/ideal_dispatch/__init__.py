"""Proved, selective dual dispatch of ambulances: the IDEAL framework as software."""

from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.scenarios import ScenarioSet, burg_divergence, minimise_linear

__version__ = "0.1.0"

__all__ = [
    "Depot",
    "Path",
    "RoadNetwork",
    "ScenarioSet",
    "__version__",
    "burg_divergence",
    "minimise_linear",
]
