import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots

NODES = "id,lon,lat\nA1,7.0,43.0\n2,7.01,43.0\n3,7.01,43.01\n4,7.0,43.01\n"
EDGES = """from,to,length_m,name
A1,2,900,Quai
2,3,1200,
3,4,800,
4,A1,1150,Rue "X"
"""


def _write(folder: Path, edges: str = EDGES, nodes: str = NODES) -> Any:
    (folder / "edges.csv").write_text(edges)
    (folder / "nodes.csv").write_text(nodes)
    return {"source": folder / "edges.csv", "nodes": folder / "nodes.csv"}


def test_rows_are_two_way_streets(tmp_path: Path) -> None:
    network = read_network(**_write(tmp_path), simplify=False)
    assert (network.num_nodes, network.num_edges) == (4, 8)
    assert network.node_ids.tolist() == ["2", "3", "4", "A1"]
    assert not network.oneway.any()
    assert network.length_m.sum() == 2 * (900 + 1200 + 800 + 1150)
    assert set(network.name) == {"Quai", "", 'Rue "X"'}
    assert np.isnan(network.speed_kmh).all()


def test_gzip_bom_and_windows_lines(tmp_path: Path) -> None:
    files = _write(tmp_path)
    plain = read_network(**files)
    odd = tmp_path / "edges.csv.gz"
    odd.write_bytes(gzip.compress(b"\xef\xbb\xbf" + EDGES.replace("\n", "\r\n").encode()))
    assert read_network(odd, nodes=files["nodes"]).checksum == plain.checksum


def test_oneway_column(tmp_path: Path) -> None:
    rows = EDGES.replace(",name", ",oneway").replace("Quai", "yes").replace('Rue "X"', "-1")
    rows = rows.replace("1200,", "1200,0") + "3,A1,1400,no\n"
    network = read_network(**_write(tmp_path, rows), simplify=False)
    ids = network.node_ids.tolist()
    one_way = {(ids[network.tail[e]], ids[network.head[e]]) for e in np.flatnonzero(network.oneway)}
    assert one_way == {("A1", "2"), ("A1", "4")}
    with pytest.raises(InputError, match=r"edges.csv line 2: oneway is 'maybe'; use yes, no or -1"):
        read_network(**_write(tmp_path, rows.replace("yes", "maybe")))


def test_directed_rows(tmp_path: Path) -> None:
    cycle = read_network(**_write(tmp_path), directed=True, simplify=False)
    assert cycle.num_edges == 4
    ring = [f"{a},{b},100\n{b},{a},100\n" for a, b in zip(range(20), [*range(1, 20), 0])]  # noqa: B905
    nodes = "id,lon,lat\n" + "".join(f"{n},7.0{n:02d},43\n" for n in range(20))
    files = _write(tmp_path, "u,v,length\n" + "".join(ring), nodes)
    with pytest.raises(InputError, match="40 of 40 two-way rows .* say --directed"):
        read_network(**files)
    assert read_network(**files, directed=True, simplify=False).num_edges == 40


def test_column_mapping_with_fallback_columns(tmp_path: Path) -> None:
    edges = "a,b,drawn,air,limit\nA1,2,950,900,30\n2,3,,1200,\n3,A1,,1000,60 km/h\n"
    mapping = {"tail": ["a"], "head": ["b"], "length_m": ["drawn", "air"], "speed_kmh": ["limit"]}
    network = read_network(**_write(tmp_path, edges), columns=mapping, simplify=False)
    assert sorted(network.length_m.tolist()) == [950, 950, 1000, 1000, 1200, 1200]
    assert np.nanmax(network.speed_kmh) == 60
    with pytest.raises(InputError, match=r"no column for 'tail' \(looked for tail, from, u"):
        read_network(**_write(tmp_path, edges))
    with pytest.raises(InputError, match="column mapping: no field 'tial'; fields: id, lon"):
        read_network(**_write(tmp_path, edges), columns={"tial": ["a"]})


def test_limits_the_source_made_up_are_unknown(tmp_path: Path) -> None:
    edges = EDGES.replace(",name", ",speed_limit_kmh,speed_limit_posted")
    for made_up, posted in (("0", "1"), ("0.0", "1.0"), ("False", "True"), ("NO", "Yes")):
        rows = edges.replace("Quai", f"50,{made_up}").replace('Rue "X"', f"70,{posted}")
        network = read_network(**_write(tmp_path, rows), simplify=False)
        assert np.nansum(network.speed_kmh) == 140


def test_rows_that_are_no_roads_are_dropped(tmp_path: Path) -> None:
    edges = EDGES.replace(",name", ",highway").replace("Quai", "primary").replace('Rue "X"', "road")
    rows = edges + "2,A1,5,footway\n2,4,5,steps_tunnel\n"
    network = read_network(**_write(tmp_path, rows), simplify=False)
    assert network.num_edges == 8
    dropped = network.provenance["report"]["dropped"]
    assert dropped["rows not for cars: footway"] == 1
    assert dropped["rows not for cars: steps"] == 1


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    for node in ("007", "99999999999999999999"):
        files = _write(tmp_path, EDGES.replace("A1", node), NODES.replace("A1", node))
        assert read_network(**files, simplify=False).node_ids.tolist() == ["2", "3", "4", node]
    files = _write(tmp_path, EDGES.replace("A1", "1"), NODES.replace("A1", "1"))
    assert read_network(**files, simplify=False).node_ids.tolist() == [1, 2, 3, 4]


def test_geometry_is_turned_to_start_at_the_tail(tmp_path: Path) -> None:
    edges = 'from,to,geometry\nA1,2,"LINESTRING (7.01 43.0, 7.005 43.003, 7.0 43.0)"\n2,3,\n3,A1,\n'
    network = read_network(**_write(tmp_path, edges), simplify=False)
    ids = network.node_ids.tolist()
    edge = next(e for e in range(network.num_edges)
                if (ids[network.tail[e]], ids[network.head[e]]) == ("A1", "2"))  # fmt: skip
    assert network.polyline(edge).tolist() == [[7.0, 43.0], [7.005, 43.003], [7.01, 43.0]]
    report = network.provenance["report"]
    assert report["assumed"]["segments with no length, measured along their points"] == 3
    assert network.length_m[edge] > 1000


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        (EDGES, NODES + "2,7.0,43.0\n", "nodes.csv line 6: node 2 appears twice"),
        (EDGES, NODES + ",7.0,43.0\n", "nodes.csv line 6: id is missing"),
        (EDGES, NODES + "9,x,43.0\n", "nodes.csv line 6: lon is 'x'; a finite number is needed"),
        (EDGES, NODES + "9,7.0,1e999\n", "nodes.csv line 6: lat is '1e999'; a finite number"),
        (EDGES, NODES + "9,43.0,700\n", "nodes.csv line 6: longitude 43.0, latitude 700.0: not"),
        (EDGES + "2,3,long,\n", NODES, "edges.csv line 6: length_m is 'long'; a finite number"),
        (EDGES.replace("name", "wkt") + "2,3,1,POINT (1 1)\n", NODES, "not a WKT LINESTRING"),
        (
            'from,to,wkt\nA1,2,"LINESTRING (834000 815000, 834100 815000)"\n',
            NODES,
            "edges.csv line 2: geometry is not in degrees; transform it to WGS84",
        ),
        ("", NODES, "no column for 'tail'"),
        ("from,to\n8,9\n", NODES, "no drivable road found"),
        ("from,to,oneway\nA1,2,yes\n2,3,yes\n", NODES, "no two nodes can reach each other"),
    ],
)
def test_bad_rows(tmp_path: Path, edges: str, nodes: str, message: str) -> None:
    edges = edges.replace("Quai", "").replace('Rue "X"', "") if "wkt" in edges else edges
    with pytest.raises(InputError, match=message) as caught:
        read_network(**_write(tmp_path, edges, nodes))
    assert "\n" not in str(caught.value)


def test_rows_with_unknown_ends_are_counted(tmp_path: Path) -> None:
    rows = EDGES + "2,77,5,\n2,2,5,\n3,2,-1,\n5,4,0,\n"
    nodes = NODES + "5,7.0,43.01\n"
    network = read_network(**_write(tmp_path, rows, nodes), simplify=False)
    dropped = network.provenance["report"]["dropped"]
    assumed = network.provenance["report"]["assumed"]
    assert assumed["segments between two nodes on one spot, 0.1 m long"] == 1
    assert network.length_m.min() == 0.1
    assert network.num_edges == 10
    assert dropped["segments with an end that is not in the data"] == 1
    assert dropped["loops from a node to itself"] == 1
    assert dropped["segments without a length"] == 1


def test_files_that_are_not_text(tmp_path: Path) -> None:
    files = _write(tmp_path)
    files["nodes"].write_bytes(b"id,lon,lat\n1,\xff\xfe\xa4,3\n")
    with pytest.raises(FileFormatError, match="nodes.csv line 2: byte 0xff is not utf-8"):
        read_network(**files)
    with pytest.raises(InputError, match="is a folder, not a file"):
        read_network(files["source"], nodes=tmp_path)
    with pytest.raises(InputError, match="nope.csv: no such file"):
        read_network(files["source"], nodes=tmp_path / "nope.csv")
    with pytest.raises(InputError, match="an edge list needs its nodes: add --nodes"):
        read_network(files["source"])


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    plain = read_network(**_write(tmp_path), simplify=False)
    edges = EDGES.replace(",", ";").replace("900", "900,0")
    nodes = NODES.replace(",", ";").replace(".", ",")
    assert read_network(**_write(tmp_path, edges, nodes), simplify=False).checksum == plain.checksum
    (tmp_path / "depots.csv").write_bytes("name;lon;lat\nZürich;7,0001;43,0\n".encode("cp1252"))
    depots, elsewhere = read_depots(tmp_path / "depots.csv", plain)
    assert ([depot.name for depot in depots], elsewhere) == (["Zürich"], [])


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_thousands_are_never_read_as_decimals(tmp_path: Path, delimiter: str) -> None:
    rows = EDGES.replace(",", delimiter).replace("1200", "1,200").replace("1150", "1,150")
    points = NODES.replace(",", delimiter)
    whole = "id;lon;lat\nA1;7;43\n2;8;43\n3;8;44\n4;7;44\n".replace(";", delimiter)
    unclear = r"edges.csv line 3: length_m is '1,200', which may be thousands or decimals; write"
    for lengths, nodes in ((rows, points), (rows, whole), (rows.replace("900", "900.5"), points)):
        with pytest.raises(InputError, match=unclear) as caught:
            read_network(**_write(tmp_path, lengths, nodes))
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"edges.csv: 2 of 4 rows .* 2 to 3: 1.2 m where the line"):
        read_network(**_write(tmp_path, rows.replace("900", "900,5"), points))
    with pytest.raises(InputError, match=r"line 3: length_m is '1.200', which may be thousands"):
        read_network(**_write(tmp_path, rows.replace(",", "."), points.replace(".", ",")))


def test_lengths_below_the_straight_line(tmp_path: Path) -> None:
    ring = "".join(f"{n},{(n + 1) % 12},{80 if n else 8}\n" for n in range(12))
    nodes = "id,lon,lat\n" + "".join(f"{n},7.0{n % 6:02d},43.00{n // 6}\n" for n in range(12))
    files = _write(tmp_path, "u,v,length\n" + ring.replace("5,6,80", "5,6,400"), nodes)
    with pytest.raises(
        InputError,
        match=r"edges.csv: 2 of 12 rows are far shorter .* 0 to 1: 8 m where the line is 81 m",
    ):
        read_network(**files)
    ring = ring.replace("5,6,80", "5,6,400").replace("11,0,80", "11,0,400")
    network = read_network(**_write(tmp_path, "u,v,length\n" + ring, nodes), simplify=False)
    assert network.length_m.min() == 80
    assumed = network.provenance["report"]["assumed"]
    assert assumed["segments with a length far below the straight line, measured"] == 1
