"""The router of recorded traffic: it sees only complete bins of the past."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.routing import remaining
from ideal_dispatch.ranges import Checked, Positive, Range, Share
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic
from ideal_dispatch.traffic.source import RouteQuote

QUANTILES = {"last-hour": (0.1, 0.9), "days": (0.05, 0.95)}
"""Quantiles of a router's own past estimates that make its range, by the kind of range."""

_TIE = 1e-9  # far above what rounding does to sums along a path
_TIED = -2


@dataclass(frozen=True, slots=True)
class RouterParams(Checked):
    """How the router of recorded traffic makes its estimates.

    It pools the complete bins of the last ``window_s`` and weighs them against
    ``prior_bins`` bins of the edge's long-run mean.

    Its optimistic and pessimistic durations are one of two kinds. Those of the
    ``last-hour`` are the 10 % and 90 % quantiles of what it would have said about
    the same path every ``window_s`` over the last ``memory_s``. Those of ``days`` are
    statements about days, as Google's traffic models are: the 5 % and 95 % quantiles
    of what it would have said on earlier days within ``memory_s`` / 2 of that time of
    day, moved towards the present estimate by ``now_share`` of the way (in the logarithm).
    Where no earlier day has that time, they are those of the last hour. The best guess
    may lie outside of such a range, as Google's may.

    An alternative is its best path when the edges of the first cost
    ``alternative_factor`` times as much. ``forward_s`` is not the router's but the
    truth's: a road takes the mean of what it took in so many seconds from the
    moment it is entered. Of every stretch of time the whole bins within it count.
    """

    window_s: float = 300.0
    prior_bins: Positive = 1.0
    memory_s: float = 3600.0
    forward_s: float = 120.0
    alternative_factor: Annotated[float, Range(1, above=True)] = 1.4
    ranges: Literal["last-hour", "days"] = "last-hour"
    now_share: Share = 0.25


class RecordedRouter:
    """Quotes from what a recording has seen before the moment of the question.

    Long-run means come from the stretches before the present one alone. The age
    of the data is that of the newest complete bin with a vehicle, also in an
    earlier stretch, and NaN where none was seen yet.
    """

    def __init__(self, recording: RecordedTraffic, params: RouterParams | None = None) -> None:
        self.recording, self.params = recording, params or RouterParams()
        self.network = recording.network
        for name in ("window_s", "memory_s", "forward_s"):
            if not recording.bin_s <= getattr(self.params, name) < np.inf:
                raise InputError(
                    f"{name} {getattr(self.params, name):g}: at least one bin, "
                    f"{recording.bin_s} s, is needed"
                )
        self._window = int(self.params.window_s // recording.bin_s)
        self._history = lru_cache(None)(self._long_run)
        self._seen = lru_cache(None)(
            lambda stretch: np.flatnonzero(recording.stretches[stretch].codes.any(axis=1))
        )
        self._estimate = lru_cache(256)(self._router_times)
        self._towards = lru_cache(256)(self._first_arcs)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle: what was recorded, without what was derived from it."""
        return RecordedRouter, (self.recording, self.params)

    def on(self, network: RoadNetwork) -> "RecordedRouter":
        """The same router on the same roads, of which others are closed."""
        if network is self.network:
            return self
        made = object.__new__(RecordedRouter)
        vars(made).update(vars(self), network=network)
        made._towards = lru_cache(256)(made._first_arcs)
        return made

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path as the router believes, from complete past bins alone."""
        times, _ = self._estimate(*self.recording.find(at))
        return self._quote(self.network.shortest_path(times, origin, destination), at)

    def alternative(self, avoid: Path, at: datetime) -> RouteQuote | None:
        """The fastest path where ``avoid`` costs more; None where it is ``avoid`` again."""
        self.network.path(avoid.edges, avoid.origin)  # refuses a path of another network
        times, _ = self._estimate(*self.recording.find(at))
        penalised = times.copy()
        penalised[avoid.edges] *= self.params.alternative_factor
        path = self.network.shortest_path(penalised, avoid.origin, avoid.destination)
        return None if path == avoid else self._quote(path, at)

    def _quote(self, path: Path, at: datetime) -> RouteQuote:
        """The router's quote for a path."""
        stretch, present = self.recording.find(at)
        times, seen = self._estimate(stretch, present)
        optimistic, pessimistic = self._range(stretch, present, path, times)
        fell_back = "" if seen else (
            f"no vehicle seen in the last {self.params.window_s:g} s; long-run means used"
        )  # fmt: skip
        return RouteQuote(
            path=path,
            duration_s=path.time_s(times),
            next_segment_s=float(times[path.edges[0]]) if len(path) else 0.0,
            optimistic_s=optimistic,
            pessimistic_s=pessimistic,
            asked_at=at,
            data_age_s=self._age_s(stretch, present, at),
            fell_back=fell_back,
        )

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds per edge as the router believes at ``at``."""
        return self._estimate(*self.recording.find(at))[0]

    def way_on(self, node: int, destination: int, at: datetime) -> tuple[int, float, float]:
        """First edge, its seconds and the duration of what :meth:`quote` would answer.

        Read off one tree per bin and destination. Where two edges lead on
        equally fast, the canonical shortest path is asked, as a quote does.
        """
        if node == destination:
            raise InputError(f"node {node} is the destination: there is no way on from it")
        first, remaining_s, times = self._towards(*self.recording.find(at), destination)
        arc = int(first[node])
        if arc < 0:  # tied, or there is no way and this says so
            edge = int(self.network.shortest_path(times, node, destination).edges[0])
        else:
            edge = int(self.network.turn_graph.edge[arc])
        return edge, float(times[edge]), float(remaining_s[node])

    def _first_arcs(
        self, stretch: int, present: int, destination: int
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        times, _ = self._estimate(stretch, present)
        remaining_s, graph = remaining(self.network, times, destination), self.network.turn_graph
        first = np.empty(self.network.num_nodes, np.int32)
        _read_tree(graph.out, graph.costs(times), remaining_s, first)
        return first, remaining_s, times

    def _age_s(self, stretch: int, present: int, at: datetime) -> float:
        """Seconds since the newest complete bin with a vehicle anywhere; NaN before the first."""
        for number in range(stretch, -1, -1):
            seen = self._seen(number)
            newest = seen[: np.searchsorted(seen, present) if number == stretch else None][-1:]
            if newest.size:
                end_s = (int(newest[0]) + 1) * self.recording.bin_s
                return (at - self.recording.starts[number]).total_seconds() - end_s
        return np.nan

    def _router_times(self, stretch: int, present: int) -> tuple[FloatArray, bool]:
        """Times from the bins before ``present``, and whether any vehicle was seen in them."""
        codes, history = self.recording.stretches[stretch].codes, self._history(stretch)
        times = np.empty(self.network.num_edges)
        seen = _believe(
            codes, max(present - self._window, 0), present, RATIOS, history,
            float(self.params.prior_bins), times,
        )  # fmt: skip
        times *= self.network.free_flow_times_s
        times.flags.writeable = False
        return times, bool(seen)

    def _long_run(self, stretch: int) -> FloatArray:
        """Mean ratio of each edge over all stretches before this one.

        An edge not seen before takes the mean of its road class, and all start
        at free flow.
        """
        total, count = self._totals[stretch]
        classes = self.network.road_class
        of_class = np.bincount(classes, total, len(ROAD_CLASSES)) + 1.0
        of_class /= np.bincount(classes, count, len(ROAD_CLASSES)) + 1.0
        mean: FloatArray = (total + of_class[classes]) / (count + 1.0)
        return mean

    @cached_property
    def _totals(self) -> list[tuple[FloatArray, FloatArray]]:
        """Per stretch, sum and number of the ratios seen on each edge before it."""
        totals = [(np.zeros(self.network.num_edges), np.zeros(self.network.num_edges))]
        for earlier in self.recording.stretches[:-1]:
            total, count = (known.copy() for known in totals[-1])
            _add(earlier.codes, RATIOS, total, count)
            totals.append((total, count))
        return totals

    def _range(
        self, stretch: int, present: int, path: Path, times: FloatArray
    ) -> tuple[float, float]:
        """Optimistic and pessimistic seconds of a path."""
        window, params = self._window, self.params
        moments, kind = [], params.ranges  # stretches, and the ends of bins that count in each
        if kind == "days":
            reach = int(params.memory_s / 2 // params.window_s)
            around = window * np.arange(-reach, reach + 1, dtype=np.int32)
            now_s, bin_s = self._midnight_s(stretch), self.recording.bin_s
            for number in range(stretch):
                ends = around + present + round((now_s - self._midnight_s(number)) / bin_s)
                bins = self.recording.stretches[number].bins
                moments.append((number, ends[(ends >= window) & (ends <= bins)]))
        said = [s for number, ends in moments for s in self._said(number, ends, path.edges)]
        if said:
            now_s, share = path.time_s(times), params.now_share
            low, high = (s ** (1 - share) * now_s**share for s in _quantiles(said, kind))
            return low, high
        steps = int(params.memory_s // params.window_s) + 1
        ends = present - window * np.arange(min(steps, present // window + 1), dtype=np.int32)
        low, high = _quantiles(self._said(stretch, ends, path.edges), "last-hour")
        return low, high

    def _said(self, stretch: int, ends: IntArray, edges: IntArray) -> list[float]:
        """Seconds of a path as believed at the end of each numbered bin of a stretch."""
        said: list[float] = _said_at(
            self.recording.stretches[stretch].codes, ends, self._window, edges, RATIOS,
            self._history(stretch), float(self.params.prior_bins), self.network.free_flow_times_s,
        ).tolist()  # fmt: skip
        return said

    def _midnight_s(self, stretch: int) -> float:
        """Seconds from local midnight until a stretch begins."""
        start = self.recording.calendar.local(self.recording.stretches[stretch].start)
        return start.hour * 3600.0 + start.minute * 60.0 + start.second


def _quantiles(values: list[float], kind: str) -> list[float]:
    """As np.quantile, which takes forty times as long for a dozen values."""
    values.sort()
    found = []
    for share in QUANTILES[kind]:
        place = share * (len(values) - 1)
        below = int(place)
        above = min(below + 1, len(values) - 1)
        found.append(values[below] + (place - below) * (values[above] - values[below]))
    return found


@kernel
def _add(codes, ratios, total, count):  # type: ignore[no-untyped-def]
    """Add to each edge's sum and number the ratios seen."""
    for row in range(len(codes)):
        for edge in range(total.size):
            if codes[row, edge]:
                total[edge] += ratios[codes[row, edge]]
                count[edge] += 1


@kernel
def _believed(codes, first, last, edge, ratios, history, prior):  # type: ignore[no-untyped-def]
    """Mean ratio of an edge over some bins and its history; how often a vehicle was seen.

    The bins are ``first`` to before ``last``; the history weighs as ``prior`` bins.
    """
    total, count = 0.0, 0.0
    for row in range(first, last):
        if codes[row, edge]:
            total += ratios[codes[row, edge]]
            count += 1
    return (total + prior * history[edge]) / (count + prior), count


@kernel
def _believe(codes, first, last, ratios, history, prior, believed):  # type: ignore[no-untyped-def]
    """Fill in what is :func:`_believed` of every edge; whether a vehicle was seen anywhere."""
    seen = 0.0
    for edge in range(believed.size):
        believed[edge], count = _believed(codes, first, last, edge, ratios, history, prior)
        seen += count
    return seen > 0.0


@kernel
def _said_at(codes, ends, window, edges, ratios, history, prior, free_flow_s):  # type: ignore[no-untyped-def]
    """Seconds of a path as believed after the bins before each of the ``ends``."""
    said = np.zeros(ends.size)
    for k in range(ends.size):
        for e in edges:
            ratio, _ = _believed(
                codes, max(ends[k] - window, 0), ends[k], e, ratios, history, prior
            )
            said[k] += ratio * free_flow_s[e]
    return said


@kernel
def _read_tree(out, times, remaining_s, first):  # type: ignore[no-untyped-def]
    """The edge that leads on from every node; ``_TIED`` where there are several, or none.

    With forbidden turns it is an arc, and ``remaining_s`` is that of every state.
    """
    start, edge, other = out
    for node in range(first.size):
        best, second, found = np.inf, np.inf, _TIED
        for k in range(start[node], start[node + 1]):
            total = times[edge[k]] + remaining_s[other[k]]
            if total < best:
                best, second, found = total, best, edge[k]
            elif total < second:
                second = total
        first[node] = found if second > best * (1.0 + _TIE) else _TIED
