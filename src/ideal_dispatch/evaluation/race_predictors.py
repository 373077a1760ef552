"""Who expects what of a unit's arrival: ours, and the predictors it is held against.

Everything is fitted on arrivals before the day from which races are judged. What
is chosen is chosen on the last days before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.arrivals import Arrivals, Predict, Rows, as_if_arrived, by_hour
from ideal_dispatch.evaluation.race_judgement import OURS
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime
from ideal_dispatch.gap import optimistic_gap
from ideal_dispatch.records import Trips

if TYPE_CHECKING:
    from ideal_dispatch.learning.baselines import Baseline
    from ideal_dispatch.learning.trip_table import TripTable

STRAIGHT, ROAD, FREE_FLOW = "straight line", "road distance", "free flow × hour"
BOOSTING, LINEAR, IDENTITY = "boosting", "linear", "station and hour"
QUOTE, RATIO = "quote difference", "quote ratio"
GAIN_BOOSTING = "boosting on the gain"
PRINTED_GAP, OTHER_GAP = "printed gap", "gap of the other depot"

_NOMINAL_M_S = 8.0  # a straight line becomes a drive; its scale is fitted
_CONSTANTS_S = (0.0, 60.0, 90.0)  # of linear regression; boosting finds its own
_LEAST_S = 20.0  # of a drive, after a constant was taken away
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
            others |= _regressions(known)
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


# --- regressions --------------------------------------------------------------------


def _regressions(known: Arrivals) -> dict[str, Predict]:
    """Linear regression and gradient boosting on each trip's road, ends and context.

    Settings are chosen on the last days: penalty or trees and leaves, and the constant
    that is taken from every response before the rest is compared with free flow. Boosting
    learns whole responses. With the chosen settings all arrivals are learned from.
    ``boosting`` is the better of the two.
    """
    from ideal_dispatch.learning.baselines import boosting, linear

    table = _table(known)
    days = known.of_log("date")
    later = days >= np.sort(days)[int((1.0 - _HELD_OUT) * days.size)]
    if later.all():
        later = np.arange(days.size) >= (1.0 - _HELD_OUT) * days.size
    kinds: dict[str, Sequence[Baseline]] = {
        LINEAR: [linear(penalty) for penalty in (1.0, 10.0, 100.0)],
        **{
            f"{BOOSTING} {word} location": [
                boosting(trees, leaves, located=word == "with", whole=True)
                for trees, leaves in product((100, 300), (8, 16))
            ]
            for word in ("without", "with")
        },
    }
    found: dict[str, Predict] = {}
    errors: dict[str, float] = {}
    for name, candidates in kinds.items():
        settings = list(product(candidates, _CONSTANTS_S if name == LINEAR else (0.0,)))
        tried = [_fitted(one, c, table.select(~later)) for one, c in settings]
        held_out = table.select(later)
        off = [float(np.abs(p(held_out) - held_out.observed_s).mean()) for p in tried]
        best = int(np.argmin(off))
        errors[name] = off[best]
        whole = _fitted(*settings[best], table)
        found[name] = lambda asked, whole=whole: whole(_table(asked))  # type: ignore[misc]
    better = min((name for name in kinds if name != LINEAR), key=errors.__getitem__)
    return {BOOSTING: found[better], **found}


def _fitted(
    baseline: "Baseline", constant_s: float, table: "TripTable"
) -> "Callable[[TripTable], FloatArray]":
    drives = replace(table, observed_s=np.maximum(table.observed_s - constant_s, _LEAST_S))
    learned = baseline.fit(drives)
    return lambda asked: constant_s + learned.predict(asked)


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

    def told(self, values: Callable[[Arrivals], FloatArray]) -> FloatArray:
        """(n, 2): a number of both candidates."""
        return np.column_stack([values(side) for side in self.candidates])

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


def rank(pairs: Pairs, learned: Pairs | None, predictors: Predictors) -> dict[str, FloatArray]:
    """How urgently each ranking asks for the second unit of every race.

    ``learned`` are the races of the training part, for boosting on the gain.
    """
    scores = {OURS: pairs.pair.gain_s}
    for name in (STRAIGHT, ROAD, FREE_FLOW, IDENTITY, BOOSTING):
        if name in predictors.others:
            scores[name] = pairs.ahead(pairs.told(predictors.others[name]))
    drives = pairs.told(predictors.drive)
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
        told: FloatArray = forest.predict(_pair_columns(asked)[:, kept])
    return told


def _pair_columns(pairs: Pairs) -> FloatArray:
    """Distances and times of primary and second, their differences and ratios, and the hour."""
    one = pairs.candidates[0]
    columns = [one.of_log("hour"), one.of_log("weekday")]
    rows = np.arange(len(pairs))
    bases = [pairs.told(lambda side, n=name: getattr(side, n)) for name in  # type: ignore[misc]
             ("straight_m", "road_m", "free_flow_s")]  # fmt: skip
    bases.append(np.column_stack([time.mean_s for time in pairs.expected]))
    for both in bases:
        first, second = both[rows, pairs.primary], both[rows, 1 - pairs.primary]
        columns += [first, second, first - second, np.log((1.0 + first) / (1.0 + second))]
    return np.column_stack(columns).astype(np.float64)


def gap_scores(
    pairs: Pairs, model: Model, *, seed: int = 0, report: Done = lambda done: None
) -> dict[str, FloatArray]:
    """The printed gap of every race: Algorithm 2 with both depots, and with the other one alone.

    The primary drives its fastest path by the model's nominal times. Where the
    second could leave the primary's own depot, no better second is often the answer.
    """
    network, trips = pairs.candidates[0].on_roads
    origins = pairs.told(lambda side: np.asarray(side.on_roads[1].origin))
    found = {name: np.zeros(len(pairs)) for name in (PRINTED_GAP, OTHER_GAP)}
    done = 0
    for races in same_contexts(trips):
        scenarios = model.scenario_set(trips.contexts[races[0]], network)
        times_s = scenarios.nominal_times
        for race in races:
            nodes = origins[race].astype(int).tolist()
            start, other = nodes[pairs.primary[race]], nodes[1 - pairs.primary[race]]
            scene = int(trips.destination[race])
            primary = network.shortest_path(times_s, [start], scene)
            for name, depots in ((PRINTED_GAP, [start, other]), (OTHER_GAP, [other])):
                gap = optimistic_gap(
                    network, scenarios, depots, scene, primary, method="dca", seed=seed
                )
                found[name][race] = gap.lower_s
            done += 1
            report(done / len(pairs))
    return found
