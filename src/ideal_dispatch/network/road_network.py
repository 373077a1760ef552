"""The road network: a directed multigraph in read-only arrays."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    first_where,
    numbers,
    read_only,
    whole_number,
)
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.network import SNAP_LIMIT_M, routing
from ideal_dispatch.network.road_class import FALLBACK_CLASS, ROAD_CLASSES
from ideal_dispatch.network.shortest_path import Adjacency
from ideal_dispatch.network.turns import Turn, TurnGraph, turn_column

if TYPE_CHECKING:
    from ideal_dispatch.network.snapping import NodeSnap, Snapper

DEFAULT_SPEED_KMH = 50.0
"""Speed limit where none is posted ([IDEAL] table of edge features)."""

FILE = ArchiveKind(
    "ideal-dispatch network", 1, "network file", "make one with `ideal network build`"
)

_COLUMNS: Mapping[str, tuple[npt.DTypeLike, str]] = MappingProxyType(
    {
        "lon": (np.float64, "node"),
        "lat": (np.float64, "node"),
        "tail": (np.int32, "edge"),
        "head": (np.int32, "edge"),
        "length_m": (np.float64, "edge"),
        "speed_kmh": (np.float64, "edge"),
        "lanes": (np.float64, "edge"),
        "oneway": (np.bool_, "edge"),
        "road_class": (np.uint8, "edge"),
        "geometry": (np.float64, "point"),
        "geometry_start": (np.int64, "offset"),
    }
)
"""The numeric columns in the order of the file: type, and what there is one value for."""

_NODES_PER_EDGE = 1000  # more, by the largest end alone, is a mistake
_PLAIN_INTEGER = re.compile("0|-?[1-9][0-9]*")
_TURN_EDGES, _TURN_SIZES = "forbidden_turn_edges", "forbidden_turn_sizes"  # only where there are


@dataclass(frozen=True, eq=False, repr=False)
class RoadNetwork:
    """Junctions and directed road segments of a city ([IDEAL] 𝒢 = (𝒱, ℰ)).

    Arrays are read-only. Nodes and edges are numbered from 0; parallel edges
    and loops are allowed. Unknown speeds and lanes are NaN: they are filled by
    stated rules in :attr:`free_flow_times_s` and in the edge features, never
    in here. ``geometry`` holds the polylines of all edges in a row, edge i at
    ``geometry_start[i]:geometry_start[i+1]``; an empty stretch is a straight line.
    ``forbidden_turns`` are sequences of edges that no shortest path drives. ``closed`` are
    edges that no path drives for now (:meth:`closing`); they are part of no file.
    """

    node_ids: npt.NDArray[np.int64] | npt.NDArray[np.str_]
    lon: FloatArray
    lat: FloatArray
    tail: IntArray
    head: IntArray
    length_m: FloatArray
    speed_kmh: FloatArray
    lanes: FloatArray
    oneway: BoolArray
    road_class: npt.NDArray[np.uint8]
    name: tuple[str, ...]
    geometry: FloatArray
    geometry_start: npt.NDArray[np.int64]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    forbidden_turns: tuple[Turn, ...] = ()
    closed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        ids = _id_column(self.node_ids)
        nodes, edges = ids.size, numbers(self.tail, np.int32, "tail").size
        object.__setattr__(self, "node_ids", ids)
        shapes = {"node": (nodes,), "edge": (edges,), "point": (None, 2), "offset": (edges + 1,)}
        for column, (dtype, of) in _COLUMNS.items():
            array = read_only(getattr(self, column), dtype, shapes[of], column)
            object.__setattr__(self, column, array)
        names = () if isinstance(self.name, str) else tuple(self.name)
        if len(names) != edges or not {*map(type, names)} <= {str}:
            raise InputError(f"name: a list of {edges} texts is needed, one per edge")
        object.__setattr__(self, "name", names)
        try:  # in the types of JSON, in which it is stored
            plain = json.loads(json.dumps(dict(self.provenance), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"provenance: not JSON ({error})") from None
        object.__setattr__(self, "provenance", MappingProxyType(plain))
        self._validate(nodes, edges)
        turns = turn_column(self.forbidden_turns, self.tail, self.head)
        object.__setattr__(self, "forbidden_turns", turns)
        object.__setattr__(self, "closed", edge_column(self.closed, edges, "closed"))

    def _validate(self, nodes: int, edges: int) -> None:
        if not nodes:
            raise InputError("a road network needs at least one node")
        if np.unique(self.node_ids).size != nodes:
            raise InputError("node_ids: every id must appear once")
        known = ~np.isnan(self.lon) | ~np.isnan(self.lat)
        outside = known & ~((np.abs(self.lon) <= 180) & (np.abs(self.lat) <= 90))
        steps = np.diff(self.geometry_start)
        whole = self.geometry_start[0] == 0 and self.geometry_start[-1] == len(self.geometry)
        for what, bad in (
            ("node {}: longitude and latitude must be degrees", outside),
            ("edge {}: tail is not a node", (self.tail < 0) | (self.tail >= nodes)),
            ("edge {}: head is not a node", (self.head < 0) | (self.head >= nodes)),
            ("edge {}: length must be a positive number of metres",
             ~(np.isfinite(self.length_m) & (self.length_m > 0))),
            ("edge {}: speed must be positive, or NaN where unknown",
             (self.speed_kmh <= 0) | np.isinf(self.speed_kmh)),
            ("edge {}: lanes must be positive, or NaN where unknown",
             (self.lanes <= 0) | np.isinf(self.lanes)),
            ("edge {}: road class code must be below 14", self.road_class >= len(ROAD_CLASSES)),
            ("edge {}: geometry needs two points or none", (steps < 0) | (steps == 1)),
            ("edge {}: geometry does not fit its offsets", np.full(edges, not whole)),
        ):  # fmt: skip
            index = first_where(bad)
            if index is not None:
                raise InputError(what.format(index))
        if not np.isfinite(self.geometry).all():
            raise InputError("geometry: coordinates must be finite")

    @classmethod
    def from_arrays(
        cls,
        tail: npt.ArrayLike,
        head: npt.ArrayLike,
        length_m: npt.ArrayLike,
        lon: npt.ArrayLike | None = None,
        lat: npt.ArrayLike | None = None,
        *,
        num_nodes: int | None = None,
        node_ids: npt.ArrayLike | None = None,
        speed_kmh: npt.ArrayLike | None = None,
        lanes: npt.ArrayLike | None = None,
        oneway: npt.ArrayLike | None = None,
        road_class: Sequence[str] | npt.ArrayLike | None = None,
        name: Sequence[str] | None = None,
        geometry: Sequence[npt.ArrayLike | None] | None = None,
        provenance: Mapping[str, Any] | None = None,
        forbidden_turns: Sequence[Sequence[int]] = (),
    ) -> "RoadNetwork":
        """A network of exactly these edges: edge i stays edge i.

        Nodes are ``0 … n−1`` with n from ``num_nodes``, the coordinates or the
        largest end. Left out: speed and lanes are unknown, streets are two-way
        by name (no reverse edge is added), the class is "unclassified".
        """
        tails: IntArray = numbers(tail, np.int32, "tail")
        heads: IntArray = numbers(head, np.int32, "head")
        edges = tails.size
        if (lon is None) != (lat is None):
            raise InputError("give both lon and lat, or neither")
        if num_nodes is not None:
            if not 0 <= whole_number(num_nodes, "num_nodes") <= np.iinfo(np.int32).max:
                raise InputError(f"num_nodes {num_nodes}: zero or more that fit int32 are needed")
        elif lon is not None:
            num_nodes = numbers(lon, np.float64, "lon").size
        elif node_ids is not None:
            num_nodes = _id_column(node_ids).size
        else:
            largest = int(max(tails.max(), heads.max(initial=-1))) if edges else -1
            if largest >= _NODES_PER_EDGE * max(edges, _NODES_PER_EDGE):
                raise InputError(
                    f"an edge ends at node {largest}, far more than {edges} edges need; "
                    "number nodes from 0, or give num_nodes"
                )
            num_nodes = largest + 1
        unknown_place, unknown = np.full(num_nodes, np.nan), np.full(edges, np.nan)
        points, starts = _geometry_columns(geometry, edges)
        return cls(
            node_ids=np.arange(num_nodes) if node_ids is None else node_ids,  # type: ignore[arg-type]
            lon=unknown_place if lon is None else lon,  # type: ignore[arg-type]
            lat=unknown_place if lat is None else lat,  # type: ignore[arg-type]
            tail=tails,
            head=heads,
            length_m=length_m,  # type: ignore[arg-type]
            speed_kmh=unknown if speed_kmh is None else speed_kmh,  # type: ignore[arg-type]
            lanes=unknown if lanes is None else lanes,  # type: ignore[arg-type]
            oneway=np.zeros(edges, bool) if oneway is None else oneway,  # type: ignore[arg-type]
            road_class=_class_column(road_class, edges),
            name=("",) * edges if name is None else name,  # type: ignore[arg-type]
            geometry=points,
            geometry_start=starts,
            provenance=provenance or {},
            forbidden_turns=forbidden_turns,  # type: ignore[arg-type]
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "RoadNetwork":
        """Read a file written by :meth:`save` or ``ideal network build``."""
        with FILE.reading(path) as (manifest, arrays):
            names = dict(enumerate(manifest["names"]))  # no index counts from the end
            ends = np.cumsum(arrays.get(_TURN_SIZES, ()))
            turns = np.split(arrays[_TURN_EDGES], ends[:-1]) if ends.size else ()
            network = cls(
                **{column: arrays[column] for column in ("node_ids", *_COLUMNS)},
                name=tuple(names[i] for i in arrays["name"].tolist()),
                provenance=manifest["provenance"],
                forbidden_turns=tuple(tuple(turn.tolist()) for turn in turns),
            )
            if network.checksum != manifest["checksum"]:
                raise FileFormatError(f"contents do not match the checksum; {FILE.advice}")
            return network

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal network, with all roads open."""
        names = sorted(set(self.name))
        manifest = {
            "checksum": self.checksum,
            "names": names,
            "provenance": dict(self.provenance),
        }
        position = {name: i for i, name in enumerate(names)}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("node_ids", *_COLUMNS)}
        arrays["name"] = np.array([position[name] for name in self.name], np.int32)
        arrays |= self._turn_arrays()
        FILE.write(path, manifest, arrays)

    # --- what it is -------------------------------------------------------------

    @property
    def num_nodes(self) -> int:
        return int(self.node_ids.size)

    @property
    def num_edges(self) -> int:
        return int(self.tail.size)

    @cached_property
    def checksum(self) -> str:
        """Hash of what a model depends on: topology, places, lengths and attributes.

        Node ids, names, geometry and provenance do not enter: a model gives
        the same times with or without them. Forbidden turns enter where there are any; what
        is closed does not.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(np.array([self.num_nodes, self.num_edges], "<i8").tobytes())
        for column in ("lon", "lat", "length_m", "speed_kmh", "lanes"):
            values = getattr(self, column) + 0.0  # -0.0 becomes 0.0
            digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())
        for column in ("tail", "head"):
            digest.update(getattr(self, column).astype("<i4").tobytes())
        for column in ("oneway", "road_class"):
            digest.update(getattr(self, column).astype("u1").tobytes())
        for values in self._turn_arrays().values():
            digest.update(values.astype("<i4").tobytes())
        return digest.hexdigest()

    def _turn_arrays(self) -> dict[str, IntArray]:
        """The forbidden turns for the file: all edges in a row, and how many each has."""
        if not self.forbidden_turns:
            return {}
        edges = np.concatenate(self.forbidden_turns).astype(np.int32)
        sizes = np.array([len(turn) for turn in self.forbidden_turns], np.int32)
        return {_TURN_EDGES: edges, _TURN_SIZES: sizes}

    @cached_property
    def free_flow_times_s(self) -> FloatArray:
        """Seconds per edge at the speed limit, :data:`DEFAULT_SPEED_KMH` where unknown."""
        speed = np.where(np.isnan(self.speed_kmh), DEFAULT_SPEED_KMH, self.speed_kmh)
        times: FloatArray = self.length_m * 3.6 / speed
        times.flags.writeable = False
        return times

    @cached_property
    def outgoing(self) -> Adjacency:
        """Edges by tail."""
        return Adjacency.by(self.tail, self.head, self.num_nodes)

    @cached_property
    def incoming(self) -> Adjacency:
        """Edges by head."""
        return Adjacency.by(self.head, self.tail, self.num_nodes)

    @cached_property
    def turn_graph(self) -> TurnGraph:
        """What shortest paths search: the edges, or what is allowed and open of them."""
        graph = TurnGraph.of(self)
        return graph.without(self.closed) if self.closed else graph

    @cached_property
    def ignoring_turns(self) -> "RoadNetwork":
        """The same network without forbidden turns."""
        return replace(self, forbidden_turns=()) if self.forbidden_turns else self

    def closing(self, edges: Iterable[int]) -> "RoadNetwork":
        """The same network with these edges closed, too: edge i stays edge i.

        What does not depend on closed edges is shared, models' forecasts among it.
        """
        more = edge_column(edges, self.num_edges, "closed")
        if not set(more) - set(self.closed):
            return self
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        for derived in ("ignoring_turns", "detached"):
            vars(made).pop(derived, None)
        closed = tuple(sorted({*self.closed, *more}))
        vars(made).update(
            closed=closed, turn_graph=self.turn_graph.without(more), opened=self.opened
        )
        return made

    @cached_property
    def opened(self) -> "RoadNetwork":
        """The same network with no edge closed."""
        return replace(self, closed=()) if self.closed else self

    @cached_property
    def detached(self) -> "RoadNetwork":
        """The same edges and nodes for searches that know no closed edges; turns are all allowed.

        Closed edges are loops at one more node.
        """
        if not self.closed:
            return self.ignoring_turns
        nowhere, there = self.num_nodes, np.isin(np.arange(self.num_edges), self.closed)
        tail, head = (np.where(there, nowhere, ends) for ends in (self.tail, self.head))
        return RoadNetwork.from_arrays(tail, head, self.length_m, num_nodes=nowhere + 1)

    def polyline(self, edge: int) -> FloatArray:
        """The edge as (k, 2) lon/lat points, straight where its geometry is unknown."""
        if not 0 <= whole_number(edge, "edge") < self.num_edges:
            raise InputError(f"edge {edge} is not in the network (0 … {self.num_edges - 1})")
        start, stop = self.geometry_start[edge : edge + 2]
        if start < stop:
            return self.geometry[start:stop]
        ends = [self.tail[edge], self.head[edge]]
        return np.column_stack([self.lon[ends], self.lat[ends]])

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the columns without what was derived from them."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self), tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def __repr__(self) -> str:
        return f"RoadNetwork({self.num_nodes:,} nodes, {self.num_edges:,} edges)"

    # --- paths ------------------------------------------------------------------

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with a row per edge: ends, length, speed, lanes, class and name."""
        names = ("tail", "head", "length_m", "speed_kmh", "lanes", "oneway", "name")
        columns = {name: getattr(self, name) for name in names}
        classes = [ROAD_CLASSES[code] for code in self.road_class]
        return frame(columns | {"road_class": classes, "free_flow_s": self.free_flow_times_s})

    path = routing.checked_path
    forbidden_turn = routing.forbidden_turn
    shortest_path = routing.shortest_path
    shortest_paths = routing.shortest_paths
    distances = routing.distances
    distances_to = routing.distances_to
    unrolled = routing.unrolled

    # --- places -----------------------------------------------------------------

    @cached_property
    def snapper(self) -> "Snapper":
        """Nearest nodes and edges; built on first use."""
        from ideal_dispatch.network.snapping import Snapper

        return Snapper(self)

    def snap(self, lon: float, lat: float, limit_m: float = SNAP_LIMIT_M) -> "NodeSnap":
        """The nearest node within ``limit_m`` and its distance."""
        return self.snapper.node(lon, lat, limit_m)


# --- columns as callers write them ------------------------------------------------------


def _id_column(ids: Any) -> Any:
    """Read-only ids: whole numbers where every one is plainly written as such, else text."""
    try:
        given = np.array(ids)
        if given.dtype.kind == "U" and all(map(_PLAIN_INTEGER.fullmatch, given.ravel().tolist())):
            given = given.astype(np.int64)
    except ValueError:
        raise InputError("node_ids: a flat list of numbers or of text is needed") from None
    except OverflowError:
        pass  # whole numbers too large to be stored as such stay text
    if given.dtype.kind != "U":
        return read_only(given, np.int64, (None,), "node_ids")
    if given.ndim != 1:
        raise InputError(f"node_ids: a flat list is needed, got {given.ndim} dimensions")
    given.flags.writeable = False
    return given


def _geometry_columns(geometry: Any, edges: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """All polylines in a row and where each starts."""
    starts = np.zeros(edges + 1, np.int64)
    if geometry is None:
        return np.empty((0, 2)), starts
    if not isinstance(geometry, Iterable) or isinstance(geometry, str):
        raise InputError("geometry: a list with one polyline or None per edge is needed")
    lines = []
    for edge, line in enumerate(geometry):
        points = numbers(() if line is None else line, np.float64, f"edge {edge}: geometry")
        if points.size and (points.ndim != 2 or points.shape[1] != 2):
            raise InputError(f"edge {edge}: geometry must be (k, 2) points of lon and lat")
        lines.append(points.reshape(-1, 2))
    if len(lines) != edges:
        raise InputError(f"geometry: expected {edges} polylines, got {len(lines)}")
    starts[1:] = np.cumsum([len(line) for line in lines])
    return np.concatenate([np.empty((0, 2)), *lines]), starts


def _class_column(road_class: Any, edges: int) -> Any:
    """Codes of class names; codes are kept, and checked with the other columns."""
    if road_class is None:
        return np.full(edges, ROAD_CLASSES.index(FALLBACK_CLASS), np.uint8)
    try:
        given = np.asarray(road_class)
    except ValueError:
        raise InputError("road_class: one name or code per edge is needed") from None
    if given.dtype.kind not in "US":
        return given
    unknown = sorted(set(given.tolist()) - set(ROAD_CLASSES))
    if unknown:
        raise InputError(
            f"road class {unknown[0]!r} is not known; classes: {', '.join(ROAD_CLASSES)}"
        )
    return np.array([ROAD_CLASSES.index(c) for c in given.tolist()], np.uint8)


def edge_column(given: Any, edges: int, what: str) -> tuple[int, ...]:
    """Edges in order, each once, or one line where one is not of the network."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what}: a list of edges is needed")
    found = np.unique(numbers(list(given), np.int32, what))
    outside = found[(found < 0) | (found >= edges)]
    if outside.size:
        raise InputError(f"{what}: edge {outside[0]} is not in the network (0 … {edges - 1})")
    return tuple(found.tolist())
