"""How far predicted travel times are off, and whether two models differ."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, first_where, numbers
from ideal_dispatch.errors import InputError


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
    observed = _observed(observed_s)
    errors = _errors(observed, predicted_s, "predicted")
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
    observed = _observed(observed_s)
    worse_s = _errors(observed, a_s, "a") - _errors(observed, b_s, "b")
    if draws < 1:
        raise InputError(f"{draws} draws: at least one is needed")
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


def _observed(values: npt.ArrayLike) -> FloatArray:
    observed: FloatArray = numbers(values, np.float64, "observed")
    if observed.ndim != 1 or not observed.size:
        raise InputError("observed: a row of at least one travel time is needed")
    wrong = first_where(~((observed > 0) & np.isfinite(observed)))
    if wrong is not None:
        raise InputError(f"observed {wrong}: {observed[wrong]} s; it must be finite and positive")
    return observed


def _errors(observed: FloatArray, values: npt.ArrayLike, what: str) -> FloatArray:
    predicted: FloatArray = numbers(values, np.float64, what)
    if predicted.shape != observed.shape:
        raise InputError(f"{what}: expected {observed.size} values, got {predicted.size}")
    wrong = first_where(~np.isfinite(predicted))
    if wrong is not None:
        raise InputError(f"{what} {wrong}: {predicted[wrong]} s; it must be finite")
    return np.abs(observed - predicted)
