"""Whether a difference between two strategies is more than chance."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError

RESAMPLES = 2000
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


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

    difference = np.round(_paired(baseline_s, own_s), 3)
    nonzero = int(np.count_nonzero(difference))
    statistic, p_value = 0.0, 1.0
    if nonzero:
        found = wilcoxon(
            difference,
            zero_method="wilcox",
            correction=False,
            alternative="greater",
            method="asymptotic",  # type: ignore[call-overload]
        )
        statistic, p_value = float(found.statistic), float(found.pvalue)
    return PairedTest(difference.size, nonzero, normal_interval(difference), statistic, p_value)


def normal_interval(difference: FloatArray) -> Interval:
    """Mean ± 1.96 standard errors; incidents count as independent."""
    mean = float(difference.mean())
    if difference.size < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = _NORMAL_95 * float(difference.std(ddof=1) / np.sqrt(difference.size))
    return Interval(mean, mean - half, mean + half)


def day_interval(
    difference: FloatArray, day: IntArray, *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Bootstrap interval of the mean difference per incident, whole days drawn at a time.

    Incidents of one day share its traffic, so days and not incidents are
    drawn with replacement; the ends are the 2.5 % and 97.5 % quantiles of the
    resampled means. One day tells nothing about others: the ends are NaN.
    """
    _, number = np.unique(day, return_inverse=True)
    days = int(number.max()) + 1
    mean = float(difference.mean())
    if days < 2:
        return Interval(mean, float("nan"), float("nan"))
    sums = np.bincount(number, difference, days)
    counts = np.bincount(number, minlength=days).astype(np.float64)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(days, np.full(days, 1 / days), resamples).astype(np.float64)
    low, high = np.quantile((drawn @ sums) / (drawn @ counts), (0.025, 0.975))
    return Interval(mean, float(low), float(high))


def day_t_interval(difference: FloatArray, day: IntArray) -> Interval:
    """Student's interval of the mean of the days' means, every day counted once.

    Wider than a bootstrap of few days, which takes the days seen for all there are.
    """
    from scipy.stats import t

    _, number = np.unique(day, return_inverse=True)
    means = np.bincount(number, difference) / np.bincount(number)
    mean = float(means.mean())
    if means.size < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = float(t.ppf(0.975, means.size - 1) * means.std(ddof=1) / np.sqrt(means.size))
    return Interval(mean, mean - half, mean + half)


def days_won(difference: FloatArray, day: IntArray) -> int:
    """Days on which the mean difference is above zero."""
    _, number = np.unique(day, return_inverse=True)
    sums = np.bincount(number, difference)
    return int((np.round(sums, 6) > 0).sum())


def _paired(one: FloatArray, other: FloatArray) -> FloatArray:
    if one.shape != other.shape or not one.size:
        raise InputError(f"{one.size} and {other.size} incidents cannot be paired")
    difference: FloatArray = one - other
    return difference
