"""The optimistic time gap: what a second ambulance could plausibly gain, and the proof."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ideal_dispatch.arrays import FloatArray, frozen, non_negative
from ideal_dispatch.errors import InputError
from ideal_dispatch.gap import dca, starts
from ideal_dispatch.gap.certificate import Proof, Search
from ideal_dispatch.gap.problem import NO_RADIUS, GapProblem
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Source, as_sources, source_node
from ideal_dispatch.scenarios import ScenarioSet

TOLERANCE_S = 1e-6
"""An exact gap is known to within this many seconds."""

_FIRST_POPS = 8  # labels before the starts: where they do not decide, hundreds would not either
_SECOND_POPS = 64
_LIKELY_BELOW = 2.0  # a first bound below this many times the threshold mostly ends below it

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
        return side_of(self.lower_s, self.upper_s, self.threshold_s)

    def verify(
        self,
        network: RoadNetwork,
        scenarios: ScenarioSet,
        depots: Source | Sequence[Source],
        destination: int,
        primary: Path,
        primary_from: Source | None = None,
    ) -> None:
        """Recompute every claim by other means; raises on any lie."""
        from ideal_dispatch.gap.verification import verify

        asked = network, scenarios, depots, destination, primary, primary_from
        verify(self, GapProblem.ask(*asked))


def optimistic_gap(
    network: RoadNetwork,
    scenarios: ScenarioSet,
    depots: Source | Sequence[Source],
    destination: int,
    primary: Path,
    primary_from: Source | None = None,
    *,
    method: Method = "certified",
    threshold_s: float | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> OptimisticGap:
    """The optimistic gap δ = max over scenarios of (primary − fastest), as an interval.

    ``depots`` are those with a further unit, the primary's own included if it
    has one. What a unit on the road has left of its edge is included
    (:class:`~ideal_dispatch.network.Depot`), also that of the primary, ``primary_from``.
    Methods: "certified" proves the gap, or only which side of
    ``threshold_s`` it lies on if that is given, and begins nothing new after
    ``time_limit_s`` but returns the interval reached; "multistart" is its first
    part; "dca" is [IDEAL] Algorithm 2 as printed, for which alone ``seed``
    matters. The latter two come with the bound at the depots as upper end.
    """
    if method not in get_args(Method):
        raise InputError(f"method {method!r} is none of {', '.join(get_args(Method))}")
    if threshold_s is not None:
        threshold_s = non_negative(threshold_s, "threshold", seconds=True)
    deadline = np.inf
    if time_limit_s is not None:
        deadline = time.perf_counter() + non_negative(time_limit_s, "time limit", seconds=True)
    problem = GapProblem.ask(network, scenarios, depots, destination, primary, primary_from)
    if scenarios.radius < NO_RADIUS:
        found = starts.best_start(problem)
        search = Search(problem, found.gap_s, stop_at_found=True)  # every depot open
    elif method == "certified":
        if threshold_s is None:
            found, search = _exact(problem, deadline)
        else:
            found, search = _decided(problem, threshold_s, deadline)
        if search.found is not None:
            found = starts.best_start(problem, rounds=0, second=search.found)
    else:
        if method == "multistart":
            found = starts.best_start(problem, deadline=deadline)
        else:
            found = dca.estimate(problem, dca.generator(seed))
        search = _bound_at_depots(problem, found.gap_s)
    upper_s = found.gap_s
    if scenarios.radius >= NO_RADIUS:
        upper_s = max(upper_s, search.upper_s)
    status = status_of(found.gap_s, upper_s, threshold_s)
    return OptimisticGap(
        found.gap_s, upper_s, found.secondary, frozen(found.metric), status, method, threshold_s,
        search.proof,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseGap:
    """The gaps of all pairs of depots, of which the largest is the gap of all."""

    pairs: tuple[tuple[tuple[Source, ...], OptimisticGap], ...]
    threshold_s: float | None

    @property
    def best(self) -> OptimisticGap:
        """The gap of the pair with the largest lower end."""
        return max((gap for _, gap in self.pairs), key=lambda gap: gap.lower_s)

    @property
    def lower_s(self) -> float:
        return self.best.lower_s

    @property
    def upper_s(self) -> float:
        return max(gap.upper_s for _, gap in self.pairs)

    @property
    def status(self) -> Status:
        return status_of(self.lower_s, self.upper_s, self.threshold_s)

    @property
    def worth_sending(self) -> bool | None:
        return side_of(self.lower_s, self.upper_s, self.threshold_s)


def pairwise_gap(
    network: RoadNetwork,
    scenarios: ScenarioSet,
    depots: Source | Sequence[Source],
    destination: int,
    primary: Path,
    primary_from: Source | None = None,
    *,
    method: Method = "certified",
    threshold_s: float | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> PairwiseGap:
    """The paper's form for many depots: :func:`optimistic_gap` of each pair on its own.

    The exact gap is that of all depots at once; estimates by Algorithm 2 may differ.
    Depots from which there is no way are left out; the time limit is for each pair.
    """
    reach = GapProblem.ask(network, scenarios, depots, destination, primary).nominal_to_destination
    given = [depot for depot in as_sources(depots) if np.isfinite(reach[source_node(depot)])]
    pairs = tuple(
        (pair, optimistic_gap(network, scenarios, pair, destination, primary, primary_from,
                              method=method, threshold_s=threshold_s, time_limit_s=time_limit_s,
                              seed=seed))
        for pair in itertools.combinations(given, min(2, len(given)))
    )  # fmt: skip
    return PairwiseGap(pairs, threshold_s)


def side_of(lower_s: float, upper_s: float, threshold_s: float | None) -> bool | None:
    """Whether the interval lies above the threshold, or below it to within the tolerance."""
    if threshold_s is None:
        return None
    if lower_s > threshold_s:
        return True
    return False if upper_s <= threshold_s + TOLERANCE_S else None


def status_of(lower_s: float, upper_s: float, threshold_s: float | None) -> Status:
    """What an interval proves."""
    if upper_s - lower_s <= TOLERANCE_S:
        return "exact"
    return "open" if side_of(lower_s, upper_s, threshold_s) is None else "decided"


def _bound_at_depots(problem: GapProblem, target_s: float) -> Search:
    """The quickest bound: one base at each depot; closed if it is no more than the target."""
    return Search(problem, target_s, stop_at_found=True).run(most_pops=problem.depots.size)


def _exact(problem: GapProblem, deadline: float) -> tuple[dca.AttainedGap, Search]:
    """The gap to within the tolerance: the starts, then the narrowed search."""
    found = starts.best_start(problem, deadline=deadline)
    left_s = deadline - time.perf_counter()
    if left_s > 0:
        # half a tolerance away, so that rounding cannot undo what the search finds
        search = Search(problem, found.gap_s + TOLERANCE_S / 2, stop_at_found=False)
        search.run(most_pops=_FIRST_POPS, time_limit_s=left_s)
        left_s = deadline - time.perf_counter()
        if not search.closed and left_s > 0:
            search.narrow(left_s)
            search.run(time_limit_s=deadline - time.perf_counter())
    else:
        search = _bound_at_depots(problem, found.gap_s)
    return found, search


def _decided(
    problem: GapProblem, threshold_s: float, deadline: float
) -> tuple[dca.AttainedGap, Search]:
    """Cheapest first: one descent and a short search, then the starts and the narrowed search."""
    target_s = threshold_s + TOLERANCE_S / 2
    search = _bound_at_depots(problem, target_s)
    found = starts.best_start(problem, rounds=0)

    def undecided() -> bool:
        proved = search.closed or search.found is not None or found.gap_s > target_s
        return not proved and time.perf_counter() < deadline

    if undecided():
        search.run(most_pops=_FIRST_POPS, time_limit_s=deadline - time.perf_counter())
    likely_below = search.upper_s < _LIKELY_BELOW * target_s
    if undecided() and likely_below:
        search.narrow(deadline - time.perf_counter())
        search.run(most_pops=_SECOND_POPS, time_limit_s=deadline - time.perf_counter())
    if undecided():  # the proof would find what one round misses
        found = starts.best_start(problem, target_s, rounds=1, deadline=deadline)
    if undecided():
        if not likely_below:
            search.narrow(deadline - time.perf_counter())
        search.run(time_limit_s=deadline - time.perf_counter())
    return found, search
