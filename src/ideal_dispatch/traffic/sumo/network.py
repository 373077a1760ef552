"""SUMO's programs, and our road network as theirs: edge i is called "i" there, node j "j".

Nothing is merged or simplified, so every path of ours is a path there. Lengths
are those of the drawn road: SUMO cuts an edge where its junction begins and
drives the rest on lanes inside the junction, so that edge and junction together
are as long as our edge. Where a length differs from the drawing, the speed is
scaled so that the free-flow time is ours. A forbidden turn from one edge to the next has
no connection; SUMO has no form for forbidden turns of more edges, and its drivers may make them.
"""

import hashlib
import os
import resource
import secrets
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import IdealError, InputError, MissingExtraError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import filled_lanes
from ideal_dispatch.network.geodesy import LocalPlane, polyline_length_m
from ideal_dispatch.network.road_class import ROAD_CLASSES

OPTIONS = (
    "--tls.guess", "true",  # lights where the incoming lanes add up: there is junction delay
    "--tls.guess.threshold", "60",
    "--tls.join", "true",  # one programme for lights that are one crossing
    "--tls.join-dist", "30",
    "--no-turnarounds.except-deadend", "true",
    "--junctions.corner-detail", "0",
    "--no-warnings", "true",
    "--xml-validation", "never",
    "--offset.disable-normalization", "true",
    "--tls.default-type", "actuated",  # lights that wait for traffic: fixed ones jam
)  # fmt: skip
_LIMIT_S = 600.0


class SumoError(IdealError):
    """A SUMO program refused its input, failed, or took too long."""


def is_installed() -> bool:
    """Whether the ``sumo`` extra is installed."""
    return find_spec("sumo") is not None and find_spec("libsumo") is not None


def sumo_version() -> str:
    """The installed SUMO, such as "1.28.0"."""
    _home()
    return version("eclipse-sumo")


def run(program: str, options: Sequence[str], folder: Path, limit_s: float) -> float:
    """CPU seconds of a program in ``folder``; its first complaint is a :class:`SumoError`."""
    cpu_before = _children_cpu_s()
    try:
        finished = subprocess.run(
            [_home() / "bin" / program, *options],
            cwd=folder,
            env={"SUMO_HOME": str(_home())},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SumoError(
            f"{program}: not finished after {limit_s:g} s; less demand or fewer hours are faster"
        ) from None
    if finished.returncode:
        said = [line for line in finished.stderr.splitlines() if line.startswith("Error")]
        raise SumoError(
            f"{program}: {said[0] if said else f'ended with code {finished.returncode}'}"
        )
    return _children_cpu_s() - cpu_before


def _home() -> Path:
    if not is_installed():
        raise MissingExtraError("SUMO traffic", "sumo")
    import sumo

    return Path(sumo.SUMO_HOME)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lanes_per_direction(network: RoadNetwork) -> IntArray:
    """Lanes a driver on each edge has, at least one; half a lane counts as one."""
    both = filled_lanes(network) / np.where(network.oneway, 1.0, 2.0)
    return np.maximum(np.floor(both + 0.5), 1).astype(np.int32)


def strong_parts(network: RoadNetwork, edges: slice | IntArray = slice(None)) -> IntArray:
    """A number for each node: the same where every place reaches every other by these edges."""
    ends = network.tail[edges], network.head[edges]
    graph = coo_array((np.ones(ends[0].size), ends), (network.num_nodes,) * 2)
    parts: IntArray = connected_components(graph, connection="strong")[1]
    return parts


def export_network(network: RoadNetwork, folder: Path) -> Path:
    """The SUMO network file in ``folder``, made there unless it exists already."""
    if np.isnan(network.lon).any() or np.isnan(network.lat).any():
        raise InputError("a SUMO network needs the place of every node; give lon and lat")
    target = folder / f"{roads_checksum(network)}.net.xml"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # several processes may make the same file at once: each writes its own, the last rename wins
    stem = f".{secrets.token_hex(8)}"
    files = _files(network)
    names = {kind: f"{stem}.{kind}.xml" for kind in (*files, "net")}
    options = [word for kind, name in names.items() for word in (_FLAGS[kind], name)]
    try:
        for kind, content in files.items():
            (folder / names[kind]).write_bytes(content)
        run("netconvert", [*options, *OPTIONS], folder, _LIMIT_S)
        os.replace(folder / names["net"], target)
    finally:
        for name in names.values():
            (folder / name).unlink(missing_ok=True)
    return target


_FLAGS = {"nod": "-n", "edg": "-e", "net": "-o", "con": "-x"}


def turns_left_out(network: RoadNetwork) -> int:
    """How many forbidden turns the SUMO network does not know: those of more than two edges."""
    return sum(len(turn) > 2 for turn in network.forbidden_turns)


def roads_checksum(network: RoadNetwork) -> str:
    """Hash of all that makes the SUMO network: the roads as drawn, the options, SUMO itself."""
    digest = hashlib.blake2b(f"{sumo_version()} {OPTIONS}".encode(), digest_size=16)
    for content in _files(network).values():
        digest.update(content)
    return digest.hexdigest()


def _files(network: RoadNetwork) -> dict[str, bytes]:
    """What netconvert reads: nodes, edges, and where turns are forbidden the connections."""
    plane = LocalPlane(float(network.lat.mean()))
    corner = plane.to_metres(np.array([network.lon.min(), network.lat.min()]))

    nodes = ElementTree.Element("nodes")
    places = plane.to_metres(np.column_stack([network.lon, network.lat])) - corner
    for node, (x, y) in enumerate(places.tolist()):
        ElementTree.SubElement(nodes, "node", id=str(node), x=f"{x:.2f}", y=f"{y:.2f}")

    edges = ElementTree.Element("edges")
    lines = [network.polyline(edge) for edge in range(network.num_edges)]
    shapes = np.split(
        plane.to_metres(np.concatenate(lines)) - corner,
        np.cumsum([len(line) for line in lines])[:-1],
    )
    speeds = speeds_m_s(network)
    for edge, (shape, lanes) in enumerate(zip(shapes, lanes_per_direction(network), strict=True)):
        attributes = {
            "id": str(edge),
            "from": str(network.tail[edge]),
            "to": str(network.head[edge]),
            "numLanes": str(lanes),
            "speed": f"{speeds[edge]:.3f}",
            "priority": str(len(ROAD_CLASSES) - int(network.road_class[edge])),
            "spreadType": "center" if network.oneway[edge] else "right",
            "shape": " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.tolist()),
        }
        ElementTree.SubElement(edges, "edge", attributes)
    roots = {"nod": nodes, "edg": edges}

    if network.forbidden_turns:
        roots["con"] = ElementTree.Element("connections")
        for turn in network.forbidden_turns:
            if len(turn) == 2:
                ends = {"from": str(turn[0]), "to": str(turn[1])}
                ElementTree.SubElement(roots["con"], "delete", ends)
    return {kind: bytes(ElementTree.tostring(root)) for kind, root in roots.items()}


def speeds_m_s(network: RoadNetwork) -> FloatArray:
    """Limits in SUMO: the drawn length in our free-flow time."""
    drawn_m = np.array([polyline_length_m(network.polyline(e)) for e in range(network.num_edges)])
    speeds: FloatArray = np.maximum(drawn_m, 1.0) / network.free_flow_times_s
    return speeds
