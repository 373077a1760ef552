"""What a SUMO run wrote: passages of vehicles over edges, and counts by the minute.

The time of a passage runs from entering an edge to entering the next one, so
the wait at the junction and the way across it belong to the edge that leads
there. SUMO's edge data knows only the edge itself, and its travel time, the
length over the mean speed in a minute, explodes whenever a minute is spent
at a red light.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError

LEAST_RATIO, GREATEST_RATIO, GREATEST_EXTRA_S = 0.8, 20.0, 60.0

FloatGrid = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """Vehicles that drove a whole edge: which, and when they entered it and the next."""

    edge: IntArray
    enter_s: FloatArray
    leave_s: FloatArray


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

    Times are clipped; when a passage ended is not.
    """
    size = free_flow_s.size
    row = np.floor((passages.leave_s - from_s) / bin_s).astype(np.int64)
    inside = (row >= 0) & (row < bins)
    cell = row[inside] * size + passages.edge[inside]
    took_s = clipped(passages.leave_s - passages.enter_s, free_flow_s[passages.edge])[inside]
    count = np.bincount(cell, minlength=bins * size)
    total = np.bincount(cell, took_s, minlength=bins * size)
    mean = np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0)
    grid: FloatGrid = mean.reshape(bins, size).astype(np.float32)
    return grid


def clipped(times_s: FloatArray, free_flow_s: FloatArray) -> FloatArray:
    """Times within [0.8, 20] × free flow + 60 s: faster is impossible, and jams end."""
    most_s = GREATEST_RATIO * free_flow_s + GREATEST_EXTRA_S
    return np.clip(times_s, LEAST_RATIO * free_flow_s, most_s)


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
