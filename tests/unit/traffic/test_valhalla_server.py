"""A real Valhalla, where its programs are installed, answers about the embedded city.

``pip install pyvalhalla`` (Python 3.12 or later) brings them; any other
installation on the PATH will do.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks.ports import free_port
from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.traffic.routers import RefusedError
from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams
from tests.contracts.traffic_source import TrafficSourceContract

pytestmark = pytest.mark.slow
PROGRAMS = ("valhalla_build_tiles", "valhalla_service", "valhalla_build_config")
START_LIMIT_S = 30.0


def _write_osm(network: RoadNetwork, path: FilePath) -> None:
    """Every edge as a one-way street of its own."""
    import osmium
    from osmium.osm.mutable import Node, Way

    places = list(zip(network.lon.tolist(), network.lat.tolist(), strict=True))
    streets = []
    for edge in range(network.num_edges):
        bends = range(len(places), len(places) + len(network.polyline(edge)) - 2)
        places += [(lon, lat) for lon, lat in network.polyline(edge)[1:-1].tolist()]
        tags = {"highway": ROAD_CLASSES[network.road_class[edge]], "oneway": "yes"}
        if np.isfinite(network.speed_kmh[edge]):
            tags["maxspeed"] = f"{network.speed_kmh[edge]:.0f}"
        streets.append(([int(network.tail[edge]), *bends, int(network.head[edge])], tags))
    with osmium.SimpleWriter(str(path)) as writer:
        for number, place in enumerate(places, 1):
            writer.add_node(Node(id=number, version=1, location=place))
        for number, (nodes, tags) in enumerate(streets, 1):
            writer.add_way(Way(id=number, version=1, nodes=[n + 1 for n in nodes], tags=tags))


def _settings(folder: FilePath, port: int) -> dict[str, Any]:
    """Valhalla's own defaults, with every file and socket in our folder."""
    made = subprocess.run([PROGRAMS[2]], capture_output=True, text=True, check=True)
    settings: dict[str, Any] = json.loads(made.stdout)
    settings["mjolnir"] |= {"tile_dir": str(folder / "tiles"), "concurrency": 1}
    for name in ("tile_extract", "traffic_extract", "admin", "timezone", "landmarks"):
        settings["mjolnir"].pop(name, None)
    settings["httpd"]["service"] |= {
        "listen": f"tcp://127.0.0.1:{port}",
        "loopback": f"ipc://{folder}/loopback",
        "interrupt": f"ipc://{folder}/interrupt",
        "drain_seconds": 1,
    }
    for part in ("loki", "thor", "odin"):
        settings[part]["service"]["proxy"] = f"ipc://{folder}/{part}"
    return settings


@pytest.fixture(scope="module")
def city() -> RoadNetwork:
    return harbour_city().network


@pytest.fixture(scope="module")
def server(city: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"Valhalla is not installed: no {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("v")  # a short name: sockets allow about 100 letters
    port = free_port()
    _write_osm(city, folder / "city.osm.pbf")
    settings = folder / "valhalla.json"
    settings.write_text(json.dumps(_settings(folder, port)))
    built = subprocess.run(
        [PROGRAMS[0], "-c", settings, "-j", "1", folder / "city.osm.pbf"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-2000:]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([PROGRAMS[1], settings, "1"], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process, folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: FilePath) -> None:
    limit = time.monotonic() + START_LIMIT_S
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < limit and process.poll() is None:
            try:
                if client.get(f"{url}/status").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
    pytest.fail(f"Valhalla does not answer: {log.read_text()[-1000:]}")


@pytest.fixture
def source(server: str, city: RoadNetwork) -> Iterator[Valhalla]:
    source = Valhalla(city, ValhallaParams(time_zone="Asia/Hong_Kong"), url=server)
    yield source
    source.close()


class TestContract(TrafficSourceContract):
    @pytest.fixture
    def network(self, city: RoadNetwork) -> RoadNetwork:
        return city

    @pytest.fixture
    def source(self, server: str, city: RoadNetwork) -> Iterator[Valhalla]:
        source = Valhalla(city, url=server)
        yield source
        source.close()

    @pytest.fixture
    def at(self) -> datetime:
        return datetime.now(UTC)


def test_its_routes_lie_on_our_network(source: Valhalla, city: RoadNetwork) -> None:
    """As good as our own fastest path, by our own times: the same city, not another."""
    rng = np.random.default_rng(5)
    free = city.free_flow_times_s
    ratios = []
    for origin, destination in rng.integers(city.num_nodes, size=(40, 2)).tolist():
        quote = source.quote(origin, destination, datetime.now(UTC))
        assert quote.fell_back == ""
        best_s = city.shortest_path(free, origin, destination).time_s(free)
        if best_s:
            ratios.append(quote.path.time_s(free) / best_s)
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 1.1


def test_other_moments_are_understood(source: Valhalla) -> None:
    for days in (-3, 3):
        quote = source.quote(16, 700, datetime.now(UTC) + timedelta(days=days))
        assert quote.duration_s > 0


def test_refusals_have_codes(server: str, city: RoadNetwork) -> None:
    params = ValhallaParams(costing="autoo")
    source = Valhalla(city, params, url=server)
    with pytest.raises(RefusedError, match="HTTP 400 error 125: No costing method found"):
        source.quote(16, 700, datetime.now(UTC))
    source.close()
