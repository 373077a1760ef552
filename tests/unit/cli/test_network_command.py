import json
import subprocess
import sys
from pathlib import Path

import pytest

from ideal_dispatch import RoadNetwork, __version__

IDEAL = Path(sys.executable).with_name("ideal")
EDGES = "from,to,length_m,highway\n1,2,900,primary\n2,3,1200,residential\n3,1,800,ice_road\n"
NODES = "id,lon,lat\n1,7.0,43.0\n2,7.01,43.0\n3,7.01,43.01\n"


def ideal(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [IDEAL, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def town(tmp_path: Path) -> Path:
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "depots.csv").write_text("name,lon,lat\nWest,7.0,43.0\nSea,8.0,43.0\n")
    return tmp_path


def test_build_and_info(town: Path) -> None:
    build = ideal(
        "network", "build", "edges.csv", "--nodes", "nodes.csv", "-o", "town.network",
        "--no-simplify", "--map", "town.svg", "--depots", "depots.csv", cwd=town,
    )  # fmt: skip
    network = RoadNetwork.load(town / "town.network")
    assert network.num_edges == 6
    assert (town / "town.svg").read_text().startswith("<?xml")
    for text in ("directed edges", network.checksum, "residential", "wrote town.network"):
        assert text in build.stdout
    assert "segments of class ice_road, mapped to one of the 14" in build.stdout
    assert "1 depots are not on this network" in build.stderr
    assert "\x1b" not in build.stdout, "no colours or spinners in a pipe"
    assert max(map(len, build.stdout.splitlines())) <= 80
    info = ideal("network", "info", "town.network", cwd=town)
    assert network.checksum in info.stdout
    assert "Read from edges.csv + nodes.csv" in info.stdout
    for done in (build, info):
        assert "none known: not in the source" in done.stdout, "forbidden turns"


def test_nodes_that_are_dropped_are_said_in_a_line(tmp_path: Path) -> None:
    places = {1: (7.0, 43.0), 2: (7.01, 43.0), 3: (7.01, 43.01), 4: (7.05, 43.05)}
    ways = [([1, 2, 3, 1], {}), ([3, 4], {"oneway": "yes"})]
    elements: list[dict[str, object]] = [
        {"type": "node", "id": n, "lon": x, "lat": y} for n, (x, y) in places.items()
    ]
    elements += [
        {"type": "way", "id": i, "nodes": nodes, "tags": {"highway": "residential", **tags}}
        for i, (nodes, tags) in enumerate(ways, 1)
    ]
    (tmp_path / "town.json").write_text(json.dumps({"elements": elements}))
    done = ideal("network", "build", "town.json", "-o", "town.network", cwd=tmp_path)
    assert "1 of 3 nodes and 6 km of road are dropped" in done.stderr
    elements[-1]["tags"] = {"highway": "residential"}
    (tmp_path / "town.json").write_text(json.dumps({"elements": elements}))
    done = ideal("network", "build", "town.json", "-o", "town.network", "--force", cwd=tmp_path)
    assert "dropped" not in done.stderr


@pytest.mark.parametrize(
    ("restriction", "said"),
    [
        ("", "none in the source"),
        ("no_u_turn", "1"),
        ("give_way", "none: its 1 restrictions do not apply"),
    ],
)
def test_forbidden_turns_are_told(tmp_path: Path, restriction: str, said: str) -> None:
    ring = "".join(
        f'<way id="{i}"><nd ref="{a}"/><nd ref="{b}"/><tag k="highway" v="primary"/></way>'
        for i, (a, b) in enumerate([(1, 2), (2, 3), (3, 1), (3, 4)], 1)
    )
    relation = "" if not restriction else (
        '<relation id="1"><member type="way" role="from" ref="2"/>'
        '<member type="node" role="via" ref="3"/><member type="way" role="to" ref="2"/>'
        f'<tag k="type" v="restriction"/><tag k="restriction" v="{restriction}"/></relation>'
    )  # fmt: skip
    nodes = "".join(f'<node id="{i}" lon="{7 + i / 100}" lat="{43 + i * i}"/>' for i in range(1, 5))
    (tmp_path / "map.osm").write_text(f'<osm version="0.6">{nodes}{ring}{relation}</osm>')
    build = ideal("network", "build", "map.osm", "-o", "x.network", cwd=tmp_path)
    info = ideal("network", "info", "x.network", cwd=tmp_path)
    for done in (build, info):
        (line,) = (row for row in done.stdout.splitlines() if row.startswith("forbidden turns"))
        assert line.split(maxsplit=2)[2] == said


def test_same_input_same_bytes(town: Path) -> None:
    for name in ("a.network", "b.network"):
        ideal("network", "build", "edges.csv", "--nodes", "nodes.csv", "-o", name, cwd=town)
    assert (town / "a.network").read_bytes() == (town / "b.network").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "none.osm", "-o", "x"], "error: none.osm: no such file"),
        (["build", "edges.csv", "-o", "x"], "an edge list needs its nodes"),
        (["build", "-o", "x"], "give a file, or one of --bbox and --place"),
        (["build", "edges.csv", "--bbox", "1,2", "-o", "x"], "write it as west,south,east,north"),
        (["build", "edges.csv", "--column", "tail", "-o", "x"], "write it as FIELD=COLUMN"),
        (["build", "edges.csv", "--nodes", "nodes.csv", "-o", "no/x"], "the folder no does not"),
        (["info", "edges.csv"], "error: edges.csv: not a network file"),
        (["build", "edges.csv", "--nodes", "nodes.csv", "-o", "."], "error: -o .: is a folder"),
        (["build", "none.osm", "-o", "x", "--map", "x.jpg"], "x.jpg: a map ends in .png"),
        (["build", "none.osm", "-o", "x", "--map", "no/x.png"], "no/x.png: the folder no does"),
        (["build", "none.osm", "-o", "x", "--depots", "depots.csv"], "--depots marks a map"),
        (["build", "none.osm", "-o", "x", "--map", "x.png", "--depots", "d.csv"], "d.csv: no such"),
        (
            ["build", "none.osm", "-o", "x.png", "--map", "x.png"],
            "--map x.png: x.png would be overwritten",
        ),
        (["info", "none.network", "--map", "x.jpg"], "x.jpg: a map ends in .png"),
        (["info", "[red].network"], r"error: [red].network: no such file"),
    ],
)
def test_bad_input_is_one_line_on_stderr(town: Path, arguments: list[str], message: str) -> None:
    done = ideal("network", *arguments, cwd=town, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (town / "x").exists()


@pytest.mark.parametrize(
    ("output", "map_file", "victim"),
    [
        ("edges.csv", None, "edges.csv"),
        ("./folder/../edges.csv", None, "edges.csv"),
        ("link.network", None, "edges.csv"),
        ("nodes.csv", None, "nodes.csv"),
        ("depots.csv", "x.png", "depots.csv"),
        ("x", "nodes.svg", "nodes.svg"),
    ],
)
def test_inputs_are_never_overwritten(
    town: Path, output: str, map_file: str | None, victim: str
) -> None:
    (town / "folder").mkdir()
    (town / "link.network").symlink_to(town / "edges.csv")
    (town / "nodes.svg").write_text(NODES)
    nodes = "nodes.svg" if map_file == "nodes.svg" else "nodes.csv"
    before = (town / victim).read_bytes()
    options = ["--map", map_file, "--depots", "depots.csv"] if map_file else []
    done = ideal(
        "network", "build", "edges.csv", "--nodes", nodes, "-o", output, *options, cwd=town, code=2
    )
    assert "would be overwritten; choose another name" in done.stderr
    assert (town / victim).read_bytes() == before


def test_what_is_there_is_kept_unless_forced(town: Path) -> None:
    """The same rule as of all commands: see tests/unit/cli/test_outputs.py."""
    build = ("network", "build", "edges.csv", "--nodes", "nodes.csv", "-o", "kept.network")
    (town / "kept.network").write_text("mine")
    done = ideal(*build, cwd=town, code=2)
    assert "-o kept.network: is there already; add --force to overwrite it" in done.stderr
    assert (town / "kept.network").read_text() == "mine"
    ideal(*build, "--force", cwd=town)
    (town / "kept.png").write_text("mine")
    done = ideal("network", "info", "kept.network", "--map", "kept.png", cwd=town, code=2)
    assert "--map kept.png: is there already" in done.stderr


def test_usage_errors_keep_their_own_message(town: Path) -> None:
    done = ideal("network", "build", "--nodez", "x", cwd=town, code=2)
    assert "No such option" in done.stderr
    assert "Usage: ideal network build" in done.stderr


def test_interruption_is_one_line(town: Path) -> None:
    program = (
        "import os, signal, sys;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # a shell may have it ignored
        "sys.argv = ['ideal', 'network', 'build', 'edges.csv', '--nodes', 'nodes.csv', '-o', 'x'];"
        "from ideal_dispatch.cli.app import main;"
        "import ideal_dispatch.network.readers as read;"
        "read.read_network = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT);"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=town, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_version(tmp_path: Path) -> None:
    assert ideal("--version", cwd=tmp_path).stdout == f"ideal-dispatch {__version__}\n"
