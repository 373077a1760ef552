"""A small fleet on a line of places, and experiments of a few days with it."""

import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.fleet.city import FleetCity, Priority
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.run import run_fleet
from ideal_dispatch.fleet.simulation import FleetView
from ideal_dispatch.fleet.travel import Travel


def small_city(**changes: Any) -> FleetCity:
    """Two stations with two units each, one hospital and four cells, three minutes apart."""
    place = np.arange(5.0)
    travel = Travel.of_matrix(180.0 * np.abs(place[:, None] - place))
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


@dataclass(frozen=True)
class FarSecond:
    """A policy in Python: the unit that is expected last goes as the second, to every call."""

    least: int = 2
    name: str = "far second"

    def choose(self, view: FleetView) -> tuple[int, int]:
        free = [unit for unit in np.flatnonzero(view.free).tolist() if unit != view.primary]
        if len(free) < self.least or not view.calls.entitled[view.call]:
            return view.primary, -1
        return view.primary, max(free, key=lambda unit: view.response_s[unit])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _stop(step: str, share: float) -> None:
    if step == "simulating":
        signal.pause()


if __name__ == "__main__":  # a process of its own, which waits after its first year to be killed
    years, workers = map(int, sys.argv[2:])
    run_fleet(experiment(years=years), sys.argv[1], workers=workers, watch=_stop)
