"""Proved, selective dual dispatch of ambulances: the IDEAL framework as software."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.context import Calendar, Context, Weather, WeatherValue
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.gap import OptimisticGap, explain_gap, optimistic_gap, pairwise_gap
    from ideal_dispatch.learning import fit
    from ideal_dispatch.network import Depot, Path, RoadNetwork
    from ideal_dispatch.records import Trip, Trips
    from ideal_dispatch.scenarios import (
        ScenarioSet,
        TargetRadius,
        burg_divergence,
        minimise_linear,
        target_radius,
    )

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
    "explain_gap",
    "fit",
    "minimise_linear",
    "optimistic_gap",
    "pairwise_gap",
    "target_radius",
]

_NAMES = {
    "context": ("Calendar", "Context", "Weather", "WeatherValue"),
    "forecast": ("Model",),
    "gap": ("OptimisticGap", "explain_gap", "optimistic_gap", "pairwise_gap"),
    "learning": ("fit",),
    "network": ("Depot", "Path", "RoadNetwork"),
    "records": ("Trip", "Trips"),
    "scenarios": (
        "ScenarioSet", "TargetRadius", "burg_divergence", "minimise_linear", "target_radius",
    ),
}  # fmt: skip

__getattr__ = on_first_use(__name__, {name: home for home in _NAMES for name in _NAMES[home]})


def __dir__() -> list[str]:
    return __all__
