"""Closed roads: the edges that numbers, a drawn line or polygon, or a GeoJSON file close."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import shapely

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network.road_network import RoadNetwork, edge_column

LINE_M = 20.0
"""A road runs along a line that was drawn where it is no farther from it."""

_STEP_M = 5.0  # of the points at which roads are held against a line
_LEAST_M, _LEAST_SHARE = 30.0, 0.5  # of a road along a line: it is closed with either of them
_ALONG = 0.7  # metres along the line per metre of road; a road that crosses makes fewer


def closed_edges(
    network: RoadNetwork, kind: str, drawn: Sequence[int] | Sequence[Sequence[float]]
) -> list[int]:
    """The edges that a ``line`` or ``polygon`` of lon and lat closes, or those named, checked.

    A line closes both directions of the roads along it (:data:`LINE_M`), a polygon all roads
    that cross it or lie in it.
    """
    if kind == "edges":
        found = np.array(edge_column(drawn, network.num_edges, kind), np.int32)
    else:
        points = network.snapper.plane.to_metres(np.array(drawn, np.float64).reshape(-1, 2))
        found = _along(network, points) if kind == "line" else _within(network, points)
    if not found.size:
        where = f"runs within {LINE_M:.0f} m along it" if kind == "line" else "lies in it"
        raise InputError(f"{kind}: no road {where}; check the coordinates, longitude first")
    return sorted(found.tolist())


def _within(network: RoadNetwork, points: FloatArray) -> IntArray:
    area = shapely.Polygon(points)
    if not area.is_valid or not area.area:
        raise InputError("polygon: its sides cross or enclose nothing; draw it again")
    return network.snapper.edges_touching(area)


def _along(network: RoadNetwork, points: FloatArray) -> IntArray:
    line = shapely.LineString(points)
    if not line.length:
        raise InputError("line: it has no length; draw it from one end of the road to the other")
    near = network.snapper.edges_touching(line.buffer(LINE_M))
    closed = []
    for edge, road in zip(near.tolist(), network.snapper.edge_lines[near], strict=True):
        steps = max(int(np.ceil(road.length / _STEP_M)), 4)
        middles = (np.arange(steps) + 0.5) * road.length / steps
        spots = shapely.line_interpolate_point(road, middles)
        places_m = shapely.line_locate_point(line, spots)
        there = (shapely.distance(line, spots) <= LINE_M) & (places_m > 0)
        there &= places_m < line.length  # what lies beyond its ends is not along it
        count = int(there.sum())
        if count < 2:
            continue
        road_m = road.length * count / steps
        along_m = float(np.ptp(places_m[there])) * count / (count - 1)
        if along_m >= _ALONG * road_m and road_m >= min(_LEAST_M, _LEAST_SHARE * road.length):
            closed.append(edge)
    return np.array(closed, np.int32)


def read_closed(network: RoadNetwork, options: Sequence[str]) -> set[int]:
    """The edges that options close: numbers as in ``12,13``, or GeoJSON files of drawings."""
    closed: set[int] = set()
    for text in options:
        try:
            for kind, drawn in _drawn(text):
                closed |= set(closed_edges(network, kind, drawn))
        except IdealError as error:
            raise InputError(f"--closed {text}: {error}") from None
    return closed


def _drawn(text: str) -> Iterator[tuple[str, list[int] | list[list[float]]]]:
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() for part in parts):
        yield "edges", [int(part) for part in parts]
        return
    if not text.lower().endswith((".geojson", ".json")):
        raise InputError("write numbers of edges, as in 12,13, or the name of a .geojson")
    check_source(text)
    try:
        shapes = shapely.from_geojson(Path(text).read_text(encoding="utf-8-sig"))
    except (shapely.errors.GEOSException, UnicodeDecodeError) as error:
        raise InputError(f"not GeoJSON ({str(error).splitlines()[0]})") from None
    parts_left = [shapes]
    while parts_left:
        shape = parts_left.pop()
        if shape.geom_type == "Polygon" and not shape.is_empty:
            yield "polygon", shapely.get_coordinates(shape.exterior).tolist()
        elif shape.geom_type == "LineString" and not shape.is_empty:
            yield "line", shapely.get_coordinates(shape).tolist()
        elif hasattr(shape, "geoms") and not shape.is_empty:
            parts_left += shape.geoms
        else:
            raise InputError(f"a {shape.geom_type} closes no road; draw lines or polygons")
