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


def _pickled(network: RoadNetwork) -> RoadNetwork:
    copied: RoadNetwork = pickle.loads(pickle.dumps(network))
    return copied


TRIANGLE = ([0, 1, 2, 0], [1, 2, 0, 1], [100.0, 200.0, 300.0, 50.0])


@pytest.fixture
def triangle() -> RoadNetwork:
    return RoadNetwork.from_arrays(*TRIANGLE)


class TestConstruction:
    def test_edge_i_stays_edge_i(self) -> None:
        tail, head, length = [2, 0, 1, 0], [0, 1, 2, 1], [7.0, 5.0, 9.0, 5.0]
        network = RoadNetwork.from_arrays(tail, head, length)
        assert network.tail.tolist() == tail
        assert network.head.tolist() == head
        assert network.length_m.tolist() == length
        assert (network.num_nodes, network.num_edges) == (3, 4)

    def test_arrays_are_copies_and_read_only(self) -> None:
        length = np.array(TRIANGLE[2])
        network = RoadNetwork.from_arrays(TRIANGLE[0], TRIANGLE[1], length)
        length[0] = 1
        assert network.length_m[0] == 100
        with pytest.raises(ValueError, match="read-only"):
            network.length_m[0] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            network.lon = network.lat  # type: ignore[misc]

    def test_isolated_nodes_are_kept(self) -> None:
        assert RoadNetwork.from_arrays([0], [1], [1.0], num_nodes=5).num_nodes == 5

    def test_class_by_name_or_code(self) -> None:
        network = RoadNetwork.from_arrays(*TRIANGLE, road_class=["primary"] * 4)
        assert network.road_class.tolist() == [4] * 4

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"tail": [0, 1, 2, 9]}, "edge 3: tail is not a node"),
            ({"head": [1, -1, 0, 1]}, "edge 1: head is not a node"),
            ({"length_m": [1, 0, 1, 1]}, "edge 1: length must be a positive number of metres"),
            ({"length_m": [1, np.nan, 1, 1]}, "edge 1: length must be a positive number"),
            ({"length_m": [1.0, 2.0]}, "length_m: expected 4 values, got 2"),
            ({"tail": [0.5, 1, 2, 0]}, "tail: values must be whole numbers"),
            ({"speed_kmh": [50, 0, 50, 50]}, "edge 1: speed must be positive, or NaN"),
            ({"lanes": [1, 1, np.inf, 1]}, "edge 2: lanes must be positive, or NaN"),
            ({"road_class": [0, 1, 2, 14]}, "edge 3: road class code must be below 14"),
            ({"road_class": ["primary"] * 3 + ["lane"]}, "road class 'lane' is none of: motorway"),
            ({"name": ["a"]}, "name: expected 4 values, got 1"),
            ({"lon": [0.0, 1.0, 2.0]}, "give both lon and lat, or neither"),
            ({"lon": [0, 1, 200.0], "lat": [0, 0, 0]}, "node 2: longitude and latitude must be"),
            ({"node_ids": [1, 1, 2]}, "node_ids: every id must appear once"),
            ({"geometry": [None] * 3}, "geometry: expected 4 polylines, got 3"),
            ({"geometry": [[[0, 0]], None, None, None]}, "edge 0: geometry needs two points"),
            ({"geometry": [[[0, 0], [np.nan, 1]]] + [None] * 3}, "coordinates must be finite"),
            ({"geometry": [[[0, 0], [1]]] + [None] * 3}, "edge 0: geometry: rows of different"),
            ({"geometry": [None, "LINESTRING (0 0, 1 1)", None, None]}, "edge 1: geometry: could"),
            ({"geometry": [None, [0.0, 1.0], None, None]}, r"edge 1: geometry must be \(k, 2\)"),
            ({"geometry": np.zeros((4, 2, 3))}, r"edge 0: geometry must be \(k, 2\)"),
            ({"geometry": "none"}, "geometry: a list with one polyline or None per edge"),
            ({"tail": [0, np.nan, 2, 0]}, "tail: values must be whole numbers"),
            ({"tail": ["0", "1", "2", "0"]}, "tail: values must be whole numbers"),
            ({"tail": [[0, 1], [2]]}, "tail: rows of different lengths"),
            ({"tail": [True, False, True, False]}, "tail: values must be whole numbers"),
            ({"head": [1, 2, 0, 10**12]}, "head: values must be whole numbers that fit int32"),
            ({"head": [1, 2, 0, 2**31 - 1], "num_nodes": None}, "ends at node 2147483647, far"),
            ({"num_nodes": -1}, "num_nodes -1: zero or more that fit int32"),
            ({"num_nodes": 10**12}, "num_nodes 1000000000000: zero or more that fit int32"),
            ({"length_m": [1j] * 4}, "length_m: values must be numbers"),
            ({"num_nodes": 3.0}, "num_nodes 3.0 is not a whole number"),
            ({"length_m": ["1", "2", "3", "4"]}, "length_m: values must be numbers, not text"),
            ({"oneway": ["no"] * 4}, "oneway: values must be true or false"),
            ({"oneway": [0, 1, 2, 0]}, "oneway: values must be true or false"),
            ({"oneway": [0, 1, np.nan, 0]}, "oneway: values must be true or false"),
            ({"road_class": [["primary"], "trunk"]}, "road_class: one name or code per edge"),
            ({"name": ["a", "b", None, "d"]}, "edge 2: name None is not text"),
            ({"name": "abcd"}, "name: one text per edge is needed"),
            ({"node_ids": [[1], [2, 3]]}, "node_ids: a flat list"),
            ({"node_ids": [["a", "b", "c"]]}, "node_ids: a flat list"),
            ({"node_ids": [1, 2.5, 3]}, "node_ids: values must be whole numbers"),
            ({"provenance": {"seed": np.int64(3)}}, "provenance: only what JSON can hold"),
            ({"provenance": {"share": float("nan")}}, "provenance: only what JSON can hold"),
            ({"provenance": [1, 2]}, "provenance: only what JSON can hold"),
        ],
    )
    def test_bad_input_is_one_clear_line(self, change: dict[str, object], message: str) -> None:
        arguments: dict[str, object] = dict(
            zip(("tail", "head", "length_m"), TRIANGLE, strict=True), num_nodes=3
        )
        with pytest.raises(InputError, match=message) as caught:
            RoadNetwork.from_arrays(**{**arguments, **change})  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)

    def test_geometry_as_one_array(self) -> None:
        lines = np.arange(16.0).reshape(4, 2, 2)
        network = RoadNetwork.from_arrays(*TRIANGLE, geometry=lines)  # type: ignore[arg-type]
        assert network.polyline(2).tolist() == lines[2].tolist()

    def test_oneway_as_numbers(self) -> None:
        network = RoadNetwork.from_arrays(*TRIANGLE, oneway=[0, 1, 1.0, 0])
        assert network.oneway.tolist() == [False, True, True, False]

    def test_provenance_is_a_copy(self) -> None:
        report = {"read": {"ways": 3}}
        network = RoadNetwork.from_arrays(*TRIANGLE, provenance={"report": report})
        report["read"]["ways"] = 4
        assert network.provenance == {"report": {"read": {"ways": 3}}}

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, _pickled])
    def test_copies(self, grid: RoadNetwork, duplicate: Any) -> None:
        grid.snap(114, 22)  # what is derived is not copied
        other = duplicate(dataclasses.replace(grid, provenance={"report": {"read": {}}}))
        assert other.checksum == grid.checksum
        assert other.name == grid.name
        assert other.provenance == {"report": {"read": {}}}
        assert not other.length_m.flags.writeable
        assert other.snap(114, 22) == grid.snap(114, 22)

    def test_no_nodes(self) -> None:
        with pytest.raises(InputError, match="at least one node"):
            RoadNetwork.from_arrays([], [], [])


class TestDerived:
    def test_free_flow_uses_the_default_limit(self) -> None:
        network = RoadNetwork.from_arrays(*TRIANGLE, speed_kmh=[36, np.nan, 72, 36])
        assert network.free_flow_times_s == pytest.approx(
            [10.0, 200 * 3.6 / DEFAULT_SPEED_KMH, 15.0, 5.0]
        )

    def test_a_missing_speed_is_the_usual_one_of_the_class(self) -> None:
        classes = ["motorway", "living_street", "tertiary", "motorway"]
        network = RoadNetwork.from_arrays(
            *TRIANGLE, speed_kmh=[np.nan, np.nan, np.nan, 90], road_class=classes
        )
        assert network.speed_kmh.tolist()[:2] == [100.0, 15.0]
        assert np.isnan(network.speed_kmh[2])
        assert network.speed_kmh[3] == 90.0
        none = RoadNetwork.from_arrays(*TRIANGLE, road_class=classes)
        assert none.free_flow_times_s[0] == pytest.approx(network.length_m[0] * 3.6 / 100.0)

    def test_polyline_is_straight_or_known(self) -> None:
        bend = [[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]]
        network = RoadNetwork.from_arrays(
            [0, 1], [1, 0], [9.0, 9.0], [0.0, 1.0], [0.0, 0.0], geometry=[bend, None]
        )
        assert network.polyline(0).tolist() == bend
        assert network.polyline(1).tolist() == [[1, 0], [0, 0]]

    def test_text_ids(self) -> None:
        network = RoadNetwork.from_arrays([0], [1], [1.0], node_ids=["7", "M338"])
        assert network.node_ids.tolist() == ["7", "M338"]
        assert RoadNetwork.from_arrays([0], [1], [1.0], node_ids=["7", "8"]).node_ids.dtype == int
        for odd in ("08", " 8", "+8", "8.0", "-0", "1_000", "٣", "9" * 20, ""):
            network = RoadNetwork.from_arrays([0], [1], [1.0], node_ids=["7", odd])
            assert network.node_ids.tolist() == ["7", odd]
        negative = RoadNetwork.from_arrays([0], [1], [1.0], node_ids=["0", "-8"])
        assert negative.node_ids.tolist() == [0, -8]

    def test_polyline_of_no_edge(self, triangle: RoadNetwork) -> None:
        for edge in (-1, 4):
            with pytest.raises(InputError, match=rf"edge {edge} is not in the network \(0 … 3\)"):
                triangle.polyline(edge)


class TestPaths:
    def test_shortest_path(self, triangle: RoadNetwork) -> None:
        path = triangle.shortest_path(triangle.length_m, 0, 2)
        assert path.edges.tolist() == [3, 1]
        assert (path.origin, path.destination) == (0, 2)
        assert path.time_s(triangle.length_m) == 250
        assert path.length_m(triangle) == 250
        assert path.nodes(triangle).tolist() == [0, 1, 2]

    def test_nearest_of_several_sources(self, triangle: RoadNetwork) -> None:
        path = triangle.shortest_path(triangle.length_m, [0, Depot("B", 1)], 2)
        assert (path.origin, path.edges.tolist()) == (1, [1])

    def test_source_is_target(self, triangle: RoadNetwork) -> None:
        path = triangle.shortest_path(triangle.length_m, 1, 1)
        assert len(path) == 0
        assert (path.origin, path.destination) == (1, 1)
        assert path.time_s(triangle.length_m) == 0

    def test_closed_edges(self, triangle: RoadNetwork) -> None:
        times = np.array([100.0, 200, 300, np.inf])
        assert triangle.shortest_path(times, 0, 2).edges.tolist() == [0, 1]

    def test_unreachable_names_depot_and_node(self) -> None:
        network = RoadNetwork.from_arrays([1], [0], [1.0], node_ids=[11, 8812])
        with pytest.raises(
            UnreachableError,
            match=r"node 1 \(id 8812\) cannot be reached from depot MOR \(node 0\); check one-way",
        ):
            network.shortest_path([1.0], Depot("MOR", 0), 1)
        with pytest.raises(UnreachableError, match=r"row 1: node 1 .* from node 0; check one-way"):
            network.shortest_paths([1.0], [1, 0], [0, 1])

    @pytest.mark.parametrize(
        ("times", "sources", "target", "message"),
        [
            ([1, 2, 3], 0, 2, "edge times: expected 4 values, got 3"),
            ([1, -2, 3, 4], 0, 2, "edge 1: time -2.0 s; it must be zero or positive"),
            ([1, np.nan, 3, 4], 0, 2, "edge 1: time nan s"),
            ([1, 2, 3, 4], 7, 2, "source 7 is not a node"),
            ([1, 2, 3, 4], [], 2, "no source given"),
            ([1, 2, 3, 4], 0, -1, "target -1 is not a node"),
            ([1, 2, 3, 4], 0, 2.9, "target 2.9 is not a whole number"),
            ([1, 2, 3, 4], 0, "2", "target '2' is not a whole number"),
            ([1, 2, 3, 4], 0, None, "target None is not a whole number"),
            ([1, 2, 3, 4], 0, True, "target True is not a whole number"),
            ([1, 2, 3, 4], 0.0, 2, "source 0.0 is not a whole number"),
            ([1, 2, 3, 4], "12", 2, "source '12' is not a whole number"),
            ([1, 2, 3, 4], [0, None], 2, "source None is not a whole number"),
            ([1, 2, 3, 4], np.array([0.5]), 2, "source 0.5 is not a whole number"),
            ([1, 2, 3, 4], Depot("A", cast(int, "0")), 2, "source '0' is not a whole number"),
            (None, 0, 2, "edge times: expected 4 values, got a scalar"),
            ([1, None, 3, 4], 0, 2, "edge 1: time nan s"),
            (["1", "2", "3", "4"], 0, 2, "edge times: values must be numbers, not text"),
            ([[1, 2], [3]], 0, 2, "edge times: rows of different lengths"),
            ([object()] * 4, 0, 2, "edge times: float"),
        ],
    )
    def test_bad_queries(
        self, triangle: RoadNetwork, times: Any, sources: Any, target: Any, message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            triangle.shortest_path(times, sources, target)

    def test_numpy_integers_are_nodes(self, triangle: RoadNetwork) -> None:
        path = triangle.shortest_path(triangle.length_m, 0, 2)
        for one in (np.int32(0), np.uint8(0), np.array(0), np.array([0])):
            assert triangle.shortest_path(triangle.length_m, one, np.int64(2)) == path  # type: ignore[arg-type]

    @pytest.mark.parametrize("wrong", [np.nan, -1.0])
    def test_bad_potential(self, triangle: RoadNetwork, wrong: float) -> None:
        potential = np.array([0.0, wrong, 0.0])
        with pytest.raises(InputError, match=f"potential of node 1: {wrong} s; it must be zero or"):
            triangle.shortest_path(triangle.length_m, 0, 2, potential_s=potential)
        potential[1] = np.inf  # a node from which there is no way
        assert len(triangle.shortest_path(triangle.length_m, 2, 0, potential_s=potential)) == 1

    def test_batch_equals_single(self, grid: RoadNetwork) -> None:
        rng = np.random.default_rng(0)
        times = rng.uniform(1, 9, (50, grid.num_edges))
        origins, targets = rng.integers(0, grid.num_nodes, (2, 50))
        singles = [grid.shortest_path(*row) for row in zip(times, origins, targets, strict=True)]
        for threads in (1, 2, 5):
            assert grid.shortest_paths(times, origins, targets, threads=threads) == singles
        shared = grid.shortest_paths(times[0], origins, targets)
        assert shared[3] == grid.shortest_path(times[0], origins[3], targets[3])
        assert grid.shortest_paths(times[0], [], []) == []

    def test_small_batches_start_no_threads(
        self, grid: RoadNetwork, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(routing.os, "cpu_count", lambda: 4)  # type: ignore[attr-defined]
        monkeypatch.setattr(routing, "ThreadPoolExecutor", None)
        assert len(grid.shortest_paths(grid.length_m, [0] * 64, [5] * 64)) == 64
        monkeypatch.setattr(routing, "_WORTH_THREADS", 64 * grid.num_edges)
        with pytest.raises(TypeError):
            grid.shortest_paths(grid.length_m, [0] * 64, [5] * 64)

    def test_bad_batches(self, grid: RoadNetwork) -> None:
        times = np.ones((3, grid.num_edges))
        with pytest.raises(InputError, match="expected 1 or 2 rows"):
            grid.shortest_paths(times, [0, 1], [2, 3])
        with pytest.raises(InputError, match="row 1: target 999 is not a node"):
            grid.shortest_paths(times[0], [0, 1], [2, 999])
        for origins, message in (
            ([0, 1.5], "origins: values must be whole numbers"),
            ([True, False], "origins: values must be whole numbers"),
            (["0", "1"], "origins: values must be whole numbers"),
            (None, "origins: values must be whole numbers"),
        ):
            with pytest.raises(InputError, match=message):
                grid.shortest_paths(times[0], origins, [2, 3])  # type: ignore[arg-type]
        with pytest.raises(InputError, match="edge times: rows of different lengths"):
            grid.shortest_paths([[1.0], [1.0, 2.0]], [0, 1], [2, 3])
        with pytest.raises(InputError, match="threads 0: at least one is needed"):
            grid.shortest_paths(times[0], [0, 1], [2, 3], threads=0)
        with pytest.raises(InputError, match="threads 1.5 is not a whole number"):
            grid.shortest_paths(times[0], [0, 1], [2, 3], threads=1.5)  # type: ignore[arg-type]
        times[2, 5] = -1
        with pytest.raises(InputError, match="row 2, edge 5: time -1"):
            grid.shortest_paths(times, [0, 1, 2], [2, 3, 4])

    def test_distances(self, triangle: RoadNetwork) -> None:
        assert triangle.distances(triangle.length_m, 0).tolist() == [0, 50, 250]
        assert triangle.distances_to(triangle.length_m, 0).tolist() == [0, 500, 300]

    def test_checked_path(self, triangle: RoadNetwork) -> None:
        assert triangle.path([0, 1, 2]).destination == 0
        assert triangle.path([], origin=2) == Path(np.array([], int), 2, 2)
        for edges, origin, message in (
            ([0, 2], None, "path breaks after edge 0: it ends at node 1, edge 2 starts at node 2"),
            ([4], None, "path edge 4 is not in the network"),
            ([0], 2, "path starts at node 0, not at node 2"),
            ([], None, "needs its origin"),
        ):
            with pytest.raises(InputError, match=message):
                triangle.path(edges, origin)
        with pytest.raises(InputError, match="needs edges"):
            Path(np.array([], int), 0, 1)

    def test_path_is_a_value(self, triangle: RoadNetwork) -> None:
        assert len({triangle.path([0, 1]), triangle.path([0, 1]), triangle.path([3, 1])}) == 2
        assert triangle.path([0]) != "path"
        assert repr(triangle.path([0, 1])) == "Path(0 → 2, 2 edges)"

    def test_path_coordinates(self, grid: RoadNetwork) -> None:
        path = grid.shortest_path(grid.length_m, 0, 5)
        line = path.coordinates(grid)
        assert line[0].tolist() == [grid.lon[0], grid.lat[0]]
        assert line[-1].tolist() == [grid.lon[5], grid.lat[5]]
        assert len(line) == len(path) + 1
        assert grid.path([], origin=3).coordinates(grid).shape == (1, 2)
