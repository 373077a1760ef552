"""Times between places equal shortest paths, and units are where the path leads."""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.fleet.travel import (
    STEPS,
    Travel,
    cells_of,
    connected_nodes,
    junction_weights,
)
from tests.fleets import matrix_travel


def test_times_equal_shortest_paths_in_both_modes(grid: RoadNetwork) -> None:
    nodes = [0, 17, 55, 119]
    fast_s = grid.free_flow_times_s
    slow_s = np.random.default_rng(3).uniform(1.0, 3.0, grid.num_edges) * fast_s
    travel = Travel.on_roads(grid, nodes, fast_s, slow_s)
    for times, found in ((fast_s, travel.fast_s), (slow_s, travel.slow_s)):
        for a, start in enumerate(nodes):
            for b, end in enumerate(nodes):
                expected = 0.0 if a == b else grid.shortest_path(times, [start], end).time_s(times)
                assert found[a, b] == pytest.approx(expected)


def test_a_unit_on_its_way_is_near_its_path(grid: RoadNetwork) -> None:
    nodes, times = range(grid.num_nodes), grid.free_flow_times_s
    travel = Travel.on_roads(grid, nodes, times, times)
    path = grid.shortest_path(times, [0], 119)
    on_path = [0, *grid.head[path.edges]]
    places = travel.between[0, 119].tolist()
    assert set(places) <= set(on_path)  # every node is a place, so the nearest is the node itself
    done = [travel.fast_s[0, place] / travel.fast_s[0, 119] for place in places]
    assert done == sorted(done)
    # it has passed the node that it counts as being at, and is at most one edge further
    parts = (np.arange(STEPS) + 1) / (STEPS + 1)
    longest = times[path.edges].max() / travel.fast_s[0, 119]
    assert ((parts - done >= -1e-9) & (parts - done <= longest + 1e-9)).all()


def test_of_parallel_edges_the_fastest_counts() -> None:
    network = RoadNetwork.from_arrays(
        [0, 0, 1], [1, 1, 0], [100.0, 100.0, 100.0], [114.0, 114.001], [22.0, 22.0]
    )
    times = np.array([30.0, 20.0, 25.0])
    travel = Travel.on_roads(network, [0, 1], times, times)
    assert travel.fast_s.tolist() == [[0.0, 20.0], [25.0, 0.0]]


def test_a_place_that_cannot_be_reached_is_refused() -> None:
    network = RoadNetwork.from_arrays([0], [1], [100.0], [114.0, 114.001], [22.0, 22.0])
    with pytest.raises(UnreachableError, match="no way leads from node 1 to node 0; take stations"):
        Travel.on_roads(network, [0, 1], np.ones(1), np.ones(1))
    # each node is a part of its own, and both are as large
    assert connected_nodes(network).size == 1


def test_a_matrix_of_times_needs_no_map() -> None:
    travel = matrix_travel([[0.0, 60.0], [80.0, 0.0]])
    assert travel.slow_s.tolist() == travel.fast_s.tolist()
    assert travel.between[0, 1].tolist() == [0, 0, 0, 0, 1, 1, 1]
    with pytest.raises(InputError, match="fast_s must be finite and zero or more"):
        matrix_travel([[0.0, np.inf], [1.0, 0.0]])


def test_cells_stand_for_all_nodes(grid: RoadNetwork) -> None:
    nodes = np.arange(grid.num_nodes, dtype=np.int32)
    weights = np.where(nodes < 60, 2.0, 1.0)
    cells, share = cells_of(grid, nodes, weights, 20)
    assert 10 <= len(cells) <= 20
    assert len(set(cells.tolist())) == len(cells)
    assert share.sum() == pytest.approx(1.0)
    low = grid.lat[cells] < np.median(grid.lat)
    assert share[low].sum() > share[~low].sum()


def test_a_place_without_weight_has_no_cell(grid: RoadNetwork) -> None:
    nodes = np.arange(grid.num_nodes, dtype=np.int32)
    cells, share = cells_of(grid, nodes, (nodes == 7).astype(float), 120)
    assert cells.tolist() == [7]
    assert share.tolist() == [1.0]


def test_junctions_are_counted_within_a_distance(grid: RoadNetwork) -> None:
    nodes = np.array([0, 53], np.int32)  # a corner, and the middle
    corner, middle = junction_weights(grid, nodes, within_m=120.0)
    assert (corner, middle) == (2.0, 5.0)  # the corner itself is no junction
