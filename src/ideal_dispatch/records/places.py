"""Where rows start and end: depots by name or place, and the nodes nearest to places."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.network.readers.depot_table import ToDegrees, depot_rows
from ideal_dispatch.records.agency import Depots
from ideal_dispatch.records.raw_records import FileOrFrame
from ideal_dispatch.records.schema import Table

UNKNOWN = -1
"""Index of a depot that a row does not name."""
_QUOTED = 40  # characters of a depot's name in a reason


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

    def starts(
        self, names: Sequence[str], lon: FloatArray, lat: FloatArray, limit_m: float
    ) -> tuple[IntArray, BoolArray]:
        """The depot of each row, by name or by where the unit was, and the units that were away.

        A unit whose place is known is away unless that lies within ``limit_m`` of its depot, or
        of the nearest one where it names none.
        """
        depot = np.array([self.index(name) for name in names], np.int32)
        away, rows = ~np.isnan(lon + lat), _on_earth(lon, lat)
        x, y = lon[rows], lat[rows]
        nearest, least_m = np.zeros(rows.size, np.int32), np.full(rows.size, np.inf)
        for number in range(len(self.names)):
            far_m = great_circle_m(x, y, self.lon[number], self.lat[number])
            nearest[far_m < least_m] = number
            least_m = np.minimum(least_m, far_m)
        own = np.where(depot[rows] == UNKNOWN, nearest, depot[rows])
        there = great_circle_m(x, y, self.lon[own], self.lat[own]) <= limit_m
        depot[rows[there]] = own[there]
        away[rows[there]] = False
        return depot, away


def plain_name(name: str) -> str:
    """The form in which names are compared: lower case, without spaces, hyphens and dots."""
    return "".join(name.casefold().replace("-", " ").replace(".", " ").replace("_", " ").split())


def read_depot_book(
    table: FileOrFrame,
    network: RoadNetwork | None,
    settings: Depots,
    to_degrees: ToDegrees | None = None,
) -> DepotBook:
    """The depots of a table with name, lon and lat, and any of id, code and call_sign.

    Without a network they have places and no nodes; ``to_degrees`` reads places on a grid.
    """
    where, rows = depot_rows(table, network, settings.limit_m, to_degrees)
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


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Per row: the depot (an index, −1 unknown), both end nodes, and the way between.

    ``distance_m`` is along the shortest way and ``free_flow_s`` along the fastest, NaN where an end
    is not known. ``away`` marks units that started on the road: their ``origin`` is the node
    nearest to their own position, not that of a depot.
    """

    depot: IntArray
    origin: IntArray
    node: IntArray
    distance_m: FloatArray
    free_flow_s: FloatArray
    away: BoolArray


def place(
    table: Table, network: RoadNetwork, book: DepotBook, depot_limit_m: float, limit_m: float
) -> Places:
    """Both ends of every record; those without one have a reason."""
    reasons, numbers, names = table.reasons, table.numbers, table.texts["depot"]
    lon, lat = numbers["depot_lon"], numbers["depot_lat"]
    depot, away = book.starts(names, lon, lat, depot_limit_m)
    for row in np.flatnonzero((depot == UNKNOWN) & ~away).tolist():
        if names[row]:
            name = names[row][:_QUOTED]
            text = f"depot {name!r} is not in the depots file; add it, or name it in depots.aliases"
            reasons[row].append(text)
    node, why = snapped(numbers["lon"], numbers["lat"], network, limit_m)
    started, why_not = snapped(np.where(away, lon, np.nan), lat, network, limit_m)
    for row, text in (*why.items(), *((r, f"where it started, {t}") for r, t in why_not.items())):
        reasons[row].append(text)
    at_depot = np.where(depot == UNKNOWN, -1, book.node[depot])
    origin = np.where(away, started, at_depot).astype(np.int32)
    distance_m, free_flow_s = np.full((2, len(table)), np.nan)
    for start in np.unique(origin[(origin >= 0) & (node >= 0)]).tolist():
        rows = np.flatnonzero((origin == start) & (node >= 0))
        distance_m[rows] = network.distances(network.length_m, start)[node[rows]]
        free_flow_s[rows] = network.distances(network.free_flow_times_s, start)[node[rows]]
    for start_is, of in (("where it started", away), ("its depot", ~away)):
        reasons.add(np.isinf(distance_m) & of, f"cannot be reached by road from {start_is}")
    return Places(depot, origin, node, distance_m, free_flow_s, away)


def snapped(
    lon: FloatArray, lat: FloatArray, network: RoadNetwork, limit_m: float
) -> tuple[IntArray, dict[int, str]]:
    """The nearest node of every place, −1 where none is within the limit, and why.

    Reasons hold no coordinates; places that are not on Earth have no reason.
    """
    node, why = np.full(lon.size, -1, np.int32), dict[int, str]()
    rows = _on_earth(lon, lat)
    if rows.size:
        nearest, far_m = network.snapper.nodes(lon[rows], lat[rows])
        near = far_m <= limit_m
        node[rows[near]] = nearest[near]
        for i in np.flatnonzero(~near).tolist():
            row = int(rows[i])
            why[row] = network.snapper.why_off(lon[row], lat[row], far_m[i], limit_m)
    return node, why


def junctions(lon: FloatArray, lat: FloatArray, network: RoadNetwork, limit_m: float) -> IntArray:
    """The nearest junction of places within ``limit_m`` of a road, −1 of all others.

    A place beside a long road may be as far again from the junction, and no farther.
    """
    node, rows = np.full(lon.size, -1, np.int32), _on_earth(lon, lat)
    if rows.size:
        snapper = network.snapper
        nearest, far_m = snapper.nodes(lon[rows], lat[rows])
        rows, nearest = rows[far_m <= 2 * limit_m], nearest[far_m <= 2 * limit_m]
        points = snapper.plane.to_metres(np.column_stack([lon[rows], lat[rows]]))
        beside = np.unique(snapper.edges_within(points, limit_m)[0])
        node[rows[beside]] = nearest[beside]
    return node


def _on_earth(lon: FloatArray, lat: FloatArray) -> npt.NDArray[np.intp]:
    return np.flatnonzero((np.abs(lon) <= 180) & (np.abs(lat) <= 90))  # False on NaN
