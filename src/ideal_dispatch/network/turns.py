"""Turns that a network forbids, and the graph of a driver who obeys them.

A forbidden turn is a sequence of two or more edges that may not be driven one after
the other. What a driver may do next depends on the *state*: the node, and the longest
beginning of a forbidden sequence that lies behind. Every node is a state, with nothing
behind; a beginning is one more state of the node where it ends. An *arc* drives an edge
from one state to another, and an arc that would complete a forbidden sequence is
missing. So shortest paths over arcs are the shortest that make no forbidden turn, and
the kernels for paths over edges find them unchanged.

A node with several states has one more, its *arrival*, to which arcs of no cost lead
from all of them: who searches for the node searches for that.

A closed edge keeps its arcs, but they lead from nowhere to nowhere: one more state, which
no other arc touches. So edges keep their numbers, and no path drives a closed one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen, numbers
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.shortest_path import Adjacency

if TYPE_CHECKING:
    from ideal_dispatch.network.road_network import RoadNetwork

Turn = tuple[int, ...]
"""Edges that must not be driven one after the other."""


def turn_column(turns: Any, tail: IntArray, head: IntArray) -> tuple[Turn, ...]:
    """Forbidden turns in the form that is stored: in order, each once, none within another."""
    if isinstance(turns, str) or not isinstance(turns, Iterable):
        raise InputError("forbidden_turns: a list of sequences of edges is needed")
    given = set()
    for number, turn in enumerate(turns):
        edges = numbers(turn, np.int32, f"forbidden turn {number}")
        if edges.ndim != 1 or edges.size < 2:
            raise InputError(f"forbidden turn {number}: two edges or more are needed")
        if not ((edges >= 0) & (edges < tail.size)).all():
            raise InputError(f"forbidden turn {number}: {turn} has an edge that does not exist")
        if (head[edges[:-1]] != tail[edges[1:]]).any():
            raise InputError(f"forbidden turn {number}: its edges {edges.tolist()} do not connect")
        given.add(tuple(edges.tolist()))
    return tuple(sorted(turn for turn in given if not _parts(turn) & given))


def _parts(turn: Turn) -> set[Turn]:
    """Shorter stretches of a sequence, of two edges or more."""
    size = len(turn)
    ends = ((i, j) for i in range(size) for j in range(i + 2, size + 1) if j - i < size)
    return {turn[i:j] for i, j in ends}


def first_forbidden(turns: Iterable[Turn], edges: Sequence[int]) -> Turn | None:
    """The first forbidden turn that a sequence of edges makes."""
    beginning = defaultdict(list)
    for turn in turns:
        beginning[turn[0]].append(turn)
    for place, edge in enumerate(edges):
        for turn in beginning.get(edge, ()):
            if tuple(edges[place : place + len(turn)]) == turn:
                return turn
    return None


@dataclass(frozen=True, slots=True, eq=False)
class TurnGraph:
    """Arcs between the states of a driver, in which no path makes a forbidden turn.

    ``tail`` and ``head`` are the states of each arc and ``edge`` the edge it drives, the
    number of edges for arcs to an arrival. ``node`` is the node of each state, of which the
    first are the nodes themselves, and ``arrival`` the state to search for in place of each
    node. Without a forbidden turn arcs are edges and states are nodes, beside the state that is
    nowhere (node −1) where edges are closed. ``begun`` are the states of beginnings, and
    ``memory`` is the length of the longest.
    """

    tail: IntArray
    head: IntArray
    edge: IntArray
    node: IntArray
    arrival: IntArray
    out: Adjacency
    into: Adjacency
    begun: dict[Turn, int]
    memory: int

    @classmethod
    def of(cls, network: "RoadNetwork") -> "TurnGraph":
        turns, nodes, edges = set(network.forbidden_turns), network.num_nodes, network.num_edges
        if not turns:
            every, own = np.arange(nodes, dtype=np.int32), np.arange(edges, dtype=np.int32)
            out, into = network.outgoing, network.incoming
            return cls(network.tail, network.head, own, every, every, out, into, {}, 0)
        beginnings = sorted({turn[:size] for turn in turns for size in range(1, len(turn))})
        begun = {turn: nodes + i for i, turn in enumerate(beginnings)}
        ends = network.head[[turn[-1] for turn in beginnings]]
        head = network.head.copy()
        single = [turn for turn in beginnings if len(turn) == 1]
        head[[edge for (edge,) in single]] = [begun[turn] for turn in single]
        arcs = list(zip(network.tail.tolist(), head.tolist(), range(edges), strict=True))
        start, leaving, _ = network.outgoing
        for behind, end in zip(beginnings, ends.tolist(), strict=True):
            for edge in leaving[start[end] : start[end + 1]].tolist():
                driven = (*behind, edge)
                suffixes = [driven[i:] for i in range(len(driven))]  # the longest first
                if turns.isdisjoint(suffixes):
                    known = (begun[suffix] for suffix in suffixes if suffix in begun)
                    arcs.append((begun[behind], next(known, int(network.head[edge])), edge))
        several = np.unique(ends)
        first_arrival = nodes + len(beginnings)
        arrival = np.arange(nodes, dtype=np.int32)
        arrival[several] = first_arrival + np.arange(several.size)
        node = np.concatenate([np.arange(nodes), ends, several]).astype(np.int32)
        arcs.extend(
            (state, int(arrival[node[state]]), edges)
            for state in (*several.tolist(), *range(nodes, first_arrival))
        )
        # by edge: among equally fast ways into a state the choice then follows edges, as elsewhere
        columns = np.array(sorted(arcs, key=lambda arc: (arc[2], arc[0])), np.int32).T
        tail, head, edge = (frozen(np.ascontiguousarray(column)) for column in columns)
        return cls(
            tail, head, edge, frozen(node), frozen(arrival),
            Adjacency.by(tail, head, node.size), Adjacency.by(head, tail, node.size),
            begun, max(map(len, begun)),
        )  # fmt: skip

    def without(self, edges: Sequence[int]) -> "TurnGraph":
        """The same arcs, of which none drives one of these edges."""
        nowhere, there = self.node.size, np.isin(self.edge, edges)
        tail, head = (
            frozen(np.where(there, nowhere, ends).astype(np.int32))
            for ends in (self.tail, self.head)
        )
        return replace(
            self, tail=tail, head=head, node=frozen(np.append(self.node, -1).astype(np.int32)),
            out=Adjacency.by(tail, head, nowhere + 1), into=Adjacency.by(head, tail, nowhere + 1),
        )  # fmt: skip

    @property
    def plain(self) -> bool:
        """Whether arcs are edges."""
        return not self.begun

    def of_states(self, of_nodes: FloatArray) -> FloatArray:
        """What holds for a node, for each of its states."""
        return of_nodes if self.node.size == of_nodes.size else frozen(of_nodes[self.node])

    def costs(self, of_edges: FloatArray) -> FloatArray:
        """The cost of each arc, along the last axis."""
        if self.plain:
            return of_edges
        nothing = np.zeros((*of_edges.shape[:-1], 1))
        whole = np.concatenate([of_edges, nothing], axis=-1)
        costs: FloatArray = frozen(np.take(whole, self.edge, axis=-1))
        return costs

    def arcs(self, edges: IntArray) -> tuple[IntArray, IntArray]:
        """All arcs that drive each of the edges, and which of the edges each drives."""
        if self.plain:
            return edges, np.arange(edges.size, dtype=np.int32)
        first, stop = (np.searchsorted(self.edge, edges, side) for side in ("left", "right"))
        count = stop - first
        which = np.repeat(np.arange(edges.size, dtype=np.int32), count)
        rank = np.arange(which.size) - (np.cumsum(count) - count)[which]
        arcs: IntArray = (first[which] + rank).astype(edges.dtype)
        return arcs, which

    def edges(self, arcs: IntArray) -> IntArray:
        """The edges that a path of arcs drives."""
        if self.plain:
            return arcs
        edges = self.edge[arcs]
        driven: IntArray = edges[edges < self.edge[-1]]  # the last arc leads to an arrival
        return driven

    def state_after(self, edges: Sequence[int], node: int) -> int:
        """The state at ``node``, which was reached by these edges, those long ago left out."""
        recent = tuple(edges[max(len(edges) - self.memory, 0) :])
        known = (self.begun.get(recent[i:]) for i in range(len(recent)))
        return next((state for state in known if state is not None), node)
