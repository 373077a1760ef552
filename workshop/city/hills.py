"""Winding roads over the hills, the valley ring, and the piers."""

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from workshop.city.names import StreetNames
from workshop.city.street import Street, smooth


def switchbacks(
    foot: npt.ArrayLike, top: npt.ArrayLike, bends: int, width_m: float, rng: np.random.Generator
) -> FloatArray:
    """Control points of a climb that swings from side to side between foot and top."""
    start, end = np.asarray(foot, float), np.asarray(top, float)
    climb = end - start
    aside = np.array([-climb[1], climb[0]]) / np.hypot(*climb)
    # Straight at both ends, or the climb would run along the streets that it joins.
    shares, swings = [0.0, 0.08], [0.0, 0.0]
    for bend in range(bends):
        share = 0.15 + 0.7 * (bend + 0.5 + rng.uniform(-0.12, 0.12)) / bends
        swing = (1 if bend % 2 else -1) * width_m / 2 * rng.uniform(0.65, 1.2)
        # Two points a bend round the hairpin off.
        shares += [share - 0.16 / bends, share + 0.16 / bends]
        swings += [swing, swing]
    shares, swings = [*shares, 0.92, 1.0], [*swings, 0.0, 0.0]
    return start + np.outer(shares, climb) + np.outer(swings, aside)


def winding(points: npt.ArrayLike, rng: np.random.Generator, sway_m: float = 25.0) -> FloatArray:
    """The points with all but the ends moved a little."""
    line = np.array(points, float)
    line[1:-1] += rng.uniform(-sway_m, sway_m, line[1:-1].shape)
    return line


def valley(
    centre: tuple[float, float], names: StreetNames, rng: np.random.Generator
) -> tuple[list[Street], FloatArray]:
    """A one-way ring around a sports ground with streets around it; and the outer ring's points."""
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    unit = np.column_stack([np.cos(turn), np.sin(turn)])
    inner = np.array(centre) + unit * [300.0, 150.0]
    outer = np.array(centre) + unit * [400.0, 240.0] + rng.uniform(-8, 8, unit.shape)
    streets = [
        # Clockwise on the map: inland is down the page, so the angle grows.
        Street("Sports Ground Road", "secondary", smooth(inner, closed=True), oneway=True),
        Street(names.take("residential"), "residential", smooth(outer, closed=True), oneway_rank=5),
    ]
    for spoke in range(0, 24, 2):
        points = np.array([inner[spoke], outer[spoke]])
        streets.append(Street(names.take("residential"), "residential", points, oneway_rank=2))
    return streets, outer


def piers(quay: FloatArray, rng: np.random.Generator) -> list[Street]:
    """Service lanes from crossings of the quay out to the ferries."""
    streets = []
    for crossing in quay:
        tip = (crossing[0] + rng.uniform(-6, 6), -rng.uniform(35, 95))
        streets.append(Street("", "service", np.array([crossing, tip])))
    return streets
