"""Streets as they are planned: lines on the chart, before junctions cut them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from ideal_dispatch.arrays import FloatArray

GROUND, ELEVATED, RAMP, TUNNEL = 0, 1, 2, -1
NEVER = 9


@dataclass(frozen=True, slots=True, eq=False)
class Street:
    """A named line on the chart.

    Streets of one ``level`` meet wherever they cross; streets of different
    levels meet only at the end of one of them. A low ``oneway_rank`` makes a
    two-way street one-way early, in the direction of its points.
    """

    name: str
    road_class: str
    points: FloatArray
    oneway: bool = False
    level: int = GROUND
    oneway_rank: int = NEVER


def smooth(points: npt.ArrayLike, *, closed: bool = False, step_m: float = 12.0) -> FloatArray:
    """A curve through the points, with a point about every ``step_m``."""
    corners = np.asarray(points, float)
    if closed:
        corners = np.concatenate([corners, corners[:1]])
    chords = np.hypot(*np.diff(corners, axis=0).T)
    # Centripetal parameters keep hairpins from overshooting into loops.
    knots = np.concatenate([[0.0], np.cumsum(np.sqrt(chords))])
    curve = CubicSpline(knots, corners, bc_type="periodic" if closed else "natural")
    count = np.maximum(np.ceil(chords / step_m).astype(int), 1)
    at = [np.linspace(knots[i], knots[i + 1], n, endpoint=False) for i, n in enumerate(count)]
    line: FloatArray = curve(np.append(np.concatenate(at), knots[-1]))
    return line


def ramp_line(start: FloatArray, end: FloatArray) -> FloatArray:
    """An S-curve that leaves and arrives parallel to the shore."""
    t = np.linspace(0.0, 1.0, 17)
    return np.column_stack(
        [
            start[0] + (end[0] - start[0]) * t,
            start[1] + (end[1] - start[1]) * (1 - np.cos(np.pi * t)) / 2,
        ]
    )


def length_m(points: FloatArray) -> float:
    """Length of a line on the chart."""
    return float(np.hypot(*np.diff(points, axis=0).T).sum())
