from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch import Depot, Path, RoadNetwork
from ideal_dispatch.dispatch import Assignment, Decision, Ideal, Readiness, observe
from ideal_dispatch.dispatch.candidate import (
    ALL_KINDS,
    candidate,
    differing,
    follows,
    overlap,
    routed,
    second_candidates,
)
from ideal_dispatch.network.geodesy import EARTH_RADIUS_M
from ideal_dispatch.network.time_bounds import TimeBounds
from tests.unit.dispatch.worlds import NODES, situation, world

# 0 → 1 → 2 → 3 along edges 0, 1, 2; a detour 1 → 4 → 2 along edges 3, 4; and 5 → 2 along edge 5
NETWORK = RoadNetwork.from_arrays(
    [0, 1, 2, 1, 4, 5], [1, 2, 3, 4, 2, 2], [100.0, 300.0, 100.0, 200.0, 200.0, 400.0],
    speed_kmh=np.full(6, 36.0),
)  # fmt: skip
DIRECT, DETOUR = NETWORK.path([0, 1, 2]), NETWORK.path([0, 3, 4, 2])
ELSEWHERE, NOTHING = NETWORK.path([5, 2]), NETWORK.path([], 3)


def test_overlap_is_the_share_of_the_seconds_metres() -> None:
    assert overlap(NETWORK, DIRECT, DETOUR) == pytest.approx(200 / 600)
    assert overlap(NETWORK, DETOUR, DIRECT) == pytest.approx(200 / 500)
    assert overlap(NETWORK, DIRECT, ELSEWHERE) == pytest.approx(100 / 500)
    assert overlap(NETWORK, DIRECT, DIRECT) == 1.0
    assert overlap(NETWORK, DIRECT, NOTHING) == 0.0
    assert overlap(NETWORK, NOTHING, DIRECT) == 0.0
    assert overlap(NETWORK, NOTHING, NOTHING) == 1.0


def test_what_to_keep_to_so_that_the_difference_is_driven() -> None:
    assert differing(NETWORK, DETOUR, DIRECT) == 3
    assert differing(NETWORK, DIRECT, DETOUR) == 2
    assert differing(NETWORK, ELSEWHERE, DIRECT) == 1
    assert differing(NETWORK, DIRECT, DIRECT) == 0
    assert differing(NETWORK, NOTHING, DIRECT) == 0


def test_no_drive_is_faster_than_can_be_driven(grid: RoadNetwork) -> None:
    call = situation(grid)
    quote, way = call.quote(1), routed(call, 1)
    assert candidate(call, "router", way).drive_s == quote.duration_s
    hurried = replace(call.stations[1], quote=replace(quote, duration_s=1.0))
    call = replace(call, stations=(call.stations[0], hurried))
    least_s = TimeBounds().on(grid, quote.path).least_s.sum()
    assert candidate(call, "router", way).drive_s == pytest.approx(least_s)
    assert least_s > 0.1 * quote.duration_s


def test_what_the_log_says_of_a_pair(grid: RoadNetwork) -> None:
    call = situation(grid)
    one, two = (Assignment(number, call.quote(number).path) for number in (0, 1))
    alone, same, other = (
        Decision("p", one, second, 0.0, 0.0, "", {"mine": 1}, situation=call)
        for second in (None, one, two)
    )
    assert alone.log_facts() == {"mine": 1}
    assert same.log_facts() == {
        "overlap": 1.0, "same_depot": True, "same_path": True, "mine": 1,
    }  # fmt: skip
    assert not other.same_depot


def _neighbours(network: RoadNetwork) -> tuple[int, int]:
    """Two ends of a short edge, of which one is on the other's way to node 65."""
    for edge in np.argsort(network.length_m):
        one, two = int(network.tail[edge]), int(network.head[edge])
        path = network.shortest_path(network.free_flow_times_s, one, 65)
        if len(path) > 5 and path.edges[0] == edge:
            return one, two
    raise AssertionError("no such edge")


@pytest.mark.parametrize("metres", [0.0, 140.0, 160.0])
def test_no_second_follows_the_first(grid: RoadNetwork, metres: float) -> None:
    """Of whatever kind: what starts within 150 m and drives mostly the same roads is no second."""
    one, two = _neighbours(grid)
    lon, lat = grid.lon.copy(), grid.lat.copy()
    lon[two], lat[two] = lon[one], lat[one] + np.degrees(metres / EARTH_RADIUS_M)
    network = replace(grid, lon=lon, lat=lat)
    call = situation(grid, 65)
    starts = [Depot("A", one), Depot("B", two, True), Depot("C", NODES[0])]
    seen = observe(world(grid), grid, call.incident, call.context, Readiness(starts, [1, 1, 1]))
    seen = replace(seen, network=network)
    routes = [candidate(seen, "", routed(seen, n)) for n in seen.available]
    first, other = routes[0].assignment, routes[1].assignment
    assert overlap(grid, first.path, other.path) > 0.5
    assert follows(seen, first, other) == (metres < 150.0)
    found = second_candidates(seen, routes[0], routes, None, None, ALL_KINDS, 1.0)
    stations = {one.assignment.station for one in found}
    assert stations == ({2} if metres < 150.0 else {1, 2})


def test_without_coordinates_one_node_is_one_place(grid: RoadNetwork) -> None:
    nowhere = np.full(grid.num_nodes, np.nan)
    one, two = _neighbours(grid)
    call = situation(grid, 65)
    starts = [Depot("A", one), Depot("B", one, True), Depot("C", two, True)]
    seen = observe(world(grid), grid, call.incident, call.context, Readiness(starts, [1, 1, 1]))
    bare = replace(seen, network=replace(grid, lon=nowhere, lat=nowhere))
    ways = [routed(seen, number) for number in range(3)]
    assert follows(bare, ways[0], ways[1])
    assert not follows(bare, ways[0], ways[2])
    made = Ideal(seconds=("other-depot",)).decide(bare, np.random.default_rng(0))
    assert made.second is not None
    assert {made.primary.station, made.second.station} in ({0, 2}, {1, 2})
    assert not follows(seen, ways[0], replace(ways[1], path=_around(grid, ways[0])))


def _around(network: RoadNetwork, way: Assignment) -> Path:
    """Another way between the same ends, on other roads."""
    rough = network.length_m.copy()
    rough[way.path.edges] *= 50.0
    return network.shortest_path(rough, way.path.origin, way.path.destination)


def test_the_depots_own_other_route_is_no_second_if_it_is_mostly_the_same(
    grid: RoadNetwork,
) -> None:
    """Whatever ``overlap_limit`` says."""
    call = situation(grid, 65, (2, 0))
    quote = call.quote(0)
    first = candidate(call, "", routed(call, 0))
    others = [_around(grid, first.assignment)]
    for edge in quote.path.edges:  # around one road alone
        rough = grid.length_m.copy()
        rough[edge] *= 50.0
        others.append(grid.shortest_path(rough, quote.path.origin, quote.path.destination))
    shares = []
    for path in others:
        shares.append(overlap(grid, quote.path, path))
        station = replace(call.stations[0], alternative=replace(quote, path=path))
        seen = replace(call, stations=(station, call.stations[1]))
        found = second_candidates(seen, first, [first], None, None, ALL_KINDS, 1.0)
        assert bool(found) == (shares[-1] <= 0.5)
    assert min(shares) <= 0.5 < max(shares) < 1.0
