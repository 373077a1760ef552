"""The three street grids on the flat ground and the terraces behind them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from workshop.city.lattice import Line, grid_streets, lattice
from workshop.city.names import StreetNames
from workshop.city.street import Street

HARBOUR_ROAD = Line("Harbour Road", "primary", unbroken=True)
EASTBOUND_ROAD = Line("Exchange Road", "primary", unbroken=True, oneway=True)
WESTBOUND_ROAD = Line("Customs Road", "primary", unbroken=True, oneway=True, reverse=True)

HILLFOOT_ROAD = Line("Hillfoot Road", "tertiary", unbroken=True, oneway_rank=5)


@dataclass(frozen=True, slots=True)
class Quarter:
    """The crossings of a grid, numbered from the shore and from the west, and its streets."""

    crossings: FloatArray
    streets: list[Street]


def kelp_point(names: StreetNames, rng: np.random.Generator) -> Quarter:
    """The western grid, at the foot of Signal Hill."""
    crossings = lattice([(180, 135), (1640, 135), (1500, 800), (280, 760)], 10, 21, 4.0, rng)
    rows = {
        0: HARBOUR_ROAD,
        5: Line(names.take("secondary"), "secondary", unbroken=True, oneway=True),
        6: Line(names.take("secondary"), "secondary", unbroken=True, oneway=True, reverse=True),
        9: HILLFOOT_ROAD,
    }
    majors = {0: "tertiary", 6: "secondary", 13: "secondary", 20: "tertiary"}
    return _quarter(crossings, rows, majors, names, rng, rank=2, joined_share=0.28, parks=3)


def exchange(names: StreetNames, rng: np.random.Generator) -> Quarter:
    """The dense downtown grid, most of it one-way."""
    crossings = lattice([(2440, 135), (4640, 135), (4720, 850), (2560, 800)], 12, 33, 3.0, rng)
    rows = {0: HARBOUR_ROAD, 3: EASTBOUND_ROAD, 6: WESTBOUND_ROAD,
            9: _line("secondary", names, rank=5), 11: HILLFOOT_ROAD}  # fmt: skip
    majors = {0: "secondary", 4: "tertiary", 8: "secondary", 12: "tertiary", 16: "secondary",
              20: "tertiary", 24: "secondary", 28: "tertiary", 32: "secondary"}  # fmt: skip
    return _quarter(crossings, rows, majors, names, rng, rank=0, joined_share=0.24, parks=4)


def gannet_bay(names: StreetNames, rng: np.random.Generator) -> Quarter:
    """The eastern grid, askew to the shore."""
    crossings = lattice([(4980, 135), (6720, 135), (6940, 830), (5130, 900)], 11, 25, 4.0, rng)
    rows = {0: HARBOUR_ROAD, 3: EASTBOUND_ROAD, 6: WESTBOUND_ROAD, 10: HILLFOOT_ROAD}
    majors = {0: "secondary", 6: "tertiary", 11: "secondary", 17: "tertiary", 24: "secondary"}
    return _quarter(crossings, rows, majors, names, rng, rank=1, joined_share=0.28, parks=4)


def terraces(
    corners: list[tuple[float, float]],
    rows: int,
    columns: int,
    names: StreetNames,
    rng: np.random.Generator,
) -> Quarter:
    """Streets along a hillside with few and winding ways between them."""
    crossings = lattice(corners, rows, columns, 12.0, rng)
    crossings[..., 1] += _contour(crossings[..., 0], rng)
    lines = [
        Line(names.take("hill"), "tertiary", unbroken=True)
        if row == 1
        else Line(names.take("hill"), "residential", oneway_rank=3)
        for row in range(rows)
    ]
    # One unbroken way up, or a street could be cut off from all others.
    steep = [
        Line(
            names.take("hill"),
            "residential",
            unbroken=column == columns // 2,
            oneway_rank=3,
            reverse=bool(column % 2),
        )
        for column in range(columns)
    ]
    streets = grid_streets(crossings, lines, steep, rng, joined_share=0.3, hillside=True)
    return Quarter(crossings, streets)


def _contour(along: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Metres by which streets that keep their height swing around gullies and spurs."""
    phase = rng.uniform(0, 2 * np.pi, 2)
    swing: FloatArray = 24 * np.sin(along / 130 + phase[0]) + 14 * np.sin(along / 57 + phase[1])
    return swing


def _line(road_class: str, names: StreetNames, rank: int, reverse: bool = False) -> Line:
    unbroken = road_class in ("secondary", "tertiary")
    return Line(names.take(road_class), road_class, unbroken, oneway_rank=rank, reverse=reverse)


def _quarter(
    crossings: FloatArray,
    rows: Mapping[int, Line],
    major_columns: Mapping[int, str],
    names: StreetNames,
    rng: np.random.Generator,
    *,
    rank: int,
    joined_share: float,
    parks: int,
) -> Quarter:
    def numbered(index: int, major: str = "") -> Line:
        road_class = major or str(
            rng.choice(["residential", "unclassified", "living_street"], p=[0.72, 0.23, 0.05])
        )
        return _line(road_class, names, rank, reverse=bool(index % 2))

    count, across = crossings.shape[:2]
    streets = grid_streets(
        crossings,
        [rows.get(row) or numbered(row) for row in range(count)],
        [numbered(column, major_columns.get(column, "")) for column in range(across)],
        rng,
        joined_share=joined_share,
        parks=parks,
    )
    return Quarter(crossings, streets)
