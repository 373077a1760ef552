"""A network with closed edges, and the edges that a drawing closes."""

import pickle
from dataclasses import replace
from pathlib import Path as FilePath

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network.closing import closed_edges
from ideal_dispatch.network.map_matching import match_route


def test_a_path_around_is_found_and_one_through_is_refused(grid: RoadNetwork) -> None:
    times = grid.free_flow_times_s
    path = grid.shortest_path(times, 0, 65)
    closed = int(path.edges[3])
    shut = grid.closing([closed])
    around = shut.shortest_path(times, 0, 65)
    assert closed not in around.edges
    assert around.time_s(times) > path.time_s(times)
    with pytest.raises(InputError, match=f"^path drives edge {closed}, which is closed; choose"):
        shut.path(path.edges)
    assert grid.path(path.edges) == path  # the open one does not know


def test_all_but_paths_is_shared(grid: RoadNetwork) -> None:
    snapper = grid.snapper
    shut = grid.closing([5, 3, 3])
    assert shut.closed == (3, 5)
    assert shut.snapper is snapper
    assert shut.checksum == grid.checksum
    assert shut.closing([3]) is shut
    assert shut.closing([7]).closed == (3, 5, 7)
    assert shut.closing([7]).opened is grid
    assert grid.closing([]) is grid
    np.testing.assert_array_equal(shut.polyline(3), grid.polyline(3))


def test_a_copy_is_closed_and_a_file_is_open(grid: RoadNetwork, tmp_path: FilePath) -> None:
    shut = grid.closing([3])
    copy = pickle.loads(pickle.dumps(shut))
    assert copy.closed == (3,)
    assert not copy.opened.closed
    np.testing.assert_array_equal(
        copy.distances(copy.length_m, 0), shut.distances(shut.length_m, 0)
    )
    shut.save(tmp_path / "town.network")
    assert RoadNetwork.load(tmp_path / "town.network").closed == ()


def test_edges_that_do_not_exist_are_refused(grid: RoadNetwork) -> None:
    last = grid.num_edges - 1
    with pytest.raises(InputError, match=f"closed: edge -1 is not in the network .0 … {last}."):
        grid.closing([-1])
    with pytest.raises(InputError, match=f"closed: edge {last + 1} is not in the network"):
        replace(grid, closed=(last + 1,))
    with pytest.raises(InputError, match="closed: a list of edges is needed"):
        replace(grid, closed="3")  # type: ignore[arg-type]


def test_what_is_cut_off_cannot_be_reached(grid: RoadNetwork) -> None:
    shut = grid.closing(np.flatnonzero(grid.head == 65).tolist())
    assert shut.distances(shut.length_m, 0)[65] == np.inf
    assert np.isinf(shut.distances_to(shut.length_m, 65)[np.arange(120) != 65]).all()
    with pytest.raises(UnreachableError, match="node 65 cannot be reached from node 0; check one"):
        shut.shortest_path(shut.length_m, 0, 65)


def test_no_route_is_matched_onto_closed_edges(grid: RoadNetwork) -> None:
    path = grid.shortest_path(grid.length_m, 0, 65)
    line = path.coordinates(grid)
    assert match_route(grid, line, 0, 65).path == path
    for edge in path.edges.tolist():
        for ends in ((0, 65), (None, None)):
            found = match_route(grid.closing([edge]), line, *ends).path
            assert edge not in found.edges


# --- from a drawing --------------------------------------------------------------------


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
