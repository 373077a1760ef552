"""Strategies: a policy at a threshold, and thresholds that send a given share of second units."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.outcomes import PolicyOutcomes

VOLUMES = (0.25, 0.5, 0.75)
"""Second ambulances per incident at which policies are compared."""

AS_SET = "as set"
"""The form of a policy at its own threshold."""

BEATING = "least to beat baselines"
"""The form of a policy that sends the fewest second units with which it beats every baseline."""

ALWAYS, NEVER = -np.inf, np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """A policy at a threshold: which calls got a second unit, and when the first of both came.

    ``form`` says which threshold in a word or two.
    """

    policy: str
    form: str
    threshold_s: float
    sent: BoolArray
    arrival_s: FloatArray

    @property
    def label(self) -> str:
        return f"{self.policy}, {self.form}" if self.form else self.policy

    @property
    def extra(self) -> float:
        """Second ambulances per incident; the paper's dispatch volume is one more."""
        return float(self.sent.mean())


def at_threshold(policy: PolicyOutcomes, threshold_s: float, form: str = "") -> Strategy:
    """A second ambulance wherever its score exceeds ``threshold_s``."""
    sent = policy.sent_above(threshold_s)
    return Strategy(policy.name, form, threshold_s, sent, policy.arrival_s(sent))


def single(policy: PolicyOutcomes) -> Strategy:
    """Never a second ambulance."""
    return at_threshold(policy, NEVER, "single")


def dual(policy: PolicyOutcomes) -> Strategy:
    """Always a second ambulance, where there is one."""
    return at_threshold(policy, ALWAYS, "dual")


def as_decided(policy: PolicyOutcomes, form: str = AS_SET) -> Strategy:
    """With the thresholds that the policy itself set, call by call."""
    sent = policy.sent_above(policy.threshold_s)
    return Strategy(policy.name, form, float("nan"), sent, policy.arrival_s(sent))


def at_volume(
    policy: PolicyOutcomes, share: float, calibration: PolicyOutcomes | None = None
) -> Strategy:
    """At the threshold that sends ``share`` second units per incident in ``calibration``.

    Without ``calibration`` the threshold is set on the very incidents it is judged on. The volume
    reached is :attr:`Strategy.extra`.
    """
    threshold_s = threshold_for(calibration or policy, share)
    return at_threshold(policy, threshold_s, f"+{100 * share:.0f} %")


def matched_arrival_s(policy: PolicyOutcomes, share: float) -> FloatArray:
    """Arrivals if exactly ``share`` second units per incident go, on the very incidents judged.

    Between two neighbouring thresholds both arrivals count by how near their volumes are, as if a
    coin were thrown over the incidents between them. With fewer second units than asked for, all
    go.
    """
    cuts, sent = _cuts(policy)
    wanted = min(_share(share) * policy.score_s.size, float(sent[-1]))
    above = int(np.searchsorted(sent, wanted))
    below = max(above - 1, 0)
    fewer, more = (at_threshold(policy, cuts[cut]).arrival_s for cut in (below, above))
    weight = (wanted - sent[below]) / max(int(sent[above] - sent[below]), 1)
    arrival: FloatArray = (1.0 - weight) * fewer + weight * more
    return arrival


def threshold_for(policy: PolicyOutcomes, share: float) -> float:
    """The threshold at which as nearly as possible ``share`` of all incidents get a second.

    It is the highest score that gets none. Equal scores are treated alike: the cut falls above or
    below all of them, whichever is nearer to ``share``, and above where both are equally near.
    Where fewer incidents than asked for have a second at all, every one of them gets it.
    """
    cuts, sent = _cuts(policy)
    return float(cuts[np.argmin(np.abs(sent - _share(share) * policy.score_s.size))])


def threshold_where(
    policy: PolicyOutcomes,
    good: Callable[[FloatArray], BoolArray],
    enough: Callable[[FloatArray], BoolArray],
) -> float | None:
    """The highest threshold at which the share of good arrivals is enough.

    ``good`` says which arrivals are, ``enough`` which shares of all incidents are. No threshold
    sends fewer second units, as long as sooner is never worse, for a second makes no arrival
    later. :data:`NEVER` where none is needed, None where even all second units are not enough.
    """
    cuts, _ = _cuts(policy)
    alone, both = (good(one(policy).arrival_s) for one in (single, dual))
    mended = np.sort(policy.score_s[both & ~alone])
    reached = alone.sum() + mended.size - np.searchsorted(mended, cuts, side="right")
    able = np.flatnonzero(enough(reached / alone.size))
    if not able.size:
        return None
    return float(cuts[able[0]]) if able[0] else NEVER


def thresholds(policy: PolicyOutcomes, most: int = 100) -> list[float]:
    """Thresholds from none sent to all sent, at most so many, even in volume."""
    cuts, sent = _cuts(policy)
    wanted = np.linspace(0, sent[-1], most)
    return [float(cut) for cut in cuts[np.unique(np.searchsorted(sent, wanted))]]


def is_selective(policy: PolicyOutcomes) -> bool:
    """Whether its scores differ between incidents."""
    return _cuts(policy)[0].size > 2


def sends_one(policy: PolicyOutcomes) -> bool:
    """Whether it never sends a second, whatever it considered, and could not be made to choose."""
    return not is_selective(policy) and not as_decided(policy).sent.any()


def _share(share: float) -> float:
    if not 0.0 <= share <= 1.0:
        raise InputError(f"a volume of {share}: it is a share between 0 and 1")
    return share


def _cuts(policy: PolicyOutcomes) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Every threshold that makes a difference, and how many second units go at each.

    They are the scores of incidents with a second, highest first: at the first no second goes, and
    all of them at the last, which is :data:`ALWAYS`.
    """
    levels, counts = np.unique(policy.score_s[policy.has_second], return_counts=True)
    cuts = np.append(levels[::-1], ALWAYS)
    return cuts, np.append(0, np.cumsum(counts[::-1]))
