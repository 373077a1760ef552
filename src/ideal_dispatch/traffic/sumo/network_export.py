"""Our road network as a SUMO network: edge i is called "i" there, node j is called "j".

Nothing is merged or simplified, so every path of ours is a path there. Lengths
are those of the drawn road: SUMO cuts an edge where its junction begins and
drives the rest on lanes inside the junction, so that edge and junction together
are as long as our edge. Where a length differs from the drawing, the speed is
scaled so that the free-flow time is ours. A forbidden turn from one edge to the next has
no connection; those of more edges cannot be told to SUMO, whose drivers may make them.
"""

import hashlib
import os
import secrets
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import filled_lanes
from ideal_dispatch.network.geodesy import LocalPlane, polyline_length_m
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.traffic.sumo.engine import run, sumo_version

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


def lanes_per_direction(network: RoadNetwork) -> IntArray:
    """Lanes a driver on each edge has, at least one; half a lane counts as one."""
    both = filled_lanes(network) / np.where(network.oneway, 1.0, 2.0)
    return np.maximum(np.floor(both + 0.5), 1).astype(np.int32)


def speeds_m_s(network: RoadNetwork) -> FloatArray:
    """Limits in SUMO: the drawn length in our free-flow time."""
    drawn_m = np.array([polyline_length_m(network.polyline(e)) for e in range(network.num_edges)])
    speeds: FloatArray = np.maximum(drawn_m, 1.0) / network.free_flow_times_s
    return speeds


def export_network(network: RoadNetwork, folder: Path) -> Path:
    """The SUMO network file in ``folder``, made there unless it is there already."""
    if np.isnan(network.lon).any() or np.isnan(network.lat).any():
        raise InputError("a SUMO network needs the place of every node; give lon and lat")
    target = folder / f"{roads_checksum(network)}.net.xml"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # several processes may make the same file at once: each its own, the last rename wins
    stem = f".{secrets.token_hex(8)}"
    parts = {kind: folder / f"{stem}.{kind}.xml" for kind in ("nod", "edg", "con", "net")}
    try:
        parts["nod"].write_bytes(_nodes(network))
        parts["edg"].write_bytes(_edges(network))
        options = ["-n", parts["nod"].name, "-e", parts["edg"].name, "-o", parts["net"].name]
        if network.forbidden_turns:
            parts["con"].write_bytes(_connections(network))
            options += ["-x", parts["con"].name]
        run("netconvert", [*options, *OPTIONS], folder, _LIMIT_S)
        os.replace(parts["net"], target)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return target


def turns_left_out(network: RoadNetwork) -> int:
    """How many forbidden turns the SUMO network does not know: those of more than two edges."""
    return sum(len(turn) > 2 for turn in network.forbidden_turns)


def roads_checksum(network: RoadNetwork) -> str:
    """Hash of all that makes the SUMO network: the roads as drawn, the options, SUMO itself."""
    digest = hashlib.blake2b(f"{sumo_version()} {OPTIONS}".encode(), digest_size=16)
    digest.update(_nodes(network))
    digest.update(_edges(network))
    if network.forbidden_turns:
        digest.update(_connections(network))
    return digest.hexdigest()


def _nodes(network: RoadNetwork) -> bytes:
    root = ElementTree.Element("nodes")
    places = _metres(network, np.column_stack([network.lon, network.lat]))
    for node, (x, y) in enumerate(places.tolist()):
        ElementTree.SubElement(root, "node", id=str(node), x=f"{x:.2f}", y=f"{y:.2f}")
    return bytes(ElementTree.tostring(root))


def _edges(network: RoadNetwork) -> bytes:
    root = ElementTree.Element("edges")
    lines = [network.polyline(edge) for edge in range(network.num_edges)]
    places = _metres(network, np.concatenate(lines))
    shapes = np.split(places, np.cumsum([len(line) for line in lines])[:-1])
    lanes, speeds = lanes_per_direction(network), speeds_m_s(network)
    for edge, shape in enumerate(shapes):
        road_class = int(network.road_class[edge])
        ElementTree.SubElement(
            root,
            "edge",
            {
                "id": str(edge),
                "from": str(network.tail[edge]),
                "to": str(network.head[edge]),
                "numLanes": str(lanes[edge]),
                "speed": f"{speeds[edge]:.3f}",
                "priority": str(len(ROAD_CLASSES) - road_class),
                "spreadType": "center" if network.oneway[edge] else "right",
                "shape": " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.tolist()),
            },
        )
    return bytes(ElementTree.tostring(root))


def _connections(network: RoadNetwork) -> bytes:
    """No connection where a turn from one edge to the next is forbidden."""
    root = ElementTree.Element("connections")
    for turn in network.forbidden_turns:
        if len(turn) == 2:
            ends = dict(zip(("from", "to"), map(str, turn), strict=True))
            ElementTree.SubElement(root, "delete", ends)
    return bytes(ElementTree.tostring(root))


def _metres(network: RoadNetwork, lonlat: FloatArray) -> FloatArray:
    """Places on a plane, from the south-western corner of all nodes."""
    plane = LocalPlane(float(network.lat.mean()))
    corner = plane.to_metres(np.array([network.lon.min(), network.lat.min()]))
    return np.asarray(plane.to_metres(lonlat) - corner)
