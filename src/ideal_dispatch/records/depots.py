"""Which depot a record means: by name, id, call sign or place."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import FileFormatError, InputError, OffNetworkError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records.settings import Depots

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


def read_depot_book(
    path: str | os.PathLike[str], network: RoadNetwork, settings: Depots
) -> DepotBook:
    """The depots of a CSV with name, lon and lat, and any of id, code and call_sign."""
    where = os.fspath(path)
    names: list[str] = []
    keys: dict[str, int] = {}
    places: list[tuple[float, float]] = []
    nodes: list[int] = []
    off_network: list[str] = []
    for line, row in _rows(where):
        labels = [row[column] for column in _NAMES if row.get(column)]
        if not labels:
            raise InputError(f"{where} line {line}: the depot has no name")
        place = _number(where, line, row, "lon"), _number(where, line, row, "lat")
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


def _rows(where: str) -> Sequence[tuple[int, dict[str, str]]]:
    check_source(where)
    try:
        with open(where, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = ["_".join(cell.split()).lower() for cell in next(reader, [])]
            for column, options in _PLACES.items():
                found = next((option for option in options if option in header), None)
                if found is None:
                    raise InputError(f"{where}: no column {column}; name, lon and lat are needed")
                header[header.index(found)] = column
            return [
                (reader.line_num, dict(zip(header, map(str.strip, row), strict=False)))
                for row in reader
                if any(map(str.strip, row))
            ]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileFormatError(f"{where}: not a whole UTF-8 CSV file ({error})") from None


def _number(where: str, line: int, row: dict[str, str], column: str) -> float:
    try:
        value = float(row.get(column, ""))
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"{where} line {line}: {column} is {row.get(column)!r}, not a number")
    return value
