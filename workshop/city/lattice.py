"""Street grids: rows along the shore, columns inland, with blocks joined here and there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from workshop.city.street import NEVER, Street, smooth


@dataclass(frozen=True, slots=True)
class Line:
    """What a whole row or column of a grid is; ``unbroken`` if no block may interrupt it."""

    name: str
    road_class: str
    unbroken: bool = False
    oneway: bool = False
    oneway_rank: int = NEVER
    reverse: bool = False


def lattice(
    corners: npt.ArrayLike,
    rows: int,
    columns: int,
    jitter_m: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Crossings as (rows, columns, 2) chart points inside four corners.

    Corners go round: west and east at the shore, then east and west inland.
    The first row is straight, all other crossings stray by up to ``jitter_m``.
    """
    shore_west, shore_east, back_east, back_west = np.asarray(corners, float)
    across = _uneven(columns, rng)[None, :, None]
    inland = _uneven(rows, rng)[:, None, None]
    front = shore_west + across * (shore_east - shore_west)
    back = back_west + across * (back_east - back_west)
    stray = rng.uniform(-jitter_m, jitter_m, (rows, columns, 2))
    stray[0] = 0.0
    crossings: FloatArray = front + inland * (back - front) + stray
    return crossings


def _uneven(count: int, rng: np.random.Generator) -> FloatArray:
    steps = 1 + rng.uniform(-0.22, 0.22, count - 1)
    shares: FloatArray = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    return shares


def grid_streets(
    crossings: FloatArray,
    rows: Sequence[Line],
    columns: Sequence[Line],
    rng: np.random.Generator,
    *,
    joined_share: float,
    parks: int = 0,
    hillside: bool = False,
) -> list[Street]:
    """The streets of a grid after joining some of its blocks.

    ``joined_share`` of the minor segments are left out, and ``parks`` times the
    four segments around one crossing. No street is left hanging: a crossing
    keeps three streets, or two that go straight through. On a ``hillside``
    streets are curves, and rows run out beyond the outermost columns.
    """
    row_kept = np.ones((len(rows), len(columns) - 1), bool)
    column_kept = np.ones((len(rows) - 1, len(columns)), bool)
    if hillside:
        column_kept[:, [0, -1]] = False
    blocks = _Blocks(rows, columns, row_kept, column_kept)
    blocks.plant_parks(parks, rng)
    blocks.join(joined_share, rng)
    streets = []
    for line, points, kept in [
        *zip(rows, crossings, row_kept, strict=True),
        *zip(columns, crossings.swapaxes(0, 1), column_kept.T, strict=True),
    ]:
        for start, stop in _runs(kept):
            run = points[start : stop + 1]
            shape = smooth(run) if hillside else run
            streets.append(
                Street(
                    line.name,
                    line.road_class,
                    shape[::-1].copy() if line.reverse else shape,
                    line.oneway,
                    oneway_rank=line.oneway_rank,
                )
            )
    return streets


@dataclass(frozen=True, slots=True)
class _Blocks:
    rows: Sequence[Line]
    columns: Sequence[Line]
    row_kept: BoolArray
    column_kept: BoolArray

    def arms(self, row: int, column: int) -> tuple[bool, bool, bool, bool]:
        """Whether streets lead west, east, to the shore and inland from a crossing."""
        along, across = self.row_kept[row], self.column_kept[:, column]
        return (
            column > 0 and bool(along[column - 1]),
            column < along.size and bool(along[column]),
            row > 0 and bool(across[row - 1]),
            row < across.size and bool(across[row]),
        )

    def _stands(self, row: int, column: int) -> bool:
        west, east, shore, inland = self.arms(row, column)
        count = west + east + shore + inland
        straight = (west and east) or (shore and inland)
        corner = row in (0, len(self.rows) - 1) and column in (0, len(self.columns) - 1)
        return count == 0 or count >= 3 or (count == 2 and (straight or corner))

    def plant_parks(self, parks: int, rng: np.random.Generator) -> None:
        minor = [
            (row, column)
            for row in range(2, len(self.rows) - 2)
            for column in range(2, len(self.columns) - 2)
            if not (self.rows[row].unbroken or self.columns[column].unbroken)
        ]
        near = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
        for index in rng.permutation(len(minor)):
            row, column = minor[index]
            around = [self.arms(row + down, column + right) for down, right in near]
            if not parks or not all(map(all, around)):
                continue
            self.row_kept[row, column - 1 : column + 1] = False
            self.column_kept[row - 1 : row + 1, column] = False
            parks -= 1

    def join(self, share: float, rng: np.random.Generator) -> None:
        minor = [
            (self.row_kept, (row, column), ((row, column), (row, column + 1)))
            for row, column in np.ndindex(self.row_kept.shape)
            if not self.rows[row].unbroken
        ] + [
            (self.column_kept, (row, column), ((row, column), (row + 1, column)))
            for row, column in np.ndindex(self.column_kept.shape)
            if not self.columns[column].unbroken
        ]
        left_out = round(share * len(minor))
        for index in rng.permutation(len(minor)):
            kept, segment, ends = minor[index]
            if not left_out or not kept[segment]:
                continue
            kept[segment] = False
            if all(self._stands(*end) for end in ends):
                left_out -= 1
            else:
                kept[segment] = True


def _runs(kept: BoolArray) -> Iterator[tuple[int, int]]:
    """First and last crossing of every unbroken stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
