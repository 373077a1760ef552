"""Numbers about arrivals and regrets, and whether a difference of two is more than chance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.report import Interval

QUICK_S, TARGET_S = 480.0, 720.0
"""Eight minutes, what many services promise, and twelve, the Hong Kong one's."""

_RESAMPLES = 2000
_NORMAL_95 = 1.959963984540054


def cvar(values: FloatArray, level: float) -> float:
    """The mean of the worst ``1 − level`` of the values.

    That share of n values is rarely a whole number: the last value in it
    counts by the fraction that belongs to it, so that the weights sum to one.
    """
    ordered = np.sort(values)[::-1]
    count = round((1.0 - level) * ordered.size, 9)  # 5, not 5.000000000000004
    weights = np.clip(count - np.arange(ordered.size), 0.0, 1.0)
    return float(weights @ ordered / count)


def regret_s(arrival_s: FloatArray, best_s: FloatArray) -> FloatArray:
    """Seconds later than the best, to the millisecond of the log."""
    late: FloatArray = np.round(arrival_s - best_s, 3) + 0.0  # no −0
    return late


@dataclass(frozen=True, slots=True)
class RegretSummary:
    """How far arrivals fall short of the best candidate ([IDEAL] section 6).

    ``optimal`` is the candidate-optimal rate: the share of incidents no later
    than the best. Quantiles are interpolated (type 7 of Hyndman and Fan). Unlike
    the paper's, a regret may be negative where a strategy drives a way that is
    not among the candidates and beats them all.
    """

    optimal: float
    mean_s: float
    p95_s: float
    p99_s: float
    cvar95_s: float
    cvar99_s: float

    @classmethod
    def of(cls, arrival_s: FloatArray, best_s: FloatArray) -> "RegretSummary":
        """The summary of arrivals beside the best of every incident."""
        late = regret_s(arrival_s, best_s)
        optimal, mean_s = float((late <= 0.0).mean()), float(late.mean())
        p95_s, p99_s = np.quantile(late, (0.95, 0.99)).tolist()
        return cls(optimal, mean_s, p95_s, p99_s, cvar(late, 0.95), cvar(late, 0.99))


@dataclass(frozen=True, slots=True)
class ArrivalSummary:
    """Arrivals themselves: seconds of driving, shares in time, expected survival.

    ``survival`` is the mean of a curve over the arrivals; NaN without a curve.
    """

    mean_s: float
    p90_s: float
    p95_s: float
    within_8_min: float
    within_12_min: float
    survival: float

    @classmethod
    def of(cls, arrival_s: FloatArray, curve: SurvivalCurve | None = None) -> "ArrivalSummary":
        """The summary of arrivals; "within" counts those below the limit."""
        p90_s, p95_s = np.quantile(arrival_s, (0.90, 0.95)).tolist()
        quick, in_time = (float((arrival_s < limit).mean()) for limit in (QUICK_S, TARGET_S))
        survival = np.nan if curve is None else float(curve.probability(arrival_s).mean())
        return cls(float(arrival_s.mean()), p90_s, p95_s, quick, in_time, survival)


# --- differences of two strategies ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A row of the paper's second table: incidents, those that differ, mean, statistic, p."""

    incidents: int
    nonzero: int
    difference: Interval
    statistic: float
    p_value: float


def paired_wilcoxon(baseline_s: FloatArray, own_s: FloatArray) -> PairedTest:
    """One-sided signed-rank test that the baseline's times are larger ([IDEAL] section 6).

    Zero differences are dropped, equal ones share their ranks' mean, the
    statistic is the rank sum of the positive ones and p is asymptotic without
    continuity correction. Where nothing differs, p is 1.
    """
    from scipy.stats import wilcoxon

    difference: FloatArray = np.round(baseline_s - own_s, 3)
    nonzero = int(np.count_nonzero(difference))
    statistic, p_value = 0.0, 1.0
    if nonzero:
        how: Any = "asymptotic"  # the stubs of SciPy do not know it
        found = wilcoxon(difference, alternative="greater", method=how)
        statistic, p_value = float(found.statistic), float(found.pvalue)
    return PairedTest(difference.size, nonzero, normal_interval(difference), statistic, p_value)


def normal_interval(difference: FloatArray) -> Interval:
    """Mean ± 1.96 standard errors; incidents count as independent."""
    return _around(difference, _NORMAL_95)


def day_t_interval(difference: FloatArray, day: IntArray) -> Interval:
    """Student's interval of the mean of the days' means, every day counted once.

    Wider than a bootstrap of few days, which takes the days seen for all there are.
    """
    sums, counts = _by_day(difference, day)
    return _around(sums / counts, float(stdtrit(counts.size - 1, 0.975)))


def _around(values: FloatArray, errors: float) -> Interval:
    """The mean of independent values, and so many standard errors to both sides."""
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean)
    half = float(errors * values.std(ddof=1) / np.sqrt(values.size))
    return Interval(mean, mean - half, mean + half)


def day_interval(difference: FloatArray, day: IntArray, *, seed: int = 0) -> Interval:
    """Bootstrap interval of the mean difference per incident, whole days drawn at a time.

    Incidents of one day share its traffic, so days and not incidents are
    drawn with replacement; the ends are the 2.5 % and 97.5 % quantiles of the
    resampled means. One day says nothing about others: the ends are NaN.
    """
    sums, counts = _by_day(difference, day)
    mean, days = float(difference.mean()), counts.size
    if days < 2:
        return Interval(mean)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(days, np.full(days, 1 / days), _RESAMPLES).astype(np.float64)
    low, high = np.quantile((drawn @ sums) / (drawn @ counts), (0.025, 0.975))
    return Interval(mean, float(low), float(high))


def days_won(difference: FloatArray, day: IntArray) -> int:
    """Days on which the mean difference is above zero."""
    sums, _ = _by_day(difference, day)
    return int((np.round(sums, 6) > 0).sum())


def _by_day(difference: FloatArray, day: IntArray) -> tuple[FloatArray, FloatArray]:
    """The sum of the differences of every day, and how many there are."""
    _, number = np.unique(day, return_inverse=True)
    counts = np.bincount(number)
    return np.bincount(number, difference).astype(np.float64), counts.astype(np.float64)
