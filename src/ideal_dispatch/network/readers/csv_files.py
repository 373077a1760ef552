"""Networks as CSV: a file of nodes, a file of edges, and which column is which."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import shapely

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.geodesy import check_degrees, great_circle_m, polyline_length_m
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.network.readers.build import BuildReport, Point, Progress, RawRoads, Segment
from ideal_dispatch.network.readers.osm_tags import is_road, lane_count, speed_kmh
from ideal_dispatch.network.readers.table_rows import DEGREES
from ideal_dispatch.network.road_class import FALLBACK_CLASS, class_code, plain_class
from ideal_dispatch.toml_tables import complaints_about

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "node_id", "osmid", "int_id", "node"),
        **DEGREES,
        "tail": ("tail", "from", "u", "from_node", "from_int_id", "source"),
        "head": ("head", "to", "v", "to_node", "to_int_id", "target"),
        "length_m": ("length_m", "length", "centreline_m", "straight_m"),
        "speed_kmh": ("speed_kmh", "maxspeed", "speed_limit_kmh", "speed_limit"),
        "lanes": ("lanes",),
        "oneway": ("oneway", "one_way"),
        "road_class": ("road_class", "highway", "class", "fclass"),
        "name": ("name", "street_name", "street", "road_name"),
        "geometry": ("geometry", "geometry_wkt", "wkt"),
        "posted": ("speed_limit_posted",),
    }
)
"""Our field and the column names it is looked for under, first match with a value first."""

_NEEDED_NODES, _NEEDED_EDGES = ("id", "lon", "lat"), ("tail", "head")
_TRUE, _FALSE = frozenset({"1", "true", "yes", "t", "y"}), frozenset({"0", "false", "no", "f", "n"})
_AGAINST = frozenset({"-1", "reverse"})
_ADVICE = "name it with --column {}=YOURS"
_TOO_SHORT = 0.5  # of the straight line; real files are right to a few hundredths
_MOST_TOO_SHORT = 0.1  # of all rows; more is a wrong unit or a wrong decimal mark


def read_csv_pair(
    edges_path: str | os.PathLike[str],
    nodes_path: str | os.PathLike[str],
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    directed: bool = False,
    progress: Progress = lambda stage: None,
) -> RawRoads:
    """The roads of an edge list and a node list.

    ``columns`` maps our fields (:data:`COLUMNS`) to the files' column names.
    A row is a street: driven both ways unless its one-way column says
    otherwise (1 or yes along the row, -1 against it). With ``directed`` a row
    is one direction only.
    """
    given = columns or {}
    unknown = sorted(set(given) - set(COLUMNS))
    if unknown:
        raise InputError(f"column mapping: no field {unknown[0]!r}; fields: {', '.join(COLUMNS)}")
    names = {**COLUMNS, **given}
    report = BuildReport(f"{os.path.basename(edges_path)} + {os.path.basename(nodes_path)}")
    progress("reading nodes")
    nodes = table_rows.read(nodes_path, names, _NEEDED_NODES, _ADVICE)[1]
    mark = table_rows.degrees_mark(nodes)
    places = dict(_nodes(os.fspath(nodes_path), nodes, mark))
    report.read["nodes"] = len(places)
    progress("reading edges")
    where = os.fspath(edges_path)
    edges = table_rows.read(edges_path, names, _NEEDED_EDGES, _ADVICE)[1]
    cells = (row.get(field, "") for _, row in edges for field in ("length_m", "speed_kmh"))
    # what may be thousands says nothing of the decimal mark
    clear = (cell for cell in cells if not table_rows.THOUSANDS.fullmatch(cell))
    mark = spreadsheets.decimal_mark(clear, mark)
    segments = list(_edges(where, edges, mark, places, directed, report))
    if not directed:
        _refuse_doubled(where, segments)
    return RawRoads(places, _at_least_straight(where, segments, places, report), report)


def _nodes(where: str, rows: table_rows.Rows, mark: str) -> Iterator[tuple[str, Point]]:
    seen: set[str] = set()
    for line, row in rows:
        node = row.get("id", "")
        lon, lat = (table_rows.number(where, line, field, row, mark) for field in DEGREES)
        if not node or node in seen:
            problem = f"node {node} appears twice" if node else "id is missing"
            raise InputError(f"{where} line {line}: {problem}")
        with complaints_about(f"{where} line {line}"):
            check_degrees(lon, lat)
        seen.add(node)
        yield node, (lon, lat)


def _edges(
    where: str,
    rows: table_rows.Rows,
    mark: str,
    places: Mapping[str, Point],
    directed: bool,
    report: BuildReport,
) -> Iterator[Segment]:
    for line, row in rows:
        tail, head = (row.get(end, "") for end in _NEEDED_EDGES)
        tag = row.get("road_class", "")
        if tag and not is_road(tag):
            report.dropped[f"rows not for cars: {plain_class(tag)}"] += 1
            continue
        points = _points(where, line, row, places.get(tail))
        if "length_m" in row:
            length = table_rows.number(where, line, "length_m", row, mark)
        else:
            report.assumed["segments with no length, measured along their points"] += 1
            ends = (places.get(tail, (np.nan, np.nan)), places.get(head, (np.nan, np.nan)))
            length = polyline_length_m(np.array(points or ends))
        code, known = class_code(tag or FALLBACK_CLASS)
        if not (tag and known):
            report.assumed[f"segments of class {tag or 'unknown'}, mapped to one of the 14"] += 1
        oneway = row.get("oneway", "").lower()
        if oneway not in _TRUE | _FALSE | _AGAINST | {""}:
            raise InputError(f"{where} line {line}: oneway is {oneway!r}; use yes, no or -1")
        forward, backward = oneway not in _AGAINST, oneway not in _TRUE
        if not forward and not directed:
            tail, head, points = head, tail, points[::-1] if points else None
        # a limit that the source itself filled in is not known
        posted = row.get("posted", "").lower().removesuffix(".0") not in _FALSE
        limit = row.get("speed_kmh", "") if posted else ""
        yield Segment(
            tail=tail,
            head=head,
            length_m=length,
            points=points,
            speed_kmh=speed_kmh(limit.replace(",", ".") if mark == "," else limit),
            lanes=lane_count(row.get("lanes", "")),
            oneway=forward != backward,
            reverse=forward and backward and not directed,
            road_class=code,
            name=row.get("name", ""),
        )


def _points(
    where: str, line: int, row: Mapping[str, str], start: Point | None
) -> tuple[Point, ...] | None:
    """The WKT polyline from tail to head; some sources draw it the other way round."""
    if "geometry" not in row:
        return None
    shape = shapely.from_wkt(row["geometry"], on_invalid="ignore")
    if not isinstance(shape, shapely.LineString) or shape.is_empty:
        raise InputError(f"{where} line {line}: geometry is not a WKT LINESTRING")
    corners = shapely.get_coordinates(shape)
    if not (np.abs(corners) <= (180, 90)).all():
        raise InputError(
            f"{where} line {line}: geometry is not in degrees; transform it to WGS84 lon/lat"
        )
    points = tuple((float(x), float(y)) for x, y in corners)
    if start is not None and math.dist(points[-1], start) < math.dist(points[0], start):
        points = points[::-1]
    return points


def _refuse_doubled(where: str, segments: list[Segment]) -> None:
    """Rows that are single directions, read as streets, would double every road."""
    ends = {(s.tail, s.head) for s in segments}
    streets = [s for s in segments if s.reverse]
    doubled = sum((s.head, s.tail) in ends for s in streets)
    if len(streets) > 10 and doubled > 0.9 * len(streets):
        raise InputError(
            f"{where}: {doubled} of {len(streets)} two-way rows have their opposite as a row of "
            "its own; say --directed when each row is one direction"
        )


def _at_least_straight(
    where: str, segments: list[Segment], places: Mapping[Any, Point], report: BuildReport
) -> list[Segment]:
    """The segments, measured where the file has them far shorter than the straight line.

    A few such rows are slips of the source. Many say that the lengths are not in
    metres, or that their thousands were written with a decimal mark.
    """
    nowhere = (np.nan, np.nan)
    lon, lat = np.array([places.get(s.tail, nowhere) for s in segments]).reshape(-1, 2).T
    to_lon, to_lat = np.array([places.get(s.head, nowhere) for s in segments]).reshape(-1, 2).T
    straight = great_circle_m(lon, lat, to_lon, to_lat)
    length = np.array([s.length_m for s in segments])
    short = np.flatnonzero((length >= 0) & (length < _TOO_SHORT * straight))
    if len(short) > _MOST_TOO_SHORT * len(segments):
        worst = segments[short[0]]
        raise InputError(
            f"{where}: {len(short)} of {len(segments)} rows are far shorter than the straight line "
            f"between their ends, such as {worst.tail} to {worst.head}: {worst.length_m:g} m where "
            f"the line is {straight[short[0]]:.0f} m; give lengths in metres, without a mark for "
            "thousands"
        )
    for i in short.tolist():
        drawn = polyline_length_m(np.array(segments[i].points or [nowhere]))
        segments[i] = segments[i]._replace(length_m=max(float(straight[i]), drawn))
        report.assumed["segments with a length far below the straight line, measured"] += 1
    return segments
