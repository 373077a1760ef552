"""What calls are driven in: recorded traffic that happens again, or the quotes of a live router.

In a bin without a vehicle on an edge, the truth is interpolated between the bins
before and after it. A road without a vehicle in the whole stretch takes the
median of its road class. No router sees any of that.
"""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, whole_number
from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.outside_service import RequestBudget
from ideal_dispatch.plugins import ask_plugin
from ideal_dispatch.traffic.recorded_router import RecordedRouter, RouterParams
from ideal_dispatch.traffic.recording import RATIOS, Codes, RecordedTraffic
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

_OFFERED = ("alternative", "router_times", "way_on")
_EDGES_AT_A_TIME = 1024
_FREE_FLOW = int(np.nanargmin(np.abs(RATIOS - 1.0)))


class ReplayedTraffic:
    """What calls are replayed in: the quotes of a router, and the truth of a recording.

    The router is the recording's own, or ``source``. Other routes and edge times are
    offered where the router offers them, and the quick way on by the recording's own
    (see :class:`~ideal_dispatch.replay.drive.Navigator`).
    """

    alternative: Callable[[Path, datetime], RouteQuote | None]
    router_times: Callable[[datetime], FloatArray]
    way_on: Callable[[int, int, datetime], tuple[int, float, float]]

    def __init__(
        self,
        recording: RecordedTraffic,
        params: RouterParams | None = None,
        source: TrafficSource | None = None,
    ) -> None:
        self.recording, self.network, self.source = recording, recording.network, source
        self._recorded = RecordedRouter(recording, params)
        self.params = self._recorded.params
        self._router: Any = (
            self._recorded if source is None else CheckedSource(source, self.network)
        )
        for name in _OFFERED:
            if hasattr(self._router, name):
                setattr(self, name, getattr(self._router, name))
        self._filled = lru_cache(8)(self._fill)

    def __reduce__(self) -> tuple[Any, ...]:
        return ReplayedTraffic, (self.recording, self.params, self.source)

    @property
    def calendar(self) -> Calendar:
        """Local time and holidays there."""
        return self.recording.calendar

    def context(self, at: datetime) -> Context:
        """What was known of a recorded moment."""
        return self.recording.context(at)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The router's best route and what it promises."""
        quote: RouteQuote = self._router.quote(origin, destination, at)
        return quote

    def realised(self, edge: int, at: datetime) -> float:
        """Seconds that the edge took for a vehicle that entered it at ``at``."""
        if not 0 <= edge < self.network.num_edges:
            raise InputError(f"edge {edge}: there are 0 … {self.network.num_edges - 1}")
        return float(self.realised_times(at)[edge])

    def realised_times(self, at: datetime) -> FloatArray:
        """Seconds of every edge for a vehicle that enters it at ``at``."""
        stretch, present = self.recording.find(at)
        times: FloatArray = self._filled(stretch)[present]
        return times

    def _fill(self, stretch: int) -> FloatArray:
        """Seconds of every bin and edge: the mean of ``forward_s`` from that bin on."""
        codes, network = np.asarray(self.recording.stretches[stretch].truth), self.network
        filled, usual = np.empty(codes.shape, np.float32), np.log(_usual(codes, network))
        for first in range(0, codes.shape[1], _EDGES_AT_A_TIME):
            part = slice(first, first + _EDGES_AT_A_TIME)
            filled[:, part] = _interpolated(codes[:, part], usual[part])
        ratios = np.exp(filled)
        ahead = int(self.params.forward_s // self.recording.bin_s)
        padded = np.concatenate([ratios, np.repeat(ratios[-1:], ahead - 1, axis=0)])
        sums = np.cumsum(np.concatenate([np.zeros_like(padded[:1]), padded]), axis=0, dtype=float)
        pooled = (sums[ahead:] - sums[:-ahead]) / ahead
        times: FloatArray = (pooled * network.free_flow_times_s).astype(np.float32)
        times.flags.writeable = False
        return times


class PresentTraffic:
    """What calls are driven in as they happen: the quotes of a live router.

    ``driver`` is the router that is asked on the way, ``source`` itself by default.
    A router that does not count its requests in ``budget`` has each question counted
    there. The weather is not known.
    """

    alternative: Callable[[Path, datetime], RouteQuote | None]
    router_times: Callable[[datetime], FloatArray]

    def __init__(
        self,
        network: RoadNetwork,
        calendar: Calendar,
        source: TrafficSource,
        budget: RequestBudget,
        driver: TrafficSource | None = None,
    ) -> None:
        self.network, self.calendar, self.source = network, calendar, source
        self._router, self.driver = (
            CheckedSource(one, network, None if getattr(one, "budget", None) is budget else budget)
            for one in (source, driver or source)
        )
        for name in ("alternative", "router_times"):
            if hasattr(self._router, name):
                setattr(self, name, getattr(self._router, name))

    def context(self, at: datetime) -> Context:
        """The calendar of that moment."""
        return self.calendar.context(at)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The router's best route and what it promises."""
        return self._router.quote(origin, destination, at)


def _usual(codes: Codes, network: RoadNetwork) -> FloatArray:
    """Median ratio of each edge's road class, for roads without a vehicle."""
    classes = network.road_class.astype(np.int64)
    pairs, size = classes * 256 + codes, len(ROAD_CLASSES)
    counts = np.bincount(pairs.ravel(), minlength=size * 256).reshape(size, 256).astype(float)
    counts[:, 0] = 0.0
    counts[:, _FREE_FLOW] += 1e-9  # a class without a vehicle: free flow
    below = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    medians: FloatArray = RATIOS[(below >= 0.5).argmax(axis=1)].astype(np.float64)
    return medians[classes]


def _interpolated(codes: Codes, usual: FloatArray) -> FloatArray:
    """Logarithms of the ratios, on a line between the bins seen; ``usual`` where none was."""
    logs = np.log(RATIOS[codes]).astype(np.float64)
    bins = np.arange(len(codes))[:, None]
    before = np.maximum.accumulate(np.where(codes > 0, bins, -1))
    after = np.minimum.accumulate(np.where(codes > 0, bins, len(codes))[::-1])[::-1]
    before, after = (
        np.where(before < 0, after, before),
        np.where(after == len(codes), before, after),
    )
    never = before[0] == len(codes)
    before[:, never] = after[:, never] = 0
    start = np.take_along_axis(logs, before, axis=0)
    rise = np.take_along_axis(logs, after, axis=0) - start
    line = rise / np.maximum(after - before, 1) * (bins - before) + start
    filled: FloatArray = np.where(never, usual, np.where(after == before, start, line))
    return filled


class CheckedSource:
    """A plug-in router, whose answers are checked.

    With a ``budget`` every question is counted, before it is asked.
    """

    quote: Callable[[int, int, datetime], RouteQuote]

    def __init__(
        self, source: TrafficSource, network: RoadNetwork, budget: RequestBudget | None = None
    ) -> None:
        self._network, self._budget = network, budget
        for name in ("quote", *_OFFERED):
            if hasattr(source, name):
                who, method = f"traffic source {type(source).__name__}", getattr(source, name)
                check = getattr(self, f"_{name}")
                setattr(self, name, partial(self._asked, who, method, check))

    def _asked(
        self, who: str, method: Callable[..., Any], check: Callable[..., Any], *question: Any
    ) -> Any:
        if self._budget is not None:
            self._budget.spend(who)
        return ask_plugin(who, method, *question, check=check)

    def _quote(self, answer: Any, origin: int, destination: int, at: datetime) -> RouteQuote:
        if not isinstance(answer, RouteQuote):
            raise InputError(f"{answer!r}; a RouteQuote is needed")
        path = answer.path
        self._network.path(path.edges, path.origin)  # refuses a path of another network
        if (path.origin, path.destination) != (origin, destination):
            raise InputError(f"asked from {origin} to {destination}, it gives {path}")
        return answer

    def _alternative(self, answer: Any, avoid: Path, at: datetime) -> RouteQuote | None:
        return None if answer is None else self._quote(answer, avoid.origin, avoid.destination, at)

    def _way_on(
        self, answer: Any, node: int, destination: int, at: datetime
    ) -> tuple[int, float, float]:
        edge, *seconds = answer
        if not 0 <= whole_number(edge, "edge") < self._network.num_edges:
            raise InputError(f"edge {edge}; there are 0 … {self._network.num_edges - 1}")
        if self._network.tail[edge] != node:
            raise InputError(f"edge {edge}, which does not begin at node {node}")
        edge_s, whole_s = (float(one) for one in seconds)
        if not (0.0 <= edge_s < np.inf and 0.0 <= whole_s < np.inf):
            raise InputError(f"{edge_s} s and {whole_s} s; finite seconds are needed")
        return int(edge), edge_s, whole_s

    def _router_times(self, answer: Any, at: datetime) -> FloatArray:
        times = np.asarray(answer, np.float64)
        if times.shape != (self._network.num_edges,) or not (times >= 0).all():
            raise InputError(
                f"an array of shape {times.shape}; seconds of zero or more are needed for each of "
                f"{self._network.num_edges} edges"
            )
        return times
