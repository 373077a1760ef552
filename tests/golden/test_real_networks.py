"""Real inputs, read as they are: counts that may only change together with the reading rules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.features import edge_features
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots

HONG_KONG, MANHATTAN = "hong_kong/irn_{}_{}.csv", "manhattan/manhattan_osm_{}"


def _hong_kong(part: str, suffix: str = "") -> tuple[str, dict[str, Any]]:
    edges, nodes = (HONG_KONG.format(part, kind) + suffix for kind in ("edges", "nodes"))
    return edges, {"nodes": nodes}


CITIES = {
    "Manhattan, raw": ((MANHATTAN.format("20190115.osm.zip"), {}), (15_855, 37_429)),
    "Monaco": (("monaco/monaco_most_network.osm.gz", {}), (1_186, 2_587)),
    "north-west Hong Kong Island": (_hong_kong("nw_hk_island"), (1_946, 5_548)),
    "Sha Tin": (_hong_kong("sha_tin"), (1_315, 3_552)),
    "all Hong Kong": (_hong_kong("all", ".gz"), (23_013, 63_536)),
    "Manhattan, cleaned": (
        (MANHATTAN.format("edges.csv.gz"),
         {"nodes": MANHATTAN.format("nodes.csv"), "directed": True}),
        (4_331, 9_512),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def networks(shared_data: Path) -> dict[str, RoadNetwork]:
    built = {}
    for city, ((source, options), _) in CITIES.items():
        if "nodes" in options:
            options = {**options, "nodes": shared_data / options["nodes"]}
        built[city] = read_network(shared_data / source, **options)
    return built


@pytest.mark.parametrize("city", CITIES)
def test_counts(networks: dict[str, RoadNetwork], city: str) -> None:
    network = networks[city]
    assert (network.num_nodes, network.num_edges) == CITIES[city][1]


@pytest.mark.parametrize("city", CITIES)
def test_every_city_can_be_driven(networks: dict[str, RoadNetwork], city: str) -> None:
    network = networks[city]
    times = network.free_flow_times_s
    assert np.isfinite(network.distances(times, 0)).all()
    assert np.isfinite(network.distances_to(times, 0)).all()
    features = edge_features(network)
    assert features.shape == (network.num_edges, 20)
    assert np.isfinite(features).all()
    ends = (network.tail[:500], network.head[:500])
    straight = great_circle_m(
        *(column[end] for end in ends for column in (network.lon, network.lat))
    )
    assert (network.length_m[:500] >= 0.99 * straight - 1.0).mean() > 0.99


def test_reports(networks: dict[str, RoadNetwork]) -> None:
    manhattan = networks["Manhattan, raw"].provenance["report"]
    assert manhattan["dropped"]["references to nodes that the file does not hold"] == 3_245
    monaco = networks["Monaco"]
    assert (monaco.node_ids.astype(int) < 0).any()
    mapped = monaco.provenance["report"]["assumed"]
    assert mapped["ways of class residential_tunnel, mapped to one of the 14"] == 17
    assert not networks["north-west Hong Kong Island"].oneway.any()
    assert networks["all Hong Kong"].provenance["report"]["read"]["road segments"] == 35_862


def test_depots_of_the_study_area(networks: dict[str, RoadNetwork], shared_data: Path) -> None:
    network = networks["north-west Hong Kong Island"]
    table = shared_data / "hong_kong/hk_ambulance_depots.csv"
    depots, elsewhere = read_depots(table, network)
    assert [d.name.split()[0] for d in depots] == ["Mount", "Morrison"]
    assert len(elsewhere) == 37
    stations, off = read_depots(
        shared_data / "manhattan/manhattan_ems_stations.csv", networks["Manhattan, raw"]
    )
    assert (len(stations), off) == (8, [])


def test_turn_restrictions_of_sha_tin_centre(shared_data: Path) -> None:
    """132 in the file, 77 kept; the rest lack a member or a road, as the file is a cut-out."""
    network = read_network(shared_data / "hong_kong/sha_tin_central_osm_2017.osm.gz")
    report = network.provenance["report"]
    assert report["read"]["turn restrictions"] == 132
    dropped = {why: n for why, n in report["dropped"].items() if why.startswith("turn")}
    assert dropped == {
        "turn restrictions on roads that are not in the network": 23,
        "turn restrictions that leave no way on": 6,
        "turn restrictions without from, via or to": 26,
    }
    sizes = [len(turn) for turn in network.forbidden_turns]
    assert (sizes.count(2), sizes.count(3), len(sizes)) == (65, 19, 84)
    times, rng = network.free_flow_times_s, np.random.default_rng(0)
    longer_s, ends = [], rng.integers(network.num_nodes, size=(400, 2)).tolist()
    for origin, target in ends:
        path = network.shortest_path(times, origin, target)
        assert network.forbidden_turn(path) is None
        free = network.ignoring_turns.shortest_path(times, origin, target)
        longer_s.append(path.time_s(times) - free.time_s(times))
        assert (longer_s[-1] > 1e-9) == (network.forbidden_turn(free) is not None)
    assert 0.2 < np.mean(np.array(longer_s) > 1e-9) < 0.35
    assert np.isfinite([network.distances(times, node) for node in range(network.num_nodes)]).all()


def test_hong_kong_island_has_no_turn_restrictions(shared_data: Path) -> None:
    network = read_network(shared_data / "hong_kong/hk_island_osm_20230713.osm.gz")
    assert network.provenance["report"]["read"]["turn restrictions"] == 0
    assert network.checksum == "66d14fee105886daba8d4c081f498537"
