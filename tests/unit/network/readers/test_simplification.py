import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.readers.build import BuildReport, RawRoads, Segment, build_network


def _build(
    pairs: list[tuple[int, int, bool]], simplify: bool = True, **attributes: object
) -> RoadNetwork:
    places = {n: (0.001 * n, 0.0005 * n * n) for pair in pairs for n in pair[:2]}
    segments = [
        Segment(a, b, 100.0 + a + b, reverse=two_way, oneway=not two_way) for a, b, two_way in pairs
    ]
    return build_network(RawRoads(places, segments, BuildReport("test")), simplify=simplify)


def test_two_way_street_becomes_two_edges() -> None:
    network = _build([(1, 2, True), (2, 3, True), (3, 4, True)])
    assert network.node_ids.tolist() == [1, 4]
    assert network.num_edges == 2
    assert network.length_m.tolist() == [100 * 3 + 3 + 5 + 7] * 2
    assert network.polyline(0).tolist() == network.polyline(1)[::-1].tolist()
    assert len(network.polyline(0)) == 4


def test_junctions_and_ends_stay() -> None:
    network = _build([(1, 2, True), (2, 3, True), (2, 4, True), (4, 5, True)])
    assert network.node_ids.tolist() == [1, 2, 3, 5]


def test_one_way_passes_through_and_direction_changes_stay() -> None:
    ring = [(1, 2, False), (2, 3, False), (3, 4, False), (4, 1, False), (1, 3, True)]
    network = _build(ring)
    assert network.node_ids.tolist() == [1, 3]
    assert network.num_edges == 4
    # where a one-way street meets a two-way one, a driver from the one has a choice
    mixed = _build([(1, 2, True), (2, 3, False), (3, 1, False), (1, 4, True)])
    assert 2 in mixed.node_ids


def test_loops_keep_a_node_of_their_own() -> None:
    lollipop = [(1, 2, True), (2, 3, True), (3, 4, True), (4, 2, True)]
    network = _build(lollipop)
    assert network.num_edges == 6
    assert network.node_ids.tolist() in ([1, 2, 3], [1, 2, 4])
    assert (network.tail != network.head).all()


def test_ring_without_junctions() -> None:
    network = _build([(1, 2, True), (2, 3, True), (3, 4, True), (4, 1, True)])
    assert network.num_nodes == 2
    assert network.num_edges == 4
    assert network.length_m.sum() == 2 * (103 + 105 + 107 + 105)


def test_merged_attributes() -> None:
    places = {1: (0.0, 0.0), 2: (0.001, 0.0), 3: (0.002, 0.0), 4: (0.003, 0.0)}
    unknown = float("nan")
    segments = [
        Segment(1, 2, 100.0, speed_kmh=30, lanes=2, road_class=3, name="A"),
        Segment(3, 2, 300.0, speed_kmh=90, lanes=4, road_class=5, name=""),
        Segment(3, 4, 150.0, speed_kmh=unknown, lanes=2, road_class=6, name="B"),
    ]
    network = build_network(RawRoads(places, segments, BuildReport("test")))
    assert network.num_edges == 2
    before = build_network(RawRoads(places, segments, BuildReport("test")), simplify=False)
    assert network.free_flow_times_s.sum() == pytest.approx(before.free_flow_times_s.sum())
    assert network.speed_kmh == pytest.approx([550 / (100 / 30 + 300 / 90 + 150 / 50)] * 2)
    assumed = network.provenance["report"]["assumed"]
    assert assumed["edges with a speed_kmh for a part, the rest at the default"] == 2
    assert assumed["edges with no speed_kmh, filled in the features"] == 0
    assert network.lanes.tolist() == [4, 4]
    assert network.road_class.tolist() == [5, 5]
    assert network.name == ("B", "B")


def test_merged_oneway_is_that_of_the_greatest_length() -> None:
    places = {n: (0.001 * n, 0.0005 * n * n) for n in range(1, 6)}
    ring = [(1, 2, 100.0, True), (2, 3, 300.0, False), (3, 4, 90.0, True), (4, 1, 80.0, True)]
    segments = [Segment(a, b, m, oneway=oneway, reverse=False) for a, b, m, oneway in ring]
    segments += [Segment(1, 3, 50.0), Segment(3, 5, 50.0)]
    network = build_network(RawRoads(places, segments, BuildReport("test")))
    long, short = (np.flatnonzero(network.length_m == m)[0] for m in (400.0, 170.0))
    assert not network.oneway[long]
    assert network.oneway[short]


def test_lengths_that_are_none() -> None:
    places = {n: (0.001 * n, 0.0) for n in range(4)}
    segments = [Segment(0, 1, 10.0), Segment(1, 2, 0.0)]
    segments += [Segment(2, 3, m) for m in (-1.0, float("nan"), float("inf"))]
    network = build_network(RawRoads(places, segments, BuildReport("test")), simplify=False)
    assert sorted(network.length_m) == [0.1, 0.1, 10, 10]
    assert network.provenance["report"]["dropped"]["segments without a length"] == 3


@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11), st.booleans()), min_size=4, max_size=30
    )
)
def test_simplification_keeps_distances(pairs: list[tuple[int, int, bool]]) -> None:
    """Every node that stays is as far from every other as before, and total length is kept."""
    pairs = [(a, b, two_way) for a, b, two_way in pairs if a != b]
    pairs += [(0, 1, True), (1, 2, True)]
    full, simple = _build(pairs, simplify=False), _build(pairs)
    assert set(simple.node_ids) <= set(full.node_ids)
    assert simple.length_m.sum() == pytest.approx(full.length_m.sum())
    where = {int(node): i for i, node in enumerate(full.node_ids)}
    for i, node in enumerate(simple.node_ids):
        before = full.distances(full.length_m, where[int(node)])
        after = simple.distances(simple.length_m, i)
        assert after == pytest.approx(before[[where[int(n)] for n in simple.node_ids]])
    assert np.isfinite(simple.distances(simple.length_m, 0)).all(), "strongly connected"
