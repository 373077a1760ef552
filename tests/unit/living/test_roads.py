"""Driving along roads: where, in which direction, how fast, and for how long."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.living.roads import Drive, Spot, network_of, seconds_to, standing, way_to
from ideal_dispatch.network.geodesy import great_circle_m
from tests.unit.living.stand_in import geojson

EAST, NORTH = 90.0, 0.0


def corner() -> RoadNetwork:
    """A street that leads east and then north, both ways, and a one-way motorway back."""

    def feature(edges: list[int], line: list[list[float]], kind: str) -> dict[str, Any]:
        told = {"name": "", "road_class": kind, "edges": edges}
        return {"properties": told, "geometry": {"coordinates": line}}

    street = [[114.0, 22.0], [114.01, 22.0], [114.01, 22.01]]
    return network_of({"features": [
        feature([0, 2], street, "residential"),
        feature([1], [[114.01, 22.01], [114.0, 22.0]], "motorway"),
    ]})  # fmt: skip


def node(network: RoadNetwork, lon: float, lat: float) -> int:
    return int(great_circle_m(network.lon, network.lat, np.array(lon), np.array(lat)).argmin())


def drive(network: RoadNetwork, spot: Spot, target: int, lasts_s: float = 100.0) -> Drive:
    return Drive(network, spot, target, 1000.0, lasts_s, np.random.default_rng(1))


def test_a_line_is_driven_both_ways_where_the_map_has_both_edges() -> None:
    network = corner()
    assert network.num_edges == 3
    assert (network.tail[0], network.head[0]) == (network.head[2], network.tail[2])
    assert network.polyline(2).tolist() == network.polyline(0)[::-1].tolist()
    assert network.length_m[0] == pytest.approx(network.length_m[2])
    assert network.speed_kmh[1] > network.speed_kmh[0]


def test_edges_keep_the_numbers_of_the_map(grid: RoadNetwork) -> None:
    again = network_of(geojson(grid))
    for edge in range(grid.num_edges):
        assert again.polyline(edge) == pytest.approx(grid.polyline(edge), abs=1e-6)


@pytest.mark.parametrize("document", [{}, {"features": []}, {"features": [{"properties": 1}]}])
def test_another_map_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="no roads as this program knows them"):
        network_of(document)


def test_a_unit_moves_along_the_line_of_its_road() -> None:
    network = corner()
    start, end = node(network, 114.0, 22.0), node(network, 114.01, 22.01)
    way = drive(network, Spot(start), end)
    assert (way.begins_s, way.ends_s) == (1000.0, 1100.0)
    _, first = way.at(1000.0)
    assert (first.lon, first.lat, first.heading) == pytest.approx((114.0, 22.0, EAST), abs=0.01)
    share = network.length_m[0] / 100.0  # metres a second: one edge has one speed
    assert first.speed_kmh == pytest.approx(3.6 * share)
    east_m = float(great_circle_m(*(np.array(x) for x in (114.0, 22.0, 114.01, 22.0))))
    spot, before = way.at(1000.0 + east_m / share - 1.0)
    assert before.heading == pytest.approx(EAST, abs=0.01)
    assert before.lat == pytest.approx(22.0)
    assert 114.0097 < before.lon < 114.01
    assert spot.edge == 0
    _, after = way.at(1000.0 + east_m / share + 1.0)
    assert after.heading == pytest.approx(NORTH, abs=0.01)
    assert after.lon == pytest.approx(114.01)
    assert 22.0 < after.lat < 22.0003
    spot, last = way.at(1100.0)
    assert spot == Spot(end)
    assert (last.lon, last.lat, last.heading, last.speed_kmh) == (114.01, 22.01, None, 0.0)


def test_a_unit_within_a_road_goes_on_from_there() -> None:
    network = corner()
    start, end = node(network, 114.0, 22.0), node(network, 114.01, 22.01)
    spot, seen = drive(network, Spot(start), end).at(1030.0)
    assert spot.node == end
    assert spot.share == pytest.approx(0.3)
    back = drive(network, spot, start, 150.0)
    _, here = back.at(1000.0)
    assert (here.lon, here.lat) == pytest.approx((seen.lon, seen.lat))
    assert here.heading == pytest.approx(EAST, abs=0.01)  # it turns at the end of the road
    assert back.at(1150.0)[0] == Spot(start)
    assert standing(network, spot).speed_kmh == 0.0
    assert standing(network, spot)[:2] == pytest.approx(seen[:2])


def test_a_drive_passes_its_edges_in_order_and_takes_its_time(grid: RoadNetwork) -> None:
    network = network_of(geojson(grid))
    way = drive(network, Spot(0), network.num_nodes - 1, 600.0)
    seen = [way.at(1000.0 + s) for s in np.linspace(0.0, 600.0, 1201)]
    lon, lat = np.array([sight[:2] for _, sight in seen]).T
    steps_m = great_circle_m(lon[:-1], lat[:-1], lon[1:], lat[1:])
    assert steps_m.sum() == pytest.approx(2200.0, rel=0.1)  # 11 streets east and 9 north
    told_m = np.array([sight.speed_kmh / 3.6 * 0.5 for _, sight in seen[:-1]])
    assert steps_m.max() <= told_m.max() * 1.01  # no jumps
    assert len(set(np.round(told_m, 6))) > 5  # some streets are slow
    edges = list(dict.fromkeys(spot.edge for spot, _ in seen[:-1]))
    ends = pairwise(edges)
    assert all(network.head[one] == network.tail[other] for one, other in ends)


def test_no_luck_makes_a_unit_faster_than_roads_allow() -> None:
    network = corner()
    start, end = node(network, 114.0, 22.0), node(network, 114.01, 22.01)
    way = drive(network, Spot(start), end, 1.0)
    assert way.at(1000.0)[1].speed_kmh == pytest.approx(2.5 * network.speed_kmh[0])
    assert way.at(way.ends_s)[0] == Spot(end)


def test_a_unit_that_is_there_already_arrives_at_once() -> None:
    network = corner()
    way = drive(network, Spot(0), 0)
    assert way.ends_s == way.begins_s
    assert way.at(1000.0)[0] == Spot(0)


def test_a_way_leads_around_closed_roads_unless_no_other_leads_there() -> None:
    network = corner()
    end, start = node(network, 114.01, 22.01), node(network, 114.0, 22.0)
    for closed, edge in ([], 1), ([1], 2), ([2], 1), ([1, 2], 1):
        shut = network.closing(closed)
        edges, seconds = way_to(shut, Spot(end), start)
        assert edges.tolist() == [edge]
        assert seconds_to(shut, start)[end] == seconds.sum()


def test_a_unit_on_its_way_turns_off_before_a_road_that_is_closed(grid: RoadNetwork) -> None:
    network = network_of(geojson(grid))
    way = drive(network, Spot(0), network.num_nodes - 1, 600.0)
    driven = list(dict.fromkeys(way.at(1000.0 + s)[0].edge for s in np.linspace(0.0, 599.9, 6000)))
    now_s = 1200.0
    here = driven.index(way.at(now_s)[0].edge)
    passed = network.closing(driven[: here + 1])
    assert way.around(passed, now_s) is way  # what lies behind, or is driven now, changes nothing
    shut = network.closing(driven[here + 2 : here + 3])
    other = way.around(shut, now_s)
    assert other.at(now_s)[1][:2] == pytest.approx(way.at(now_s)[1][:2])
    seen = {other.at(s)[0].edge for s in np.linspace(now_s, other.ends_s, 6000)}
    assert not seen & set(shut.closed)
    assert other.at(other.ends_s)[0] == Spot(way.target)
    assert other.ends_s - now_s == pytest.approx(400.0, rel=0.5)  # no faster or slower than before
