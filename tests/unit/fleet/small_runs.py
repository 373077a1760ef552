"""A small fleet on a line of places, and experiments of a few days with it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.fleet.city import FleetCity, Priority
from ideal_dispatch.fleet.experiment import FleetExperiment
from tests.fleets import matrix_travel


def small_city(**changes: Any) -> FleetCity:
    """Two stations with two units each, one hospital and four cells, three minutes apart."""
    place = np.arange(5.0)
    travel = matrix_travel(180.0 * np.abs(place[:, None] - place))
    city = FleetCity(
        "Smallville", travel, ("West", "East"), np.array([0, 3]), np.array([0, 0, 1, 1]),
        np.array([4]), np.array([0, 1, 2, 3]), np.array([0.4, 0.2, 0.1, 0.3]), 60.0,
        (Priority("urgent", 0.5), Priority("other", 0.5, lights=False)), arrests=0.2,
        notes=("everything is invented",),
    )  # fmt: skip
    return city.changed(**changes)


@dataclass(frozen=True)
class SmallExperiment(FleetExperiment):
    """An experiment whose cities are all the small one."""

    def city(self, name: str) -> FleetCity:
        return small_city(name=name or "Smallville")


def experiment(**changes: Any) -> SmallExperiment:
    """Three years of four days."""
    return SmallExperiment(**{"years": 3, "days": 4, "seeds": (1,), **changes})
