"""Emergency vehicles inside SUMO: what would have happened, had they been sent."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo.day_plan import HOUR_S, DayPlan
from ideal_dispatch.traffic.sumo.demand import Demand
from ideal_dispatch.traffic.sumo.engine import SumoError, sumo_version
from ideal_dispatch.traffic.sumo.network_export import export_network
from ideal_dispatch.traffic.sumo.scenario_files import CLOCK_S
from ideal_dispatch.traffic.sumo.simulation import period_departures, prepare_period

_LONGEST_S = 2 * HOUR_S


@dataclass(frozen=True, slots=True)
class DrivenTime:
    """How long the vehicle took, the wait for a gap at its start included.

    ``enter_s`` are the seconds after departure at which each edge was entered
    (NaN where SUMO moved the vehicle over it at once); ``teleported`` marks a
    drive that SUMO cut short to resolve a jam: its time is not to be trusted.
    """

    time_s: float
    enter_s: tuple[float, ...]
    teleported: bool


def emergency_drives(
    network: RoadNetwork,
    plan: DayPlan,
    drives: Sequence[tuple[npt.ArrayLike, datetime]],
    *,
    workdir: Path,
    blue_light: bool = False,
) -> list[DrivenTime]:
    """Realised times of (path, departure) pairs in the plan's day, in the order asked.

    Every period with a departure runs once again, with the same seed and all
    its vehicles more: they share the streets with thousands of others, and those
    of one call depart together. All traffic before the first departure is
    that of :func:`simulate_day`; after it the two runs drift apart in the
    moments of single vehicles, as runs with two seeds would. A vehicle keeps to
    its path, drives at the limit like everyone else and may pass closures; with
    ``blue_light`` others make room and red lights do not hold it. It arrives
    at the end of its last edge, before the junction.
    """
    vehicles: dict[tuple[int, int], list[_Vehicle]] = {}
    for number, (edges, at) in enumerate(drives):
        if not np.size(edges):
            raise InputError(f"emergency drive {number}: a path of at least one edge is needed")
        path = network.path(edges)
        # whole steps: SUMO inserts at the end of the step before
        second = int(plan.second(at) // 1)
        route = tuple(map(str, path.edges.tolist()))
        vehicles.setdefault(_period(plan, at), []).append(_Vehicle(number, route, second))
    sumo_version()
    net = export_network(network, Path(workdir)).resolve()
    demand = Demand.of(network)
    for period, together in vehicles.items():
        with tempfile.TemporaryDirectory(dir=workdir, prefix="drives-") as name:
            trips, folder = period_departures(demand, plan, period), Path(name).resolve()
            options = prepare_period(network, trips, plan, period, net, folder)
            _drive(options, together, blue_light)
    asked = sorted((one for group in vehicles.values() for one in group), key=lambda v: v.number)
    return [vehicle.driven() for vehicle in asked]


def _period(plan: DayPlan, at: datetime) -> tuple[int, int]:
    second = plan.second(at)
    for first, last in plan.hours:
        if first * HOUR_S <= second < last * HOUR_S:
            return first, last
    raise InputError(f"emergency drive: {at.isoformat()} is not in a simulated period of the day")


@dataclass(slots=True, eq=False)
class _Vehicle:
    """One drive while it lasts: where it has been, and when."""

    number: int
    edges: tuple[str, ...]
    depart_s: int
    entered_s: dict[str, float] = field(default_factory=dict)
    teleported: bool = False
    time_s: float = float("nan")

    @property
    def name(self) -> str:
        return f"ambulance{self.number}"

    def driven(self) -> DrivenTime:
        enter_s = tuple(self.entered_s.get(edge, float("nan")) for edge in self.edges)
        return DrivenTime(self.time_s, enter_s, self.teleported)


def _drive(options: Sequence[str], vehicles: Sequence[_Vehicle], blue_light: bool) -> None:
    """Run the period until all have arrived, writing down what they do."""
    import libsumo

    ahead = sorted(vehicles, key=lambda vehicle: vehicle.depart_s)
    under_way: list[_Vehicle] = []
    libsumo.start(["sumo", *options])
    try:
        while ahead or under_way:
            if not under_way:
                libsumo.simulationStep(float(ahead[0].depart_s + CLOCK_S))
            now_s = libsumo.simulation.getTime() - CLOCK_S
            while ahead and ahead[0].depart_s <= now_s:
                under_way.append(ahead.pop(0))
                _add_vehicle(libsumo, under_way[-1], blue_light)
            libsumo.simulationStep()
            under_way = [vehicle for vehicle in under_way if not _arrived(libsumo, vehicle)]
    finally:
        libsumo.close()


def _arrived(libsumo: Any, vehicle: _Vehicle) -> bool:
    """Note where the vehicle is after a step; whether it has arrived."""
    after_s = float(libsumo.simulation.getTime() - CLOCK_S - vehicle.depart_s)
    vehicle.teleported |= vehicle.name in libsumo.simulation.getStartingTeleportIDList()
    if vehicle.name in libsumo.simulation.getArrivedIDList():
        vehicle.time_s = after_s
        return True
    if after_s > _LONGEST_S:
        raise SumoError(
            f"emergency drive {vehicle.number}: not arrived {_LONGEST_S} s after departure"
        )
    if vehicle.name in libsumo.vehicle.getIDList():
        vehicle.entered_s.setdefault(libsumo.vehicle.getRoadID(vehicle.name), after_s)
    return False


def _add_vehicle(libsumo: Any, vehicle: _Vehicle, blue_light: bool) -> None:
    """An ordinary car of the hour, without its driver's mood, that may pass closures."""
    name = vehicle.name
    libsumo.vehicletype.copy(f"hour{vehicle.depart_s // HOUR_S % 24}", name)
    libsumo.vehicletype.setSpeedDeviation(name, 0.0)
    libsumo.vehicletype.setVehicleClass(name, "emergency")
    libsumo.vehicletype.setParameter(name, "has.rerouting.device", "false")
    if blue_light:
        libsumo.vehicletype.setParameter(name, "has.bluelight.device", "true")
    libsumo.route.add(name, list(vehicle.edges))
    libsumo.vehicle.add(
        name, name, typeID=name, departLane="best", departSpeed="max", arrivalPos="max"
    )
