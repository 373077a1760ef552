"""Which depot a record means: by name, id, call sign or place."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.readers.depot_table import depot_rows
from ideal_dispatch.records.agency import Depots
from ideal_dispatch.records.raw_records import FileOrFrame

UNKNOWN = -1
"""Index of a depot that a record does not name."""


@dataclass(frozen=True, slots=True, eq=False)
class DepotBook:
    """The agency's depots: names, places, and the node of each on the network (−1 off it).

    ``keys`` are all plain names, aliases among them, and the depot that each means.
    """

    names: tuple[str, ...]
    keys: Mapping[str, int]
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
        return self.keys.get(plain_name(name), UNKNOWN)

    def distances_m(self, lon: FloatArray, lat: FloatArray) -> FloatArray:
        """Straight-line metres, a row per depot and a column per place."""
        places = zip(self.lon, self.lat, strict=True)
        return np.array([great_circle_m(lon, lat, x, y) for x, y in places])


def plain_name(name: str) -> str:
    """A name as it is compared: lower case, without spaces, hyphens and dots."""
    return "".join(name.casefold().replace("-", " ").replace(".", " ").replace("_", " ").split())


def read_depot_book(table: FileOrFrame, network: RoadNetwork, settings: Depots) -> DepotBook:
    """The depots of a table with name, lon and lat, and any of id, code and call_sign."""
    where, rows = depot_rows(table, network, settings.limit_m)
    if not rows:
        raise InputError(f"{where}: no depots in it; columns name, lon and lat are needed")
    names: list[str] = []
    keys: dict[str, int] = {}
    for row in rows:
        labels = [label for label in (row.name, *row.aliases) if label]
        if not labels:
            raise InputError(f"{where} line {row.line}: the depot has no name")
        for label in labels:
            if keys.setdefault(plain_name(label), len(names)) != len(names):
                raise InputError(f"{where} line {row.line}: depot {label!r} appears twice")
        names.append(labels[0])
    off = [f"depot {name}: {r.problem}" for name, r in zip(names, rows, strict=True) if r.problem]
    if len(off) == len(rows):
        raise InputError(f"{where}: no depot lies on the network; the first: {off[0]}")
    for alias, name in settings.aliases.items():
        if plain_name(name) not in keys:
            raise InputError(f"depots.aliases: {alias} means {name!r}, which is not in {where}")
        keys[plain_name(alias)] = keys[plain_name(name)]
    for name in settings.only:
        if plain_name(name) not in keys:
            raise InputError(f"depots.only: {name!r} is not in {where}")
    lon, lat = np.array([(row.lon, row.lat) for row in rows]).T
    node = np.array([row.node for row in rows], np.int32)
    return DepotBook(tuple(names), keys, lon, lat, node, tuple(off))
