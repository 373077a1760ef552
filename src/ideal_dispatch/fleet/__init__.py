"""The whole fleet over years: calls, units, hospitals, second units, and what they cost others."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.fleet.city import FleetCity
    from ideal_dispatch.fleet.experiment import FleetExperiment
    from ideal_dispatch.fleet.inputs.embedded import harbour_fleet
    from ideal_dispatch.fleet.run import FleetResult, run_fleet, simulate_fleet
    from ideal_dispatch.fleet.simulation import SecondRule, Simulator

_NAMES = {
    "city": "FleetCity",
    "inputs.embedded": "harbour_fleet",
    "experiment": "FleetExperiment",
    "run": "FleetResult run_fleet simulate_fleet",
    "simulation": "SecondRule Simulator",
}

__all__ = [
    "FleetCity", "FleetExperiment", "FleetResult", "SecondRule", "Simulator", "harbour_fleet",
    "run_fleet", "simulate_fleet",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__, {name: home for home in _NAMES for name in _NAMES[home].split()}
)
