import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network import features
from ideal_dispatch.network.features import (
    edge_features,
    headings,
    meetings,
    midpoints,
    node_density,
    through_traffic,
)
from ideal_dispatch.network.road_class import ROAD_CLASSES


def test_the_papers_twenty_columns() -> None:
    assert len(ROAD_CLASSES) == len(set(ROAD_CLASSES)) == 14
    network = RoadNetwork.from_arrays(
        [0, 1, 0, 2, 0],
        [1, 0, 1, 0, 0],
        [100.0, 110.0, 120.0, 130.0, 10.0],
        speed_kmh=[30, np.nan, 50, 80, 20],
        lanes=[3, np.nan, np.nan, np.nan, 1],
        oneway=[False, False, True, True, False],
        road_class=["residential", "residential", "service", "motorway", "trunk"],
    )
    features = edge_features(network)
    assert features.shape == (5, 20)
    length_m, speed_kmh, neighbours_tail, neighbours_head, oneway, lanes, *classes = (
        features.T.tolist()
    )
    assert length_m == [100, 110, 120, 130, 10]
    assert speed_kmh == [30, 50, 50, 80, 20], "default 50"
    assert neighbours_tail == [2, 1, 2, 1, 2], "loops are no neighbours"
    assert neighbours_head == [1, 2, 1, 2, 2]
    assert oneway == [0, 0, 1, 1, 0]
    assert lanes == [3, 2, 1, 2, 1], "one per direction, motorways two"
    assert classes[ROAD_CLASSES.index("residential")] == [1, 1, 0, 0, 0]
    assert (features[:, 6:].sum(axis=1) == 1).all()


@pytest.fixture
def cross() -> RoadNetwork:
    """A node at 60° N with roads to east, west, north and south of it, and a loop."""
    return RoadNetwork.from_arrays(
        [0, 0, 0, 0, 0],
        [1, 2, 3, 4, 0],
        [100.0] * 5,
        [10.0, 10.002, 9.998, 10.0, 10.0],
        [60.0, 60.0, 60.0, 60.001, 59.999],
    )


def test_headings_point_east_and_north(cross: RoadNetwork) -> None:
    expected = [[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]
    np.testing.assert_allclose(headings(cross), expected, atol=1e-9)


def test_headings_are_true_angles_far_from_the_equator() -> None:
    # at 60° N a degree of longitude is half as long as one of latitude
    slanted = RoadNetwork.from_arrays([0], [1], [100.0], [10.0, 10.002], [60.0, 60.001])
    np.testing.assert_allclose(headings(slanted)[0], [np.sqrt(0.5)] * 2, rtol=0.01)


def test_midpoints(cross: RoadNetwork) -> None:
    expected = [[10.001, 60.0], [10.0, 60.0005], [10.0, 60.0]]
    np.testing.assert_allclose(midpoints(cross)[[0, 2, 4]], expected)


def test_meetings_count_common_ends() -> None:
    # a street in both directions, a road on from its end, and one elsewhere
    roads = RoadNetwork.from_arrays([0, 1, 1, 3], [1, 0, 2, 4], [100.0] * 4)
    expected = [[2, 2, 1, 0], [2, 2, 1, 0], [1, 1, 2, 0], [0, 0, 0, 2]]
    np.testing.assert_array_equal(meetings(roads).toarray(), expected)


def test_density_counts_nodes_within_300_m(grid: RoadNetwork) -> None:
    density = node_density(grid)
    metres = 111_195.0
    for edge in (0, 17, 150, 300):
        lon, lat = midpoints(grid)[edge]
        east = (grid.lon - lon) * metres * np.cos(np.radians(lat))
        north = (grid.lat - lat) * metres
        assert density[edge] == (np.hypot(east, north) < 300).sum()


def test_through_traffic_is_an_estimate_of_betweenness(grid: RoadNetwork) -> None:
    count = through_traffic(grid)
    np.testing.assert_array_equal(count, through_traffic(grid), "always the same draws")
    nodes = np.arange(grid.num_nodes)
    exact = np.zeros(grid.num_edges)
    for origin in nodes:
        for path in grid.shortest_paths(grid.free_flow_times_s, np.full(nodes.size, origin), nodes):
            exact[path.edges] += 1
    assert np.corrcoef(count, exact)[0, 1] > 0.85


def test_pairs_without_a_way_do_not_count() -> None:
    network = RoadNetwork.from_arrays([0, 2], [1, 3], [100.0, 100.0])
    count = through_traffic(network)
    assert count.max() <= features._PAIRS
    assert (count > 0).all()
    assert (count % 30 == 0).all(), "every origin with a way has all its trips"


def test_without_coordinates_there_is_traffic_but_no_heading() -> None:
    network = RoadNetwork.from_arrays([0, 1], [1, 0], [100.0, 100.0])
    assert np.isnan(midpoints(network)).all()
    assert (through_traffic(network) > 0).all()
