"""Travel-time scenarios: the Burg ball of metrics and the edge times it induces."""

from ideal_dispatch.scenarios.burg import (
    LinearMinimum,
    burg_divergence,
    eigenvalue_bounds,
    minimise_linear,
)
from ideal_dispatch.scenarios.scenario_set import ScenarioSet
from ideal_dispatch.scenarios.target_radius import TargetRadius, target_radius

__all__ = [
    "LinearMinimum",
    "ScenarioSet",
    "TargetRadius",
    "burg_divergence",
    "eigenvalue_bounds",
    "minimise_linear",
    "target_radius",
]
