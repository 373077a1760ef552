"""Plain ways to predict a trip's time, which a learned model has to beat.

All of them predict the ratio of the observed time to the free-flow time. A trip
within one node drives no road: it teaches nothing and is predicted to take 0 s.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.learning.scores import best_factor, scores
from ideal_dispatch.learning.trip_table import HOURS_OF_WEEK, TripTable
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.ranges import COUNT, POSITIVE, ZERO_OR_MORE, Range
from ideal_dispatch.records import Trips

Ratios = Callable[[TripTable], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """A kind of prediction with its settings.

    ``learn`` gives what turns trips into ratios to free flow, learned from trips
    that drive. A ``located`` one needs a network with coordinates.
    """

    name: str
    learn: Callable[[TripTable], Ratios]
    located: bool = False

    def fit(self, table: TripTable) -> "FittedBaseline":
        """The baseline with what these trips teach it."""
        driven = table.driven()
        if not len(driven):
            raise InputError(f"{self.name}: no trip to learn from drives a road; give more trips")
        return FittedBaseline(self.name, table.columns, self.learn(driven))


@dataclass(frozen=True, slots=True, eq=False)
class FittedBaseline:
    """A baseline with what it learned; ``columns`` are the context columns it was taught with."""

    name: str
    columns: tuple[str, ...]
    ratios: Ratios

    def predict(self, table: TripTable) -> FloatArray:
        """Seconds per trip; their observed times are not looked at."""
        if table.columns != self.columns:
            raise InputError(
                f"{self.name}: the trips' context columns are not those it was fitted with; "
                "prepare both with the same encoding"
            )
        return table.free_flow_s * self.ratios(table) if len(table) else np.empty(0)


@contextmanager
def _sklearn() -> Iterator[None]:
    """Names the extra that has scikit-learn where an import fails."""
    try:
        yield
    except ImportError:
        raise MissingExtraError("this baseline", "train") from None


def constant() -> Baseline:
    """One factor for all trips: the one of least mean absolute error."""

    def learn(table: TripTable) -> Ratios:
        factor = best_factor(table.observed_s, table.free_flow_s)
        return lambda asked: np.full(len(asked), factor)

    return Baseline("free flow × constant", learn)


def hour_of_week(prior_trips: float = 10.0) -> Baseline:
    """A factor for each hour of the week, drawn to the constant where trips are few.

    The constant counts like ``prior_trips`` trips of each hour.
    """
    ZERO_OR_MORE.check(prior_trips, "prior_trips")

    def learn(table: TripTable) -> Ratios:
        usual = best_factor(table.observed_s, table.free_flow_s)
        factors = np.full(HOURS_OF_WEEK + 1, usual)  # the last one: hour not known
        for hour in np.unique(table.hour_of_week[table.hour_of_week >= 0]):
            here = table.hour_of_week == hour
            factor = best_factor(table.observed_s[here], table.free_flow_s[here])
            weight = here.sum() / (here.sum() + prior_trips)
            factors[hour] = weight * factor + (1.0 - weight) * usual
        return lambda asked: factors[asked.hour_of_week]

    return Baseline("free flow × hour of week", learn)


def linear(penalty: float = 10.0) -> Baseline:
    """Ridge regression of the log ratio on the trip's road, harmonics of the hour and context.

    Columns are standardised; an unknown value stands at its column's mean.
    """
    POSITIVE.check(penalty, "penalty")

    def learn(table: TripTable) -> Ratios:
        with _sklearn():
            from sklearn.impute import SimpleImputer
            from sklearn.linear_model import Ridge
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        unknown = SimpleImputer(strategy="constant", fill_value=0.0)
        regression: Any = make_pipeline(StandardScaler(), unknown, Ridge(penalty))
        columns = table.linear_columns()
        kept = ~np.isnan(columns).all(axis=0)
        regression.fit(columns[:, kept], np.log(table.ratio))
        low, high = table.ratio.min(), table.ratio.max()  # no extrapolation beyond what was seen
        return lambda asked: np.clip(
            np.exp(regression.predict(asked.linear_columns()[:, kept])), low, high
        )

    return Baseline("linear", learn)


def boosting(
    trees: int = 300, leaves: int = 16, *, located: bool = False, whole: bool = False
) -> Baseline:
    """Gradient-boosted trees on the log ratio, with the trip's road and context.

    ``located`` ones also see both ends and the way from one to the other. ``whole`` ones
    learn the logarithm of the seconds instead, by its absolute error: the better where
    part of a trip, such as turnout, does not grow with its road.
    """
    COUNT.check(trees, "trees")
    Range(2, whole=True).check(leaves, "leaves")

    def columns_of(table: TripTable) -> FloatArray:
        return table.tree_columns(located=located)

    def learn(table: TripTable) -> Ratios:
        with _sklearn():
            from sklearn.ensemble import HistGradientBoostingRegressor
            from threadpoolctl import threadpool_limits
        columns = columns_of(table)
        kept = ~np.isnan(columns).all(axis=0)
        forest: Any = HistGradientBoostingRegressor(
            loss="absolute_error" if whole else "squared_error", max_iter=trees,
            max_leaf_nodes=leaves, learning_rate=0.05, max_features=0.5, early_stopping=False,
            random_state=0,
        )  # fmt: skip
        # tables are small: threads that wait for each other cost more than they bring
        with threadpool_limits(1):
            forest.fit(columns[:, kept], np.log(table.observed_s if whole else table.ratio))

        def ratios(asked: TripTable) -> FloatArray:
            with threadpool_limits(1):
                seconds: FloatArray = np.exp(forest.predict(columns_of(asked)[:, kept]))
            return seconds / np.maximum(asked.free_flow_s, 1e-9) if whole else seconds

        return ratios

    return Baseline(f"gradient boosting with{'' if located else 'out'} location", learn, located)


def boostings(*, located: bool) -> tuple[Baseline, ...]:
    """The settings of gradient boosting to choose from."""
    settings = product((100, 300), (8, 16), (False, True))
    return tuple(boosting(*s, located=located, whole=whole) for *s, whole in settings)


CANDIDATES: tuple[tuple[Baseline, ...], ...] = (
    (constant(),),
    tuple(hour_of_week(trips) for trips in (0.0, 3.0, 10.0, 30.0)),
    tuple(linear(penalty) for penalty in (1.0, 10.0, 100.0, 1000.0)),
    boostings(located=False),
    boostings(located=True),
)
"""Settings of every kind, the best of which is chosen on the validation part."""


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
    for kind in CANDIDATES:
        if kind[0].located and np.isnan(network.lon).any():
            continue
        best.append(best_on(kind, learned_from, judged_by))
    return tuple(best)


def best_on(
    candidates: Sequence[Baseline], learned_from: TripTable, judged_by: TripTable
) -> FittedBaseline:
    """The candidate of least error on ``judged_by``, fitted to ``learned_from``."""
    fitted = [candidate.fit(learned_from) for candidate in candidates]
    errors = [scores(judged_by.observed_s, one.predict(judged_by)).mae_s for one in fitted]
    return fitted[int(np.argmin(errors))]
