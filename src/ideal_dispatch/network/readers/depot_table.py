"""The table of an agency's depots: names, places, and the nodes they stand at."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, OffNetworkError
from ideal_dispatch.network import SNAP_LIMIT_M
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.geodesy import check_degrees
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.network.road_network import RoadNetwork
from ideal_dispatch.toml_tables import complaints_about

_NAMES = (
    "name", "depot", "station", "id", "code", "short", "call_sign", "callsign", "alias",
    "station #", "index",
)  # fmt: skip
_ON_ROAD, _YES, _NO = "on_road", {"yes", "true", "1"}, {"no", "false", "0", ""}
_KIND = "kind"
_NUMBERS = ("station #", "index")  # of a row: no name that a record would use
_GRID = {"easting": ("easting", "x"), "northing": ("northing", "y")}

ToDegrees = Callable[[FloatArray, FloatArray], tuple[Any, Any]]
"""Longitudes and latitudes of eastings and northings."""


class DepotRow(NamedTuple):
    """A row of the table.

    ``name`` is of the first column that holds names, "" where the row has none there;
    ``aliases`` are what the other columns call the depot. ``node`` is −1 off the network, and
    ``problem`` says why; without a network it is −1 without a problem. A unit that is
    ``on_road`` has its row, like a depot. ``kind`` is that of the units there.
    """

    line: int
    name: str
    aliases: tuple[str, ...]
    lon: float
    lat: float
    node: int
    problem: str
    on_road: bool
    kind: str


def depot_rows(
    source: Any,
    network: RoadNetwork | None,
    limit_m: float = SNAP_LIMIT_M,
    to_degrees: ToDegrees | None = None,
) -> tuple[str, list[DepotRow]]:
    """What to call the source, a file or a DataFrame, and its depots.

    With ``to_degrees`` a table without degrees may have easting and northing.
    """
    named = {name: (name,) for name in (*_NAMES, _ON_ROAD, _KIND)}
    fields = table_rows.DEGREES
    try:
        where, rows = table_rows.read(
            source, {**fields, **named}, tuple(fields), "name, lon and lat are needed"
        )
    except InputError:
        if to_degrees is None:
            raise
        fields = _GRID
        where, rows = table_rows.read(
            source, {**fields, **named}, tuple(fields), "name and easting and northing are needed"
        )
    mark = table_rows.degrees_mark(rows)
    # numbers of two columns may meet: the names of all depots are of one
    column = next((name for name in _NAMES if any(name in row for _, row in rows)), "name")
    found = []
    for line, row in rows:
        lon, lat = (table_rows.number(where, line, field, row, mark) for field in fields)
        if to_degrees is not None and fields is _GRID:
            lon, lat = (float(place[0]) for place in to_degrees(np.array([lon]), np.array([lat])))
        node, problem = -1, ""
        with complaints_about(f"{where} line {line}"):
            try:
                if network is None:
                    check_degrees(lon, lat)
                else:
                    node = network.snap(lon, lat, limit_m).node
            except OffNetworkError as error:
                problem = str(error)
        others = tuple(row[n] for n in _NAMES if n in row and n not in (column, *_NUMBERS))
        said = row.get(_ON_ROAD, "").strip().casefold()
        if said not in _YES | _NO:
            raise InputError(f"{where} line {line}: {_ON_ROAD} {said!r}; write yes or no")
        own = row.get(column, ""), others, lon, lat, node, problem
        found.append(DepotRow(line, *own, said in _YES, row.get(_KIND, "")))
    return where, found


def read_depots(
    path: str | os.PathLike[str], network: RoadNetwork, limit_m: float = SNAP_LIMIT_M
) -> tuple[list[Depot], list[str]]:
    """Depots of a table with name, lon and lat that lie on the network, and why others do not."""
    where, rows = depot_rows(path, network, limit_m)
    depots: list[Depot] = []
    elsewhere: list[str] = []
    lines: dict[str, int] = {}  # by name
    for row in rows:
        name = row.name or f"line {row.line}"
        if name in lines:
            raise InputError(
                f"{where} line {row.line}: depot {name} is in line {lines[name]} already; give "
                "each depot another name"
            )
        lines[name] = row.line
        if row.node < 0:
            elsewhere.append(f"depot {name}: {row.problem}")
        else:
            depots.append(Depot(name, row.node, row.on_road, row.kind))
    return depots, elsewhere
