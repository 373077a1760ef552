"""An agency's own territories: the depot that each node of the network belongs to."""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import shape

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.depot import no_such_depot
from ideal_dispatch.network.geodesy import chord_to_metres, unit_vectors
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.network.readers.depot_table import depot_rows
from ideal_dispatch.records.places import plain_name

CELL_LIMIT_M = 1000.0
"""How far a node may lie from the place of a table whose depot it takes."""

_PROPERTIES = ("depot", "station", "depot_name", "station_name", "name", "code", "id")
_NONE = -1  # a node in no territory, or a depot that takes no part

Claim = tuple[str, str, npt.NDArray[np.intp]]
"""A part of a file, the depot that it names, and the nodes that it gives to it."""


def region_of(
    source: Any, network: RoadNetwork, depots: Sequence[Depot], table: Any = None
) -> IntArray:
    """The number of every node's depot, by the territories of a file or of a DataFrame.

    GeoJSON (.geojson, .json) has polygons in longitude and latitude with a property that
    names the depot: depot, station or name, for instance. A CSV or Excel table has a column
    depot, and node, or lon and lat: then a node takes the depot of the nearest place within
    :data:`CELL_LIMIT_M`. ``table`` is that of all depots: other names that it gives
    them are understood, and those among them that take no part have no territory.

    A node in no territory takes the nearest depot at free flow, one in several the first of
    these; a warning counts them.
    """
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    polygons = name.lower().endswith((".geojson", ".json"))
    where, claims = (name, _polygons(name, network)) if polygons else _rows(source, network)
    numbers = {depot.name: number for number, depot in enumerate(depots)}
    known = {plain_name(name): number for name, number in numbers.items()}
    for row in [] if table is None else depot_rows(table, network)[1]:
        for label in (row.name, *row.aliases):
            known.setdefault(plain_name(label), numbers.get(row.name, _NONE))
    region = np.full(network.num_nodes, _NONE, np.int32)
    claimed, twice = np.zeros((2, network.num_nodes), bool)
    for what, depot, nodes in claims:
        station = known.get(plain_name(depot))
        if station is None:
            raise InputError(f"{where}, {what}: {no_such_depot(depot, numbers)}")
        taken = claimed[nodes]
        twice[nodes[taken & (region[nodes] != station)]] = True
        region[nodes[~taken]] = station
        claimed[nodes] = True
    if not claimed.any():
        raise InputError(
            f"{where}: no node of the network lies in any territory; longitude and latitude in "
            "degrees, or the network's own node numbers, are needed"
        )
    elsewhere = region == _NONE
    times = network.free_flow_times_s
    nearest = np.argmin([network.distances(times, depot) for depot in depots], axis=0)
    region[elsewhere] = nearest[elsewhere]
    for count, said in (
        (elsewhere.sum(), "in no territory of a depot here; they take the nearest at free flow"),
        (twice.sum(), "in several territories; the first counts"),
    ):
        if count:
            words = f"{where}: {count:,} of {network.num_nodes:,} nodes are {said}"
            warnings.warn(words, stacklevel=2)
    return region


def _polygons(where: str, network: RoadNetwork) -> Iterator[Claim]:
    """The polygons of a GeoJSON file, and the nodes in each or on its edge."""
    check_source(where)
    try:
        with open(where, encoding="utf-8-sig") as file:
            said = json.load(file)
        features = said["features"] if said.get("type") == "FeatureCollection" else [said]
        parts = [(one.get("properties") or {}, one.get("geometry") or {}) for one in features]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(
            f"{where}: not GeoJSON with features ({type(error).__name__}: {error})"
        ) from None
    column = next((name for name in _PROPERTIES if any(name in one for one, _ in parts)), "")
    if not column:
        raise InputError(
            f"{where}: no property names the depot of a territory (looked for "
            f"{', '.join(_PROPERTIES)}); add depot"
        )
    for number, (properties, geometry) in enumerate(parts, 1):
        what, depot = f"feature {number}", properties.get(column)
        kind = geometry.get("type", "no geometry")
        if depot in (None, "") or kind not in ("Polygon", "MultiPolygon"):
            problem = f"no {column}" if depot in (None, "") else f"{kind}, not a polygon"
            raise InputError(f"{where}, {what}: {problem}; each territory is a polygon of a depot")
        try:
            area = shapely.make_valid(shape(geometry))  # drawn by hand, some cross themselves
        except (ValueError, TypeError, IndexError, KeyError, shapely.errors.ShapelyError) as error:
            raise FileFormatError(
                f"{where}, {what}: its coordinates are not a polygon ({error})"
            ) from None
        shapely.prepare(area)
        yield (
            what,
            str(depot),
            np.flatnonzero(shapely.intersects_xy(area, network.lon, network.lat)),
        )


def _rows(source: Any, network: RoadNetwork) -> tuple[str, list[Claim]]:
    """What to call a table, its rows, and the nodes of each."""
    names = {**table_rows.DEGREES, "node": ("node",), "depot": ("depot", "station", "territory")}
    advice = "depot, and node or lon and lat are needed"
    where, rows = table_rows.read(source, names, ("depot",), advice)
    rows = [(line, row) for line, row in rows if "depot" in row]
    if all("node" in row for _, row in rows):
        nodes = [row["node"].removesuffix(".0") for _, row in rows]  # as spreadsheets write them
        last = network.num_nodes - 1
        for (line, _), node in zip(rows, nodes, strict=True):
            if not node.isdecimal() or int(node) > last:
                raise InputError(f"{where} line {line}: {node[:20]!r} is not a node (0 … {last})")
        own = [np.array([int(node)]) for node in nodes]
    else:
        mark = table_rows.degrees_mark(rows)
        lon, lat = (
            np.array([table_rows.number(where, line, field, row, mark) for line, row in rows])
            for field in table_rows.DEGREES
        )
        from scipy.spatial import KDTree  # slow to import

        chord, nearest = KDTree(unit_vectors(lon, lat)).query(
            unit_vectors(network.lon, network.lat)
        )
        near = chord_to_metres(np.asarray(chord)) <= CELL_LIMIT_M
        own = [np.flatnonzero(near & (nearest == number)) for number in range(len(rows))]
    return where, [
        (f"line {line}", row["depot"], nodes) for (line, row), nodes in zip(rows, own, strict=True)
    ]
