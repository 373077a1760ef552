"""Plain ways to predict a trip's time, which a learned model has to beat.

All of them predict the ratio of the observed time to the free-flow time. A trip
within one node drives no road: it teaches nothing and is predicted to take 0 s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from ideal_dispatch.arrays import FloatArray, non_negative, whole_number
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.learning.scores import best_factor, scores
from ideal_dispatch.learning.trip_table import HOURS_OF_WEEK, TripTable
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

Ratios = Callable[[TripTable], FloatArray]


class Baseline(Protocol):
    """A kind of prediction and its settings."""

    name: ClassVar[str]

    def learn(self, table: TripTable) -> Ratios:
        """What turns trips into ratios to free flow, learned from trips that drive."""
        ...

    def fit(self, network: RoadNetwork, trips: Trips) -> "FittedBaseline":
        """The baseline with what these trips teach it."""
        return _fitted(self, TripTable.of(network, trips))


@dataclass(frozen=True, slots=True, eq=False)
class FittedBaseline:
    """A baseline with what it learned; ``columns`` are the context columns it was taught with."""

    baseline: Baseline
    columns: tuple[str, ...]
    ratios: Ratios

    @property
    def name(self) -> str:
        return self.baseline.name

    def predict(self, network: RoadNetwork, trips: Trips) -> FloatArray:
        """Seconds per trip; their observed times are not looked at."""
        if trips.encoding.columns != self.columns:
            raise InputError(
                f"{self.name}: the trips' context columns are not those it was fitted with; "
                "prepare both with the same encoding"
            )
        return self._seconds(TripTable.of(network, trips))

    def _seconds(self, table: TripTable) -> FloatArray:
        return table.free_flow_s * self.ratios(table) if len(table) else np.empty(0)


@dataclass(frozen=True, slots=True)
class Constant(Baseline):
    """One factor for all trips: the one of least mean absolute error."""

    name: ClassVar[str] = "free flow × constant"

    def learn(self, table: TripTable) -> Ratios:
        factor = best_factor(table.observed_s, table.free_flow_s)
        return lambda asked: np.full(len(asked), factor)


@dataclass(frozen=True, slots=True)
class HourOfWeek(Baseline):
    """A factor for each hour of the week, drawn to the constant where trips are few.

    The constant counts like ``prior_trips`` trips of each hour.
    """

    prior_trips: float = 10.0
    name: ClassVar[str] = "free flow × hour of week"

    def __post_init__(self) -> None:
        non_negative(self.prior_trips, "prior_trips")

    def learn(self, table: TripTable) -> Ratios:
        constant = best_factor(table.observed_s, table.free_flow_s)
        factors = np.full(HOURS_OF_WEEK + 1, constant)  # the last one: hour not known
        for hour in np.unique(table.hour_of_week[table.hour_of_week >= 0]):
            here = table.hour_of_week == hour
            factor = best_factor(table.observed_s[here], table.free_flow_s[here])
            weight = here.sum() / (here.sum() + self.prior_trips)
            factors[hour] = weight * factor + (1.0 - weight) * constant
        return lambda asked: factors[asked.hour_of_week]


@dataclass(frozen=True, slots=True)
class Linear(Baseline):
    """Ridge regression of the log ratio on the trip's road, harmonics of the hour and context.

    Columns are standardised; what is not known is the column's mean.
    """

    penalty: float = 10.0
    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        if not non_negative(self.penalty, "penalty"):
            raise InputError("penalty is 0; without one the columns are not independent")

    def learn(self, table: TripTable) -> Ratios:
        columns = table.linear_columns()
        kept = ~np.isnan(columns).all(axis=0)
        mean, spread = np.nanmean(columns[:, kept], axis=0), np.nanstd(columns[:, kept], axis=0)
        spread[spread < 1e-9] = np.inf  # a constant says nothing here, and nothing elsewhere

        def standard(asked: FloatArray) -> FloatArray:
            scaled: FloatArray = np.nan_to_num((asked[:, kept] - mean) / spread, nan=0.0)
            return scaled

        z, log_ratio = standard(columns), np.log(table.ratio)
        level = log_ratio.mean()
        slopes = np.linalg.solve(
            z.T @ z + self.penalty * np.eye(z.shape[1]), z.T @ (log_ratio - level)
        )
        low, high = table.ratio.min(), table.ratio.max()  # no extrapolation beyond what was seen
        return lambda asked: np.clip(
            np.exp(level + standard(asked.linear_columns()) @ slopes), low, high
        )


@dataclass(frozen=True, slots=True)
class Boosting(Baseline):
    """Gradient-boosted trees on the log ratio, with the trip's road and context."""

    trees: int = 300
    leaves: int = 16
    learning_rate: float = 0.05
    seed: int = 0
    name: ClassVar[str] = "gradient boosting without location"

    def __post_init__(self) -> None:
        for what, least in (("trees", 1), ("leaves", 2)):
            _at_least(least, getattr(self, what), what)
        if not non_negative(self.learning_rate, "learning_rate"):
            raise InputError("learning_rate is 0; nothing would be learned")

    def learn(self, table: TripTable) -> Ratios:
        return self._boosted(table, TripTable.tree_columns)

    def _boosted(self, table: TripTable, columns_of: Ratios) -> Ratios:
        try:
            from sklearn.ensemble import (
                HistGradientBoostingRegressor,
            )
            from threadpoolctl import threadpool_limits
        except ImportError:
            raise MissingExtraError("gradient boosting", "train") from None
        columns = columns_of(table)
        kept = ~np.isnan(columns).all(axis=0)
        forest: Any = HistGradientBoostingRegressor(
            max_iter=self.trees,
            max_leaf_nodes=self.leaves,
            learning_rate=self.learning_rate,
            max_features=0.5,
            early_stopping=False,
            random_state=self.seed,
        )
        # tables are small: threads that wait for each other cost more than they bring
        with threadpool_limits(1):
            forest.fit(columns[:, kept], np.log(table.ratio))

        def ratios(asked: TripTable) -> FloatArray:
            with threadpool_limits(1):
                log_ratio: FloatArray = forest.predict(columns_of(asked)[:, kept])
            return np.exp(log_ratio)

        return ratios


@dataclass(frozen=True, slots=True)
class LocatedBoosting(Boosting):
    """Gradient-boosted trees that also see both ends and the way from one to the other."""

    name: ClassVar[str] = "gradient boosting with location"

    def learn(self, table: TripTable) -> Ratios:
        return self._boosted(
            table, lambda asked: np.hstack([asked.tree_columns(), asked.located_columns()])
        )


@dataclass(frozen=True, slots=True)
class Nearest(Baseline):
    """The mean log ratio of the ``neighbours`` trips with the nearest ends and hour.

    The weights say how far apart two trips are in time, in spreads of the
    trips' ends: noon and midnight twice ``hour_weight``, two weekdays
    ``week_weight``.
    """

    neighbours: int = 10
    hour_weight: float = 1.0
    week_weight: float = 1.0
    name: ClassVar[str] = "nearest trips"

    def __post_init__(self) -> None:
        _at_least(1, self.neighbours, "neighbours")
        non_negative(self.hour_weight, "hour_weight")
        non_negative(self.week_weight, "week_weight")

    def learn(self, table: TripTable) -> Ratios:
        from scipy.spatial import KDTree

        ends_m = table.checked_ends_m()
        centre_m, spread_m = ends_m.mean(axis=0), max(float(ends_m.std(axis=0).mean()), 1.0)

        def point(asked: TripTable) -> FloatArray:
            clock = self.hour_weight * asked.clock(1)
            days = self.week_weight / np.sqrt(2.0) * asked.weekday
            place = (asked.checked_ends_m() - centre_m) / spread_m
            where: FloatArray = np.nan_to_num(np.hstack([place, clock, days]), nan=0.0)
            return where

        tree = KDTree(point(table))
        count = min(self.neighbours, len(table))
        log_ratio = np.log(table.ratio)

        def ratios(asked: TripTable) -> FloatArray:
            _, rows = tree.query(point(asked), np.arange(1, count + 1))
            mean: FloatArray = log_ratio[rows].mean(axis=1)
            return np.exp(mean)

        return ratios


def _at_least(least: int, value: int, what: str) -> None:
    if whole_number(value, what) < least:
        raise InputError(f"{what} is {value}; at least {least} is needed")


CANDIDATES: Mapping[str, tuple[Baseline, ...]] = MappingProxyType(
    {
        Constant.name: (Constant(),),
        HourOfWeek.name: tuple(HourOfWeek(trips) for trips in (0.0, 3.0, 10.0, 30.0)),
        Linear.name: tuple(Linear(penalty) for penalty in (1.0, 10.0, 100.0, 1000.0)),
        Nearest.name: tuple(
            Nearest(*s) for s in product((5, 10, 20, 40), (0.5, 1.0, 2.0), (0.5, 1.0))
        ),
        Boosting.name: tuple(Boosting(*s) for s in product((100, 300), (8, 16))),
        LocatedBoosting.name: tuple(LocatedBoosting(*s) for s in product((100, 300), (8, 16))),
    }
)
"""Settings of every kind, the best of which is chosen on the validation part."""

_LOCATED = (Nearest.name, LocatedBoosting.name)


def fit_baselines(
    network: RoadNetwork, train: Trips, validation: Trips
) -> tuple[FittedBaseline, ...]:
    """Every kind fitted to ``train``, with the settings of least error on ``validation``.

    On a network without coordinates those that need places are left out.
    """
    if train.encoding.columns != validation.encoding.columns:
        raise InputError("training and validation trips have different context columns")
    if not len(validation):
        raise InputError("no validation trips; settings are chosen on them, give some")
    learned_from, judged_by = TripTable.of(network, train), TripTable.of(network, validation)
    best = []
    for name, candidates in CANDIDATES.items():
        if name in _LOCATED and np.isnan(network.lon).any():
            continue
        fitted = [_fitted(candidate, learned_from) for candidate in candidates]
        errors = [scores(judged_by.observed_s, one._seconds(judged_by)).mae_s for one in fitted]
        best.append(fitted[int(np.argmin(errors))])
    return tuple(best)


def _fitted(baseline: Baseline, table: TripTable) -> FittedBaseline:
    driven = table.driven()
    if not len(driven):
        raise InputError(f"{baseline.name}: no trip to learn from drives a road; give more trips")
    return FittedBaseline(baseline, table.columns, baseline.learn(driven))
