"""Back lanes and closes: short streets that fill a plan up to a number of junctions."""

from collections.abc import Sequence

import numpy as np
import shapely
from scipy.spatial import cKDTree

from ideal_dispatch.arrays import FloatArray
from workshop.city.junctions import between, cut_at_junctions
from workshop.city.names import StreetNames
from workshop.city.street import GROUND, Street, length_m, smooth

_ROOTS = {"tertiary", "residential", "unclassified", "living_street"}
_APART_M = 19.0
"""Junctions on one street are at least this far apart."""

_HILL_INLAND_M = 890.0
_HILL_WEIGHT = 0.6
_THROUGH_SHARE = 0.12


def with_lanes(
    streets: Sequence[Street], num_nodes: int, names: StreetNames, rng: np.random.Generator
) -> list[Street]:
    """The streets and as many lanes as it takes to have ``num_nodes`` junctions and ends."""
    nodes, pieces = cut_at_junctions(streets)
    plan = list(streets)
    missing = num_nodes - len(nodes)
    if missing % 2:
        # Every lane brings two nodes; the odd one is where a long road changes its number.
        _halve(plan, "Ridge Road")
        missing -= 1
    roots = [
        piece.points
        for piece in pieces
        if streets[piece.street].road_class in _ROOTS and streets[piece.street].level == GROUND
    ]
    weights = np.array([_weight(root) for root in roots])
    ground = _Ground([piece.points for piece in pieces])
    for _ in range(10 * num_nodes):
        if missing <= 0:
            return plan
        root = roots[rng.choice(len(roots), p=weights / weights.sum())]
        hill = _is_hill(root)
        line = (_close if hill else _lane)(*_turning(root, rng), ground, rng)
        if line is None:
            continue
        if hill:
            plan.append(Street(names.take("close"), "residential", line))
            roots.append(line)
            weights = np.append(weights, _weight(line))
        else:
            plan.append(Street("", "service", line, oneway_rank=4))
        ground.add(line)
        missing -= 2
    raise RuntimeError(f"no room for the last {missing} junctions; make the plan's grids denser")


def _is_hill(root: FloatArray) -> bool:
    return bool(root[0, 1] > _HILL_INLAND_M)


def _weight(root: FloatArray) -> float:
    """How likely a lane turns off here: by length, and never from a short stretch."""
    length = length_m(root)
    return length * (_HILL_WEIGHT if _is_hill(root) else 1.0) if length > 2.4 * _APART_M else 0.0


class _Ground:
    """What is built already, and whether a new line keeps clear of it."""

    def __init__(self, lines: Sequence[FloatArray]) -> None:
        self._old = shapely.STRtree([shapely.linestrings(line) for line in lines])
        self._old_ends = cKDTree(np.concatenate([line[[0, -1]] for line in lines]))
        self._new: list[shapely.LineString] = []

    def add(self, line: FloatArray) -> None:
        self._new.append(shapely.linestrings(line))

    def first_hit(self, ray: FloatArray) -> FloatArray | None:
        """The nearest point of what was there from the start along a ray."""
        beam = shapely.linestrings(ray)
        hits = shapely.intersection(beam, self._old.geometries[self._old.query(beam, "intersects")])
        points = shapely.get_coordinates(hits)
        return points[np.argmin(np.hypot(*(points - ray[0]).T))] if len(points) else None

    def is_clear(self, middle: FloatArray, gap_m: float) -> bool:
        curve = shapely.linestrings(middle)
        if self._old.query(curve, "dwithin", distance=gap_m).size:
            return False
        return not self._new or bool(shapely.distance(curve, self._new).min() > gap_m)

    def is_apart(self, junction: FloatArray) -> bool:
        """Whether a new junction is far enough from all others on its street."""
        if self._old_ends.query(junction)[0] < _APART_M:
            return False
        place = shapely.points(junction)
        return not self._new or bool(shapely.distance(place, self._new).min() > _APART_M)


def _turning(root: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A place along ``root`` and the direction square to it, left or right."""
    at = rng.uniform(_APART_M, length_m(root) - _APART_M)
    start, ahead = between(root, at, at + 1.0)[[0, -1]]
    side = (ahead - start)[::-1] * (1, -1) * rng.choice([-1, 1])
    return start, side / np.hypot(*side)


def _close(
    start: FloatArray, side: FloatArray, ground: _Ground, rng: np.random.Generator
) -> FloatArray | None:
    """A winding dead end on a hillside."""
    reach, bend = rng.uniform(55, 190), rng.uniform(-0.5, 0.5)
    along = side[::-1] * (1, -1)
    line = smooth([start, start + side * reach / 2, start + reach * (side + bend * along)])
    clear = ground.is_clear(between(line, 24.0, length_m(line)), 19.0)
    return line if clear and ground.is_apart(start) else None


def _lane(
    start: FloatArray, side: FloatArray, ground: _Ground, rng: np.random.Generator
) -> FloatArray | None:
    """A straight lane into a block, or through it to the street behind."""
    stop = start + side * rng.uniform(28, 52)
    through = rng.random() < _THROUGH_SHARE
    if through:
        hit = ground.first_hit(np.array([start + side, start + side * 130.0]))
        if hit is None or np.hypot(*(hit - start)) < 2.5 * _APART_M or not ground.is_apart(hit):
            return None
        stop = hit
    line = np.array([start, stop])
    last_m = length_m(line) - (_APART_M if through else 0.0)
    clear = ground.is_clear(between(line, _APART_M, last_m), _APART_M - 3.0)
    return line if clear and ground.is_apart(start) else None


def _halve(plan: list[Street], name: str) -> None:
    index = next(i for i, street in enumerate(plan) if street.name == name)
    street = plan[index]
    middle = len(street.points) // 2
    halves = street.points[: middle + 1], street.points[middle:]
    plan[index : index + 1] = [Street(street.name, street.road_class, half) for half in halves]
