"""Merging chains of edges so that nodes are intersections and ends of streets."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.network.turns import Turn


def merge_chains(
    tail: IntArray, head: IntArray, length_m: FloatArray, turns: Sequence[Turn] = ()
) -> list[list[int]]:
    """Edges grouped into chains, in driving order; each chain becomes one edge.

    A node vanishes when a driver there has no choice: a one-way street passes
    through it, or a two-way street whose both directions do. A chain that
    would return to its own start is split in the middle, so no loops arise. Where one
    of the forbidden ``turns`` would be within a chain, a node stays before its last edge.
    """
    num_nodes = int(max(tail.max(), head.max())) + 1
    onward = _onward(tail, head, num_nodes)
    for turn in turns:
        if all(onward[edge] == following for edge, following in pairwise(turn)):
            onward[head == tail[turn[-1]]] = -1
    chains: list[list[int]] = []
    seen = np.zeros(tail.size, dtype=bool)
    is_onward = np.zeros(tail.size, dtype=bool)
    is_onward[onward[onward >= 0]] = True
    next_edge = onward.tolist()
    # chains first, then what is left: rings without any junction, both directions of
    # which start at the same node
    for edge in np.lexsort((tail, is_onward)).tolist():
        if seen[edge]:
            continue
        chain = []
        step = edge
        while step >= 0 and not seen[step]:
            seen[step] = True
            chain.append(step)
            step = next_edge[step]
        closed = len(chain) > 1 and tail[chain[0]] == head[chain[-1]]
        chains.extend(_halves(chain, head, length_m) if closed else [chain])
    return chains


def merged_turn(
    turn: Turn, place: Mapping[int, tuple[int, int]], last: Sequence[int]
) -> Turn | None:
    """A forbidden turn in chains, or None where no driver can make it any more.

    ``place`` has the chain of each edge and where it stands in it, ``last`` the place of
    each chain's last edge. Where a driver has no choice, the chain says it all.
    """
    chains = [place[turn[0]][0]]
    for edge, following in pairwise(turn):
        (chain, here), (other, there) = place[edge], place[following]
        if (other, there) == (chain, here + 1):
            continue
        if here != last[chain] or there:
            return None  # it turns back at a node that is gone
        chains.append(other)
    return tuple(chains)


def _onward(tail: IntArray, head: IntArray, num_nodes: int) -> npt.NDArray[np.int64]:
    """For each edge the only edge a driver can go on to, or −1 at a junction or end."""
    passing, two_way = _interior(tail, head, num_nodes)
    onward = np.full(tail.size, -1, np.int64)
    leaving = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[leaving], np.arange(num_nodes))
    at = np.flatnonzero(passing[head])
    onward[at] = leaving[first[head[at]]]
    # of the two ways out of a two-way street's node, the one that does not turn back
    at = np.flatnonzero(two_way[head])
    options = leaving[first[head[at]][:, None] + [0, 1]]
    back = head[options[:, 0]] == tail[at]
    onward[at] = np.where(back, options[:, 1], options[:, 0])
    return onward


def _interior(tail: IntArray, head: IntArray, num_nodes: int) -> tuple[BoolArray, BoolArray]:
    """Nodes that a one-way street passes through, and nodes that a two-way street does."""
    out_degree = np.bincount(tail, minlength=num_nodes)
    in_degree = np.bincount(head, minlength=num_nodes)
    joined = np.column_stack([np.concatenate([tail, head]), np.concatenate([head, tail])])
    neighbours = _distinct(joined, num_nodes)
    targets = _distinct(np.column_stack([tail, head]), num_nodes)
    origins = _distinct(np.column_stack([head, tail]), num_nodes)
    two = neighbours == 2
    passing = two & (out_degree == 1) & (in_degree == 1)
    two_way = two & (out_degree == 2) & (in_degree == 2) & (targets == 2) & (origins == 2)
    return passing, two_way


def _distinct(pairs: npt.NDArray[np.int32], num_nodes: int) -> npt.NDArray[np.int64]:
    """How many different partners each node has among (node, partner) rows."""
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return np.bincount(pairs[:, 0], minlength=num_nodes)


def _halves(chain: list[int], head: IntArray, length_m: FloatArray) -> list[list[int]]:
    """A closed chain in two parts, cut at the node nearest to its middle.

    Both directions of a street are cut at the same node: lengths are compared
    to the millimetre, then by node.
    """
    along = np.cumsum(length_m[chain])
    off_middle = np.abs(along[:-1] - along[-1] / 2).round(3)
    cut = min(range(len(chain) - 1), key=lambda i: (off_middle[i], head[chain[i]])) + 1
    return [chain[:cut], chain[cut:]]
