"""The files a SUMO run reads: drivers with their vehicles, and closures."""

import math
import xml.etree.ElementTree as ElementTree
from collections import deque
from pathlib import Path

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo.day_plan import HOUR_S, RAIN, Closure, DayPlan
from ideal_dispatch.traffic.sumo.demand import Departures
from ideal_dispatch.traffic.sumo.network_export import lanes_per_direction

CLOCK_S = HOUR_S
"""SUMO's clock is this far ahead of the second of the day: it cannot count below zero,
and the warm-up of a period that begins at midnight lies before it."""

_RAIN_SCALE_MM = 6.0
_SLOWER, _WIDER = 0.17, 0.30
_HEADWAY_S = 1.0
_WARNED_EDGES = 12
_TYPES = " ".join(f"hour{hour}" for hour in range(-1, 24))


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
        rerouter = ElementTree.SubElement(
            root,
            "rerouter",
            id=f"closure{number}",
            edges=" ".join(map(str, _edges_before(network, closure.edges))),
            vTypes=_TYPES,  # an emergency vehicle is not sent round: it keeps to its path
        )
        interval = ElementTree.SubElement(
            rerouter,
            "interval",
            begin=str(closure.from_s + CLOCK_S),
            end=str(closure.until_s + CLOCK_S),
        )
        for name in _closed(closure, lanes):
            kind = "closingLaneReroute" if "_" in name else "closingReroute"
            ElementTree.SubElement(interval, kind, id=name, allow="authority emergency")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _closed(closure: Closure, lanes: IntArray) -> list[str]:
    """SUMO's names of what is closed: a whole edge, or its lanes from the kerb on."""
    names = []
    for edge in closure.edges:
        left = min(closure.lanes_left, int(lanes[edge]) - 1)
        shut = range(int(lanes[edge]) - left)
        names += [f"{edge}_{lane}" for lane in shut] if left else [str(edge)]
    return names


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
