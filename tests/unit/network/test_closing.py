"""From a drawing to the edges that it closes."""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.closing import closed_edges


def between(network: RoadNetwork, a: int, b: int) -> set[int]:
    """Both directions of the streets between two nodes."""
    ends = {(a, b), (b, a)}
    pairs = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    return {edge for edge, pair in enumerate(pairs) if pair in ends}


def at(network: RoadNetwork, node: int, east_m: float = 0.0, north_m: float = 0.0) -> list[float]:
    """A place so far from a node."""
    return [
        float(network.lon[node]) + east_m / 103_000,
        float(network.lat[node]) + north_m / 111_000,
    ]


def test_a_line_closes_both_directions_of_the_road_along_it(grid: RoadNetwork) -> None:
    line = [at(grid, 12), at(grid, 13), at(grid, 14)]
    assert closed_edges(grid, "line", line) == sorted(between(grid, 12, 13) | between(grid, 13, 14))
    beside = [at(grid, 12, north_m=12), at(grid, 14, north_m=12)]  # drawn by hand
    assert closed_edges(grid, "line", beside) == closed_edges(grid, "line", line)
    corner = [at(grid, 12), at(grid, 13), at(grid, 25)]
    assert set(closed_edges(grid, "line", corner)) == between(grid, 12, 13) | between(grid, 13, 25)


def test_a_line_along_a_part_of_a_road_closes_it_and_no_road_across(grid: RoadNetwork) -> None:
    part = [at(grid, 12, east_m=40), at(grid, 12, east_m=80)]
    assert set(closed_edges(grid, "line", part)) == between(grid, 12, 13)
    beyond = [at(grid, 12, east_m=-15), at(grid, 13, east_m=15)]  # a little too far at both ends
    assert set(closed_edges(grid, "line", beyond)) == between(grid, 12, 13)
    across = [at(grid, 12, 50, -40), at(grid, 12, 50, 40)]
    with pytest.raises(InputError, match="^line: no road runs within 20 m along it; check the"):
        closed_edges(grid, "line", across)


def test_a_polygon_closes_what_crosses_it_or_lies_in_it(grid: RoadNetwork) -> None:
    around = [at(grid, 25, x, y) for x, y in ((-20, -20), (20, -20), (20, 20), (-20, 20))]
    touching = np.flatnonzero((grid.tail == 25) | (grid.head == 25)).tolist()
    assert closed_edges(grid, "polygon", around) == touching
    assert closed_edges(grid, "polygon", [*around, around[0]]) == touching  # closed by the caller
    empty = [at(grid, 12, x, y) for x, y in ((40, 40), (60, 40), (60, 60))]
    with pytest.raises(InputError, match="^polygon: no road lies in it; check the coordinates"):
        closed_edges(grid, "polygon", empty)
    crossed = [at(grid, 25, x, y) for x, y in ((0, 0), (50, 50), (50, 0), (0, 50))]
    with pytest.raises(InputError, match="^polygon: its sides cross or enclose nothing"):
        closed_edges(grid, "polygon", crossed)


def test_drawings_that_make_no_sense_are_refused(grid: RoadNetwork) -> None:
    assert closed_edges(grid, "edges", [7, 3, 7]) == [3, 7]
    with pytest.raises(InputError, match="^edges: edge 99999 is not in the network"):
        closed_edges(grid, "edges", [99_999])
    with pytest.raises(InputError, match="^line: it has no length"):
        closed_edges(grid, "line", [at(grid, 3), at(grid, 3)])
    with pytest.raises(InputError, match="^line: no road runs within"):
        closed_edges(grid, "line", [[0.0, 0.0], [0.001, 0.0]])
