"""OpenStreetMap files: XML plain, gzipped, bzipped or zipped, PBF, and the JSON of Overpass."""

import json
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import osmium

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source
from ideal_dispatch.network.geodesy import polyline_length_m
from ideal_dispatch.network.readers.build import BuildReport, Point, Progress, RawRoads, Segment
from ideal_dispatch.network.readers.osm_tags import WayRule, way_rule
from ideal_dispatch.network.readers.turn_restrictions import Restriction, restriction_kind

_Input = osmium.io.File | osmium.io.FileBuffer
_UNREADABLE = (
    RuntimeError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error,
    osmium.InvalidLocationError,
)  # fmt: skip
_FORMATS = {".osm": "osm", ".xml": "osm", ".pbf": "pbf"}


class _Way(NamedTuple):
    number: int
    refs: list[int]
    rule: WayRule


class _Entity(NamedTuple):
    """A way with the nodes that it runs through, or a relation with (role, type, id) of members."""

    number: int
    tags: dict[str, str]
    refs: list[int]
    members: list[tuple[str, str, int]] | None = None


def read_osm(path: str | os.PathLike[str], progress: Progress) -> RawRoads:
    """The drivable roads of an OpenStreetMap extract."""
    where = os.fspath(path)
    check_source(where)
    report = BuildReport(os.path.basename(where))
    try:
        progress("reading ways")
        entities: Iterable[_Entity]
        nodes: Iterable[tuple[int, float, float]]
        if where.endswith(".json"):
            entities, nodes = _overpass(where)
        else:
            entities, nodes = _entities(_source(where)), _nodes(_source(where))
        ways, restrictions = _ways(entities, report)
        progress("reading nodes")
        wanted = {ref for way in ways for ref in way.refs}
        places = {number: (lon, lat) for number, lon, lat in nodes if number in wanted}
    except _UNREADABLE as error:
        text = " ".join(str(error).split())
        raise FileFormatError(f"{where}: not a whole OpenStreetMap file ({text})") from None
    report.read["nodes of these ways"] = len(places)
    missing = sum(ref not in places for way in ways for ref in way.refs)
    if missing:
        report.dropped["references to nodes that the file does not hold"] = missing
    return RawRoads(places, _segments(ways, places), report, restrictions)


def _source(where: str) -> _Input:
    if not where.endswith(".zip"):
        return osmium.io.File(where)
    with zipfile.ZipFile(where) as archive:
        members = [m for m in archive.namelist() if os.path.splitext(m)[1] in _FORMATS]
        if len(members) != 1:
            raise FileFormatError(
                f"{where}: expected one .osm or .pbf inside, found {len(members)}"
            )
        return osmium.io.FileBuffer(
            archive.read(members[0]), _FORMATS[os.path.splitext(members[0])[1]]
        )


def _entities(source: _Input) -> Iterator[_Entity]:
    processor: Any = osmium.FileProcessor(source, osmium.osm.WAY | osmium.osm.RELATION)
    for entity in processor.with_filter(osmium.filter.KeyFilter("highway", "type")):
        if entity.is_relation():
            members = [(member.role, member.type, member.ref) for member in entity.members]
            yield _Entity(entity.id, dict(entity.tags), [], members)
        else:
            yield _Entity(entity.id, dict(entity.tags), [node.ref for node in entity.nodes])


def _nodes(source: _Input) -> Iterator[tuple[int, float, float]]:
    processor: Any = osmium.FileProcessor(source, osmium.osm.NODE)
    for node in processor:
        if node.location.valid():
            yield node.id, node.location.lon, node.location.lat


def _overpass(where: str) -> tuple[list[_Entity], list[tuple[int, float, float]]]:
    """The answer of an Overpass server, such as those that OSMnx keeps in its cache."""
    entities, nodes = list[_Entity](), list[tuple[int, float, float]]()
    try:
        with open(where, encoding="utf-8") as file:
            elements = json.load(file)["elements"]
        for one in elements:
            number, tags = int(one["id"]), one.get("tags", {})
            if one["type"] == "node":
                nodes.append((number, float(one["lon"]), float(one["lat"])))
            elif one["type"] == "way":
                entities.append(_Entity(number, tags, list(map(int, one["nodes"]))))
                places = zip(one["nodes"], one.get("geometry", ()), strict=False)
                nodes += [(ref, point["lon"], point["lat"]) for ref, point in places if point]
            elif one["type"] == "relation":
                members = [(m["role"], m["type"][0], int(m["ref"])) for m in one["members"]]
                entities.append(_Entity(number, tags, [], members))
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(
            f"{where}: not the JSON of Overpass, whose elements are nodes and ways with their "
            f"nodes ({type(error).__name__}: {error})"
        ) from None
    return entities, nodes


def _ways(entities: Iterable[_Entity], report: BuildReport) -> tuple[list[_Way], list[Restriction]]:
    ways, restrictions = [], []
    report.read["ways tagged highway"] = report.read["turn restrictions"] = 0
    for entity in entities:
        tags = entity.tags
        if entity.members is not None:
            if tags.get("type", "").split(":")[0] == "restriction":
                report.read["turn restrictions"] += 1
                found = _restriction(entity.members, tags)
                if isinstance(found, str):
                    report.dropped[found] += 1
                else:
                    restrictions.append(found)
            continue
        if "highway" not in tags:
            continue
        report.read["ways tagged highway"] += 1
        rule = way_rule(tags)
        if isinstance(rule, str):
            report.dropped[rule] += 1
            continue
        if not rule.known_class:
            report.assumed[f"ways of class {tags['highway']}, mapped to one of the 14"] += 1
        ways.append(_Way(entity.number, entity.refs, rule))
    return ways, restrictions


def _restriction(members: list[tuple[str, str, int]], tags: dict[str, str]) -> Restriction | str:
    """What a relation restricts, or the reason why it does not count."""
    kind = restriction_kind(tags)
    if not kind.startswith(("no_", "only_")):
        return kind
    origin, via_ways, onward = (
        tuple(ref for role, sort, ref in members if (role, sort) == (wanted, "w"))
        for wanted in ("from", "via", "to")
    )
    via_nodes = [ref for role, sort, ref in members if (role, sort) == ("via", "n")]
    if not (origin and onward and (via_ways or via_nodes)):
        return "turn restrictions without from, via or to"
    via = via_ways or via_nodes[0]
    return Restriction(origin, via, onward, kind.startswith("only_"), kind == "no_u_turn")


def _segments(ways: list[_Way], places: dict[int, Point]) -> Iterator[Segment]:
    """Ways cut at missing nodes and at every node that is an end or shared."""
    stretches = [(way, run) for way in ways for run in _runs(way.refs, places)]
    uses = Counter(ref for _, run in stretches for ref in (*run, run[0], run[-1]))
    for way, run in stretches:
        start = 0
        for i in range(1, len(run)):
            if uses[run[i]] > 1:
                # a loop keeps one more node, or it could not be driven
                loop = run[start] == run[i] and i - start > 1
                for end in ((start + i + 1) // 2, i) if loop else (i,):
                    yield _segment(run[start : end + 1], way, places)
                    start = end


def _runs(refs: list[int], places: dict[int, Point]) -> Iterator[list[int]]:
    """Stretches of two or more consecutive nodes that are in the file."""
    run: list[int] = []
    for ref in [*refs, None]:
        if ref is not None and ref in places:
            if not run or run[-1] != ref:
                run.append(ref)
            continue
        if len(run) > 1:
            yield run
        run = []


def _segment(refs: list[int], way: _Way, places: dict[int, Point]) -> Segment:
    rule = way.rule
    if not rule.forward:
        refs = refs[::-1]
    points = tuple(places[ref] for ref in refs)
    return Segment(
        tail=refs[0],
        head=refs[-1],
        length_m=polyline_length_m(np.array(points)),
        points=points if len(points) > 2 else None,
        speed_kmh=rule.speed_kmh,
        lanes=rule.lanes,
        oneway=rule.oneway,
        reverse=rule.forward and rule.backward,
        road_class=rule.road_class,
        name=rule.name,
        way=way.number,
    )
