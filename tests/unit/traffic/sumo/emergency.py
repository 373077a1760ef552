"""Ambulances inside SUMO: how long they would have driven, had they been sent."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.path import Path as Way
from ideal_dispatch.traffic.sumo.day import CLOCK_S, prepare_period
from ideal_dispatch.traffic.sumo.demand import Demand
from ideal_dispatch.traffic.sumo.network import export_network
from ideal_dispatch.traffic.sumo.plan import HOUR_S, DayPlan


@dataclass(slots=True)
class Sent:
    """A vehicle, when it departed in seconds of the day, and how long it drove.

    ``teleported`` marks a drive that SUMO cut short to resolve a jam: its time is not to be
    trusted.
    """

    name: str
    way: Way
    depart_s: int
    time_s: float = float("nan")
    teleported: bool = False


def emergency_drives(
    network: RoadNetwork, plan: DayPlan, drives: Sequence[tuple[Way, datetime]], workdir: Path
) -> list[Sent]:
    """Drives of the plan's one period, which runs once more with the same seed and these vehicles.

    A vehicle keeps to its path, drives at the limit like everyone else and may pass closures. It
    arrives at the end of its last edge, before the junction.
    """
    import libsumo

    midnight = plan.moment(0)
    sent = [
        Sent(f"ambulance{number}", way, int((at - midnight).total_seconds()))
        for number, (way, at) in enumerate(drives)
    ]
    net = export_network(network, workdir).resolve()
    with tempfile.TemporaryDirectory(dir=workdir, prefix="drives-") as name:
        folder = Path(name).resolve()
        _, options = prepare_period(network, Demand.of(network), plan, plan.hours[0], net, folder)
        libsumo.start(["sumo", *options])
        try:
            ahead = sorted(sent, key=lambda one: one.depart_s)
            under_way: dict[str, Sent] = {}
            while ahead or under_way:
                if not under_way:
                    libsumo.simulationStep(float(ahead[0].depart_s + CLOCK_S))
                now_s = libsumo.simulation.getTime() - CLOCK_S
                while ahead and ahead[0].depart_s <= now_s:
                    one = ahead.pop(0)
                    under_way[one.name] = one
                    # an ordinary car of the hour, without its driver's mood
                    libsumo.vehicletype.copy(f"hour{one.depart_s // HOUR_S}", one.name)
                    libsumo.vehicletype.setSpeedDeviation(one.name, 0.0)
                    libsumo.vehicletype.setVehicleClass(one.name, "emergency")
                    libsumo.vehicletype.setParameter(one.name, "has.rerouting.device", "false")
                    libsumo.route.add(one.name, list(map(str, one.way.edges.tolist())))
                    libsumo.vehicle.add(
                        one.name, one.name, typeID=one.name, departLane="best",
                        departSpeed="max", arrivalPos="max",
                    )  # fmt: skip
                libsumo.simulationStep()
                for moved in libsumo.simulation.getStartingTeleportIDList():
                    if moved in under_way:
                        under_way[moved].teleported = True
                for arrived in libsumo.simulation.getArrivedIDList():
                    if arrived in under_way:
                        done = under_way.pop(arrived)
                        done.time_s = libsumo.simulation.getTime() - CLOCK_S - done.depart_s
        finally:
            libsumo.close()
    return sent
