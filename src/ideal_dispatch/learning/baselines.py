"""Plain ways to predict a trip's time, which a learned model has to beat.

All of them predict the ratio of the observed time to the free-flow time. A trip
within one node drives no road: it teaches nothing and is predicted to take 0 s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.encoding import WEEKDAYS
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.learning.scores import best_factor, scores
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.records import Trips

HOURS_OF_WEEK = 24 * 7


@dataclass(frozen=True, slots=True, eq=False)
class TripTable:
    """A row per trip: its free-flow path, its ends and its context.

    ``classes`` is the share of the path's length on each road class, ``ends_m``
    east and north of origin and destination (NaN without coordinates),
    ``contexts`` has the named ``columns``.
    """

    observed_s: FloatArray
    free_flow_s: FloatArray
    length_m: FloatArray
    edges: FloatArray
    classes: FloatArray
    ends_m: FloatArray
    contexts: FloatArray
    columns: tuple[str, ...]

    @classmethod
    def of(cls, network: RoadNetwork, trips: Trips) -> "TripTable":
        """The table of trips on their network."""
        trips.check(network)
        times_s = network.free_flow_times_s
        paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        row = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
        edge = np.concatenate([path.edges for path in paths]) if paths else np.empty(0, np.int32)
        free_flow_s, length_m, edges = (
            np.asarray(np.bincount(row, values, len(paths)), float)
            for values in (times_s[edge], network.length_m[edge], np.ones(row.size))
        )
        classes = np.zeros((len(paths), len(ROAD_CLASSES)))
        np.add.at(classes, (row, network.road_class[edge]), network.length_m[edge])
        plane = LocalPlane(float(network.lat.mean()))
        places = plane.to_metres(np.column_stack([network.lon, network.lat]))
        return cls(
            observed_s=trips.observed_s,
            free_flow_s=free_flow_s,
            length_m=length_m,
            edges=edges,
            classes=classes / np.maximum(length_m, 1.0)[:, None],
            ends_m=np.hstack([places[trips.origin], places[trips.destination]]),
            contexts=trips.contexts,
            columns=trips.encoding.columns,
        )

    def __len__(self) -> int:
        return int(self.observed_s.size)

    def driven(self) -> "TripTable":
        """The rows whose path takes time."""
        return self.select(self.free_flow_s > 0)

    def select(self, rows: npt.NDArray[Any]) -> "TripTable":
        """The rows of a mask, or of numbers."""
        names = (field.name for field in fields(self) if field.name != "columns")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    @property
    def ratio(self) -> FloatArray:
        return self.observed_s / self.free_flow_s

    @property
    def hour(self) -> FloatArray:
        return self.contexts[:, self.columns.index("hour")]

    @property
    def hour_of_week(self) -> npt.NDArray[np.int64]:
        """Hours since Monday 0:00, −1 where hour or weekday is not known."""
        monday = self.columns.index(WEEKDAYS[0])
        weekday = self.contexts[:, monday : monday + len(WEEKDAYS)]
        known = ~np.isnan(self.hour) & (weekday.sum(axis=1) == 1.0)
        hours = 24 * np.nan_to_num(weekday).argmax(axis=1) + np.nan_to_num(self.hour)
        return np.where(known, hours, -1).astype(np.int64)

    def tree_columns(self, *, located: bool = False) -> FloatArray:
        """Road and context, the weekday as one number that a tree can cut.

        ``located`` adds both ends and the way from one to the other.
        """
        day = np.where(self.hour_of_week < 0, np.nan, self.hour_of_week // 24)
        sizes = np.column_stack([self.free_flow_s, self.length_m, self.edges])
        logs = np.log(np.maximum(sizes, 1.0))
        columns = [logs, self.classes, self.contexts, day[:, None]]
        if located:
            if np.isnan(self.ends_m).any():
                raise InputError("this network has no coordinates; a baseline with location "
                                 "needs them")  # fmt: skip
            columns += [self.ends_m, self.ends_m[:, 2:] - self.ends_m[:, :2]]
        return np.hstack(columns)


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


def boosting(
    trees: int = 300, leaves: int = 16, *, located: bool = False, whole: bool = False
) -> Baseline:
    """Gradient-boosted trees on the log ratio, with the trip's road and context.

    ``located`` ones also see both ends and the way from one to the other. ``whole`` ones
    learn the logarithm of the seconds instead, by its absolute error: the better where
    part of a trip, such as turnout, does not grow with its road.
    """

    def columns_of(table: TripTable) -> FloatArray:
        return table.tree_columns(located=located)

    def learn(table: TripTable) -> Ratios:
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor
            from threadpoolctl import threadpool_limits
        except ImportError:
            raise MissingExtraError("gradient boosting", "train") from None
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
