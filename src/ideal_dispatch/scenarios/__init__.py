"""Travel-time scenarios: the Burg ball of metrics and the edge times it induces."""

from ideal_dispatch.scenarios.burg import (
    EigenvalueBounds,
    LinearMinimum,
    burg_divergence,
    eigenvalue_bounds,
    minimise_linear,
)
from ideal_dispatch.scenarios.scenario_set import ScenarioSet

__all__ = [
    "EigenvalueBounds",
    "LinearMinimum",
    "ScenarioSet",
    "burg_divergence",
    "eigenvalue_bounds",
    "minimise_linear",
]
