"""A network with closed edges: all but its paths is as it was."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path as FilePath

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Context
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network.features import through_traffic
from ideal_dispatch.network.map_matching import match_route
from tests.unit.dispatch.worlds import CALENDAR, random_model


def context() -> Context:
    return CALENDAR.context(datetime(2026, 3, 2, tzinfo=UTC))


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


def test_a_model_says_the_same(grid: RoadNetwork) -> None:
    """Of roads nobody can drive now, too; also where it never saw the open network."""
    shut = grid.closing(range(0, grid.num_edges, 3))
    expected = random_model(grid).forecast(context(), grid)
    found = random_model(grid).forecast(context(), shut)
    np.testing.assert_array_equal(found.embeddings, expected.embeddings)
    np.testing.assert_array_equal(through_traffic(shut), through_traffic(grid))


def test_no_route_is_matched_onto_closed_edges(grid: RoadNetwork) -> None:
    path = grid.shortest_path(grid.length_m, 0, 65)
    line = path.coordinates(grid)
    assert match_route(grid, line, 0, 65).path == path
    for edge in path.edges.tolist():
        for ends in ((0, 65), (None, None)):
            found = match_route(grid.closing([edge]), line, *ends).path
            assert edge not in found.edges
