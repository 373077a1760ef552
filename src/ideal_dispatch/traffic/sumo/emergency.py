"""An emergency vehicle inside SUMO: what would have happened, had it been sent."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
from ideal_dispatch.traffic.sumo.simulation import prepare_period

_ID = "ambulance"
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


def emergency_drive(
    network: RoadNetwork,
    plan: DayPlan,
    drives: Sequence[tuple[npt.ArrayLike, datetime]],
    *,
    workdir: Path,
    blue_light: bool = False,
) -> list[DrivenTime]:
    """Realised times of (path, departure) pairs, each alone in the plan's day.

    The day runs again from its beginning with the same seed and one more
    vehicle, so all traffic before the departure is that of
    :func:`simulate_day`. The vehicle keeps to its path, drives at the limit
    like everyone else and may pass closures; with ``blue_light`` others make
    room and red lights do not hold it. Slow: about the time of the hours up to
    the arrival, for each pair.
    """
    checked = [(network.path(edges), at, _period(plan, at)) for edges, at in drives]
    for path, _, _ in checked:
        if not len(path.edges):
            raise InputError("emergency drive: a path of at least one edge is needed")
    sumo_version()
    net = export_network(network, Path(workdir)).resolve()
    demand = Demand.of(network)
    results = []
    for path, at, period in checked:
        with tempfile.TemporaryDirectory(dir=workdir, prefix="drive-") as name:
            options = prepare_period(network, demand, plan, period, net, Path(name).resolve())
            edges = [str(edge) for edge in path.edges]
            results.append(_drive(options, edges, plan.second(at), blue_light))
    return results


def _period(plan: DayPlan, at: datetime) -> tuple[int, int]:
    second = plan.second(at)
    for first, last in plan.hours:
        if first * HOUR_S <= second < last * HOUR_S:
            return first, last
    raise InputError(f"emergency drive: {at.isoformat()} is not in a simulated period of the day")


def _drive(
    options: Sequence[str], edges: Sequence[str], depart_s: float, blue_light: bool
) -> DrivenTime:
    import libsumo

    libsumo.start(["sumo", *options])
    try:
        # whole steps: SUMO inserts at the end of the step before
        depart_clock_s = float(np.floor(depart_s)) + CLOCK_S
        libsumo.simulationStep(depart_clock_s)
        _add_vehicle(libsumo, edges, f"hour{int(depart_s // HOUR_S) % 24}", blue_light)
        entered: dict[str, float] = {}
        teleported = False
        while True:
            libsumo.simulationStep()
            after_s = libsumo.simulation.getTime() - depart_clock_s
            teleported |= _ID in libsumo.simulation.getStartingTeleportIDList()
            if _ID in libsumo.simulation.getArrivedIDList():
                break
            if after_s > _LONGEST_S:
                raise SumoError(f"emergency drive: not arrived {_LONGEST_S} s after departure")
            if _ID in libsumo.vehicle.getIDList():
                entered.setdefault(libsumo.vehicle.getRoadID(_ID), after_s)
    finally:
        libsumo.close()
    enter_s = tuple(entered.get(edge, float("nan")) for edge in edges)
    return DrivenTime(float(after_s), enter_s, bool(teleported))


def _add_vehicle(libsumo: Any, edges: Sequence[str], like: str, blue_light: bool) -> None:
    """An ordinary car of the hour, without its driver's mood, that may pass closures."""
    libsumo.vehicletype.copy(like, _ID)
    libsumo.vehicletype.setSpeedDeviation(_ID, 0.0)
    libsumo.vehicletype.setVehicleClass(_ID, "emergency")
    libsumo.vehicletype.setParameter(_ID, "has.rerouting.device", "false")
    if blue_light:
        libsumo.vehicletype.setParameter(_ID, "has.bluelight.device", "true")
    libsumo.route.add(_ID, list(edges))
    libsumo.vehicle.add(
        _ID, _ID, typeID=_ID, departLane="best", departSpeed="max", arrivalPos="max"
    )
