"""Networks that OSMnx made: its GraphML files, and downloads by box or place name."""

import ast
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np
import shapely

from ideal_dispatch.errors import FileFormatError, InputError, MissingExtraError
from ideal_dispatch.files import check_source
from ideal_dispatch.network.geodesy import polyline_length_m
from ideal_dispatch.network.readers.build import (
    Box,
    BuildReport,
    Point,
    Progress,
    RawRoads,
    Segment,
)
from ideal_dispatch.network.readers.osm_tags import is_road, way_rule

_TAGS = (
    "access", "area", "bus", "emergency", "highway", "junction", "lanes", "maxspeed",
    "maxspeed:backward", "maxspeed:forward", "motor_vehicle", "motorcar", "name", "oneway",
    "oneway:bus", "oneway:emergency", "oneway:psv", "psv", "ref", "service", "vehicle",
)  # fmt: skip


def read_graphml(path: str | os.PathLike[str], progress: Progress) -> RawRoads:
    """The roads of a GraphML file as ``osmnx.save_graphml`` writes it."""
    where = os.fspath(path)
    check_source(where)
    progress("reading graph")
    try:
        graph = nx.read_graphml(where, force_multigraph=True)
    except (ElementTree.ParseError, nx.NetworkXError, KeyError, ValueError) as error:
        raise FileFormatError(f"{where}: not a whole GraphML file ({error})") from None
    return from_osmnx(graph, BuildReport(os.path.basename(where)))


def download(box: Box | None, place: str | None, progress: Progress) -> RawRoads:
    """The drivable roads of a box or a named place, fetched by OSMnx from OpenStreetMap."""
    try:
        import osmnx
    except ImportError:
        raise MissingExtraError("downloading a network", "geo") from None
    progress("downloading from OpenStreetMap")
    what = place if place is not None else f"box {box}"
    before = osmnx.settings.useful_tags_way
    osmnx.settings.useful_tags_way = sorted({*before, *_TAGS})
    # unsimplified and unfiltered: the rules for files apply to downloads too
    options: Any = {"custom_filter": '["highway"]', "simplify": False, "retain_all": True}
    try:
        if box is not None:
            graph = osmnx.graph_from_bbox(box, **options)
        else:
            graph = osmnx.graph_from_place(str(place), **options)
    except (OSError, ValueError, TypeError, KeyError) as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(
            f"{what}: OpenStreetMap gave no network ({type(error).__name__}: {text}); "
            "check the name and the connection, or build from an extract"
        ) from None
    finally:
        osmnx.settings.useful_tags_way = before
    return from_osmnx(graph, BuildReport(f"OSMnx: {what}"))


def from_osmnx(graph: Any, report: BuildReport) -> RawRoads:
    """The roads of an OSMnx graph; each of its edges is one direction of travel."""
    places = {}
    for node, data in graph.nodes(data=True):
        try:
            places[int(node)] = (float(data["x"]), float(data["y"]))
        except (KeyError, ValueError):
            raise FileFormatError(
                f"{report.source}: node {node} has no whole-number id or no x and y; "
                "is it a graph made by OSMnx?"
            ) from None
    if not all(abs(lon) <= 180 and abs(lat) <= 90 for lon, lat in places.values()):
        raise FileFormatError(
            f"{report.source}: coordinates are not degrees; save the graph before projecting it"
        )
    return RawRoads(places, _segments(graph, places, report), report)


def _segments(graph: Any, places: Mapping[int, Point], report: BuildReport) -> Iterator[Segment]:
    for u, v, data in graph.edges(data=True):
        tags = {tag: _text(data[tag]) for tag in _TAGS if tag in data}
        classes = _several(data.get("highway", ""))
        tags["highway"] = next(filter(is_road, classes), tags.get("highway", ""))
        # OSMnx writes True and False; a way that it read backwards it has turned round
        one_way = tags.pop("oneway", "False").lower() in {"true", "yes", "1"}
        rule = way_rule({**tags, "oneway": "yes"} if one_way else tags)
        if isinstance(rule, str):
            report.dropped[rule] += 1
            continue
        turned = all(word == "True" for word in _several(data.get("reversed")))
        if rule.oneway and not one_way and turned:
            report.dropped["reverse edges of motorways and roundabouts"] += 1
            continue
        if not rule.known_class:
            report.assumed[f"edges of class {tags['highway']}, mapped to one of the 14"] += 1
        tail, head = int(u), int(v)
        points = _line(data.get("geometry"))
        ends = places[tail], places[head]
        yield Segment(
            tail=tail,
            head=head,
            length_m=_length_m(report.source, u, v, data)
            or polyline_length_m(np.array(points or ends)),
            points=points,
            speed_kmh=rule.speed_kmh,
            lanes=rule.lanes,
            oneway=rule.oneway,
            reverse=one_way and not rule.oneway,  # emergency vehicles or buses are exempt
            road_class=rule.road_class,
            name=rule.name,
        )


def _several(value: Any) -> list[str]:
    """The values of an attribute: merged ways have lists, which GraphML holds as text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return [str(value)]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _text(value: Any) -> str:
    """An attribute as one string.

    Of several, numbers are all kept for the tag rules to choose from, of words
    the first.
    """
    words = _several(value) or [""]
    return ";".join(words) if words[0][:1].isdigit() else words[0]


def _length_m(source: str, tail: Any, head: Any, data: Mapping[str, Any]) -> float:
    try:
        return float(data.get("length", 0))
    except (TypeError, ValueError):
        raise FileFormatError(
            f"{source}: edge {tail} → {head} has the length {data['length']!r}; "
            "a number of metres is needed"
        ) from None


def _line(value: Any) -> tuple[Point, ...] | None:
    if value is None:
        return None
    shape = shapely.from_wkt(value, on_invalid="ignore") if isinstance(value, str) else value
    if not isinstance(shape, shapely.LineString) or shape.is_empty:
        return None
    return tuple((float(x), float(y)) for x, y in shapely.get_coordinates(shape))
