"""What a training run is worth: beside baselines, by kind of trip, and its radius by level."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS
from ideal_dispatch.learning.baselines import FittedBaseline
from ideal_dispatch.learning.radius_training import conformal_factor
from ideal_dispatch.learning.scores import Scores, paired_interval, scores
from ideal_dispatch.learning.training import TrainedModel
from ideal_dispatch.learning.trip_table import TripTable

LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_FEWEST_PAIRS = 30  # fewer simultaneous trips say nothing about what they share
_DRAWS = 500


@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """A prediction of the test trips; ``beyond_s`` is its MAE less the model's, low and high.

    The interval holds the difference with 95 %, over which trips were tested;
    above zero the model is better. The model itself has none.
    """

    name: str
    predicted_s: FloatArray
    scores: Scores
    beyond_s: tuple[float, float] | None = None

    def beyond(self, model: "Rival") -> str:
        """Its error beyond the model's in words, with the interval; empty for the model."""
        if self.beyond_s is None:
            return ""
        low, high = self.beyond_s
        return f"{self.scores.mae_s - model.scores.mae_s:+.1f} ({low:+.1f} … {high:+.1f})"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        interval = {} if self.beyond_s is None else {"beyond_s": list(self.beyond_s)}
        return {"name": self.name, **asdict(self.scores), **interval}


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Share of test trips that the set explains when its radius is scaled to a level.

    The factor of each level is found on ``calibration`` trips and counted on
    ``trips`` others. ``low`` and ``high`` hold that share with 95 % where the
    level is kept: the factor's chance and the count's together.
    """

    calibration: int
    trips: int
    level: FloatArray
    covered: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class SharedPart:
    """Correlation of log(observed / predicted) between trips of the same hour, with 95 % ends."""

    correlation: float
    low: float
    high: float
    pairs: int


def judged_rows(run: TrainedModel) -> npt.NDArray[np.int64]:
    """The rows a run is judged by: the test part, or the next best where there is none."""
    rows: npt.NDArray[np.int64] = getattr(run.split, run.model.details["data"]["scored_on"])
    return rows


def compare(run: TrainedModel, baselines: Sequence[FittedBaseline]) -> tuple[Rival, ...]:
    """The model first, then every baseline, on the same test trips."""
    rows, trips = judged_rows(run), run.data.trips
    observed, own = trips.observed_s[rows], run.predicted_s[rows]
    rivals = [Rival("IDEAL", own, scores(observed, own))]
    table = TripTable.of(run.data.network, trips.select(rows))
    for baseline in baselines:
        seconds = baseline.predict(table)
        interval = paired_interval(observed, seconds, own)
        rivals.append(Rival(baseline.name, seconds, scores(observed, seconds), interval))
    return tuple(rivals)


def reliability(run: TrainedModel) -> Reliability:
    """Coverage against level; levels that the held-out trips are too few for are left out."""
    from scipy.stats import betabinom

    held_out, rows, model = run.split.validation, run.split.test, run.model
    plain = replace(model.radius_rule, scale=1.0)
    predicted = plain(model.weights, run.radii.contexts.astype(np.float32), run.radii.features)
    targets = run.radii.targets
    found = []
    for level in LEVELS:
        factor = conformal_factor(targets[held_out], predicted[held_out], level)
        if factor is None or not np.isfinite(factor) or not rows.size:
            continue
        covered = (targets[rows] <= factor * predicted[rows]).mean()
        # the true coverage of the k-th of n ratios is Beta(k, n + 1 − k)
        rank = int(np.ceil((held_out.size + 1) * level))
        chance = betabinom(rows.size, rank, held_out.size + 1 - rank)
        found.append((level, covered, *(chance.ppf([0.025, 0.975]) / rows.size)))
    columns = np.array(found).reshape(-1, 4).T
    return Reliability(held_out.size, rows.size, *columns)


def shared_part(run: TrainedModel, seed: int = 0) -> SharedPart | None:
    """How much of their error simultaneous test trips share; None where too few are known."""
    rows, trips = judged_rows(run), run.data.trips
    rows = rows[~np.isnat(np.asarray(trips.at)[rows]) & (run.predicted_s[rows] > 0)]
    if not rows.size:
        return None
    residual = np.log(trips.observed_s[rows] / run.predicted_s[rows])
    residual -= residual.mean()
    hour = np.asarray(trips.at)[rows].astype("M8[h]")
    _, group, size = np.unique(hour, return_inverse=True, return_counts=True)
    pairs = size * (size - 1) // 2
    if pairs.sum() < _FEWEST_PAIRS or not residual.any():
        return None
    total, squares = np.bincount(group, residual), np.bincount(group, residual**2)
    products = (total**2 - squares) / 2  # of all pairs within the hour
    several = np.flatnonzero(pairs)
    drawn = np.random.default_rng(seed).choice(several, (_DRAWS, several.size))
    variance = (residual**2).mean()
    values = products[drawn].sum(axis=1) / pairs[drawn].sum(axis=1) / variance
    low, high = np.quantile(values, (0.025, 0.975))
    correlation = products.sum() / pairs.sum() / variance
    return SharedPart(float(correlation), float(low), float(high), int(pairs.sum()))


def error_by(
    groups: FloatArray, errors_s: FloatArray, unit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean error in units of ``unit`` per group, and 1.96 standard errors of it.

    ``groups`` is (trips, groups): to which part a trip belongs to each. With
    ``unit`` one the mean is in seconds, with the observed times it is a share.
    A group of less than five trips is NaN.
    """
    weight = groups.sum(axis=0)
    base = np.where(weight >= 5, groups.T @ unit, np.nan)
    mean = (groups.T @ errors_s) / base
    apart = groups * (errors_s[:, None] - unit[:, None] * mean)
    return mean, 1.96 * np.sqrt((apart**2).sum(axis=0)) / base


def typical_context(run: TrainedModel) -> FloatArray:
    """An ordinary training context: median weather, the commonest day and month, no holiday."""
    rows, columns = run.data.trips.contexts[run.split.train], run.model.encoding.columns
    typical = np.full(len(columns), np.nan)
    for index, column in enumerate(rows.T):
        known = column[~np.isnan(column)]
        typical[index] = np.median(known) if known.size else np.nan
    for names in (WEEKDAYS, MONTHS):
        first = columns.index(names[0])
        part = slice(first, first + len(names))
        count = np.nansum(rows[:, part], axis=0)
        typical[part] = np.eye(len(names))[count.argmax()] if count.any() else np.nan
    for name in ("holiday", "holiday_eve"):
        typical[columns.index(name)] = 0.0
    return typical


def slowest_hour(run: TrainedModel) -> tuple[FloatArray, int | None]:
    """The typical context at the hour when the model's roads are slowest, and that hour."""
    row, hours = typical_context(run), run.model.seen.learned_hours
    if not hours:
        return row, None
    column = run.model.encoding.columns.index("hour")

    def seconds(hour: int) -> float:
        row[column] = hour
        return float(run.model.forecast(row, run.data.network).nominal_times.sum())

    slowest = max(hours, key=seconds)
    row[column] = slowest
    return row, slowest
