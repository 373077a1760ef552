"""The elevated expressway along the shore, its ramps, and the tunnel under Signal Hill."""

from collections.abc import Sequence

import numpy as np

from ideal_dispatch.arrays import FloatArray
from workshop.city.street import (
    ELEVATED,
    RAMP,
    TUNNEL,
    Street,
    ramp_line,
    smooth,
)

NAME = "Crescent Expressway"
_EASTBOUND_M, _WESTBOUND_M = 20.0, 48.0
"""Distance inland; traffic keeps to the left, so eastbound is on the water."""

_RAMP_M = 260.0


def expressway(
    quay_west: FloatArray,
    quay_east: FloatArray,
    from_west: Sequence[FloatArray],
    from_east: Sequence[FloatArray],
) -> list[Street]:
    """Two carriageways between both ends of the quay, with ramps to Harbour Road.

    ``quay_west`` and ``quay_east`` are the two outermost crossings of Harbour
    Road at each end. ``from_west`` are pairs of neighbouring crossings, west
    first, whose ramps serve the west; ``from_east`` likewise. In every pair the
    eastbound ramp takes the crossing that lets it pass outside the westbound one.
    """
    start, stop = quay_west[0][0] + _RAMP_M, quay_east[1][0] - _RAMP_M
    along = np.arange(start, stop + 1.0, 20.0)
    along[-1] = stop
    west_stop, east_stop = quay_west[1][0] + _RAMP_M, quay_east[0][0] - _RAMP_M
    back = along[(along > west_stop) & (along < east_stop)]
    back = np.concatenate([[west_stop], back, [east_stop]])[::-1]
    streets = [
        Street(NAME, "motorway", _at(along, _EASTBOUND_M), oneway=True, level=ELEVATED),
        Street(NAME, "motorway", _at(back, _WESTBOUND_M), oneway=True, level=ELEVATED),
    ]
    for west, east in [*from_west, quay_east]:
        streets.append(_ramp(east, -_RAMP_M, _EASTBOUND_M, leaving=True))
        streets.append(_ramp(west, -_RAMP_M, _WESTBOUND_M, leaving=False))
    for west, east in [*from_east, quay_west]:
        streets.append(_ramp(west, _RAMP_M, _EASTBOUND_M, leaving=False))
        streets.append(_ramp(east, _RAMP_M, _WESTBOUND_M, leaving=True))
    return streets


def tunnel(
    west_mouths: tuple[FloatArray, FloatArray], east_mouths: tuple[FloatArray, FloatArray]
) -> list[Street]:
    """Two tubes between two pairs of crossings, the eastbound one first in each pair."""
    middle = np.mean([*west_mouths, *east_mouths], axis=0)
    streets = []
    for tube, eastbound in enumerate((True, False)):
        west, east = west_mouths[tube], east_mouths[tube]
        offset_m = 14.0 if tube else -14.0
        portals = middle + np.array([[-310.0, offset_m], [310.0, offset_m]])
        bends = (west + portals[0]) / 2, (east + portals[1]) / 2
        for line, road_class, level in (
            (smooth([west, bends[0] + np.array([25.0, 0.0]), portals[0]]), "trunk_link", RAMP),
            (portals, "trunk", TUNNEL),
            (smooth([portals[1], bends[1] - np.array([25.0, 0.0]), east]), "trunk_link", RAMP),
        ):
            points = line if eastbound else line[::-1].copy()
            streets.append(Street("Signal Hill Tunnel", road_class, points, True, level))
    return streets


def slip_road(
    name: str, road_class: str, arm: FloatArray, corner: FloatArray, arm_after: FloatArray
) -> Street:
    """A one-way lane that cuts a corner, from one arm of a crossing to the next."""
    start, stop = (
        corner + (end - corner) * 34.0 / np.hypot(*(end - corner)) for end in (arm, arm_after)
    )
    inside = corner * 0.35 + (start + stop) * 0.325
    return Street(f"{name} slip road", road_class, smooth([start, inside, stop]), True, RAMP)


def _at(along: FloatArray, inland_m: float) -> FloatArray:
    return np.column_stack([along, np.full(along.size, inland_m)])


def _ramp(crossing: FloatArray, along_m: float, inland_m: float, *, leaving: bool) -> Street:
    """A ramp between a crossing and the carriageway ``along_m`` further, down it if leaving."""
    line = ramp_line(np.array([crossing[0] + along_m, inland_m]), crossing)
    points = line if leaving else line[::-1].copy()
    return Street(f"{NAME} slip road", "motorway_link", points, True, RAMP)
