"""Networks and depots as CSV: a file of nodes, a file of edges, and which column is which."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import shapely

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import FileFormatError, InputError, OffNetworkError
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.geodesy import great_circle_m, polyline_length_m
from ideal_dispatch.network.readers.build import (
    Box,
    BuildReport,
    Point,
    Progress,
    Segment,
    build_network,
)
from ideal_dispatch.network.readers.osm_tags import is_road, lane_count, speed_kmh
from ideal_dispatch.network.road_class import FALLBACK_CLASS, class_code, plain_class
from ideal_dispatch.network.road_network import RoadNetwork

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "node_id", "osmid", "int_id", "node"),
        "lon": ("lon", "longitude", "lng", "x"),
        "lat": ("lat", "latitude", "y"),
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

_DEGREES = ("lon", "lat")
_NEEDED_NODES, _NEEDED_EDGES = ("id", *_DEGREES), ("tail", "head")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")  # or three decimals
_TRUE, _FALSE = frozenset({"1", "true", "yes", "t", "y"}), frozenset({"0", "false", "no", "f", "n"})
_DEPOT_NAMES = ("name", "depot", "station", "station #", "index", "id")
_HEADER_ROWS = 5  # a title may stand above the header
_TOO_SHORT = 0.5  # of the straight line; real files are right to a few hundredths
_MOST_TOO_SHORT = 0.1  # of all rows; more is a wrong unit or a wrong decimal mark

Rows = list[tuple[int, dict[str, str]]]
"""Line number and our fields of every row, blank values left out."""


def read_csv_pair(
    edges_path: str | os.PathLike[str],
    nodes_path: str | os.PathLike[str],
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    directed: bool = False,
    box: Box | None = None,
    simplify: bool = True,
    progress: Progress = lambda stage: None,
) -> RoadNetwork:
    """The network of an edge list and a node list.

    ``columns`` maps our fields (:data:`COLUMNS`) to the files' column names.
    A row is a street: driven both ways unless its one-way column says
    otherwise (1 or yes along the row, -1 against it). With ``directed`` a row
    is one direction only.
    """
    names = _column_names(columns or {})
    report = BuildReport(f"{os.path.basename(edges_path)} + {os.path.basename(nodes_path)}")
    progress("reading nodes")
    nodes = _rows(os.fspath(nodes_path), names, _NEEDED_NODES)
    mark = _degrees_mark(nodes)
    places = dict(_nodes(os.fspath(nodes_path), nodes, mark))
    report.read["nodes"] = len(places)
    progress("reading edges")
    where = os.fspath(edges_path)
    edges = _rows(where, names, _NEEDED_EDGES)
    segments = list(_edges(where, edges, _metres_mark(edges, mark), places, directed, report))
    if not directed:
        _refuse_doubled(where, segments)
    segments = _at_least_straight(where, segments, places, report)
    return build_network(places, segments, report, box=box, simplify=simplify, progress=progress)


def read_depots(
    path: str | os.PathLike[str], network: RoadNetwork, limit_m: float = SNAP_LIMIT_M
) -> tuple[list[Depot], list[str]]:
    """Depots of a CSV with name, lon and lat that lie on the network, and why others do not."""
    where = os.fspath(path)
    names = _column_names({"name": _DEPOT_NAMES})
    depots: list[Depot] = []
    elsewhere: list[str] = []
    lines: dict[str, int] = {}  # by name
    rows = _rows(where, names, _DEGREES, one_column=("name",))  # numbers of two columns may meet
    mark = _degrees_mark(rows)
    for line, row in rows:
        name = row.get("name", "") or f"line {line}"
        if name in lines:
            raise InputError(
                f"{where} line {line}: depot {name} is in line {lines[name]} already; give each "
                "depot a name of its own"
            )
        lines[name] = line
        try:
            place = _number(where, line, "lon", row, mark), _number(where, line, "lat", row, mark)
            depots.append(Depot(name, network.snap(*place, limit_m).node))
        except OffNetworkError as error:
            elsewhere.append(f"depot {name}: {error}")
    return depots, elsewhere


def _column_names(given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    unknown = sorted(set(given) - set(COLUMNS))
    if unknown:
        raise InputError(f"column mapping: no field {unknown[0]!r}; fields: {', '.join(COLUMNS)}")
    return {field: tuple(given.get(field, names)) for field, names in COLUMNS.items()}


def _rows(
    where: str,
    names: Mapping[str, tuple[str, ...]],
    needed: Sequence[str],
    one_column: Sequence[str] = (),
) -> Rows:
    """The rows of a table; of a field in ``one_column`` the first column that is there counts."""
    rows = _whole(where, spreadsheets.read(where, spreadsheets.detect(where)))
    seen: list[str] = []
    for _ in range(_HEADER_ROWS):
        header = [cell.strip().lower() for cell in next(rows, (0, []))[1]]
        seen = seen or header
        if all(any(name.lower() in header for name in names[field]) for field in needed):
            break
    else:
        lost = next(f for f in needed if not any(n.lower() in seen for n in names[f]))
        raise InputError(
            f"{where}: no column for {lost!r} (looked for {', '.join(names[lost])}); "
            f"name it with --column {lost}=YOURS"
        )
    position = {cell: i for i, cell in reversed(list(enumerate(header)))}
    cells = {
        field: [position[n.lower()] for n in options if n.lower() in position][
            : 1 if field in one_column else None
        ]
        for field, options in names.items()
    }
    table: Rows = []
    for line, row in rows:
        found = {}
        for field, places in cells.items():
            value = next((row[i].strip() for i in places if i < len(row) and row[i].strip()), "")
            if value:
                found[field] = value
        if found:
            table.append((line, found))
    return table


def _whole(where: str, rows: Iterator[spreadsheets.Row]) -> Iterator[tuple[int, list[str]]]:
    for line, cells in rows:
        if isinstance(cells, str):
            raise FileFormatError(f"{where} line {line}: {cells}")
        yield line, cells


def _degrees_mark(rows: Rows) -> str:
    """The decimal mark of a table with places; degrees have no thousands."""
    return spreadsheets.decimal_mark(row.get(field, "") for _, row in rows for field in _DEGREES)


def _metres_mark(rows: Rows, otherwise: str) -> str:
    """The decimal mark of an edge list; what may be thousands says nothing of it."""
    cells = (row.get(field, "") for _, row in rows for field in ("length_m", "speed_kmh"))
    clear = (cell for cell in cells if not _THOUSANDS.fullmatch(cell))
    return spreadsheets.decimal_mark(clear, otherwise)


def _number(where: str, line: int, field: str, row: Mapping[str, str], mark: str) -> float:
    text = row.get(field, "")
    try:
        value = spreadsheets.number(text, mark)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        if _THOUSANDS.fullmatch(text):
            raise InputError(
                f"{where} line {line}: {field} is {text!r}, which may be thousands or decimals; "
                "write thousands without a mark, and decimals with one mark in both files"
            )
        raise InputError(f"{where} line {line}: {field} is {text!r}; a finite number is needed")
    return value


def _nodes(where: str, rows: Rows, mark: str) -> Iterator[tuple[str, Point]]:
    seen: set[str] = set()
    for line, row in rows:
        node = row.get("id", "")
        lon, lat = _number(where, line, "lon", row, mark), _number(where, line, "lat", row, mark)
        if not node or node in seen:
            problem = f"node {node} appears twice" if node else "id is missing"
            raise InputError(f"{where} line {line}: {problem}")
        if not (abs(lon) <= 180 and abs(lat) <= 90):
            raise InputError(
                f"{where} line {line}: longitude {lon}, latitude {lat} are not degrees on Earth"
            )
        seen.add(node)
        yield node, (lon, lat)


def _edges(
    where: str,
    rows: Rows,
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
            length = _number(where, line, "length_m", row, mark)
        else:
            report.assumed["segments with no length, measured along their points"] += 1
            ends = (places.get(tail, (np.nan, np.nan)), places.get(head, (np.nan, np.nan)))
            length = polyline_length_m(np.array(points or ends))
        code, known = class_code(tag or FALLBACK_CLASS)
        if not (tag and known):
            report.assumed[f"segments of class {tag or 'unknown'}, mapped to one of the 14"] += 1
        forward, backward = _directions(where, line, row.get("oneway", ""))
        if not forward and not directed:
            tail, head, points = head, tail, points[::-1] if points else None
        # a limit that the source itself filled in is not known
        limit = "" if _is_false(row.get("posted", "")) else row.get("speed_kmh", "")
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


def _is_false(text: str) -> bool:
    try:
        return float(text) == 0
    except ValueError:
        return text.lower() in _FALSE


def _directions(where: str, line: int, text: str) -> tuple[bool, bool]:
    word = text.lower()
    if word not in _TRUE | _FALSE | {"", "-1", "reverse"}:
        raise InputError(f"{where} line {line}: oneway is {text!r}; use yes, no or -1")
    return word not in {"-1", "reverse"}, word not in _TRUE


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
    if start is not None and _square(points[-1], start) < _square(points[0], start):
        points = points[::-1]
    return points


def _square(a: Point, b: Point) -> float:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


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
