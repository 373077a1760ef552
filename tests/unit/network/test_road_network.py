import copy
import dataclasses
import pickle
from typing import Any, cast

import numpy as np
import pytest

from ideal_dispatch import Depot, Path, RoadNetwork
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import routing
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH

TRIANGLE = ([0, 1, 2, 0], [1, 2, 0, 1], [100.0, 200.0, 300.0, 50.0])


@pytest.fixture
def triangle() -> RoadNetwork:
    return RoadNetwork.from_arrays(*TRIANGLE)


# --- construction ----------------------------------------------------------------------


def test_edge_i_stays_edge_i_in_a_read_only_copy() -> None:
    tail, head, length = [2, 0, 1, 0], [0, 1, 2, 1], np.array([7.0, 5.0, 9.0, 5.0])
    network = RoadNetwork.from_arrays(tail, head, length)
    length[0] = 1
    assert network.tail.tolist() == tail
    assert network.head.tolist() == head
    assert network.length_m.tolist() == [7.0, 5.0, 9.0, 5.0]
    assert (network.num_nodes, network.num_edges) == (3, 4)
    with pytest.raises(ValueError, match="read-only"):
        network.length_m[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.lon = network.lat  # type: ignore[misc]
    assert RoadNetwork.from_arrays([0], [1], [1.0], num_nodes=5).num_nodes == 5


def test_columns_in_other_forms() -> None:
    lines = np.arange(16.0).reshape(4, 2, 2)
    report = {"read": {"ways": 3}}
    network = RoadNetwork.from_arrays(
        *TRIANGLE, road_class=["primary"] * 4, oneway=[0, 1, 1.0, 0],
        geometry=lines,  # type: ignore[arg-type]
        provenance={"report": report},
    )  # fmt: skip
    report["read"]["ways"] = 4
    assert network.road_class.tolist() == [4] * 4
    assert network.oneway.tolist() == [False, True, True, False]
    assert network.polyline(2).tolist() == lines[2].tolist()
    assert network.provenance == {"report": {"read": {"ways": 3}}}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"tail": [0, 1, 2, 9]}, "edge 3: tail"),
        ({"head": [1, -1, 0, 1]}, "edge 1: head"),
        ({"length_m": [1, 0, 1, 1]}, "edge 1: length"),
        ({"length_m": [1, np.nan, 1, 1]}, "edge 1: length"),
        ({"length_m": [1.0, 2.0]}, "length_m"),
        ({"length_m": ["1", "2", "3", "4"]}, "length_m"),
        ({"length_m": [1j] * 4}, "length_m"),
        ({"tail": [0.5, 1, 2, 0]}, "tail"),
        ({"tail": [0, np.nan, 2, 0]}, "tail"),
        ({"tail": ["0", "1", "2", "0"]}, "tail"),
        ({"tail": [[0, 1], [2]]}, "tail"),
        ({"tail": [True, False, True, False]}, "tail"),
        ({"head": [1, 2, 0, 10**12]}, "head"),
        ({"head": [1, 2, 0, 2**31 - 1], "num_nodes": None}, "node 2147483647"),
        ({"num_nodes": -1}, "num_nodes -1"),
        ({"num_nodes": 10**12}, "num_nodes 1000000000000"),
        ({"num_nodes": 3.0}, "num_nodes 3.0"),
        ({"speed_kmh": [50, 0, 50, 50]}, "edge 1: speed"),
        ({"lanes": [1, 1, np.inf, 1]}, "edge 2: lanes"),
        ({"oneway": ["no"] * 4}, "oneway"),
        ({"oneway": [0, 1, 2, 0]}, "oneway"),
        ({"oneway": [0, 1, np.nan, 0]}, "oneway"),
        ({"road_class": [0, 1, 2, 14]}, "edge 3: road class"),
        ({"road_class": ["primary"] * 3 + ["lane"]}, "road class 'lane'"),
        ({"road_class": [["primary"], "trunk"]}, "road_class"),
        ({"name": ["a"]}, "name"),
        ({"name": ["a", "b", None, "d"]}, "name"),
        ({"name": "abcd"}, "name"),
        ({"lon": [0.0, 1.0, 2.0]}, "lon and lat"),
        ({"lon": [0, 1, 200.0], "lat": [0, 0, 0]}, "node 2"),
        ({"node_ids": [1, 1, 2]}, "node_ids"),
        ({"node_ids": [[1], [2, 3]]}, "node_ids"),
        ({"node_ids": [["a", "b", "c"]]}, "node_ids"),
        ({"node_ids": [1, 2.5, 3]}, "node_ids"),
        ({"geometry": [None] * 3}, "geometry"),
        ({"geometry": [[[0, 0]], None, None, None]}, "edge 0: geometry"),
        ({"geometry": [[[0, 0], [np.nan, 1]]] + [None] * 3}, "geometry"),
        ({"geometry": [[[0, 0], [1]]] + [None] * 3}, "edge 0: geometry"),
        ({"geometry": [None, "LINESTRING (0 0, 1 1)", None, None]}, "edge 1: geometry"),
        ({"geometry": [None, [0.0, 1.0], None, None]}, "edge 1: geometry"),
        ({"geometry": np.zeros((4, 2, 3))}, "edge 0: geometry"),
        ({"geometry": "none"}, "geometry"),
        ({"provenance": {"seed": np.int64(3)}}, "provenance"),
        ({"provenance": {"share": float("nan")}}, "provenance"),
        ({"provenance": [1, 2]}, "provenance"),
        ({"tail": [], "head": [], "length_m": [], "num_nodes": None}, "at least one node"),
    ],
)
def test_bad_columns_are_named_in_one_line(change: dict[str, object], key: str) -> None:
    arguments: dict[str, object] = dict(
        zip(("tail", "head", "length_m"), TRIANGLE, strict=True), num_nodes=3
    )
    with pytest.raises(InputError, match=key) as caught:
        RoadNetwork.from_arrays(**{**arguments, **change})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies(grid: RoadNetwork, duplicate: Any) -> None:
    grid.snap(114, 22)  # what is derived is not copied
    other = duplicate(dataclasses.replace(grid, provenance={"report": {"read": {}}}))
    assert (other.checksum, other.name) == (grid.checksum, grid.name)
    assert other.provenance == {"report": {"read": {}}}
    assert not other.length_m.flags.writeable
    assert other.snap(114, 22) == grid.snap(114, 22)


def test_text_ids() -> None:
    def ids(*given: str) -> Any:
        return RoadNetwork.from_arrays([0], [1], [1.0], node_ids=given).node_ids

    assert ids("7", "M338").tolist() == ["7", "M338"]
    assert ids("7", "8").dtype == int
    assert ids("0", "-8").tolist() == [0, -8]
    for odd in ("08", " 8", "+8", "8.0", "-0", "1_000", "٣", "9" * 20, ""):
        assert ids("7", odd).tolist() == ["7", odd]


def test_free_flow_uses_the_default_limit() -> None:
    network = RoadNetwork.from_arrays(*TRIANGLE, speed_kmh=[36, np.nan, 72, 36])
    expected = [10.0, 200 * 3.6 / DEFAULT_SPEED_KMH, 15.0, 5.0]
    assert network.free_flow_times_s == pytest.approx(expected)


def test_polyline_is_straight_or_known(triangle: RoadNetwork) -> None:
    bend = [[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]]
    network = RoadNetwork.from_arrays(
        [0, 1], [1, 0], [9.0, 9.0], [0.0, 1.0], [0.0, 0.0], geometry=[bend, None]
    )
    assert network.polyline(0).tolist() == bend
    assert network.polyline(1).tolist() == [[1, 0], [0, 0]]
    for edge in (-1, 4):
        with pytest.raises(InputError, match=f"edge {edge}"):
            triangle.polyline(edge)


# --- paths -----------------------------------------------------------------------------


def test_shortest_paths_of_a_triangle(triangle: RoadNetwork) -> None:
    times = triangle.length_m
    path = triangle.shortest_path(times, 0, 2)
    assert (path.edges.tolist(), path.origin, path.destination) == ([3, 1], 0, 2)
    assert path.time_s(times) == path.length_m(triangle) == 250
    assert path.nodes(triangle).tolist() == [0, 1, 2]
    nearest = triangle.shortest_path(times, [0, Depot("B", 1)], 2)
    assert (nearest.origin, nearest.edges.tolist()) == (1, [1])
    here = triangle.shortest_path(times, 1, 1)
    assert (len(here), here.origin, here.destination, here.time_s(times)) == (0, 1, 1, 0)
    closed = np.array([100.0, 200, 300, np.inf])
    assert triangle.shortest_path(closed, 0, 2).edges.tolist() == [0, 1]
    for one in (np.int32(0), np.uint8(0), np.array(0), np.array([0])):
        assert triangle.shortest_path(times, one, np.int64(2)) == path  # type: ignore[arg-type]
    assert triangle.distances(times, 0).tolist() == [0, 50, 250]
    assert triangle.distances_to(times, 0).tolist() == [0, 500, 300]


def test_unreachable_names_depot_and_node() -> None:
    network = RoadNetwork.from_arrays([1], [0], [1.0], node_ids=[11, 8812])
    with pytest.raises(UnreachableError, match=r"node 1 \(id 8812\) .* depot MOR \(node 0\)"):
        network.shortest_path([1.0], Depot("MOR", 0), 1)
    with pytest.raises(UnreachableError, match="row 1: node 1 .* from node 0"):
        network.shortest_paths([1.0], [1, 0], [0, 1])


@pytest.mark.parametrize(
    ("times", "sources", "target", "key"),
    [
        ([1, 2, 3], 0, 2, "edge times"),
        (None, 0, 2, "edge times"),
        (["1", "2", "3", "4"], 0, 2, "edge times"),
        ([[1, 2], [3]], 0, 2, "edge times"),
        ([object()] * 4, 0, 2, "edge times"),
        ([1, -2, 3, 4], 0, 2, "edge 1: time -2.0 s"),
        ([1, np.nan, 3, 4], 0, 2, "edge 1: time nan s"),
        ([1, None, 3, 4], 0, 2, "edge 1: time nan s"),
        ([1, 2, 3, 4], 7, 2, "source 7"),
        ([1, 2, 3, 4], [], 2, "no source"),
        ([1, 2, 3, 4], 0.0, 2, "source 0.0"),
        ([1, 2, 3, 4], "12", 2, "source '12'"),
        ([1, 2, 3, 4], [0, None], 2, "source None"),
        ([1, 2, 3, 4], np.array([0.5]), 2, "source 0.5"),
        ([1, 2, 3, 4], Depot("A", cast(int, "0")), 2, "source '0'"),
        ([1, 2, 3, 4], 0, -1, "target -1"),
        ([1, 2, 3, 4], 0, 3, "target 3"),
        ([1, 2, 3, 4], 0, 2.9, "target 2.9"),
        ([1, 2, 3, 4], 0, "2", "target '2'"),
        ([1, 2, 3, 4], 0, True, "target True"),
    ],
)
def test_bad_queries(
    triangle: RoadNetwork, times: Any, sources: Any, target: Any, key: str
) -> None:
    with pytest.raises(InputError, match=key):
        triangle.shortest_path(times, sources, target)


@pytest.mark.parametrize("wrong", [np.nan, -1.0])
def test_bad_potential(triangle: RoadNetwork, wrong: float) -> None:
    potential = np.array([0.0, wrong, 0.0])
    with pytest.raises(InputError, match=f"potential of node 1: {wrong} s"):
        triangle.shortest_path(triangle.length_m, 0, 2, potential_s=potential)
    potential[1] = np.inf  # a node from which there is no way
    assert len(triangle.shortest_path(triangle.length_m, 2, 0, potential_s=potential)) == 1


def test_batch_equals_single(grid: RoadNetwork) -> None:
    rng = np.random.default_rng(0)
    times = rng.uniform(1, 9, (50, grid.num_edges))
    origins, targets = rng.integers(0, grid.num_nodes, (2, 50))
    singles = [grid.shortest_path(*row) for row in zip(times, origins, targets, strict=True)]
    for threads in (1, 2, 5):
        assert grid.shortest_paths(times, origins, targets, threads=threads) == singles
    shared = grid.shortest_paths(times[0], origins, targets)
    assert shared[3] == grid.shortest_path(times[0], origins[3], targets[3])
    assert grid.shortest_paths(times[0], [], []) == []


def test_small_batches_start_no_threads(grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing.os, "cpu_count", lambda: 4)  # type: ignore[attr-defined]
    monkeypatch.setattr(routing, "ThreadPoolExecutor", None)
    assert len(grid.shortest_paths(grid.length_m, [0] * 64, [5] * 64)) == 64
    monkeypatch.setattr(routing, "_WORTH_THREADS", 64 * grid.num_edges)
    with pytest.raises(TypeError):
        grid.shortest_paths(grid.length_m, [0] * 64, [5] * 64)


@pytest.mark.parametrize(
    ("rows", "origins", "targets", "threads", "key"),
    [
        (3, [0, 1], [2, 3], None, "edge times"),
        (1, [0, 1], [2, 999], None, "row 1: target 999"),
        (1, [-1, 1], [2, 9], None, "row 0: origin -1"),
        (1, [0, 1.5], [2, 3], None, "origins"),
        (1, [True, False], [2, 3], None, "origins"),
        (1, None, [2, 3], None, "origins"),
        (1, [0, 1], [2, 3], 0, "threads 0"),
        (1, [0, 1], [2, 3], 1.5, "threads 1.5"),
        (-3, [0, 1, 2], [2, 3, 4], None, "row 2, edge 5: time -1"),
    ],
)
def test_bad_batches(
    grid: RoadNetwork, rows: int, origins: Any, targets: Any, threads: Any, key: str
) -> None:
    times = np.ones((abs(rows), grid.num_edges))
    times[-1, 5] = np.sign(rows)
    with pytest.raises(InputError, match=key):
        grid.shortest_paths(times, origins, targets, threads=threads)


def test_a_path_is_a_checked_value(triangle: RoadNetwork, grid: RoadNetwork) -> None:
    assert triangle.path([0, 1, 2]).destination == 0
    assert triangle.path([], origin=2) == Path(np.array([], int), 2, 2)
    for edges, origin, key in (
        ([0, 2], None, "after edge 0: it ends at node 1, edge 2 starts at node 2"),
        ([4], None, "edge 4"),
        ([0], 2, "node 0, not at node 2"),
        ([], None, "origin"),
    ):
        with pytest.raises(InputError, match=key):
            triangle.path(edges, origin)
    with pytest.raises(InputError, match="needs edges"):
        Path(np.array([], int), 0, 1)
    assert len({triangle.path([0, 1]), triangle.path([0, 1]), triangle.path([3, 1])}) == 2
    assert triangle.path([0]) != "path"
    path = grid.shortest_path(grid.length_m, 0, 5)
    line = path.coordinates(grid)
    assert line[[0, -1]].tolist() == [[grid.lon[n], grid.lat[n]] for n in (0, 5)]
    assert len(line) == len(path) + 1
    assert grid.path([], origin=3).coordinates(grid).shape == (1, 2)
