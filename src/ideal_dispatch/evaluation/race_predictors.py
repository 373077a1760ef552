"""Predictions of a unit's arrival: ours, and the predictors it is compared with.

Everything is fitted on arrivals before the day from which races are judged. What is chosen is
chosen on the last days before it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.arrivals import Arrivals, Predict, Rows, as_if_arrived, by_hour
from ideal_dispatch.evaluation.race_judgement import OURS, JudgedRaces
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime
from ideal_dispatch.gap import optimistic_gap
from ideal_dispatch.records import Trips

if TYPE_CHECKING:
    from ideal_dispatch.learning.trip_table import TripTable

STRAIGHT, ROAD, FREE_FLOW = "straight line", "road distance", "free flow × hour"
BOOSTING, IDENTITY = "boosting", "station and hour"
QUOTE, RATIO = "quote difference", "quote ratio"
GAIN_BOOSTING = "boosting on the gain"
PRINTED_GAP = "printed gap"

_NOMINAL_M_S = 8.0  # a straight line becomes a drive; its scale is fitted
_HELD_OUT = 0.2
_LEAST_RACES = 30
_LEAST_LATER = 500  # arrivals after a model's last day

Done = Callable[[float], None]


@dataclass(frozen=True, slots=True, eq=False)
class Predictors:
    """Ours, and the others by name; ``drive`` is what ours expects of the roads alone.

    ``words`` says what ours rests on.
    """

    response: ResponseModel
    drive: Predict
    others: Mapping[str, Predict]
    words: str
    model: Model | None = None

    def of(self, arrivals: Arrivals) -> ResponseTime:
        """What ours expects of every unit."""
        return self.response.of(
            self.drive(arrivals),
            station=arrivals.of_log("station"),
            hour=arrivals.of_log("hour"),
            kind=arrivals.of_log("kind"),
            on_road=arrivals.of_log("from_road"),
        )


def fit_predictors(
    learned_from: Arrivals,
    model: Model | None = None,
    unseen_s: FloatArray | None = None,
    *,
    regressions: bool = False,
) -> Predictors:
    """Ours and the others, fitted on these arrivals; ours drives by ``model`` where there is one.

    ``unseen_s`` are the drives of the sound arrivals by networks that have not seen them;
    without, response times are fitted on days after the model's last one, where
    there are enough. Without a model ours drives by free flow × hour, without a network by
    straight lines, and without places it knows station, kind and hour alone. The
    others include ``regressions`` where that is asked for.
    """
    from ideal_dispatch.learning.response_fitting import fit_responses

    known = learned_from.select(learned_from.sound)
    if not len(known):
        raise InputError("no arrival before the date can be learned from; choose a later one")
    others: dict[str, Predict] = {}
    placed = known.select(known.straight_m > 0.0)
    if len(placed):
        others[STRAIGHT], straight = by_hour(placed, "straight_m")
        drive, whose, words = straight, STRAIGHT, "straight lines × hour: no network was given"
    else:
        others[IDENTITY] = _identity(known)
        drive, whose, words = _nowhere, "", "station, kind of unit and hour: the log has no places"
    if known.trips is not None:
        others[FREE_FLOW], drive = by_hour(known, "free_flow_s")
        others[ROAD], _ = by_hour(known, "road_m")
        if regressions:
            others[BOOSTING] = boosted(known)
        whose, words = FREE_FLOW, "free flow × hour: no model was given or trained"
    if model is not None:
        drive, whose, words = model_drive(model), model.checksum, "edge times learned from trips"
    fitted_on, drive_s = known, unseen_s
    if model is not None and unseen_s is None:
        later = known.select(known.of_log("date") > np.datetime64(model.details["data"]["last"]))
        if len(later) >= _LEAST_LATER:
            fitted_on = later
        else:
            words += " that response times are fitted on, too: spreads are too small"
    if drive_s is None:
        drive_s = drive(fitted_on)
    response = fit_responses(
        fitted_on.responses, *_all_sent(fitted_on, drive, drive_s), drive=whose
    )
    return Predictors(response, drive, others, words, model)


def _all_sent(known: Arrivals, drive: Predict, drive_s: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The drives of the log's rows, and which to fit on: arrivals, and units recalled before.

    A recalled unit had not arrived when another one did.
    """
    log = known.responses
    path_s, used = np.full(len(log), np.nan), np.zeros(len(log), bool)
    path_s[known.rows], used[known.rows] = drive_s, True
    last = known.of_log("date").max()
    held = np.flatnonzero(log.recalled & (log.date <= last))
    asked = Arrivals.of(as_if_arrived(log.select(held)), known.network)
    if len(asked):
        rows = held[asked.rows]
        path_s[rows], used[rows] = drive(asked), True
    return path_s, used


def _nowhere(asked: Arrivals) -> FloatArray:
    return np.full(len(asked), np.nan)


def _identity(known: Arrivals) -> Predict:
    """The median of the station's past responses, of all where it has few."""
    usual = float(np.median(known.took_s))
    stations, took_s = known.of_log("station"), known.took_s
    medians = {
        str(name): float(np.median(took_s[stations == name]))
        for name in np.unique(stations)
        if (stations == name).sum() >= 10
    }
    return lambda asked: np.array([medians.get(str(s), usual) for s in asked.of_log("station")])


# --- learned times of roads ---------------------------------------------------------


def model_drive(model: Model) -> Predict:
    """Seconds along the fastest path by a model's times, without the constant of a trip."""

    def drive(asked: Arrivals) -> FloatArray:
        network, trips = asked.on_roads
        found = np.empty(len(asked))
        for here in same_contexts(trips):
            times_s = model.forecast(trips.contexts[here[0]], network).nominal_times
            paths = network.shortest_paths(times_s, trips.origin[here], trips.destination[here])
            found[here] = [path.time_s(times_s) for path in paths]
        return found

    return drive


def same_contexts(trips: Trips) -> Iterator[Rows]:
    """The rows of trips with one context, context by context."""
    known = np.where(np.isnan(trips.contexts), -np.inf, trips.contexts)  # no NaN equals another
    _, group = np.unique(known, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1])


# --- boosting -----------------------------------------------------------------------


def boosted(known: Arrivals) -> Predict:
    """Gradient boosting of whole responses on each trip's road, ends and context.

    Trees, leaves and whether it sees locations are chosen on the last days; with the chosen
    settings it learns from all arrivals.
    """
    from ideal_dispatch.learning.baselines import boosting

    table, days = _table(known), known.of_log("date")
    later = days >= np.sort(days)[int((1.0 - _HELD_OUT) * days.size)]
    if later.all():
        later = np.arange(days.size) >= (1.0 - _HELD_OUT) * days.size
    earlier, held_out = table.select(~later), table.select(later)
    settings = [
        boosting(trees, leaves, located=located, whole=True)
        for located, trees, leaves in product((False, True), (100, 300), (8, 16))
    ]
    tried = [one.fit(earlier).predict(held_out) for one in settings]
    off = [float(np.abs(seconds - held_out.observed_s).mean()) for seconds in tried]
    learned = settings[int(np.argmin(off))].fit(table)
    return lambda asked: learned.predict(_table(asked))


def _table(arrivals: Arrivals) -> "TripTable":
    """The trips as regressions see them, with the whole response as their time."""
    from ideal_dispatch.learning.trip_table import TripTable

    network, trips = arrivals.on_roads
    return TripTable.of(network, replace(trips, observed_s=arrivals.took_s))


# --- rankings -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The two candidates of races, as arrivals of their own; ``primary`` is 0 or 1."""

    candidates: tuple[Arrivals, Arrivals]
    expected: tuple[ResponseTime, ResponseTime]
    primary: Rows

    @classmethod
    def of(cls, arrivals: Arrivals, places: Rows, predictors: Predictors) -> "Pairs":
        """Races by their candidates' ``places`` among the arrivals, (n, 2)."""
        one, two = (arrivals.select(places[:, side]) for side in (0, 1))
        expected = predictors.of(one), predictors.of(two)
        both = np.column_stack([time.mean_s for time in expected])
        return cls((one, two), expected, both.argmin(axis=1))

    def __len__(self) -> int:
        return int(self.primary.size)

    @property
    def took_s(self) -> FloatArray:
        return np.column_stack([side.took_s for side in self.candidates])

    def values(self, of: Callable[[Arrivals], FloatArray]) -> FloatArray:
        """(n, 2): a number of both candidates."""
        return np.column_stack([of(side) for side in self.candidates])

    def ahead(self, values: FloatArray) -> FloatArray:
        """The primary's value minus the second unit's."""
        rows = np.arange(len(self))
        return np.asarray(values[rows, self.primary] - values[rows, 1 - self.primary])

    @property
    def pair(self) -> ResponsePair:
        """What ours expects of the primary and of the second unit."""
        one, two = self.expected
        names = ("median_s", "own", "shared")
        first, second = (
            replace(
                one,
                **{n: np.where(self.primary == s, getattr(one, n), getattr(two, n)) for n in names},
            )
            for s in (0, 1)
        )
        return ResponsePair(first, second)

    @property
    def saved_s(self) -> FloatArray:
        return np.maximum(self.ahead(self.took_s), 0.0)

    def judged(
        self,
        predictors: Predictors,
        scores: Mapping[str, FloatArray],
        days: npt.NDArray[Any],
        seed: int = 0,
    ) -> JudgedRaces:
        """The races of these days with everything that was expected of them."""
        mean_s, median_s = (
            np.column_stack([getattr(time, name) for time in self.expected])
            for name in ("mean_s", "median_s")
        )
        others = {name: self.values(predict) for name, predict in predictors.others.items()}
        return JudgedRaces(
            self.took_s,
            days.astype("M8[D]").astype(np.int64).astype(np.int32),
            {OURS: mean_s, **others},
            {OURS: median_s, **others},
            scores,
            self.pair.gain_s,
            self.pair.second_first,
            seed,
        )


def rank(pairs: Pairs, learned: Pairs | None, predictors: Predictors) -> dict[str, FloatArray]:
    """How urgently each ranking asks for the second unit of every race.

    ``learned`` are the races of the training part, for boosting on the gain.
    """
    scores = {OURS: pairs.pair.gain_s}
    for name in (STRAIGHT, ROAD, FREE_FLOW, IDENTITY, BOOSTING):
        if name in predictors.others:
            scores[name] = pairs.ahead(pairs.values(predictors.others[name]))
    drives = pairs.values(predictors.drive)
    if not np.isnan(drives).any():
        scores[QUOTE] = pairs.ahead(drives)
        scores[RATIO] = pairs.ahead(np.log(np.maximum(drives, 1.0)))
    if learned is not None and len(learned) >= _LEAST_RACES:
        scores[GAIN_BOOSTING] = _gain_boosting(learned, pairs)
    return scores


def _gain_boosting(learned: Pairs, asked: Pairs) -> FloatArray:
    """Gradient boosting of the seconds saved, on what is known of both candidates."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    forest: Any = HistGradientBoostingRegressor(
        max_iter=100, max_leaf_nodes=8, learning_rate=0.05, min_samples_leaf=20,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    columns = _pair_columns(learned)
    kept = ~np.isnan(columns).all(axis=0)
    with threadpool_limits(1):
        forest.fit(columns[:, kept], learned.saved_s)
        found: FloatArray = forest.predict(_pair_columns(asked)[:, kept])
    return found


def _pair_columns(pairs: Pairs) -> FloatArray:
    """Distances and times of primary and second, their differences and ratios, and the hour."""
    one = pairs.candidates[0]
    columns = [one.of_log("hour"), one.of_log("weekday")]
    rows = np.arange(len(pairs))
    bases = [pairs.values(lambda side, n=name: getattr(side, n)) for name in  # type: ignore[misc]
             ("straight_m", "road_m", "free_flow_s")]  # fmt: skip
    bases.append(np.column_stack([time.mean_s for time in pairs.expected]))
    for both in bases:
        first, second = both[rows, pairs.primary], both[rows, 1 - pairs.primary]
        columns += [first, second, first - second, np.log((1.0 + first) / (1.0 + second))]
    return np.column_stack(columns).astype(np.float64)


def gap_scores(
    pairs: Pairs, model: Model, *, seed: int = 0, report: Done = lambda done: None
) -> dict[str, FloatArray]:
    """The printed gap of every race: Algorithm 2 with both depots.

    The primary drives its fastest path by the model's nominal times. Where the second could leave
    the primary's own depot, no better second is often the answer.
    """
    network, trips = pairs.candidates[0].on_roads
    origins = pairs.values(lambda side: np.asarray(side.on_roads[1].origin))
    found, done = np.zeros(len(pairs)), 0
    for races in same_contexts(trips):
        scenarios = model.scenario_set(trips.contexts[races[0]], network)
        for race in races:
            nodes = origins[race].astype(int).tolist()
            start, other = nodes[pairs.primary[race]], nodes[1 - pairs.primary[race]]
            scene = int(trips.destination[race])
            primary = network.shortest_path(scenarios.nominal_times, [start], scene)
            gap = optimistic_gap(
                network, scenarios, [start, other], scene, primary, method="dca", seed=seed
            )
            found[race] = gap.lower_s
            done += 1
            report(done / len(pairs))
    return {PRINTED_GAP: found}
