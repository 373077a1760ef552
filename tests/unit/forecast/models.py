"""Models of a small town, made without much training."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch import Model, RoadNetwork, Trips
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import RadiusParams, TrainParams
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.radius_training import fit_radius, trip_radii
from tests.unit.learning.worlds import town, trainer, trips


def small_model(
    network: RoadNetwork | None = None, table: Trips | None = None, seed: int = 0, **shape: Any
) -> Model:
    """A model with a radius network; by default of :func:`town` and its trips."""
    network = network or town()
    table = trips(network) if table is None else table
    sizes: dict[str, Any] = {"features": "attributes", "dimension": 4, "width": 8}
    params = TrainParams(Architecture(**sizes | shape), epochs=1, seed=seed)
    made = trainer(network, table, params)
    made.run()
    model = export(made.finish(), made.data)
    radii = trip_radii(model, network, table, jobs=1)
    fitted = fit_radius(
        RadiusParams(epochs=20, uses_trip=True), radii.contexts, radii.features, radii.upper,
        np.arange(len(table)) < 10,
    )  # fmt: skip
    weights = {**model.weights, **fitted.weights}
    return replace(model, weights=weights, radius_rule=fitted.rule, details={"versions": {"x": 1}})
