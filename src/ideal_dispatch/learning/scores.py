"""How far predicted travel times are off, and whether two models differ."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, first_where
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import COUNT


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors over ``trips`` trips: absolute ones in seconds, ``mape_percent`` of the observed."""

    trips: int
    mae_s: float
    mape_percent: float
    rmse_s: float
    median_s: float
    p90_s: float


def scores(observed_s: npt.ArrayLike, predicted_s: npt.ArrayLike) -> Scores:
    """Mean, root-mean-square, median and 90th percentile of the errors."""
    observed, errors = _errors(observed_s, predicted_s)
    return Scores(
        trips=errors.size,
        mae_s=float(errors.mean()),
        mape_percent=float(100.0 * (errors / observed).mean()),
        rmse_s=float(np.sqrt((errors**2).mean())),
        median_s=float(np.median(errors)),
        p90_s=float(np.quantile(errors, 0.9)),
    )


def paired_interval(
    observed_s: npt.ArrayLike,
    a_s: npt.ArrayLike,
    b_s: npt.ArrayLike,
    seed: int = 0,
    draws: int = 2000,
) -> tuple[float, float]:
    """The 95 % bootstrap interval of MAE(a) − MAE(b) over the same trips.

    Below zero: a is better than b beyond the chance of which trips were tested.
    """
    COUNT.check(draws, "draws")
    worse_s = _errors(observed_s, a_s)[1] - _errors(observed_s, b_s)[1]
    rng = np.random.default_rng(seed)
    n = worse_s.size
    means = [worse_s[rng.integers(n, size=n)].mean() for _ in range(draws)]
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def best_factor(observed_s: FloatArray, base_s: FloatArray) -> float:
    """The factor c of least Σ |observed − c · base|, base times being positive.

    It is the median of observed over base time, weighted by the base times.
    """
    ratio = observed_s / base_s
    order = np.argsort(ratio, kind="stable")
    weight = np.cumsum(base_s[order])
    return float(ratio[order][np.searchsorted(weight, weight[-1] / 2.0)])


def _errors(observed_s: npt.ArrayLike, predicted_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Observed seconds, and how far predictions are off."""
    observed, predicted = np.asarray(observed_s, float), np.asarray(predicted_s, float)
    if observed.shape != predicted.shape or not observed.size:
        raise InputError(f"{observed.size} observed and {predicted.size} predicted times")
    wrong = first_where(~(np.isfinite(predicted) & np.isfinite(observed) & (observed > 0)))
    if wrong is not None:
        raise InputError(
            f"trip {wrong}: observed {observed[wrong]} s, predicted {predicted[wrong]} s; both "
            "must be finite, the first positive"
        )
    return observed, np.abs(observed - predicted)
