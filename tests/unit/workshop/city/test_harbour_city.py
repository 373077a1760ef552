import numpy as np
import pytest
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.cities import City, harbour_city
from ideal_dispatch.network.geodesy import great_circle_m, polyline_length_m
from ideal_dispatch.network.road_class import ROAD_CLASSES
from workshop.city.harbour import NUM_EDGES, NUM_NODES, generate_harbour_city


@pytest.fixture(scope="module")
def generated() -> City:
    return generate_harbour_city()


@pytest.fixture(scope="module")
def city() -> City:
    return harbour_city()


@pytest.fixture(scope="module")
def depot_times_s(city: City) -> FloatArray:
    network = city.network
    return np.array([network.distances(network.free_flow_times_s, d) for d in city.depots])


def class_mask(city: City, *names: str) -> BoolArray:
    return np.isin(city.network.road_class, [ROAD_CLASSES.index(name) for name in names])


def test_the_generator_makes_the_embedded_city(generated: City) -> None:
    embedded = harbour_city()
    assert generated.network.checksum == embedded.network.checksum
    assert generated.network.name == embedded.network.name
    np.testing.assert_array_equal(generated.network.geometry, embedded.network.geometry)
    np.testing.assert_array_equal(generated.network.geometry_start, embedded.network.geometry_start)
    for column in ("name", "depots", "hospitals", "districts", "time_zone", "country"):
        assert getattr(generated, column) == getattr(embedded, column)
    np.testing.assert_array_equal(generated.region, embedded.region)
    np.testing.assert_array_equal(generated.district, embedded.district)


def test_the_embedded_city_is_the_size_of_the_papers() -> None:
    network = harbour_city().network
    assert (network.num_nodes, network.num_edges) == (NUM_NODES, NUM_EDGES) == (1415, 2541)


def test_every_node_reaches_every_other(city: City) -> None:
    network = city.network
    arcs = coo_array(
        (np.ones(network.num_edges), (network.tail, network.head)),
        shape=(network.num_nodes, network.num_nodes),
    )
    assert connected_components(arcs, connection="strong")[0] == 1


def test_depots_are_about_ten_minutes_apart(city: City, depot_times_s: FloatArray) -> None:
    west, east = city.depots
    assert 8 * 60 <= depot_times_s[0, east.node] <= 11 * 60
    assert 8 * 60 <= depot_times_s[1, west.node] <= 11 * 60


def test_territories_are_mostly_but_not_always_the_nearest(
    city: City, depot_times_s: FloatArray
) -> None:
    assert city.region is not None
    assert set(city.region.tolist()) == {0, 1}
    wrong = city.region != depot_times_s.argmin(axis=0)
    assert 0.02 <= wrong.mean() <= 0.2
    for index, depot in enumerate(city.depots):
        assert city.region[depot.node] == index


def test_many_streets_are_one_way_and_their_reverse_is_missing(city: City) -> None:
    network = city.network
    assert 0.4 <= network.oneway.mean() <= 0.65
    pairs = set(zip(network.tail.tolist(), network.head.tolist(), strict=True))
    two_way = np.flatnonzero(~network.oneway)
    assert all((int(network.head[e]), int(network.tail[e])) in pairs for e in two_way)


def test_lengths_follow_the_drawn_line(city: City) -> None:
    network = city.network
    straight = great_circle_m(
        network.lon[network.tail],
        network.lat[network.tail],
        network.lon[network.head],
        network.lat[network.head],
    )
    assert (network.length_m >= straight - 0.01).all()
    assert network.length_m.min() > 5
    drawn = [polyline_length_m(network.polyline(edge)) for edge in range(network.num_edges)]
    np.testing.assert_allclose(network.length_m, drawn, atol=0.01)


def test_lines_start_and_end_at_their_nodes(city: City) -> None:
    network = city.network
    for edge in range(network.num_edges):
        line = network.polyline(edge)
        tail, head = network.tail[edge], network.head[edge]
        assert line[0].tolist() == [network.lon[tail], network.lat[tail]]
        assert line[-1].tolist() == [network.lon[head], network.lat[head]]


def test_streets_on_the_ground_cross_only_at_junctions(city: City) -> None:
    network = city.network
    above = class_mask(city, "motorway", "motorway_link", "trunk", "trunk_link")
    ground = np.flatnonzero(~above & (network.oneway | (network.tail < network.head)))
    lines = np.array([shapely.linestrings(network.polyline(int(edge))) for edge in ground])
    first, second = shapely.STRtree(lines).query(lines, "intersects")
    first, second = first[first < second], second[first < second]
    met, pair = shapely.get_coordinates(
        shapely.intersection(lines[first], lines[second]), return_index=True
    )
    nodes = shapely.STRtree(shapely.points(network.lon, network.lat))
    _, away_deg = nodes.query_nearest(shapely.points(met), return_distance=True, all_matches=False)
    unjoined = ground[first[pair[away_deg > 2e-5]]]
    assert not unjoined.size, f"edges {unjoined.tolist()} cross others without a junction"


def test_depots_and_hospitals_are_on_wide_roads(city: City) -> None:
    wide = class_mask(city, "primary", "secondary", "tertiary")
    on_wide = set(city.network.tail[wide].tolist())
    assert {depot.node for depot in city.depots} <= on_wide
    assert {hospital.node for hospital in city.hospitals} <= on_wide
    assert len(city.hospitals) == 4
