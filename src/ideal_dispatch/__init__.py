"""Proved, selective dual dispatch of ambulances: the IDEAL framework as software."""

from typing import TYPE_CHECKING, Any

from ideal_dispatch.context import Calendar, Context, Weather, WeatherValue
from ideal_dispatch.forecast import Model
from ideal_dispatch.gap import OptimisticGap, explain, optimistic_gap, pairwise_gap
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.records import Trip, Trips
from ideal_dispatch.scenarios import (
    ScenarioSet,
    TargetRadius,
    burg_divergence,
    minimise_linear,
    target_radius,
)

if TYPE_CHECKING:
    from ideal_dispatch.learning import fit

__version__ = "0.1.0"

__all__ = [
    "Calendar",
    "Context",
    "Depot",
    "Model",
    "OptimisticGap",
    "Path",
    "RoadNetwork",
    "ScenarioSet",
    "TargetRadius",
    "Trip",
    "Trips",
    "Weather",
    "WeatherValue",
    "__version__",
    "burg_divergence",
    "explain",
    "fit",
    "minimise_linear",
    "optimistic_gap",
    "pairwise_gap",
    "target_radius",
]


def __getattr__(name: str) -> Any:
    """``fit`` on first use: it needs torch, which dispatch does without."""
    if name == "fit":
        from ideal_dispatch.learning import fit

        return fit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
