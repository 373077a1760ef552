"""Columns of a road network as callers write them, in the form that is stored."""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray, numbers, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.road_class import FALLBACK_CLASS, ROAD_CLASSES

_NODES_PER_EDGE = 1000  # more, by the largest end alone, is a mistake
_PLAIN_INTEGER = re.compile("0|-?[1-9][0-9]*")


def id_column(ids: Any) -> Any:
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


def name_column(names: Any) -> tuple[str, ...]:
    """One text per edge."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"name: one text per edge is needed, got {names!r}"[:100])
    result = tuple(names)
    if {*map(type, result)} <= {str}:
        return result
    wrong = next((i for i, name in enumerate(result) if not isinstance(name, str)), None)
    if wrong is not None:
        raise InputError(f"edge {wrong}: name {result[wrong]!r} is not text")
    return result


def plain_provenance(provenance: Any) -> dict[str, Any]:
    """A deep copy in the types of JSON, in which it is stored."""
    try:
        return dict(json.loads(json.dumps(dict(provenance), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InputError(f"provenance: only what JSON can hold is allowed ({error})") from None


def largest_end(tail: IntArray, head: IntArray) -> int:
    """The largest node at any edge, −1 where there are none."""
    largest = int(max(tail.max(), head.max(initial=-1))) if tail.size else -1
    if largest >= _NODES_PER_EDGE * max(tail.size, _NODES_PER_EDGE):
        raise InputError(
            f"an edge ends at node {largest}, far more than {tail.size} edges need; "
            "number nodes from 0, or give num_nodes"
        )
    return largest


def geometry_columns(geometry: Any, edges: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
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


def class_column(road_class: Any, edges: int) -> Any:
    """Codes of class names; codes stay as they are, to be checked with the other columns."""
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
        raise InputError(f"road class {unknown[0]!r} is none of: {', '.join(ROAD_CLASSES)}")
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
