"""Which depot a record means: by name, id, call sign or place."""

import os
from dataclasses import dataclass

import numpy as np

from ideal_dispatch import spreadsheets
from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError, OffNetworkError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records.agency import Depots
from ideal_dispatch.records.raw_records import Source

_PLACES = {"lon": ("lon", "longitude", "lng", "x"), "lat": ("lat", "latitude", "y")}
_NAMES = ("name", "depot", "station", "id", "code", "short", "call_sign", "callsign", "alias")
UNKNOWN = -1
"""Index of a depot that a record does not name."""


@dataclass(frozen=True, slots=True, eq=False)
class DepotBook:
    """The agency's depots: names, places, and the node of each on the network (−1 off it)."""

    names: tuple[str, ...]
    keys: tuple[tuple[str, int], ...]
    lon: FloatArray
    lat: FloatArray
    node: IntArray
    off_network: tuple[str, ...] = ()

    @property
    def depots(self) -> list[Depot]:
        """Those that lie on the network."""
        both = zip(self.names, self.node.tolist(), strict=True)
        return [Depot(name, node) for name, node in both if node >= 0]

    def index(self, name: str) -> int:
        """The depot called ``name``, upper or lower case and spaces aside."""
        return dict(self.keys).get(plain_name(name), UNKNOWN)

    def distances_m(self, lon: FloatArray, lat: FloatArray) -> FloatArray:
        """Straight-line metres, a row per depot and a column per place."""
        places = zip(self.lon, self.lat, strict=True)
        return np.array([great_circle_m(lon, lat, x, y) for x, y in places])


def plain_name(name: str) -> str:
    """A name as it is compared: lower case, without spaces, hyphens and dots."""
    return "".join(name.casefold().replace("-", " ").replace(".", " ").replace("_", " ").split())


def read_depot_book(source: Source, network: RoadNetwork, settings: Depots) -> DepotBook:
    """The depots of a table with name, lon and lat, and any of id, code and call_sign."""
    where, mark, rows = _rows(source)
    names: list[str] = []
    keys: dict[str, int] = {}
    places: list[tuple[float, float]] = []
    nodes: list[int] = []
    off_network: list[str] = []
    for line, row in rows:
        labels = [row[column] for column in _NAMES if row.get(column)]
        if not labels:
            raise InputError(f"{where} line {line}: the depot has no name")
        place = _number(where, line, row, "lon", mark), _number(where, line, row, "lat", mark)
        for label in labels:
            if keys.setdefault(plain_name(label), len(names)) != len(names):
                raise InputError(f"{where} line {line}: depot {label!r} appears twice")
        try:
            nodes.append(network.snap(*place, settings.limit_m).node)
        except OffNetworkError as error:
            nodes.append(-1)
            off_network.append(f"depot {labels[0]}: {error}")
        except InputError as error:
            raise InputError(f"{where} line {line}: {error}") from None
        names.append(labels[0])
        places.append(place)
    if not names:
        raise InputError(f"{where}: no depots in it; columns name, lon and lat are needed")
    if max(nodes) < 0:
        raise InputError(f"{where}: no depot lies on the network; the first: {off_network[0]}")
    for alias, name in settings.aliases.items():
        if plain_name(name) not in keys:
            raise InputError(f"depots.aliases: {alias} means {name!r}, which is not in {where}")
        keys[plain_name(alias)] = keys[plain_name(name)]
    for name in settings.only:
        if plain_name(name) not in keys:
            raise InputError(f"depots.only: {name!r} is not in {where}")
    lon, lat = np.array(places).T
    node = np.array(nodes, np.int32)
    return DepotBook(tuple(names), tuple(keys.items()), lon, lat, node, tuple(off_network))


def _rows(source: Source) -> tuple[str, str, list[tuple[int, dict[str, str]]]]:
    """What to call the source, its decimal mark, and its rows by column."""
    if isinstance(source, (str, os.PathLike)):
        where = os.fspath(source)
        table = list(spreadsheets.read(where, spreadsheets.detect(where)))
    else:
        where, table = "depots", list(spreadsheets.frame_rows(source))
    rows = []
    header: list[str] = []
    for line, cells in table:
        if isinstance(cells, str):
            raise FileFormatError(f"{where} line {line}: {cells}")
        if header:
            rows.append((line, dict(zip(header, map(str.strip, cells), strict=False))))
        else:
            header = _header(where, cells)
    mark = spreadsheets.decimal_mark([row.get(name, "") for _, row in rows for name in _PLACES])
    return where, mark, rows


def _header(where: str, cells: list[str]) -> list[str]:
    header = ["_".join(cell.split()).lower() for cell in cells]
    for column, options in _PLACES.items():
        found = next((option for option in options if option in header), None)
        if found is None:
            raise InputError(f"{where}: no column {column}; name, lon and lat are needed")
        header[header.index(found)] = column
    return header


def _number(where: str, line: int, row: dict[str, str], column: str, mark: str) -> float:
    try:
        value = spreadsheets.number(row.get(column, ""), mark)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"{where} line {line}: {column} is {row.get(column)!r}, not a number")
    return value
