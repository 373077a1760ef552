"""The best drive for one who knows the whole future."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch.arrays import FloatArray, read_only
from ideal_dispatch.compiled import kernel
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.dispatch.situation import TellsEdgeTimes
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.shortest_path import heap_pop, heap_push
from ideal_dispatch.replay.drive import Drive, DriveError, World
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

_FIRST_BINS = 8
_MICROSECOND = timedelta(microseconds=1)


def hindsight_optimum(
    traffic: ReplayedTraffic,
    network: RoadNetwork,
    origins: Sequence[int],
    destination: int,
    at: datetime,
    world: World,
) -> Drive:
    """The earliest arrival from any of the origins, leaving at once and never waiting.

    Label setting over arrival times: every node is left when it is first
    reached, and the answer is a drive that anybody could have made. Where who
    enters an edge first also leaves it first (FIFO), no drive arrives sooner.
    Times that are constant within a bin break that at the end of a bin whose
    successor is faster: there a drive that comes later on purpose may win by up
    to the difference. Waiting is not offered, for no ambulance waits; a
    bound for a set of drives is the best of them and this one. It makes no forbidden turn; with
    some, "node" above is a state of :class:`~ideal_dispatch.network.turns.TurnGraph`.
    ``expected_s`` is the true arrival all along: in hindsight nothing surprises.
    """
    require_zone(at)
    if network.checksum != traffic.network.checksum:
        raise InputError("the traffic was recorded on another network")
    starts = read_only(origins, np.int32, (None,), "origins")
    if not starts.size:
        raise InputError("no origin given: name at least one node")
    for node in (*starts.tolist(), destination):
        if not 0 <= node < network.num_nodes:
            raise InputError(f"{node} is not a node (0 … {network.num_nodes - 1})")
    stretch, present = traffic.recording.find(at)
    bin_s = traffic.recording.bin_s
    first_bin = traffic.recording.stretches[stretch].start.astimezone(UTC)
    first_bin += timedelta(seconds=present * bin_s)
    clock = (at - first_bin) // _MICROSECOND, bin_s * 1_000_000
    graph, bins = network.turn_graph, _FIRST_BINS
    while True:
        times = graph.costs(_rows(traffic, first_bin, bins, world))
        arrival_s, by = np.empty(graph.node.size), np.empty(graph.node.size, np.int32)
        cut = _label_setting(
            graph.out, graph.node, times, *clock, starts, destination, arrival_s, by
        )
        if not cut or len(times) < bins:
            break
        bins *= 2  # a drive was still under way after the last row
    there = np.flatnonzero(graph.node == destination)
    target = int(there[arrival_s[there].argmin()])
    if not arrival_s[target] < np.inf:
        raise DriveError(
            f"hindsight: node {destination} cannot be reached from any of nodes "
            f"{starts.tolist()} in the time recorded after {at.isoformat()}"
        )
    arcs: list[int] = []
    seconds: list[float] = []
    state = target
    while by[state] >= 0:
        arc = int(by[state])
        state = int(graph.tail[arc])
        arcs.append(arc)
        seconds.append(float(times[_row(arrival_s[state], *clock), arc]))
    total_s = np.full(len(arcs), arrival_s[target])
    return Drive(graph.edge[arcs[::-1]], np.array(seconds[::-1]), total_s)


def _rows(traffic: ReplayedTraffic, first: datetime, bins: int, world: World) -> FloatArray:
    """Edge times of so many bins, or of as many as are recorded without a gap."""
    ask: Callable[[datetime], FloatArray] = traffic.realised_times
    if World(world) is World.INSTANTANEOUS:
        if not isinstance(traffic, TellsEdgeTimes):
            raise InputError("the router gives no edge times; hindsight needs them")
        ask = traffic.router_times
    rows = [ask(first)]
    for number in range(1, bins):
        try:
            rows.append(ask(first + timedelta(seconds=number * traffic.recording.bin_s)))
        except InputError:
            break  # the end of the recorded time
    return np.array(rows, np.float64)


@kernel
def _row(elapsed_s, inside_us, bin_us):  # type: ignore[no-untyped-def]
    """Number of the bin so long after the start, to the microsecond as datetimes count."""
    whole = np.floor(elapsed_s)
    after_us = int(whole) * 1_000_000 + int(np.rint((elapsed_s - whole) * 1e6))
    return (inside_us + after_us) // bin_us


@kernel
def _label_setting(out, node, times, inside_us, bin_us, sources, target, arrival_s, by):  # type: ignore[no-untyped-def]
    """Fill in arrivals and the edges they came by; true where the rows ended too early.

    With forbidden turns these are arcs between states, each with its ``node``.
    """
    start, edge, other = out
    keys = np.empty(edge.size + sources.size + 1)
    nodes = np.empty(edge.size + sources.size + 1, np.int32)
    arrival_s[:] = np.inf
    by[:] = -1
    size = 0
    for s in sources:
        if arrival_s[s] > 0.0:
            arrival_s[s] = 0.0
            size = heap_push(keys, nodes, size, 0.0, s)
    cut = False
    while size:
        key = keys[0]
        u = nodes[0]
        if node[u] == target:
            return cut
        size = heap_pop(keys, nodes, size)
        if key > arrival_s[u]:
            continue
        row = _row(key, inside_us, bin_us)
        if row >= times.shape[0]:
            cut = True
            continue
        for k in range(start[u], start[u + 1]):
            reached = key + times[row, edge[k]]
            v = other[k]
            if reached < arrival_s[v]:
                arrival_s[v] = reached
                by[v] = edge[k]
                size = heap_push(keys, nodes, size, reached, v)
    return cut
