"""GraphML as OSMnx writes it, and downloads against a local stand-in of the Overpass API."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import shapely

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network.readers import read_network

osmnx = pytest.importorskip("osmnx", reason="the geo extra is not installed")

ELEMENTS = [
    *(
        {"type": "node", "id": n, "lon": 7.0 + 0.001 * n, "lat": 43.0 + 0.0007 * (n % 2)}
        for n in range(1, 7)
    ),
    {
        "type": "way",
        "id": 10,
        "nodes": [1, 2, 3],
        "tags": {"highway": "primary", "maxspeed": "50", "lanes": "2", "name": "Quai"},
    },
    {"type": "way", "id": 11, "nodes": [3, 4, 1], "tags": {"highway": "residential"}},
    {"type": "way", "id": 12, "nodes": [2, 4], "tags": {"highway": "tertiary", "oneway": "yes"}},
    {"type": "way", "id": 13, "nodes": [3, 5], "tags": {"highway": "footway"}},
    {
        "type": "way",
        "id": 14,
        "nodes": [3, 6],
        "tags": {"highway": "service", "access": "no", "emergency": "yes"},
    },
]
RULES = [
    {"type": "way", "id": 20, "nodes": [1, 4], "tags": {"highway": "motorway", "name": "M"}},
    {"type": "way", "id": 21, "nodes": [4, 6],
     "tags": {"highway": "primary", "junction": "circular", "name": "Circle"}},
    {"type": "way", "id": 22, "nodes": [3, 5],
     "tags": {"highway": "primary", "oneway": "yes", "oneway:bus": "no", "name": "Bus"}},
]  # fmt: skip


@pytest.fixture
def graph() -> Any:
    graph = nx.MultiDiGraph(crs="epsg:4326", created_with="OSMnx", created_date="x")
    for node in range(1, 5):
        graph.add_node(node, x=7.0 + 0.001 * node, y=43.0 + 0.0007 * (node % 2), street_count=3)
    for u, v in ((1, 2), (2, 3), (3, 4), (4, 1), (1, 3), (2, 1), (3, 2), (4, 3), (1, 4)):
        graph.add_edge(u, v, osmid=u * 10 + v, highway="residential", oneway=False, length=100.0,
                       reversed=False)  # fmt: skip
    graph.edges[1, 2, 0].update(
        highway=["secondary", "tertiary"], maxspeed=["50", "30"], lanes=["3", "2"], name="Quai",
        geometry=shapely.LineString([(7.001, 43.0007), (7.0015, 43.001), (7.002, 43.0)]),
    )  # fmt: skip
    graph.edges[1, 3, 0].update(oneway=True)
    return graph


def test_graphml_as_osmnx_writes_it(graph: Any, tmp_path: Path) -> None:
    osmnx.save_graphml(graph, tmp_path / "city.graphml")
    network = read_network(tmp_path / "city.graphml", simplify=False)
    assert (network.num_nodes, network.num_edges) == (4, 9)
    quai = network.name.index("Quai")
    assert network.speed_kmh[quai] == 30
    assert network.lanes[quai] == 2
    assert network.road_class[quai] == 6
    assert network.polyline(quai).tolist() == [[7.001, 43.0007], [7.0015, 43.001], [7.002, 43.0]]
    assert int(network.oneway.sum()) == 1
    assert np.nansum(network.length_m) == 900


def test_one_way_by_rule_or_not_by_exemption(graph: Any, tmp_path: Path) -> None:
    for u, v in ((1, 2), (2, 1)):
        graph.edges[u, v, 0].update(highway="motorway", name="M", reversed=u == 2)
    graph.edges[1, 3, 0].update({"oneway": True, "oneway:emergency": "no", "name": "Exempt"})
    osmnx.save_graphml(graph, tmp_path / "city.graphml")
    network = read_network(tmp_path / "city.graphml", simplify=False)
    assert _directed(network, "M") == {(1, 2)}
    assert _directed(network, "Exempt") == {(1, 3), (3, 1)}
    assert network.oneway[network.name.index("M")]
    assert not network.oneway[network.name.index("Exempt")]
    dropped = network.provenance["report"]["dropped"]
    assert dropped["reverse edges of motorways and roundabouts"] == 1


def _directed(network: RoadNetwork, name: str) -> set[tuple[int, int]]:
    ids = network.node_ids.tolist()
    edges = [edge for edge in range(network.num_edges) if network.name[edge] == name]
    return {(ids[network.tail[edge]], ids[network.head[edge]]) for edge in edges}


def test_graphml_that_is_not_ours(graph: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.graphml"
    path.write_text("<graphml><graph>")
    with pytest.raises(FileFormatError, match="not a whole GraphML file"):
        read_network(path)
    with pytest.raises(InputError, match="no such file"):
        read_network(tmp_path / "none.graphml")
    nx.write_graphml(nx.path_graph(3, nx.MultiDiGraph), path)
    with pytest.raises(FileFormatError, match="node 0 has no .* x and y; is it a graph made by"):
        read_network(path)
    graph.edges[1, 2, 0]["length"] = "long"
    osmnx.save_graphml(graph, path)
    with pytest.raises(FileFormatError, match="edge 1 → 2 has the length 'long'; a number of"):
        read_network(path)
    graph.edges[1, 2, 0]["length"] = 100.0
    graph.nodes[1]["x"] = float("nan")
    osmnx.save_graphml(graph, path)
    with pytest.raises(FileFormatError, match="coordinates are not degrees"):
        read_network(path)
    for node in graph:
        graph.nodes[node]["x"] *= 1e5
    osmnx.save_graphml(graph, path)
    with pytest.raises(FileFormatError, match="coordinates are not degrees"):
        read_network(path)


class _Overpass(BaseHTTPRequestHandler):
    """Answers the interpreter's contract: form data in, JSON elements out."""

    answer: tuple[int, str] = (200, "")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.answer
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def overpass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Overpass]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Overpass)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(
        osmnx.settings, "overpass_url", f"http://127.0.0.1:{server.server_port}/api"
    )
    monkeypatch.setattr(osmnx.settings, "overpass_rate_limit", False)
    monkeypatch.setattr(osmnx.settings, "use_cache", False)
    monkeypatch.setattr(osmnx.settings, "cache_folder", str(tmp_path))
    yield _Overpass
    server.shutdown()
    thread.join()
    server.server_close()


BOX = (6.9, 42.9, 7.1, 43.1)


def test_download_by_box(overpass: type[_Overpass]) -> None:
    overpass.answer = (200, json.dumps({"elements": ELEMENTS}))
    tags_before = list(osmnx.settings.useful_tags_way)
    network = read_network(box=BOX)
    assert network.provenance["report"]["dropped"]["ways not for cars: footway"] == 2
    assert 6 in network.node_ids, "a way for emergency vehicles only is kept"
    assert 5 not in network.node_ids
    quai = network.name.index("Quai")
    assert network.speed_kmh[quai] == 50
    assert int(network.oneway.sum()) == 1
    assert osmnx.settings.useful_tags_way == tags_before


def test_downloads_follow_the_rules_of_files(overpass: type[_Overpass]) -> None:
    overpass.answer = (200, json.dumps({"elements": ELEMENTS + RULES}))
    network = read_network(box=BOX, simplify=False)
    assert _directed(network, "M") == {(1, 4)}
    assert _directed(network, "Circle") == {(4, 6)}
    assert _directed(network, "Bus") == {(3, 5), (5, 3)}
    assert network.oneway[[network.name.index("M"), network.name.index("Circle")]].all()


@pytest.mark.parametrize(
    "answer", [(200, json.dumps({"elements": []})), (400, "<html>bad request</html>"), (200, "{")]
)
def test_bad_answers(overpass: type[_Overpass], answer: tuple[int, str]) -> None:
    overpass.answer = answer
    with pytest.raises(InputError, match="OpenStreetMap gave no network .* or build from an extra"):
        read_network(box=BOX)


def test_no_connection(overpass: type[_Overpass], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osmnx.settings, "overpass_url", "http://127.0.0.1:9/api")
    monkeypatch.setattr(osmnx.settings, "nominatim_url", "http://127.0.0.1:9/")
    monkeypatch.setattr(osmnx.settings, "requests_timeout", 2)
    questions: list[dict[str, Any]] = [{"box": BOX}, {"place": "Monaco"}]
    for question in questions:
        with pytest.raises(InputError, match="OpenStreetMap gave no network"):
            read_network(**question)
