"""A recorded world: what its streets took, and a router that sees only the past."""

from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic
from ideal_dispatch.traffic.source import RouteQuote, require_zone

QUANTILES = (0.1, 0.9)
_FREE_FLOW = int(np.nanargmin(np.abs(RATIOS - 1.0)))


@dataclass(frozen=True, slots=True)
class RouterParams:
    """How the router of a recorded world makes its estimates.

    It pools the complete bins of the last ``window_s``, weighs them against
    ``prior_bins`` bins of the edge's long-run mean, and gives as optimistic and
    pessimistic duration the 10 % and 90 % quantiles of what it would have said
    about the same path every ``window_s`` over the last ``memory_s``.
    ``forward_s`` is the world's own: a street takes the mean of what it took in
    so many seconds from the moment it is entered.
    """

    window_s: float = 300.0
    prior_bins: float = 1.0
    memory_s: float = 3600.0
    forward_s: float = 120.0


class RecordedWorld:
    """Truth and router of recorded traffic.

    The truth of a bin in which nobody drove an edge is interpolated between
    the bins before and after it; the router never sees that. Its long-run
    means come from the stretches before the present one alone.
    """

    def __init__(self, recording: RecordedTraffic, params: RouterParams | None = None) -> None:
        self.recording, self.params = recording, params or RouterParams()
        self.network = recording.network
        for name in ("window_s", "memory_s", "forward_s"):
            if getattr(self.params, name) < recording.bin_s:
                raise InputError(
                    f"{name} {getattr(self.params, name):g}: at least one bin, "
                    f"{recording.bin_s} s, is needed"
                )
        self._window = round(self.params.window_s / recording.bin_s)
        self._filled = lru_cache(8)(self._fill)
        self._history = lru_cache(None)(self._long_run)
        self._estimate = lru_cache(256)(self._router_times)

    def describe(self) -> dict[str, Any]:
        """What a log of quotes should know about their source."""
        return {
            "engine": "recorded",
            "recording": self.recording.checksum,
            "router": asdict(self.params),
        }

    # --- what the router says ---------------------------------------------------

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path as the router believes, from complete past bins alone."""
        require_zone(at)
        stretch, present = self.recording.find(at)
        times, seen = self._estimate(stretch, present)
        path = self.network.shortest_path(times, origin, destination)
        optimistic, pessimistic = self._range(stretch, present, path.edges)
        inside = (at - self.recording.stretches[stretch].start).total_seconds()
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
            data_age_s=inside - present * self.recording.bin_s,
            fell_back=fell_back,
        )

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds per edge as the router believes at ``at``."""
        require_zone(at)
        return self._estimate(*self.recording.find(at))[0]

    def _router_times(self, stretch: int, present: int) -> tuple[FloatArray, bool]:
        """Times from the bins before ``present``, and whether any vehicle was seen in them."""
        codes = self.recording.stretches[stretch].codes[max(present - self._window, 0) : present]
        ratios = RATIOS[codes]
        seen = codes > 0
        count = seen.sum(axis=0)
        total = np.where(seen, ratios, 0.0).sum(axis=0)
        prior = self.params.prior_bins
        believed = (total + prior * self._history(stretch)) / (count + prior)
        times: FloatArray = believed * self.network.free_flow_times_s
        times.flags.writeable = False
        return times, bool(seen.any())

    def _long_run(self, stretch: int) -> FloatArray:
        """Mean ratio of each edge over all stretches before this one.

        An edge not seen before takes the mean of its road class, and all start
        at free flow.
        """
        edges = self.network.num_edges
        total, count = np.zeros(edges), np.zeros(edges)
        for earlier in self.recording.stretches[:stretch]:
            seen = earlier.codes > 0
            total += np.where(seen, RATIOS[earlier.codes], 0.0).sum(axis=0)
            count += seen.sum(axis=0)
        classes = self.network.road_class
        of_class = np.bincount(classes, total, 14) + 1.0
        of_class /= np.bincount(classes, count, 14) + 1.0
        mean: FloatArray = (total + of_class[classes]) / (count + 1.0)
        return mean

    def _range(self, stretch: int, present: int, edges: np.ndarray) -> tuple[float, float]:
        """Quantiles of what the router would have said about the path lately."""
        steps = int(self.params.memory_s // self.params.window_s)
        moments = [m for k in range(steps + 1) if (m := present - k * self._window) >= 0]
        said = [float(self._estimate(stretch, m)[0][edges].sum()) for m in moments]
        low, high = np.quantile(said, QUANTILES)
        return float(low), float(high)

    # --- what happened ----------------------------------------------------------

    def realised(self, edge: int, at: datetime) -> float:
        """Seconds that the edge took for who entered it at ``at``."""
        return float(self.realised_times(at)[edge])

    def realised_times(self, at: datetime) -> FloatArray:
        """Seconds of every edge for who enters it at ``at``."""
        require_zone(at)
        stretch, present = self.recording.find(at)
        times: FloatArray = self._filled(stretch)[present]
        return times

    def _fill(self, stretch: int) -> FloatArray:
        """Seconds of every bin and edge, pooled forward."""
        codes = np.asarray(self.recording.stretches[stretch].truth)
        logs = np.log(RATIOS[codes])
        seen = codes > 0
        bins = np.arange(len(codes))
        usual = np.log(self._usual)
        filled = np.empty(codes.shape, np.float32)
        for edge in range(codes.shape[1]):
            known = seen[:, edge]
            filled[:, edge] = (
                np.interp(bins, bins[known], logs[known, edge]) if known.any() else usual[edge]
            )
        ratios = np.exp(filled)
        ahead = round(self.params.forward_s / self.recording.bin_s)
        padded = np.concatenate([ratios, np.repeat(ratios[-1:], ahead - 1, axis=0)])
        sums = np.cumsum(np.concatenate([np.zeros_like(padded[:1]), padded]), axis=0, dtype=float)
        pooled = (sums[ahead:] - sums[:-ahead]) / ahead
        times: FloatArray = (pooled * self.network.free_flow_times_s).astype(np.float32)
        times.flags.writeable = False
        return times

    @cached_property
    def _usual(self) -> FloatArray:
        """Median ratio of each road class over the recording, for streets nobody drove."""
        classes = self.network.road_class.astype(np.int64)
        counts = np.zeros((14, 256))
        for stretch in self.recording.stretches:
            pairs = classes * 256 + np.asarray(stretch.truth)
            counts += np.bincount(pairs.ravel(), minlength=14 * 256).reshape(14, 256)
        counts[:, 0] = 0.0
        counts[:, _FREE_FLOW] += 1e-9  # a class nobody drove: free flow
        below = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
        medians: FloatArray = RATIOS[(below >= 0.5).argmax(axis=1)].astype(np.float64)
        return medians[classes]
