"""Closed roads: the network that closures leave, and what they mean for a call."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ideal_dispatch.dispatch import Readiness
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.messages import Closed


def closed_by(closures: Iterable[Closed]) -> frozenset[int]:
    """All edges that they close."""
    return frozenset(edge for one in closures for edge in one.edges)


@lru_cache(maxsize=4)  # closures seldom change
def without(network: RoadNetwork, closed: frozenset[int]) -> RoadNetwork:
    """The network without its closed edges."""
    return network.closing(closed)


def named(closures: Iterable[Closed], edges: Iterable[int]) -> str:
    """The closures that these edges are among, in words; empty where there are none."""
    driven = frozenset(edges)
    found = [one for one in closures if not driven.isdisjoint(one.edges)]
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(one.reason or f"closure {one.id}" for one in found))
    return f"closed {'roads' if len(found) > 1 else 'road'} ({names})"


def cut_off(
    ready: Readiness, node: int, network: RoadNetwork, closures: Sequence[Closed]
) -> str | None:
    """Why no unit gets to a node of the ``network`` that closures leave; None where they do."""
    numbers = [ready.sent] if isinstance(ready.sent, int) else ready.asked
    depots = [ready.depots[number] for number in numbers]
    times_s, starts = network.free_flow_times_s, [depot.node for depot in depots]
    if np.isfinite(network.distances_to(times_s, node)[starts]).any():
        return None
    before_s = network.opened.distances_to(times_s, node)[starts]
    if not np.isfinite(before_s).any():
        return None  # closures are not the cause
    path = network.opened.shortest_path(times_s, depots[int(np.argmin(before_s))], node)
    who = "no unit reaches"
    if isinstance(ready.sent, int):
        unit = ready.sent_unit or f"the unit of {depots[0].home or depots[0].name}"
        who = f"{unit} does not reach"
    return f"{who} the incident without {named(closures, path.edges.tolist())}"
