"""The optimistic time gap: what a second ambulance could plausibly gain, and the proof."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.gap import certificate, dca, starts
from ideal_dispatch.gap.certificate import Proof
from ideal_dispatch.gap.problem import NO_RADIUS, GapProblem
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Source, as_sources
from ideal_dispatch.scenarios import ScenarioSet

TOLERANCE_S = 1e-6
"""An exact gap is known to within this many seconds."""

Method = Literal["certified", "multistart", "dca"]
Status = Literal["exact", "decided", "open"]


@dataclass(frozen=True, slots=True, eq=False)
class OptimisticGap:
    """How much sooner a second ambulance could plausibly arrive, in seconds ([IDEAL] δ).

    ``lower_s`` is attained by ``metric`` and ``secondary``; ``upper_s`` is proved.
    The true gap lies between them; DCA alone gives only the lower end. ``status``
    is "exact" where they meet, "decided" where they lie on one side of
    ``threshold_s``, else "open". The gap is negative only if the primary starts
    where no second ambulance does.
    """

    lower_s: float
    upper_s: float
    secondary: Path
    metric: FloatArray
    status: Status
    method: Method
    threshold_s: float | None
    proof: Proof

    @property
    def worth_sending(self) -> bool | None:
        """Whether the gap exceeds the threshold; None where that is not proved."""
        if self.threshold_s is None:
            return None
        if self.lower_s > self.threshold_s:
            return True
        return False if self.upper_s <= self.threshold_s + TOLERANCE_S else None

    def verify(
        self,
        network: RoadNetwork,
        scenarios: ScenarioSet,
        depots: Source | Sequence[Source],
        destination: int,
        primary: Path,
    ) -> None:
        """Recompute every claim by other means; raises on any lie."""
        from ideal_dispatch.gap.verification import verify

        verify(self, GapProblem.ask(network, scenarios, depots, destination, primary))


def optimistic_gap(
    network: RoadNetwork,
    scenarios: ScenarioSet,
    depots: Source | Sequence[Source],
    destination: int,
    primary: Path,
    *,
    method: Method = "certified",
    threshold_s: float | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> OptimisticGap:
    """The optimistic gap δ = max over scenarios of (primary − fastest), as an interval.

    ``depots`` are those with a further unit, the primary's own included if it
    has one. Methods: "certified" proves the gap, or only which side of
    ``threshold_s`` it lies on if that is given, and begins nothing new after
    ``time_limit_s`` but returns the interval reached; "multistart" is its first part; "dca" is
    [IDEAL] Algorithm 2 as printed, for which alone ``seed`` matters. The latter
    two come with the bound at the depots as upper end.
    """
    threshold_s = _checked_seconds(threshold_s, "threshold")
    time_limit_s = _checked_seconds(time_limit_s, "time limit")
    deadline = None if time_limit_s is None else time.perf_counter() + time_limit_s
    problem = GapProblem.ask(network, scenarios, depots, destination, primary)
    if scenarios.radius < NO_RADIUS:
        return _nominal(problem, method, threshold_s)
    if method == "certified":
        return _certified(problem, threshold_s, deadline)
    if method == "multistart":
        found = starts.best_start(problem)
    elif method == "dca":
        run = dca.estimate(problem, np.random.default_rng(seed))
        found = starts.Start(run.gap_s, run.metric, run.secondary)
    else:
        raise InputError(f"method {method!r} is none of certified, multistart, dca")
    bound = certificate.bound_at_depots(problem, found.gap_s)
    return _answer(found, bound.upper_s, bound.proof, method, threshold_s)


def pairwise_gap(
    network: RoadNetwork,
    scenarios: ScenarioSet,
    depots: Sequence[Source],
    destination: int,
    primary: Path,
    *,
    threshold_s: float | None = None,
    time_limit_s: float | None = None,
) -> OptimisticGap:
    """The paper's form for many depots: each pair on its own, and the largest gap of all.

    Unlike the paper, :func:`optimistic_gap` takes all depots at once; both give
    the same gap. The interval is the largest lower and the largest upper end; the
    proof is that of the best pair alone. The time limit is for each pair.
    """
    given = as_sources(depots)
    pairs: list[tuple[Source, ...]] = [*itertools.combinations(given, 2)] or [tuple(given)]
    gaps = [
        optimistic_gap(
            network, scenarios, pair, destination, primary,
            threshold_s=threshold_s, time_limit_s=time_limit_s,
        )
        for pair in pairs
    ]  # fmt: skip
    best = max(gaps, key=lambda gap: gap.lower_s)
    upper_s = max(gap.upper_s for gap in gaps)
    return replace(best, upper_s=upper_s, status=_status(best.lower_s, upper_s, threshold_s))


def _certified(
    problem: GapProblem, threshold_s: float | None, deadline: float | None
) -> OptimisticGap:
    if threshold_s is not None:
        quick = certificate.bound_at_depots(problem, threshold_s)
        if quick.closed:  # no path can exceed it: one descent for a path to show is enough
            found = starts.best_start(problem, enough_s=-np.inf)
            return _answer(found, quick.upper_s, quick.proof, "certified", threshold_s)
    if threshold_s is None:
        found = starts.best_start(problem)
    else:  # the proof would find what one round misses
        found = starts.best_start(problem, threshold_s, rounds=1)
    if threshold_s is not None and found.gap_s > threshold_s:
        bound = certificate.bound_at_depots(problem, found.gap_s)
        return _answer(found, bound.upper_s, bound.proof, "certified", threshold_s)
    target_s = found.gap_s + TOLERANCE_S / 2 if threshold_s is None else threshold_s
    left_s = None if deadline is None else max(0.0, deadline - time.perf_counter())
    outcome = certificate.search(
        problem, target_s, stop_at_found=threshold_s is not None, time_limit_s=left_s
    )
    if outcome.found is not None:
        found = starts.polished(problem, outcome.found)
    return _answer(found, outcome.upper_s, outcome.proof, "certified", threshold_s)


def _nominal(problem: GapProblem, method: Method, threshold_s: float | None) -> OptimisticGap:
    """The gap of a set with one scenario: the difference of nominal times."""
    found = starts.best_start(problem)
    empty = certificate.nothing_proved(problem)
    gap = _answer(found, found.gap_s, empty, method, threshold_s)
    return replace(gap, status="exact")


def _answer(
    found: starts.Start, upper_s: float, proof: Proof, method: Method, threshold_s: float | None
) -> OptimisticGap:
    upper_s = max(upper_s, found.gap_s)
    status = _status(found.gap_s, upper_s, threshold_s)
    return OptimisticGap(
        found.gap_s, upper_s, found.secondary, found.metric, status, method, threshold_s, proof
    )


def _status(lower_s: float, upper_s: float, threshold_s: float | None) -> Status:
    if upper_s - lower_s <= TOLERANCE_S:
        return "exact"
    decided = threshold_s is not None and (lower_s > threshold_s or upper_s <= threshold_s)
    return "decided" if decided else "open"


def _checked_seconds(value: float | None, what: str) -> float | None:
    if value is None:
        return None
    seconds = float(value)
    if not 0 <= seconds < np.inf:
        raise InputError(f"{what} is {value} s; it must be finite and zero or more")
    return seconds
