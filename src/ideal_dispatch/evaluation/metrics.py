"""Numbers about arrivals and regrets, with their conventions written down."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import InputError

QUICK_S, TARGET_S = 480.0, 720.0
"""Eight minutes, what many services promise, and twelve, the Hong Kong one's."""


def quantile(values: FloatArray, share: float) -> float:
    """The value at position ``share · (n − 1)`` of the sorted values, counted from 0.

    Between two values it is interpolated (type 7 of Hyndman and Fan, the
    default of NumPy and R).
    """
    return float(np.quantile(_some(values), share))


def cvar(values: FloatArray, level: float) -> float:
    """The mean of the worst ``1 − level`` of the values.

    That share of n values is rarely a whole number: the last value in it
    counts by the fraction that belongs to it, so that the weights sum to one.
    """
    if not 0.0 <= level < 1.0:
        raise InputError(f"CVaR at level {level}: it is a share from 0 to below 1")
    ordered = np.sort(_some(values))[::-1]
    count = round((1.0 - level) * ordered.size, 9)  # 5, not 5.000000000000004
    weights = np.clip(count - np.arange(ordered.size), 0.0, 1.0)
    return float(weights @ ordered / count)


@dataclass(frozen=True, slots=True)
class RegretSummary:
    """How far arrivals fall short of the best candidate ([IDEAL] section 6).

    ``optimal`` is the candidate-optimal rate: the share of incidents no later
    than the best. Unlike the paper's, a regret may be negative where a
    strategy drives a way that is not among the candidates and beats them all.
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
        return cls(
            float((late <= 0.0).mean()),
            float(late.mean()),
            quantile(late, 0.95),
            quantile(late, 0.99),
            cvar(late, 0.95),
            cvar(late, 0.99),
        )


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
        times = _some(arrival_s)
        return cls(
            float(times.mean()),
            quantile(times, 0.90),
            quantile(times, 0.95),
            float((times < QUICK_S).mean()),
            float((times < TARGET_S).mean()),
            float("nan") if curve is None else float(curve.probability(times).mean()),
        )


def regret_s(arrival_s: FloatArray, best_s: FloatArray) -> FloatArray:
    """Seconds later than the best, to the millisecond of the log."""
    late: FloatArray = np.round(_some(arrival_s) - best_s, 3) + 0.0  # no −0
    return late


def _some(values: FloatArray) -> FloatArray:
    given = np.asarray(values, np.float64)
    if not given.size:
        raise InputError("there are no incidents to judge")
    return given
