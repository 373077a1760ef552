"""A small city for tests: three stations, two hospitals and five cells in a row."""

from typing import Any

import numpy as np

from ideal_dispatch.fleet.city import FleetCity, Priority
from tests.fleets import matrix_travel

PRIORITIES = (Priority("high", 0.5), Priority("low", 0.5, lights=False, late_s=900.0))


def small_city(**changes: Any) -> FleetCity:
    """Places 0 … 4, a minute apart; units at both ends and in the middle."""
    place = np.arange(5)
    minutes = 60.0 * np.abs(place[:, None] - place)
    given: dict[str, Any] = {
        "name": "Row",
        "travel": matrix_travel(minutes, 1.5 * minutes),
        "station_names": ("west", "middle", "east"),
        "stations": [0, 2, 4],
        "units": [0, 0, 1, 2],
        "hospitals": [1, 4],
        "cells": place,
        "weights": np.array([1.0, 2.0, 3.0, 2.0, 1.0]),
        "calls_per_day": 60.0,
        "priorities": PRIORITIES,
    }
    return FleetCity(**given | changes)
