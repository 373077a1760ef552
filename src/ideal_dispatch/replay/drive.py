"""One ambulance driven through traffic ([IDEAL] appendix A)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, read_only
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.dispatch.situation import Assignment, TellsEdgeTimes
from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.outside_service import BudgetError
from ideal_dispatch.traffic.source import TellsTruth, TrafficSource


class World(StrEnum):
    """How long a road takes a vehicle that enters it.

    The *instantaneous* travel time, as in the paper: what the router shows at
    that moment. Or the *experienced* one: what really happens from then on.
    """

    INSTANTANEOUS = "instantaneous"
    EXPERIENCED = "experienced"

    @property
    def words(self) -> str:
        """Its name, and what it means."""
        if self is World.INSTANTANEOUS:
            meaning = "what the router shows when it is entered"
        else:
            meaning = "what really happens to whoever enters it"
        return f"{self} traffic (a road takes {meaning})"


class DriveError(IdealError):
    """A drive cannot be finished, as when it leaves the recorded time."""


@runtime_checkable
class Navigator(Protocol):
    """A source that gives the start of a quote more quickly than the whole of it."""

    def way_on(self, node: int, destination: int, at: datetime) -> tuple[int, float, float]:
        """First edge, its seconds and the whole duration of ``quote(node, destination, at)``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Drive:
    """The edges driven, the seconds each took, and what was expected before each.

    ``expected_s`` counts from the start of the drive: the time elapsed plus
    what the router then promised for the rest. On a prescribed segment the
    rest is that segment and the router's route from its end.
    """

    edges: IntArray
    seconds: FloatArray
    expected_s: FloatArray

    def __post_init__(self) -> None:
        edges = read_only(self.edges, np.int32, (None,), "driven edges")
        object.__setattr__(self, "edges", edges)
        for name in ("seconds", "expected_s"):
            values = read_only(getattr(self, name), np.float64, edges.shape, name)
            object.__setattr__(self, name, values)

    @property
    def total_s(self) -> float:
        """Seconds from the call to the arrival."""
        return float(self.seconds.sum())


def driving(
    source: TrafficSource,
    network: RoadNetwork,
    assignment: Assignment,
    destination: int,
    at: datetime,
    world: World,
) -> Iterator[datetime | Drive]:
    """A drive segment by segment: after each, when its end is reached; at last the drive.

    The adaptive procedure, or with ``assignment.follow`` edges the hybrid one: the
    prescribed edges are driven; after them the router is asked at every junction,
    and the first segment of its answer is driven. In instantaneous traffic a prescribed
    segment takes what the router says of that edge, or the duration of a quote between
    its ends where it gives no edge times. A :class:`DriveError` says where and why a drive
    could not go on.

    A router that is asked at a junction does not know by which road the ambulance came.
    Where a forbidden turn could follow from that, the route is the fastest legal one by
    the router's edge times; a router that gives none is followed.

    The router is asked as an item is taken: a drive in real time takes it at the moment of the
    item before.
    """
    truth = None
    if World(world) is World.EXPERIENCED:
        if not isinstance(source, TellsTruth):
            raise InputError(
                "experienced traffic needs a source that knows what really happened; drive in "
                "instantaneous traffic"
            )
        truth = source
    way, prefix = assignment.path, assignment.prefix
    if way.destination != destination:
        raise InputError(
            f"the ambulance's path ends at node {way.destination}, the call is at node "
            f"{destination}"
        )
    if assignment.follow < 0:
        raise InputError(f"follow {assignment.follow}: zero or more edges can be prescribed")
    network.path(way.edges, way.origin)  # refuses a path of another network
    require_zone(at)
    at = at.astimezone(UTC)  # where seconds can be added on any night of the year
    ask = source.way_on if isinstance(source, Navigator) else partial(_quoted, source)

    def way_on(node: int, behind: list[int], now: datetime) -> tuple[int, float, float]:
        turning = network.turn_graph.state_after(behind, node) != node
        if not (turning and isinstance(source, TellsEdgeTimes)):
            return ask(node, destination, now)
        times = source.router_times(now)
        path = network.shortest_path(times, node, destination, behind=behind)
        return int(path.edges[0]), float(times[path.edges[0]]), path.time_s(times)

    node, elapsed_s = way.origin, 0.0
    edges: list[int] = []
    seconds: list[float] = []
    expected_s: list[float] = []
    while node != destination:
        now = at + timedelta(seconds=elapsed_s)
        try:
            if len(edges) > network.num_edges + len(prefix):
                raise IdealError("it circles: the router keeps changing its route")
            if len(edges) < len(prefix):
                edge = prefix[len(edges)]
                end = int(network.head[edge])
                shown_s = edge_shown_s(source, network, edge, now)
                rest_s = 0.0 if end == destination else way_on(end, [*edges, edge], now)[2]
                promised_s = shown_s + rest_s
            else:
                edge, shown_s, promised_s = way_on(node, edges, now)
            took_s = shown_s if truth is None else truth.realised(edge, now)
        except (PluginError, BudgetError):
            raise
        except IdealError as error:
            raise DriveError(
                f"drive from node {way.origin} to node {destination} ends at "
                f"node {node} after {elapsed_s:.0f} s: {error}"
            ) from None
        edges.append(edge)
        seconds.append(took_s)
        expected_s.append(elapsed_s + promised_s)
        elapsed_s += took_s
        node = int(network.head[edge])
        yield at + timedelta(seconds=elapsed_s)
    yield Drive(np.array(edges, np.int32), np.array(seconds), np.array(expected_s))


def drive(
    source: TrafficSource,
    network: RoadNetwork,
    assignment: Assignment,
    destination: int,
    at: datetime,
    world: World,
) -> Drive:
    """The :class:`Drive` that :func:`driving` ends with, without waiting for it."""
    steps = driving(source, network, assignment, destination, at, world)
    return next(one for one in steps if isinstance(one, Drive))


def _quoted(
    source: TrafficSource, node: int, destination: int, at: datetime
) -> tuple[int, float, float]:
    """The way on from a source that only gives quotes."""
    quote = source.quote(node, destination, at)
    return int(quote.path.edges[0]), quote.next_segment_s, quote.duration_s


def edge_shown_s(source: TrafficSource, network: RoadNetwork, edge: int, now: datetime) -> float:
    """What the router says of one segment."""
    if isinstance(source, TellsEdgeTimes):
        return float(source.router_times(now)[edge])
    return source.quote(int(network.tail[edge]), int(network.head[edge]), now).duration_s
