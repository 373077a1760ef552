"""The corridor: the roads of those second paths that may still exceed the target."""

from typing import NamedTuple

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, frozen
from ideal_dispatch.compiled import kernel
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.gap.spread import least_spread
from ideal_dispatch.network.shortest_path import Adjacency


class Corridor(NamedTuple):
    """What a search needs of the roads it keeps to.

    ``to_destination``, ``from_depots`` and ``spread`` belong to ways inside; the
    first and the last are infinite at nodes without one.
    """

    outgoing: Adjacency
    incoming: Adjacency
    to_destination: FloatArray
    from_depots: FloatArray
    spread: FloatArray

    @classmethod
    def everywhere(cls, problem: GapProblem) -> "Corridor":
        """All roads, whose spread is not looked for."""
        network, times = problem.network, problem.scenarios.nominal_times
        return cls(
            network.outgoing,
            network.incoming,
            problem.nominal_to_destination,
            network.distances(times, problem.depots.tolist()),
            frozen(np.zeros(network.num_nodes)),
        )

    @classmethod
    def of(cls, problem: GapProblem, edges: IntArray) -> "Corridor":
        """The given roads alone."""
        network = problem.network
        times = np.full(network.num_edges, np.inf)
        times[edges] = problem.scenarios.nominal_times[edges]
        tail, head = network.tail[edges], network.head[edges]
        return cls(
            _slots(tail, head, edges, network.num_nodes),
            _slots(head, tail, edges, network.num_nodes),
            network.distances_to(times, problem.destination),
            network.distances(times, problem.depots.tolist()),
            frozen(least_spread(problem, edges)),
        )


def _slots(near: IntArray, far: IntArray, edges: IntArray, num_nodes: int) -> Adjacency:
    start, slot, other = Adjacency.by(near, far, num_nodes)
    return Adjacency(start, frozen(edges[slot]), other)


def without_dead_ends(problem: GapProblem, edges: IntArray) -> IntArray:
    """Those of the edges that lead on: a way into a dead end and back is slower in any scenario."""
    network = problem.network
    kept: BoolArray = lead_on(
        network.tail[edges], network.head[edges], problem.depots, problem.destination,
        network.num_nodes,
    )  # fmt: skip
    return edges[kept]


@kernel
def lead_on(tail, head, depots, destination, num_nodes):  # type: ignore[no-untyped-def]
    """Which edges join two nodes, neither with a single neighbour unless paths begin or end there.

    Edges that do not are left out one after another, until all do.
    """
    kept = tail != head
    neighbour = np.empty(num_nodes, np.int32)
    has_two = np.empty(num_nodes, np.bool_)
    changed = True
    while changed:
        neighbour[:] = -1
        has_two[:] = False
        has_two[destination] = True
        for v in depots:
            has_two[v] = True
        for k in range(tail.size):
            if kept[k]:
                for u, v in ((tail[k], head[k]), (head[k], tail[k])):
                    if neighbour[u] < 0:
                        neighbour[u] = v
                    elif neighbour[u] != v:
                        has_two[u] = True
        changed = False
        for k in range(tail.size):
            if kept[k] and not (has_two[tail[k]] and has_two[head[k]]):
                kept[k] = False
                changed = True
    return kept
