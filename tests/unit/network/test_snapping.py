import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, OffNetworkError
from ideal_dispatch.network.geodesy import great_circle_m


@given(st.floats(113.999, 114.012), st.floats(21.999, 22.010))
def test_nearest_node_by_brute_force(grid: RoadNetwork, lon: float, lat: float) -> None:
    ones = np.ones(grid.num_nodes)
    distances = great_circle_m(lon * ones, lat * ones, grid.lon, grid.lat)
    snap = grid.snap(lon, lat, limit_m=1000)
    assert snap.distance_m == pytest.approx(distances.min(), abs=1e-3)
    assert distances[snap.node] == pytest.approx(distances.min(), abs=1e-6)


def test_the_limit_of_a_snap(grid: RoadNetwork) -> None:
    assert grid.snap(113.9975, 22.0).distance_m == pytest.approx(257.7, abs=0.5)
    with pytest.raises(OffNetworkError, match="258 m away, beyond the limit of 200 m"):
        grid.snap(113.9975, 22.0, limit_m=200)
    for limit in ("far", float("nan"), -1):
        with pytest.raises(InputError, match=f"snap limit {limit}"):
            grid.snap(114, 22, limit_m=limit)  # type: ignore[arg-type]
    assert RoadNetwork.from_arrays([], [], [], [7.0], [43.0]).snap(7.0, 43.0).node == 0
    with pytest.raises(InputError, match="no coordinates"):
        RoadNetwork.from_arrays([0], [1], [1.0]).snap(0, 0)


@pytest.mark.parametrize(
    ("lon", "lat", "message"),
    [
        (115.0, 21.5, r"the nearest road is 11\d\.\d km away, beyond the limit of 300 m"),
        (22.005, 114.005, "not degrees on Earth; are they swapped"),
        (float("nan"), 22.0, "longitude nan, latitude 22.0: not degrees on Earth"),
        (float("inf"), 22.0, "not degrees on Earth"),
        ("here", 22.0, "not numbers"),
        (None, 22.0, "not numbers"),
    ],
)
def test_bad_points(grid: RoadNetwork, lon: float, lat: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid.snap(lon, lat)


def test_swapped_where_both_are_degrees() -> None:
    network = RoadNetwork.from_arrays([0, 1], [1, 0], [70.0, 70.0], [7.42, 7.421], [43.73, 43.73])
    with pytest.raises(OffNetworkError, match="latitude and longitude are swapped"):
        network.snap(43.73, 7.42)


def test_edges_around_points(grid: RoadNetwork) -> None:
    points = grid.snapper.plane.to_metres(np.array([[114.0025, 22.0001], [114.0, 22.0]]))
    row, edge = grid.snapper.edges_within(points, 15.0)
    both = np.flatnonzero(np.isin(grid.tail, (2, 3)) & np.isin(grid.head, (2, 3)))
    assert edge[row == 0].tolist() == both.tolist()
    assert (np.diff(row) >= 0).all(), "sorted by point"
    at_corner = np.flatnonzero((grid.tail == 0) | (grid.head == 0))
    assert edge[row == 1].tolist() == at_corner.tolist()


def test_edge_geometry_counts() -> None:
    bend = [[0.0, 0.0], [0.001, 0.002], [0.002, 0.0]]
    network = RoadNetwork.from_arrays(
        [0, 1], [1, 0], [500.0, 500.0], [0.0, 0.002], [0.0, 0.0], geometry=[bend, None]
    )
    points = network.snapper.plane.to_metres(np.array([[0.001, 0.0021], [0.001, 0.0001]]))
    assert network.snapper.edges_within(points, 15.0)[1].tolist() == [0, 1]


def test_a_vehicle_is_on_the_road_that_leads_its_way(grid: RoadNetwork) -> None:
    """Between two junctions it goes on to the one ahead, whichever is nearer."""
    edge = 40
    line = grid.polyline(edge)
    place = line[0] + 0.25 * (line[-1] - line[0])
    east, north = line[-1] - line[0]
    heading = float(np.degrees(np.arctan2(east, north)) % 360)
    ahead = grid.snapper.vehicle(float(place[0]), float(place[1]), heading)
    assert ahead.node == grid.head[edge]
    assert (grid.tail[ahead.edge], grid.head[ahead.edge]) == (grid.tail[edge], grid.head[edge])
    assert ahead.ahead == pytest.approx(0.75, rel=0.02)
    back = grid.snapper.vehicle(float(place[0]), float(place[1]), (heading + 180) % 360)
    assert back.node == grid.tail[edge]
    assert back.ahead == pytest.approx(0.25, rel=0.02)


def test_a_vehicle_that_stands_leaves_its_road_to_either_end(grid: RoadNetwork) -> None:
    line = grid.polyline(40)
    lon, lat = (line[0] + 0.25 * (line[-1] - line[0])).tolist()
    nearer = grid.snapper.vehicle(lon, lat, None)
    assert nearer.node == grid.tail[40]
    assert nearer.ahead == pytest.approx(0.25, rel=0.02)
    for end in (grid.tail[40], grid.head[40]):
        towards = float(grid.lon[end]), float(grid.lat[end])
        there = grid.snapper.vehicle(lon, lat, None, towards=towards)
        assert (there.node, grid.head[there.edge]) == (end, end)
    with pytest.raises(OffNetworkError, match="beyond the limit"):
        grid.snapper.vehicle(10.0, 50.0, 90.0)


def test_a_vehicle_that_stands_at_a_junction_is_at_it(grid: RoadNetwork) -> None:
    towards = float(grid.lon[119]), float(grid.lat[119])
    for node in range(grid.num_nodes):
        found = grid.snapper.vehicle(float(grid.lon[node]), float(grid.lat[node]), None)
        there = grid.snapper.vehicle(
            float(grid.lon[node]), float(grid.lat[node]), None, towards=towards
        )
        assert (found.node, there.node) == (node, node)
        assert max(found.ahead, there.ahead) < 1e-6


def test_a_vehicle_on_a_long_road_is_on_it_however_far_the_junctions_are() -> None:
    """A junction of another road is nearer than both ends of its own."""
    network = RoadNetwork.from_arrays(
        [0, 1, 2, 3], [1, 0, 3, 2], [4000.0, 4000.0, 100.0, 100.0],
        [0.0, 0.036, 0.018, 0.018], [50.0, 50.0, 50.002, 50.003],
    )  # fmt: skip
    for heading in (None, 90.0):
        found = network.snapper.vehicle(0.0179, 50.0, heading, 100.0, towards=(0.04, 50.0))
        assert (found.edge, found.node) == (0, 1)
        assert found.ahead == pytest.approx(0.503, abs=0.002)
