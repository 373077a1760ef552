"""One day of traffic, vehicle by vehicle."""

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo import output
from ideal_dispatch.traffic.sumo.day_plan import HOUR_S, DayPlan
from ideal_dispatch.traffic.sumo.demand import Demand, Departures
from ideal_dispatch.traffic.sumo.engine import SumoError, run
from ideal_dispatch.traffic.sumo.network_export import export_network
from ideal_dispatch.traffic.sumo.output import FloatGrid
from ideal_dispatch.traffic.sumo.scenario_files import CLOCK_S, write_closures, write_trips

WARM_UP_S = 1200
CLEARANCE_S = HOUR_S
"""How long before a period traffic starts, and how long after it drivers may still arrive."""

_COUNTED_EVERY_S = 60

OPTIONS = (
    "--time-to-teleport", "300",
    "--ignore-junction-blocker", "20",  # no vehicle waits forever behind a blocked crossing
    "--device.rerouting.probability", "1",  # jams spread over other streets
    "--device.rerouting.period", "300",
    "--device.rerouting.adaptation-interval", "30",
    "--device.rerouting.adaptation-steps", "10",
    "--weights.random-factor", "1.3",  # not all drivers think alike
    "--ignore-route-errors", "true",
    "--no-step-log", "true",
    "--no-warnings", "true",
    "--xml-validation", "never",
    "--summary-output.period", str(_COUNTED_EVERY_S),
    "--vehroute-output.exit-times", "true",
    "--vehroute-output.last-route", "true",
    "--vehroute-output.write-unfinished", "true",
)  # fmt: skip
_LIMIT_S = 3 * 3600.0


@dataclass(frozen=True, slots=True)
class HourCount:
    """Vehicles of one simulated hour.

    ``wanted`` trips and vehicles that ``departed`` and ``completed`` within it,
    ``running`` on average, ``waiting`` to enter the network at its end,
    ``teleported`` out of a jam. ``relative_speed`` is free-flow time over real
    time of all passages that ended in the hour.
    """

    start: datetime
    wanted: int
    departed: int
    completed: int
    running: float
    waiting: int
    teleported: int
    relative_speed: float


@dataclass(frozen=True, slots=True, eq=False)
class DayTimes:
    """Edge times of a simulated day.

    ``times_s``, (bins, edges), is what the vehicles took that left the edge in
    the bin, on average; NaN where none did. ``bins`` is the number of rows of
    each period of the plan; periods follow each other. ``unfinished`` is the share
    of departed vehicles that had not arrived an hour after their period.
    """

    bins: tuple[int, ...]
    times_s: FloatGrid
    hours: tuple[HourCount, ...]
    unfinished: float
    cpu_s: float


def simulate_day(
    network: RoadNetwork, plan: DayPlan, *, workdir: Path, bin_s: int = 60
) -> DayTimes:
    """The plan's periods in microscopic SUMO; same plan and SUMO, same times.

    ``workdir`` keeps the SUMO network between days and may be shared by
    processes; everything else is removed. One process, one core.
    """
    if bin_s < 1 or HOUR_S % bin_s:
        raise InputError(f"bins of {bin_s} s: an hour must be a whole number of them")
    net = export_network(network, Path(workdir)).resolve()
    demand = Demand.of(network)
    grids: list[FloatGrid] = []
    hours: list[HourCount] = []
    departed = unfinished = cpu_s = 0.0
    for first, last in plan.hours:
        with tempfile.TemporaryDirectory(dir=workdir, prefix=f"{plan.date}-{first}-") as name:
            folder = Path(name).resolve()
            departures = period_departures(demand, plan, (first, last))
            options = prepare_period(network, departures, plan, (first, last), net, folder)
            cpu_s += run("sumo", options, folder, _LIMIT_S)
            passages = output.read_passages(folder / "routes.xml")
            summary = output.read_summary(folder / "summary.xml")
            _check_whole(summary, last * HOUR_S + CLEARANCE_S + CLOCK_S)
        from_s, bins = first * HOUR_S + CLOCK_S, (last - first) * HOUR_S // bin_s
        free_flow_s = network.free_flow_times_s
        grids.append(output.left_times_s(passages, free_flow_s, from_s, bins, bin_s))
        hours += _hour_counts(plan, (first, last), departures, passages, summary, free_flow_s)
        departed += summary["inserted"][-1]
        unfinished += summary["inserted"][-1] - summary["ended"][-1]
    return DayTimes(
        bins=tuple(len(grid) for grid in grids),
        times_s=np.concatenate(grids),
        hours=tuple(hours),
        unfinished=unfinished / max(departed, 1.0),
        cpu_s=cpu_s,
    )


def _check_whole(summary: dict[str, FloatArray], end_s: float) -> None:
    """Refuse a run that was stopped: SUMO then ends as if all were well."""
    reached_s = float(summary["time"][-1])
    if reached_s < end_s - 2 * _COUNTED_EVERY_S:
        raise SumoError(
            f"sumo: stopped from outside after {reached_s - summary['time'][0]:.0f} of "
            f"{end_s - summary['time'][0]:.0f} simulated seconds; run it again"
        )


def period_departures(demand: Demand, plan: DayPlan, hours: tuple[int, int]) -> Departures:
    """Who leaves in a period and in the time before it that fills the roads."""
    return demand.departures(plan, hours[0] * HOUR_S - WARM_UP_S, hours[1] * HOUR_S)


def prepare_period(
    network: RoadNetwork,
    departures: Departures,
    plan: DayPlan,
    hours: tuple[int, int],
    net: Path,
    folder: Path,
) -> list[str]:
    """Write what SUMO reads into ``folder``; the options of the run."""
    from_s, until_s = (hour * HOUR_S for hour in hours)
    write_trips(plan, departures, folder / "trips.xml")
    write_closures(network, plan, folder / "closures.xml")
    queues = ("--mesosim", "true", "--meso-junction-control", "true")  # with lights and priority
    return [
        "--net-file", str(net),
        "--route-files", str(folder / "trips.xml"),
        "--additional-files", str(folder / "closures.xml"),
        "--summary-output", str(folder / "summary.xml"),
        "--vehroute-output", str(folder / "routes.xml"),
        "--begin", str(from_s - WARM_UP_S + CLOCK_S),
        "--end", str(until_s + CLEARANCE_S + CLOCK_S),
        "--seed", str(plan.seed % 2**31),
        *OPTIONS,
        *(queues if plan.queues else ()),
    ]  # fmt: skip


def _hour_counts(
    plan: DayPlan,
    period: tuple[int, int],
    departures: Departures,
    passages: output.Passages,
    summary: dict[str, FloatArray],
    free_flow_s: FloatArray,
) -> list[HourCount]:
    counts = []
    leave_s = departures.depart_s + CLOCK_S
    ideal_s, took_s = free_flow_s[passages.edge], passages.leave_s - passages.enter_s
    for hour in range(*period):
        from_s, until_s = hour * HOUR_S + CLOCK_S, (hour + 1) * HOUR_S + CLOCK_S
        rows = (summary["time"] >= from_s) & (summary["time"] < until_s)
        here = (passages.leave_s >= from_s) & (passages.leave_s < until_s)

        def growth(column: str, begin: int = from_s, end: int = until_s) -> int:
            at = np.interp([begin, end], summary["time"], summary[column])
            return round(float(at[1] - at[0]))

        def last(column: str, end: int = until_s) -> int:
            return round(float(np.interp(end, summary["time"], summary[column])))

        counts.append(
            HourCount(
                start=plan.moment(hour * HOUR_S),
                wanted=int(((leave_s >= from_s) & (leave_s < until_s)).sum()),
                departed=growth("inserted"),
                completed=growth("ended"),
                running=float(summary["running"][rows].mean()) if rows.any() else 0.0,
                waiting=last("waiting"),
                teleported=growth("teleports"),
                relative_speed=float(ideal_s[here].sum() / max(took_s[here].sum(), 1e-9)),
            )
        )
    return counts
