"""One day of traffic in SUMO: the files a run reads, the run, and the edge times it gives.

The time of a passage runs from entering an edge to entering the next one, so
the wait at the junction and the way across it belong to the edge that leads
to it. SUMO's edge data knows only the edge itself, and its travel time, the
length over the mean speed in a minute, explodes whenever a minute is spent
at a red light.
"""

import math
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo.demand import Demand, Departures
from ideal_dispatch.traffic.sumo.network import (
    SumoError,
    export_network,
    lanes_per_direction,
    run,
)
from ideal_dispatch.traffic.sumo.plan import HOUR_S, RAIN, DayPlan

WARM_UP_S = 1200
CLEARANCE_S = HOUR_S
"""How long before a period traffic starts, and how long after it drivers may still arrive."""

CLOCK_S = HOUR_S
"""SUMO's clock is this far ahead of the second of the day: it cannot count below zero,
and the warm-up of a period that begins at midnight lies before it."""

LEAST_RATIO, GREATEST_RATIO, GREATEST_EXTRA_S = 0.8, 20.0, 60.0  # of measured times

_COUNTED_EVERY_S = 60
_RAIN_SCALE_MM = 6.0
_SLOWER, _WIDER = 0.17, 0.30
_HEADWAY_S = 1.0
_WARNED_EDGES = 12
_TYPES = " ".join(f"hour{hour}" for hour in range(-1, 24))

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

FloatGrid = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """Vehicles that drove a whole edge: which, and when they entered it and the next."""

    edge: IntArray
    enter_s: FloatArray
    leave_s: FloatArray


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
            departures, options = prepare_period(network, demand, plan, (first, last), net, folder)
            cpu_s += run("sumo", options, folder, _LIMIT_S)
            passages = read_passages(folder / "routes.xml")
            summary = read_summary(folder / "summary.xml")
            reached_s, end_s = summary["time"][-1], last * HOUR_S + CLEARANCE_S + CLOCK_S
            if reached_s < end_s - 2 * _COUNTED_EVERY_S:  # SUMO then ends as if all were well
                raise SumoError(
                    f"sumo: stopped {end_s - reached_s:.0f} s before its end; run it again"
                )
        from_s, bins = first * HOUR_S + CLOCK_S, (last - first) * HOUR_S // bin_s
        free_flow_s = network.free_flow_times_s
        grids.append(left_times_s(passages, free_flow_s, from_s, bins, bin_s))
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


def prepare_period(
    network: RoadNetwork,
    demand: Demand,
    plan: DayPlan,
    hours: tuple[int, int],
    net: Path,
    folder: Path,
) -> tuple[Departures, list[str]]:
    """Write what SUMO reads into ``folder``; the drivers of the period, and the run's options."""
    from_s, until_s = (hour * HOUR_S for hour in hours)
    departures = demand.departures(plan, from_s - WARM_UP_S, until_s)
    write_trips(plan, departures, folder / "trips.xml")
    write_closures(network, plan, folder / "closures.xml")
    queues = ("--mesosim", "true", "--meso-junction-control", "true")  # with lights and priority
    return departures, [
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
    passages: Passages,
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

        at = {
            name: np.interp([from_s, until_s], summary["time"], values)
            for name, values in summary.items()
        }
        counts.append(
            HourCount(
                start=plan.moment(hour * HOUR_S),
                wanted=int(((leave_s >= from_s) & (leave_s < until_s)).sum()),
                departed=round(float(np.diff(at["inserted"])[0])),
                completed=round(float(np.diff(at["ended"])[0])),
                running=float(summary["running"][rows].mean()) if rows.any() else 0.0,
                waiting=round(float(at["waiting"][1])),
                teleported=round(float(np.diff(at["teleports"])[0])),
                relative_speed=float(ideal_s[here].sum() / max(took_s[here].sum(), 1e-9)),
            )
        )
    return counts


# --- what SUMO reads ------------------------------------------------------------------


def rain_effect(rain_mm: float) -> tuple[float, float]:
    """Factors on wished speed and on headway in an hour with so much rain.

    Light rain costs a few per cent of speed, a cloudburst 17 % and 30 % more
    headway: the range of the Highway Capacity Manual's weather chapter.

    >>> rain_effect(0.0)
    (1.0, 1.0)
    """
    wet = 1 - math.exp(-rain_mm / _RAIN_SCALE_MM)
    return 1 - _SLOWER * wet, 1 + _WIDER * wet


def write_trips(plan: DayPlan, departures: Departures, path: Path) -> None:
    """One vehicle type per hour, as its rain makes people drive, and every driver.

    Who warms up the roads of a period from midnight on drives in the hour before it.
    """
    with open(path, "w", encoding="utf-8") as file:
        file.write("<routes>\n")
        for hour, row in enumerate(plan.weather, start=-1):
            speed, headway = rain_effect(row[RAIN])
            file.write(
                f'<vType id="hour{hour}" speedFactor="normc({speed:.3f},0.10,0.6,1.4)" '
                f'tau="{_HEADWAY_S * headway:.3f}"/>\n'
            )
        columns = (departures.depart_s, departures.origin, departures.destination)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (depart_s, origin, destination) in enumerate(rows):
            hour = min(int(depart_s // HOUR_S), 23)  # the last moment of a day rounds to its end
            file.write(
                f'<trip id="{number}" type="hour{hour}" '
                f'depart="{depart_s + CLOCK_S:.1f}" from="{origin}" to="{destination}" '
                'departLane="best" departSpeed="max"/>\n'
            )
        file.write("</routes>\n")


def write_closures(network: RoadNetwork, plan: DayPlan, path: Path) -> None:
    """Every closure as a rerouter on the edges that lead there.

    Drivers may be sent round from some edges before; those who are past stay
    and wait, as they do. Emergency vehicles may pass a closed edge.
    """
    root = ElementTree.Element("additional")
    lanes = lanes_per_direction(network)
    for number, closure in enumerate(plan.closures):
        if max(closure.edges) >= network.num_edges:
            raise InputError(
                f"closure {number}: edge {max(closure.edges)} is not in the network "
                f"(0 … {network.num_edges - 1})"
            )
        # an emergency vehicle is not sent round: it keeps to its path
        warned = " ".join(map(str, _edges_before(network, closure.edges)))
        named = {"id": f"closure{number}", "edges": warned, "vTypes": _TYPES}
        begin, end = (str(at_s + CLOCK_S) for at_s in (closure.from_s, closure.until_s))
        rerouter = ElementTree.SubElement(root, "rerouter", named)
        interval = ElementTree.SubElement(rerouter, "interval", begin=begin, end=end)
        for edge in closure.edges:
            left = min(closure.lanes_left, int(lanes[edge]) - 1)
            kind = "closingLaneReroute" if left else "closingReroute"
            shut = [f"{edge}_{lane}" for lane in range(int(lanes[edge]) - left)]  # from the kerb on
            for name in shut if left else [str(edge)]:
                ElementTree.SubElement(interval, kind, id=name, allow="authority emergency")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _edges_before(network: RoadNetwork, closed: tuple[int, ...]) -> list[int]:
    """Edges from which a closed one is soon reached, nearest first, itself left out."""
    found: dict[int, None] = {}
    queue = deque(int(network.tail[edge]) for edge in closed)
    seen = set(queue)
    while queue and len(found) < _WARNED_EDGES * len(closed):
        node = queue.popleft()
        slots = slice(*network.incoming.start[node : node + 2])
        edges, tails = network.incoming.edge[slots], network.incoming.other[slots]
        for edge, tail in zip(edges.tolist(), tails.tolist(), strict=True):
            if edge not in closed:
                found[edge] = None
            if tail not in seen:
                seen.add(tail)
                queue.append(tail)
    return list(found)


# --- what SUMO wrote -------------------------------------------------------------------


def read_passages(path: Path) -> Passages:
    """Every whole passage in a route output with exit times.

    A vehicle's last edge is left out: it ends there before the junction. So is
    every edge that was crossed by teleporting.
    """
    edges, enters, leaves = [np.zeros(0, np.int32)], [np.zeros(0)], [np.zeros(0)]
    for vehicle in _elements(path, "vehicle"):
        routes = list(vehicle.iter("route"))
        text = routes[-1].get("exitTimes") if routes else None
        if text is None:
            raise FileFormatError(f"{path}: vehicle {vehicle.get('id')} has no exit times")
        exits = np.array(text.split(), np.float64)
        route = np.array(routes[-1].get("edges", "").split(), np.int32)
        if exits.size < 2:
            continue
        exits = exits[:-1]
        enter = np.concatenate([[float(vehicle.get("depart", -1))], exits[:-1]])
        known = (enter >= 0) & (exits > enter)
        edges.append(route[: exits.size][known])
        enters.append(enter[known])
        leaves.append(exits[known])
    return Passages(np.concatenate(edges), np.concatenate(enters), np.concatenate(leaves))


def left_times_s(
    passages: Passages, free_flow_s: FloatArray, from_s: float, bins: int, bin_s: float
) -> FloatGrid:
    """Mean time of the passages that end in each bin, (bins, edges), NaN where none does.

    Times are clipped to [0.8, 20] × free flow + 60 s, for faster is impossible and jams end;
    when a passage ended is not.
    """
    size = free_flow_s.size
    row = np.floor((passages.leave_s - from_s) / bin_s).astype(np.int64)
    inside = (row >= 0) & (row < bins)
    cell = row[inside] * size + passages.edge[inside]
    least_s = LEAST_RATIO * free_flow_s[passages.edge]
    most_s = GREATEST_RATIO * free_flow_s[passages.edge] + GREATEST_EXTRA_S
    took_s = np.clip(passages.leave_s - passages.enter_s, least_s, most_s)[inside]
    count = np.bincount(cell, minlength=bins * size)
    total = np.bincount(cell, took_s, minlength=bins * size)
    mean = np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0)
    grid: FloatGrid = mean.reshape(bins, size).astype(np.float32)
    return grid


def read_summary(path: Path) -> dict[str, FloatArray]:
    """Columns of a summary output, a value per step written."""
    wanted = ("time", "loaded", "inserted", "running", "waiting", "ended", "teleports")
    rows = [[float(step.get(n, "nan")) for n in wanted] for step in _elements(path, "step")]
    if not rows:
        raise FileFormatError(f"{path}: no steps; the simulation wrote nothing")
    return dict(zip(wanted, np.array(rows).T, strict=True))


def _elements(path: Path, tag: str) -> Iterator[ElementTree.Element]:
    """Elements called ``tag`` as they are read, forgotten afterwards."""
    try:
        events = ElementTree.iterparse(path, ("start", "end"))
        _, root = next(events)
        for event, element in events:
            if event == "end" and element.tag == tag:
                yield element
                root.clear()
    except (ElementTree.ParseError, StopIteration) as error:
        raise FileFormatError(f"{path}: not a whole SUMO output ({error})") from None
