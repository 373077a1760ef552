"""Closed roads in a solver: the network that they leave, and what they mean for a call."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.solver.messages import Closed

if TYPE_CHECKING:
    from ideal_dispatch.service.solver.case import Case


class Roads:
    """The network as it is open now; the last one is kept, for closures seldom change."""

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._last: tuple[tuple[Closed, ...], RoadNetwork] = (), network

    def open(self, closures: tuple[Closed, ...]) -> RoadNetwork:
        """The network without what these closures close."""
        before, network = self._last
        if before != closures:
            network = self._network.closing(closed_edges(closures))
            self._last = closures, network
        return network


def closed_edges(closures: Iterable[Closed]) -> frozenset[int]:
    """All that they close."""
    return frozenset(edge for one in closures for edge in one.edges)


def look_at_closed(
    case: "Case", network: RoadNetwork, closures: Sequence[Closed]
) -> tuple[list[Reason], str]:
    """What closures mean for a case on the ``network`` that they leave: remarks, and a refusal.

    The refusal is why there is no advice: without closed roads no unit gets there.
    """
    ready, node, opened = case.ready, case.incident.node, network.opened
    remarks: list[Reason] = []
    if isinstance(ready.sent, Assignment):
        driven = named(closures, ready.sent.path.edges.tolist())
        if driven:
            words = f"the primary's path leads over {driven}; it is taken as it was told"
            remarks.append(("closed_road", words))
        return remarks, ""
    depots = [ready.depots[number] for number in ready.asked]
    if ready.sent is not None:
        depots = [ready.depots[ready.sent]]
    times_s = network.free_flow_times_s
    starts = [depot.node for depot in depots]
    if np.isfinite(network.distances_to(times_s, node)[starts]).any():
        return remarks, ""
    before_s = opened.distances_to(times_s, node)[starts]
    if not np.isfinite(before_s).any():
        return remarks, ""  # that was so before: not because of a closure
    path = opened.shortest_path(times_s, depots[int(np.argmin(before_s))], node)
    closed = named(closures, path.edges.tolist())
    if ready.sent is None:
        return remarks, f"no unit gets to the incident but over {closed}"
    who = depots[0].name if depots[0].on_road else f"the unit of {depots[0].name}"
    words = f"{who} does not get to the incident but over {closed}"
    return remarks, words


def named(closures: Iterable[Closed], edges: Iterable[int]) -> str:
    """The closures that these edges are among, in words; empty where there are none."""
    driven = frozenset(edges)
    found = [one for one in closures if not driven.isdisjoint(one.edges)]
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(one.reason or f"closure {one.id}" for one in found))
    return f"closed {'roads' if len(found) > 1 else 'road'} ({names})"
