import bz2
import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import osmium
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.osm_tags import lane_count, speed_kmh, way_rule
from ideal_dispatch.network.road_class import ROAD_CLASSES

NODES = {
    1: (7.00, 43.000), 2: (7.01, 43.000), 3: (7.01, 43.01), 4: (7.00, 43.01),
    5: (7.005, 43.000), -6: (7.005, 43.02), 7: (7.02, 43.0), 8: (7.03, 43.0),
}  # fmt: skip
WAYS: list[tuple[list[int], dict[str, str]]] = [
    ([1, 5, 2], {"highway": "primary", "name": "Quai", "maxspeed": "50", "lanes": "2"}),
    ([2, 3], {"highway": "secondary", "oneway": "yes"}),
    ([4, 3], {"highway": "residential_tunnel", "oneway": "-1"}),
    ([4, 1], {"highway": "residential"}),
    ([4, -6, 3], {"highway": "service"}),
    ([2, 7, 999], {"highway": "tertiary"}),
    ([1, 3], {"highway": "footway"}),
    ([7, 8], {"highway": "residential", "oneway": "yes"}),
]


def _xml() -> str:
    nodes = "".join(f'<node id="{n}" lon="{x}" lat="{y}"/>' for n, (x, y) in NODES.items())
    ways = "".join(
        f'<way id="{i + 1}">'
        + "".join(f'<nd ref="{ref}"/>' for ref in refs)
        + "".join(f'<tag k="{k}" v="{v}"/>' for k, v in tags.items())
        + "</way>"
        for i, (refs, tags) in enumerate(WAYS)
    )
    return f'<?xml version="1.0"?><osm version="0.6" generator="t">{nodes}{ways}</osm>'


@pytest.fixture
def xml_file(tmp_path: Path) -> Path:
    path = tmp_path / "town.osm"
    path.write_text(_xml())
    return path


def _edges(network: RoadNetwork) -> set[tuple[int, int, str]]:
    ids = network.node_ids.tolist()
    return {
        (ids[t], ids[h], ROAD_CLASSES[c])
        for t, h, c in zip(network.tail, network.head, network.road_class, strict=True)
    }


def _overpass(geometry: bool) -> str:
    """The same town as an Overpass server answers, or OSMnx keeps it in its cache."""
    ways: list[dict[str, Any]] = [
        {"type": "way", "id": i + 1, "nodes": refs, "tags": tags}
        for i, (refs, tags) in enumerate(WAYS)
    ]
    points = {n: {"lon": x, "lat": y} for n, (x, y) in NODES.items()}
    for way in ways if geometry else ():
        way["geometry"] = [points.get(ref) for ref in way["nodes"]]
    nodes = [] if geometry else [{"type": "node", "id": n, **at} for n, at in points.items()]
    return json.dumps({"version": 0.6, "elements": [*ways, *nodes]})


@pytest.mark.parametrize("geometry", [False, True])
def test_overpass_json_is_the_same_town(xml_file: Path, tmp_path: Path, geometry: bool) -> None:
    answer = tmp_path / "0a1b2c.json"
    answer.write_text(_overpass(geometry))
    found, expected = read_network(answer), read_network(xml_file)
    assert found.checksum == expected.checksum
    reports = [one.provenance["report"] for one in (found, expected)]
    assert reports[0] | {"source": ""} == reports[1] | {"source": ""}


@pytest.mark.parametrize("text", ["[]", '{"elements": [{"type": "way"}]}', '{"remark": "busy"}'])
def test_json_that_is_not_from_overpass(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FileFormatError, match="x.json: not the JSON of Overpass"):
        read_network(tmp_path / "x.json")


def test_free_flow_knows_the_class_where_a_limit_is_missing(xml_file: Path) -> None:
    network = read_network(xml_file, simplify=False)
    kmh = 3.6 * network.length_m / network.free_flow_times_s
    found = {ROAD_CLASSES[c]: round(v) for c, v in zip(network.road_class, kmh, strict=True)}
    assert found == {
        "primary": 50,
        "secondary": 50,
        "tertiary": 50,
        "residential": 30,
        "service": 20,
    }
    assumed = network.provenance["report"]["assumed"]
    assert sum(n for what, n in assumed.items() if "usual on their class" in what) > 0


def test_reads_rules_directions_and_report(xml_file: Path) -> None:
    network = read_network(xml_file)
    assert _edges(network) == {
        (2, 3, "secondary"),
        (3, 4, "residential"),
        (3, 4, "service"),
        (4, 3, "service"),
        (4, 2, "residential"), (2, 4, "residential"),
        (2, 7, "tertiary"), (7, 2, "tertiary"),
    }  # fmt: skip
    quai = network.name.index("Quai")
    assert network.speed_kmh[quai] == pytest.approx(36.1, abs=0.01)  # 50, then 30 beyond
    report = network.provenance["report"]
    assert report["read"]["ways tagged highway"] == len(WAYS)
    assert report["dropped"]["ways not for cars: footway"] == 1
    assert report["dropped"]["references to nodes that the file does not hold"] == 1
    assert report["dropped"]["edges outside the largest strongly connected part"] == 1
    assert report["assumed"]["ways of class residential_tunnel, mapped to one of the 14"] == 1


def test_every_container_gives_the_same_network(xml_file: Path, tmp_path: Path) -> None:
    plain = read_network(xml_file)
    (tmp_path / "a.osm.gz").write_bytes(gzip.compress(xml_file.read_bytes()))
    (tmp_path / "b.osm.bz2").write_bytes(bz2.compress(xml_file.read_bytes()))
    with zipfile.ZipFile(tmp_path / "c.osm.zip", "w") as archive:
        archive.write(xml_file, "deep/town.osm")
    with osmium.SimpleWriter(str(tmp_path / "d.osm.pbf")) as writer:
        for element in osmium.FileProcessor(str(xml_file)):
            writer.add(element)
    for name in ("a.osm.gz", "b.osm.bz2", "c.osm.zip", "d.osm.pbf"):
        network = read_network(tmp_path / name)
        assert network.checksum == plain.checksum, name
        assert network.name == plain.name
        assert network.node_ids.tolist() == plain.node_ids.tolist()


def test_no_simplification_and_box(xml_file: Path) -> None:
    assert read_network(xml_file, simplify=False).num_edges > read_network(xml_file).num_edges
    boxed = read_network(xml_file, box=(6.99, 42.99, 7.015, 43.03))
    assert 7 not in boxed.node_ids
    assert boxed.provenance["report"]["dropped"]["segments outside the box"] == 2


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"<osm version='0.6'><node id='1' lat='1' lo", "x.osm", "not a whole OpenStreetMap file"),
        (b"\x1f\x8b\x08 not really", "x.osm.gz", "not a whole OpenStreetMap file"),
        (b"garbage", "x.osm.pbf", "not a whole OpenStreetMap file"),
        (b"garbage", "x.zip", "not a whole OpenStreetMap file"),
        (b"<osm version='0.6'></osm>", "x.osm", "no drivable road found"),
        (_xml().replace("7.01", "999").encode(), "x.osm", "wrong format for coordinate: '999'"),
        (_xml().replace("7.01", "nan").encode(), "x.osm", "wrong format for coordinate: 'nan'"),
        (_xml().replace('ref="1"', 'ref="x"').encode(), "x.osm", "illegal id: 'x'"),
        (_xml().replace('id="1"', 'id="x"').encode(), "x.osm", "illegal id: 'x'"),
        (b"", "x.shp", "unknown kind of file; one of .osm, "),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((InputError, FileFormatError), match=message) as caught:
        read_network(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_missing_file_and_wrong_options(xml_file: Path, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"source": tmp_path / "none.osm"}, "no such file"),
        ({"source": xml_file, "directed": True}, "belong to CSV files"),
        ({"source": xml_file, "place": "Monaco"}, "cannot be combined with a file"),
        ({"source": None}, "give a file, or one of --bbox and --place"),
        ({"source": xml_file, "box": (8.0, 43.0, 7.0, 44.0)}, "west,south,east,north in degrees"),
    ]
    for arguments, message in cases:
        with pytest.raises(InputError, match=message):
            read_network(**arguments)


def test_zip_without_a_map(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileFormatError, match="expected one .osm or .pbf inside, found 0"):
        read_network(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("tags", "forward", "backward"),
    [
        ({}, True, True),
        ({"oneway": "yes"}, True, False),
        ({"oneway": "-1"}, False, True),
        ({"oneway": "reversible"}, True, True),
        ({"junction": "roundabout"}, True, False),
        ({"highway": "motorway"}, True, False),
        ({"highway": "motorway_tunnel"}, True, False),
        ({"highway": "motorway_link"}, True, True),
        ({"highway": "motorway", "oneway": "no"}, True, True),
        ({"oneway": "yes", "oneway:emergency": "no"}, True, True),
        ({"oneway": "yes", "oneway:bus": "no"}, True, True),
        ({"oneway": "-1", "oneway:psv": "no"}, True, True),
        ({"oneway": "yes", "oneway:bicycle": "no"}, True, False),
        ({"highway": "motorway|trunk"}, True, False),
    ],
)
def test_directions(tags: dict[str, str], forward: bool, backward: bool) -> None:
    rule = way_rule({"highway": "primary", **tags})
    assert not isinstance(rule, str)
    assert (rule.forward, rule.backward) == (forward, backward)
    assert rule.oneway == (forward != backward)


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        ({"access": "private"}, False),
        ({"access": "no"}, False),
        ({"access": "no", "emergency": "yes"}, True),
        ({"access": "no", "bus": "designated"}, True),
        ({"access": "no", "motor_vehicle": "yes"}, True),
        ({"motor_vehicle": "no"}, False),
        ({"access": "destination"}, True),
        ({"highway": "service", "service": "emergency_access"}, True),
        ({"highway": "service", "service": "parking_aisle"}, False),
        ({"highway": "pedestrian"}, False),
        ({"highway": "busway"}, True),
        ({"area": "yes"}, False),
        ({"highway": "construction"}, False),
        ({"highway": "footway_tunnel"}, False),
        ({"highway": "steps;residential"}, False),
        ({"highway": "residential;steps"}, True),
        ({"highway": "ladder"}, False),
        ({"highway": "demolished"}, False),
        ({"highway": "pedestrian", "emergency": "designated"}, True),
        ({"highway": "pedestrian", "emergency": "yes", "area": "yes"}, False),
        ({"highway": "pedestrian", "emergency": "no"}, False),
        ({"highway": "pedestrian", "bus": "yes"}, False),
    ],
)
def test_roads_that_ambulances_use(tags: dict[str, str], kept: bool) -> None:
    assert isinstance(way_rule({"highway": "residential", **tags}), str) != kept


@pytest.mark.parametrize(
    ("text", "kmh"),
    [
        ("50", 50),
        ("25 mph", 40.2336),
        ("50;30", 30),
        ("40|60", 40),
        ("60 km/h", 60),
        ("25 MPH", 40.2336),
        ("60 Km/H", 60),
        ("none", 130),
        ("none;100", 100),
        ("160", 160),
    ],
)
def test_speeds(text: str, kmh: float) -> None:
    assert speed_kmh(text) == pytest.approx(kmh)


@pytest.mark.parametrize(
    "text", ["", "None", "walk", "RO:urban", "120 mph", "161", "0", "-5", "nan"]
)
def test_no_speeds(text: str) -> None:
    assert speed_kmh(text) != speed_kmh(text)


@pytest.mark.parametrize(
    ("tags", "kmh"),
    [
        ({"maxspeed:forward": "60", "maxspeed:backward": "40"}, 40),
        ({"maxspeed:forward": "60"}, 60),
        ({"maxspeed": "signals", "maxspeed:backward": "70"}, 70),
        ({"maxspeed": "50", "maxspeed:backward": "30"}, 50),
    ],
)
def test_limits_of_the_two_directions(tags: dict[str, str], kmh: float) -> None:
    rule = way_rule({"highway": "primary", **tags})
    assert not isinstance(rule, str)
    assert rule.speed_kmh == kmh


def test_pedestrian_streets_for_emergency_vehicles_are_living_streets() -> None:
    rule = way_rule({"highway": "pedestrian", "emergency": "yes", "motor_vehicle": "no"})
    assert not isinstance(rule, str)
    assert ROAD_CLASSES[rule.road_class] == "living_street"
    assert not rule.known_class


def test_lanes() -> None:
    assert [lane_count(t) for t in ("2", "3;2", "1.5")] == [2, 2, 1.5]
    assert all(lane_count(t) != lane_count(t) for t in ("", "many", "0", "99", "nan"))
