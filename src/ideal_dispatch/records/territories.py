"""An agency's own territories: the depot that each node of the network belongs to."""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import shape

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import chord_to_metres, unit_vectors
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.network.readers.depot_table import depot_rows
from ideal_dispatch.records.places import plain_name

CELL_LIMIT_M = 1000.0
"""How far a node may lie from the place of a table whose depot it takes."""

_PROPERTIES = ("depot", "station", "depot_name", "station_name", "name", "code", "id")
_POLYGONS = ("Polygon", "MultiPolygon")
_NOBODY = -1  # a node in no territory, or a depot that takes no part

Claim = tuple[str, str, npt.NDArray[np.intp]]
"""A part of a file, the depot that it names, and the nodes that are said to be its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Territories:
    """The number of every node's depot, and how many nodes were not clear.

    ``elsewhere`` nodes are in no territory of a depot that takes part: the nearest depot at
    free flow stands in. ``overlapping`` nodes are claimed by several: the first counts.
    """

    where: str
    region: IntArray
    elsewhere: int
    overlapping: int

    @property
    def words(self) -> str:
        """What was not clear, in one line; empty where all was."""
        whole = self.region.size
        parts = {
            "in no territory of a depot here (they take the nearest depot at free flow)": (
                self.elsewhere
            ),
            "in several territories (the first counts)": self.overlapping,
        }
        said = [f"{count:,} of {whole:,} nodes {what}" for what, count in parts.items() if count]
        return f"{self.where}: {', '.join(said)}" if said else ""


def read_territories(
    source: Any, network: RoadNetwork, depots: Sequence[Depot], table: Any = None
) -> Territories:
    """The territories of a file, or of a DataFrame.

    GeoJSON (.geojson, .json) has polygons in longitude and latitude with a property that
    names the depot: depot, station or name, for instance. A CSV or Excel table has a column
    depot, and node, or lon and lat: then a node takes the depot of the nearest place within
    :data:`CELL_LIMIT_M`. ``table`` is that of all depots: other names that it gives
    them are understood, and those among them that take no part have no territory.
    """
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    if name.lower().endswith((".geojson", ".json")):
        where, claims = _polygons(name, network)
    else:
        where, claims = _rows(source, network)
    known = _known(network, depots, table)
    region = np.full(network.num_nodes, _NOBODY, np.int32)
    claimed, twice = np.zeros((2, network.num_nodes), bool)
    for what, depot, nodes in claims:
        station = known.get(plain_name(depot))
        if station is None:
            names = [one.name for one in depots]
            near = get_close_matches(depot, names, 1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise InputError(f"{where}, {what}: depot {depot[:40]!r}: no such depot; {advice}")
        taken = claimed[nodes]
        twice[nodes[taken & (region[nodes] != station)]] = True
        region[nodes[~taken]] = station
        claimed[nodes] = True
    if not claimed.any():
        raise InputError(
            f"{where}: no node of the network lies in any territory; longitude and latitude in "
            "degrees, or the network's own node numbers, are needed"
        )
    elsewhere = region == _NOBODY
    times = network.free_flow_times_s
    nearest = np.argmin([network.distances(times, depot) for depot in depots], axis=0)
    region[elsewhere] = nearest[elsewhere]
    return Territories(where, region, int(elsewhere.sum()), int(twice.sum()))


def region_of(
    source: Any, network: RoadNetwork, depots: Sequence[Depot], table: Any = None
) -> IntArray:
    """The same with a warning about what is not clear: the number of every node's depot."""
    found = read_territories(source, network, depots, table)
    if found.words:
        warnings.warn(found.words, stacklevel=3)
    return found.region


def _known(network: RoadNetwork, depots: Sequence[Depot], table: Any) -> dict[str, int]:
    """The depot of every name by which one may be called."""
    numbers = {depot.name: number for number, depot in enumerate(depots)}
    known = {plain_name(name): number for name, number in numbers.items()}
    for row in [] if table is None else depot_rows(table, network)[1]:
        for label in (row.name, *row.aliases):
            known.setdefault(plain_name(label), numbers.get(row.name, _NOBODY))
    return known


def _polygons(where: str, network: RoadNetwork) -> tuple[str, list[Claim]]:
    """The polygons of a GeoJSON file, and the nodes in each."""
    check_source(where)
    try:
        with open(where, encoding="utf-8-sig") as file:
            said = json.load(file)
        features = said["features"] if said.get("type") == "FeatureCollection" else [said]
        told = [(one.get("properties") or {}, one.get("geometry") or {}) for one in features]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(
            f"{where}: not GeoJSON with features ({type(error).__name__}: {error})"
        ) from None
    column = next((name for name in _PROPERTIES if any(name in one for one, _ in told)), "")
    if not column:
        raise InputError(
            f"{where}: no property names the depot of a territory (looked for "
            f"{', '.join(_PROPERTIES)}); add depot"
        )
    claims = []
    for number, (properties, geometry) in enumerate(told, 1):
        what, depot = f"feature {number}", properties.get(column)
        if depot in (None, "") or geometry.get("type") not in _POLYGONS:
            kind = geometry.get("type", "no geometry")
            problem = f"no {column}" if depot in (None, "") else f"{kind}, not a polygon"
            raise InputError(f"{where}, {what}: {problem}; each territory is a polygon of a depot")
        claims.append((what, str(depot), _inside(geometry, network, f"{where}, {what}")))
    return where, claims


def _inside(geometry: Mapping[str, Any], network: RoadNetwork, where: str) -> npt.NDArray[np.intp]:
    """The nodes that lie in a polygon or on its edge."""
    try:
        area = shapely.make_valid(shape(geometry))  # drawn by hand, some cross themselves
    except (ValueError, TypeError, IndexError, KeyError, shapely.errors.ShapelyError) as error:
        raise FileFormatError(f"{where}: its coordinates are not a polygon ({error})") from None
    shapely.prepare(area)
    return np.flatnonzero(shapely.intersects_xy(area, network.lon, network.lat))


def _rows(source: Any, network: RoadNetwork) -> tuple[str, list[Claim]]:
    """The rows of a table, and the nodes of each."""
    names = {**table_rows.DEGREES, "node": ("node",), "depot": ("depot", "station", "territory")}
    advice = "depot, and node or lon and lat are needed"
    where, rows = table_rows.read(source, names, ("depot",), advice)
    rows = [(line, row) for line, row in rows if "depot" in row]  # blank: nobody's
    if all("node" in row for _, row in rows):
        return where, [
            (f"line {line}", row["depot"], np.array([_node(where, line, row, network)]))
            for line, row in rows
        ]
    mark = table_rows.degrees_mark(rows)
    lon, lat = (
        np.array([table_rows.number(where, line, field, row, mark) for line, row in rows])
        for field in table_rows.DEGREES
    )
    from scipy.spatial import KDTree  # slow to import

    chord, nearest = KDTree(unit_vectors(lon, lat)).query(unit_vectors(network.lon, network.lat))
    near = chord_to_metres(np.asarray(chord)) <= CELL_LIMIT_M
    by_row = np.argsort(np.where(near, nearest, len(rows)), kind="stable")
    counts = np.bincount(np.asarray(nearest)[near], minlength=len(rows))
    nodes = np.split(by_row, np.cumsum(counts))
    return where, [
        (f"line {line}", row["depot"], own)
        for (line, row), own in zip(rows, nodes[:-1], strict=True)
    ]


def _node(where: str, line: int, row: Mapping[str, str], network: RoadNetwork) -> int:
    told = row["node"].removesuffix(".0")  # as spreadsheets write whole numbers
    if not told.isdecimal() or int(told) >= network.num_nodes:
        last = network.num_nodes - 1
        raise InputError(f"{where} line {line}: {told[:20]!r} is not a node (0 … {last})")
    return int(told)
