"""A network of two ways whose objective has a kink, in few weights and double precision."""

from typing import Any

import numpy as np
import torch

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.trainer import uniform_in_ball
from tests.theory.test_learning_direction import _two_ways
from tests.unit.learning.worlds import in_double, trainer
from workshop.smoothed_level import SmoothedTrainer
from workshop.stationarity import Objective

ROWS = np.arange(2)


def at_a_kink(seed: int = 4, gamma_s: float = 0.0, **changes: Any) -> Objective:
    """J of two trips, at weights where both ways take equally long and J is not smooth.

    With ``gamma_s`` it is that of the smoothed lower level.
    """
    network, table, _ = _two_ways()
    shape = Architecture("attributes", "plain", 1, 2, hour_harmonics=0, crossings=False)
    given: dict[str, Any] = {
        "loss": "squared", "smoothness": 1e-3, "path_refreshes": 0, "trip_constant": False,
        "weight_decay": 0.0, "seed": seed,
    }  # fmt: skip
    made = trainer(network, table, TrainParams(shape, **given | changes))
    if gamma_s:
        made = SmoothedTrainer(made.data, made.params, gamma_s)
    made = in_double(made)
    with torch.no_grad():
        made.model.cross.out.weight.zero_()
        made.model.cross.out.bias.fill_(0.7)
    return Objective(made, ROWS)


def ball(size: int, count: int, seed: int) -> FloatArray:
    """Draws from the unit ball, as training makes them."""
    rng = np.random.default_rng(seed)
    return np.array([uniform_in_ball(size, rng).numpy() for _ in range(count)])


def across(objective: Objective, seed: int = 0) -> FloatArray:
    """A unit direction in weights along which one way becomes faster than the other."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        along = rng.standard_normal(objective.here.size)
        along /= np.linalg.norm(along)
        sides = [objective(objective.here + sign * 1e-6 * along)[1] for sign in (1.0, -1.0)]
        if np.linalg.norm(sides[0] - sides[1]) > 0.05 * np.linalg.norm(sides[0]):
            return along
    raise AssertionError("no kink here")
