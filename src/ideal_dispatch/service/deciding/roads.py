"""Closed roads: the network that closures leave, and what they mean for a call."""

from collections.abc import Iterable, Sequence

import numpy as np

from ideal_dispatch.dispatch import Assignment, Readiness
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.messages import Closed


class Roads:
    """The network without its closed edges; the latest one is kept, for closures seldom change."""

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._latest: tuple[frozenset[int], RoadNetwork] = frozenset(), network

    def open(self, closures: Iterable[Closed]) -> RoadNetwork:
        """The network without what these closures close; from any thread."""
        closed = closed_by(closures)
        edges, network = self._latest
        if edges != closed:
            network = self._network.closing(closed) if closed else self._network
            self._latest = closed, network
        return network


def closed_by(closures: Iterable[Closed]) -> frozenset[int]:
    """All edges that they close."""
    return frozenset(edge for one in closures for edge in one.edges)


def closure_remarks(
    ready: Readiness, node: int, network: RoadNetwork, closures: Sequence[Closed]
) -> tuple[list[Reason], str]:
    """What closures mean for a call at a node of the ``network`` that they leave.

    The text is why there can be no advice, where no unit gets there without closed roads.
    """
    if isinstance(ready.sent, Assignment):
        driven = _named(closures, ready.sent.path.edges.tolist())
        if not driven:
            return [], ""
        return [("closed_road", f"the primary's path as reported leads over {driven}")], ""
    asked = ready.asked if ready.sent is None else [ready.sent]
    depots = [ready.depots[number] for number in asked]
    times_s, starts = network.free_flow_times_s, [depot.node for depot in depots]
    if np.isfinite(network.distances_to(times_s, node)[starts]).any():
        return [], ""
    before_s = network.opened.distances_to(times_s, node)[starts]
    if not np.isfinite(before_s).any():
        return [], ""  # closures are not the cause
    path = network.opened.shortest_path(times_s, depots[int(np.argmin(before_s))], node)
    closed = _named(closures, path.edges.tolist())
    if ready.sent is None:
        return [], f"no unit reaches the incident without {closed}"
    who = ready.sent_unit or f"the unit of {depots[0].home or depots[0].name}"
    return [], f"{who} does not reach the incident without {closed}"


def _named(closures: Iterable[Closed], edges: Iterable[int]) -> str:
    """The closures that these edges are among, in words; empty where there are none."""
    driven = frozenset(edges)
    found = [one for one in closures if not driven.isdisjoint(one.edges)]
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(one.reason or f"closure {one.id}" for one in found))
    return f"closed {'roads' if len(found) > 1 else 'road'} ({names})"
