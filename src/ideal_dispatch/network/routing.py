"""Checked routing over a network: the path methods of :class:`RoadNetwork`."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import (
    FloatArray,
    IntArray,
    first_where,
    frozen,
    numbers,
    read_only,
    whole_number,
)
from ideal_dispatch.compiled import plain
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import shortest_path as kernels
from ideal_dispatch.network.depot import Source, as_sources, describe, source_node
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.turns import Turn, first_forbidden

if TYPE_CHECKING:
    from ideal_dispatch.network.road_network import RoadNetwork

_ROWS_PER_TASK = 16
_WORTH_THREADS = 1_000_000  # rows × edges; below, two cores lose more than they gain (measured)


def checked_path(network: "RoadNetwork", edges: npt.ArrayLike, origin: int | None = None) -> Path:
    """A checked path of the given edges; ``origin`` is needed only when there are none."""
    order = read_only(edges, np.int32, (None,), "path edges")
    if not order.size:
        if origin is None:
            raise InputError("a path without edges needs its origin")
        node = _node(network, origin, "origin")
        return Path(order, node, node)
    outside = first_where((order < 0) | (order >= network.num_edges))
    if outside is not None:
        raise InputError(f"path edge {order[outside]} is not in the network")
    broken = first_where(network.head[order[:-1]] != network.tail[order[1:]])
    if broken is not None:
        raise InputError(
            f"path breaks after edge {order[broken]}: it ends at node "
            f"{network.head[order[broken]]}, edge {order[broken + 1]} starts at node "
            f"{network.tail[order[broken + 1]]}"
        )
    closed = first_where(np.isin(order, network.closed)) if network.closed else None
    if closed is not None:
        raise InputError(f"path drives edge {order[closed]}, which is closed; choose a way around")
    first, last = int(network.tail[order[0]]), int(network.head[order[-1]])
    if origin is not None and whole_number(origin, "origin") != first:
        raise InputError(f"path starts at node {first}, not at node {origin}")
    return Path(order, first, last)


def forbidden_turn(network: "RoadNetwork", path: Path) -> Turn | None:
    """The first forbidden turn that a path makes, as its edges; None where it makes none."""
    return first_forbidden(network.forbidden_turns, path.edges.tolist())


def shortest_path(
    network: "RoadNetwork",
    times_s: npt.ArrayLike,
    sources: Source | Sequence[Source],
    target: int,
    *,
    potential_s: FloatArray | None = None,
    behind: Sequence[int] = (),
) -> Path:
    """The fastest path from the best of the sources to the target.

    Among equally fast paths the choice is canonical (see
    :mod:`ideal_dispatch.network.shortest_path`). ``potential_s`` is a lower
    bound on the time from each node to the target: A*, same answer, faster.
    An infinite time closes an edge. The path makes no forbidden turn, not even with
    the edges ``behind``, which were driven to the only source.
    """
    times = edge_times(network, times_s)
    given = as_sources(sources)
    nodes = _source_nodes(network, given)
    target = _node(network, target, "target")
    if potential_s is not None:
        potential_s = read_only(potential_s, np.float64, (network.num_nodes,), "potential")
        wrong = first_where(~(potential_s >= 0))
        if wrong is not None:
            raise InputError(
                f"potential of node {wrong}: {potential_s[wrong]} s; it must be zero or positive"
            )
    graph = network.turn_graph
    if len(behind):
        nodes = _after(network, behind, nodes)
    if potential_s is not None:
        potential_s = graph.of_states(potential_s)
    costs, state = graph.costs(times), int(graph.arrival[target])
    g = kernels.search(graph.out, costs, nodes, state, potential_s)
    if g[state] == np.inf:
        raise UnreachableError(_unreachable(network, given, target))
    edges = graph.edges(kernels.canonical_edges(graph.into, costs, g, nodes, state))
    origin = int(network.tail[edges[0]]) if edges.size else target
    return Path(edges, origin, target)


def shortest_paths(
    network: "RoadNetwork",
    times_s: npt.ArrayLike,
    origins: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    threads: int | None = None,
) -> list[Path]:
    """One canonical path per row, from ``origins[i]`` to ``targets[i]``.

    Row i is driven under row i of ``times_s``, or under its only row; rows
    are shared among threads.
    """
    starts = read_only(origins, np.int32, (None,), "origins")
    ends = read_only(targets, np.int32, starts.shape, "targets")
    times = np.atleast_2d(frozen(numbers(times_s, np.float64, "edge times")))
    if times.shape not in {(1, network.num_edges), (starts.size, network.num_edges)}:
        raise InputError(
            f"edge times: expected 1 or {starts.size} rows of {network.num_edges}, "
            f"got {' × '.join(map(str, times.shape))}"
        )
    _refuse_negative(times)
    for nodes, what in ((starts, "origin"), (ends, "target")):
        wrong = first_where((nodes < 0) | (nodes >= network.num_nodes))
        if wrong is not None:
            raise InputError(f"row {wrong}: {what} {nodes[wrong]} is not a node")
    graph = network.turn_graph
    out, into = plain(graph.out), plain(graph.into)

    def solve(first: int) -> list[Path]:
        rows = slice(first, min(first + _ROWS_PER_TASK, starts.size))
        origin, target = starts[rows], ends[rows]
        arcs = np.empty((origin.size, graph.node.size), np.int32)
        counts = np.empty(origin.size, np.int64)
        costs = graph.costs(times[rows] if len(times) > 1 else times)
        states = frozen(graph.arrival[target])
        kernels.solve_rows(out, into, costs, origin, states, arcs, counts)
        lost = first_where(counts < 0)
        if lost is not None:
            where = _unreachable(network, [int(origin[lost])], int(target[lost]))
            raise UnreachableError(f"row {first + lost}: {where}")
        return [
            Path(graph.edges(row[row.size - count :]), int(start), int(end))
            for row, count, start, end in zip(arcs, counts, origin, target, strict=True)
        ]

    tasks = range(0, starts.size, _ROWS_PER_TASK)
    if threads is None:
        worth = starts.size * network.num_edges >= _WORTH_THREADS
        threads = (os.cpu_count() or 1) if worth else 1
    elif whole_number(threads, "threads") < 1:
        raise InputError(f"threads {threads}: at least one is needed")
    workers = min(threads, max(len(tasks), 1))
    if workers == 1:
        return [path for task in tasks for path in solve(task)]
    with ThreadPoolExecutor(workers) as pool:
        return [path for paths in pool.map(solve, tasks) for path in paths]


def distances(
    network: "RoadNetwork", times_s: npt.ArrayLike, sources: Source | Sequence[Source]
) -> FloatArray:
    """Seconds from the nearest source to every node, infinite where there is no way."""
    nodes = _source_nodes(network, as_sources(sources))
    graph = network.turn_graph
    g = kernels.search(graph.out, graph.costs(edge_times(network, times_s)), nodes)
    return g if g.size == network.num_nodes else g[graph.arrival]


def distances_to(network: "RoadNetwork", times_s: npt.ArrayLike, target: int) -> FloatArray:
    """Seconds from every node to the target, infinite where there is no way."""
    return remaining(network, edge_times(network, times_s), target)[: network.num_nodes]


def remaining(network: "RoadNetwork", times_s: FloatArray, target: int) -> FloatArray:
    """As :func:`distances_to`, from every state of a driver (:class:`TurnGraph`)."""
    graph, node = network.turn_graph, _node(network, target, "target")
    return kernels.search(graph.into, graph.costs(times_s), frozen(graph.arrival[[node]]))


def unrolled(network: "RoadNetwork", destination: int) -> tuple["RoadNetwork", IntArray | None]:
    """A network whose paths to the destination make no forbidden turn and drive no closed edge.

    For searches that know edges alone: its edges are the arcs of :class:`TurnGraph`, its
    nodes the states, and every arrival at the destination ends at that node. With it, in
    ascending order, the edge that each of them drives; None where they are the same edges.
    """
    graph, target = network.turn_graph, _node(network, destination, "target")
    if graph.plain:
        return network.detached, None
    drives = graph.edge < network.num_edges
    head = np.where(graph.node[graph.head] == target, target, graph.head)[drives]
    edge: IntArray = graph.edge[drives]
    roads = type(network).from_arrays(
        graph.tail[drives], head, network.length_m[edge], num_nodes=graph.node.size
    )
    return roads, edge


def edge_times(network: "RoadNetwork", times_s: npt.ArrayLike) -> FloatArray:
    """``times_s`` as one checked float per edge, read-only."""
    times: FloatArray = frozen(numbers(times_s, np.float64, "edge times"))
    if times.shape != (network.num_edges,):
        raise InputError(
            f"edge times: expected {network.num_edges} values, "
            f"got {' × '.join(map(str, times.shape)) or 'a scalar'}"
        )
    _refuse_negative(times)
    return times


def _refuse_negative(times: FloatArray) -> None:
    if not times.size or times.min() >= 0:  # False on NaN
        return
    wrong = np.argwhere(~(times >= 0))[0]
    row = f"row {wrong[0]}, " if len(wrong) > 1 else ""
    raise InputError(
        f"{row}edge {wrong[-1]}: time {times[tuple(wrong)]} s; it must be zero or positive"
    )


def _node(network: "RoadNetwork", node: int, what: str) -> int:
    number = whole_number(node, what)
    if not 0 <= number < network.num_nodes:
        raise InputError(f"{what} {number} is not a node (0 … {network.num_nodes - 1})")
    return number


def _source_nodes(network: "RoadNetwork", sources: Sequence[Source]) -> IntArray:
    if not sources:
        raise InputError("no source given: name at least one depot or node")
    nodes = [_node(network, source_node(source), "source") for source in sources]
    array: IntArray = frozen(np.array(nodes, dtype=np.int32))
    return array


def _after(network: "RoadNetwork", behind: Sequence[int], nodes: IntArray) -> IntArray:
    """The only source as the state in which who drove the edges behind arrives at it."""
    driven = checked_path(network, behind)
    if nodes.tolist() != [driven.destination]:
        raise InputError(
            f"the edges behind end at node {driven.destination}, which is not the only source"
        )
    state = network.turn_graph.state_after(driven.edges.tolist(), driven.destination)
    array: IntArray = frozen(np.array([state], np.int32))
    return array


def _unreachable(network: "RoadNetwork", sources: Sequence[Source], target: int) -> str:
    own_id = str(network.node_ids[target])
    id_note = f" (id {own_id})" if own_id != str(target) else ""
    turns = " and forbidden turns" if network.forbidden_turns else ""
    return (
        f"node {target}{id_note} cannot be reached from "
        f"{' or '.join(map(describe, sources))}; check one-way and closed edges{turns} there"
    )
