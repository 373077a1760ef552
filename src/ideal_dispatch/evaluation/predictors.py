"""Units that arrived, what was known of each at its call, and predictions of their times.

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
from ideal_dispatch.evaluation.race_judgement import OURS, JudgedRaces
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.records import Trips
from ideal_dispatch.records.responses import Responses

if TYPE_CHECKING:
    from ideal_dispatch.learning.baselines import TripTable

STRAIGHT, ROAD, FREE_FLOW = "straight line", "road distance", "free flow × hour"
BOOSTING, IDENTITY = "boosting", "station and hour"
QUOTE, RATIO = "quote difference", "quote ratio"

_NOMINAL_M_S = 8.0  # a straight line becomes a drive; its scale is fitted
_HELD_OUT = 0.2
_LEAST_LATER = 500  # arrivals after a model's last day

LONGEST_S = 3600.0
"""A unit that takes longer was not on its way to an emergency."""

_CONSTANTS_S = np.arange(0.0, 181.0, 10.0)
_NEVER = np.datetime64("NaT", "s")
_PRIOR = 30.0  # arrivals: the factor of all hours counts like so many of each hour

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Units that arrived, a row each.

    ``rows`` are their places in the log. ``straight_m`` is how far the scene is from
    where they started, ``road_m`` and ``free_flow_s`` the length and the time of the fastest
    path on empty roads: NaN where they are not known. ``trips`` are the same
    units on the ``network``, both None without one.
    """

    responses: Responses
    rows: Rows
    took_s: FloatArray
    straight_m: FloatArray
    road_m: FloatArray
    free_flow_s: FloatArray
    network: RoadNetwork | None = None
    trips: Trips | None = None

    @classmethod
    def of(cls, responses: Responses, network: RoadNetwork | None = None) -> "Arrivals":
        """All units whose time from dispatch to scene is known and can be one.

        On a ``network``, those whose start and scene are near a junction.
        """
        took_s = responses.response_s
        with np.errstate(invalid="ignore"):
            usable = responses.arrived & (took_s > 0.0) & (took_s <= LONGEST_S)
        straight_m = great_circle_m(
            responses.from_lon, responses.from_lat, responses.lon, responses.lat
        )
        unknown = np.full(len(responses), np.nan)
        if network is None:
            rows: Rows = np.flatnonzero(usable)
            unknown = unknown[rows]
            return cls(responses, rows, took_s[rows], straight_m[rows], unknown, unknown)
        # remarks and odd times of leaving were found out after the call: they may not choose
        # what is judged
        left = np.where(responses.en_route < responses.on_scene, responses.en_route, _NEVER)
        plain = replace(responses, remark=np.zeros(len(responses), np.uint8), en_route=left)
        trips, placed = plain.trips(network)
        kept = usable[placed]
        trips, rows = trips.select(kept), placed[kept].astype(np.int64)
        times_s = network.free_flow_times_s
        paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        return cls(
            responses,
            rows,
            took_s[rows],
            straight_m[rows],
            np.array([network.length_m[path.edges].sum() for path in paths]),
            np.array([path.time_s(times_s) for path in paths]),
            network,
            trips,
        )

    def __len__(self) -> int:
        return int(self.rows.size)

    def select(self, index: npt.NDArray[Any]) -> "Arrivals":
        """The rows of ``index``, numbers or a mask."""
        names = ("rows", "took_s", "straight_m", "road_m", "free_flow_s")
        trips = None if self.trips is None else self.trips.select(index)
        return replace(self, **{name: getattr(self, name)[index] for name in names}, trips=trips)

    def places(self, rows: npt.NDArray[Any]) -> Rows:
        """Where rows of the log are in here; −1 where they are not."""
        where = np.full(len(self.responses) + 1, -1)
        where[self.rows] = np.arange(len(self))
        return np.asarray(where[rows])

    def of_log(self, name: str) -> Any:
        """A column of the log for each unit."""
        return getattr(self.responses, name)[self.rows]

    @property
    def on_roads(self) -> tuple[RoadNetwork, Trips]:
        """The network and the units' trips on it, or an error where there is none."""
        if self.network is None or self.trips is None:
            raise InputError("times of roads need the network; give it with --network")
        return self.network, self.trips

    @property
    def sound(self) -> BoolArray:
        """Where nothing is said against the row: what may be learned from."""
        return np.asarray(self.of_log("remark") == 0)


def as_if_arrived(responses: Responses) -> Responses:
    """The same units, each with an arrival: for asking what was to be expected of them.

    The time of arrival is made up and says nothing.
    """
    n = len(responses)
    sent = np.where(np.isnat(responses.dispatched), responses.at, responses.dispatched)
    return replace(
        responses,
        dispatched=sent,
        en_route=np.full(n, "NaT", "M8[s]"),
        on_scene=(sent + np.timedelta64(60, "s")).astype("M8[s]"),
        remark=np.zeros(n, np.uint8),
    )


Predict = Callable[[Arrivals], FloatArray]
"""Seconds from dispatch to scene, for every unit."""


def by_hour(learned_from: Arrivals, base: str) -> tuple[Predict, Predict]:
    """A constant plus a base (``straight_m``, …) times a factor of the hour: whole, and drive.

    The constant and the factors are those of least absolute error. Factors of hours
    with few arrivals are drawn to that of all hours.
    """
    values, took_s = getattr(learned_from, base), learned_from.took_s
    hours = learned_from.of_log("hour").astype(int)
    known = values > 0.0  # not NaN, and not at the station's own door
    if not known.any():
        raise InputError(f"{base}: no unit to learn from has one; give more rows before the date")
    values, took_s, hours = values[known], took_s[known], hours[known]
    best: tuple[float, float, FloatArray] | None = None
    for constant_s in _CONSTANTS_S:
        factors = _factors(took_s - constant_s, values, hours)
        error = float(np.abs(constant_s + values * factors[hours] - took_s).mean())
        if best is None or error < best[0]:
            best = error, float(constant_s), factors
    assert best is not None
    _, constant_s, factors = best

    def drive(asked: Arrivals) -> FloatArray:
        return np.asarray(getattr(asked, base) * factors[asked.of_log("hour").astype(int)])

    return lambda asked: constant_s + drive(asked), drive


def _factors(seconds: FloatArray, base: FloatArray, hours: npt.NDArray[np.int64]) -> FloatArray:
    """For every hour, and −1 for an hour that is not known, the factor of least error."""
    usual = _best_factor(seconds, base)
    factors = np.full(25, usual)
    for hour in np.unique(hours[hours >= 0]):
        here = hours == hour
        weight = here.sum() / (here.sum() + _PRIOR)
        factors[hour] = weight * _best_factor(seconds[here], base[here]) + (1 - weight) * usual
    return np.asarray(np.maximum(factors, 1e-6))


def _best_factor(seconds: FloatArray, base: FloatArray) -> float:
    """The factor of least Σ |seconds − factor · base|: a weighted median."""
    ratio = seconds / base
    order = np.argsort(ratio, kind="stable")
    weight = np.cumsum(base[order])
    return float(ratio[order][np.searchsorted(weight, weight[-1] / 2.0)])


# --- ours, and the others ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Predictors:
    """Ours, and the others by name; ``drive`` is what ours expects of the roads alone.

    ``words`` says what ours rests on.
    """

    response: ResponseModel
    drive: Predict
    others: Mapping[str, Predict]
    words: str

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
    return Predictors(response, drive, others, words)


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
    from ideal_dispatch.learning.baselines import TripTable

    network, trips = arrivals.on_roads
    return TripTable.of(network, replace(trips, observed_s=arrivals.took_s))


# --- races --------------------------------------------------------------------------


def judge(
    arrivals: Arrivals,
    places: Rows,
    predictors: Predictors,
    days: npt.NDArray[Any],
    seed: int = 0,
) -> JudgedRaces:
    """Races by their candidates' ``places`` among the arrivals, (n, 2), ranked by all predictors.

    A ranking by a predictor asks for the second unit where it expects it soonest after, or most
    before, the primary of ours.
    """
    sides = [arrivals.select(places[:, side]) for side in (0, 1)]
    one, two = times = [predictors.of(side) for side in sides]
    mean_s, median_s = (
        np.column_stack([getattr(time, name) for time in times]) for name in ("mean_s", "median_s")
    )
    first, rows = mean_s.argmin(axis=1), np.arange(len(places))

    def ahead(values: FloatArray) -> FloatArray:
        return np.asarray(values[rows, first] - values[rows, 1 - first])

    names = ("median_s", "own", "shared")
    primary, second = (
        replace(
            one, **{n: np.where(first == side, getattr(one, n), getattr(two, n)) for n in names}
        )
        for side in (0, 1)
    )
    pair = ResponsePair(primary, second)
    others, drives = (
        {name: np.column_stack([predict(side) for side in sides]) for name, predict in of.items()}
        for of in (predictors.others, {QUOTE: predictors.drive})
    )
    scores = {OURS: pair.gain_s} | {name: ahead(values) for name, values in others.items()}
    if not np.isnan(drives[QUOTE]).any():
        scores[QUOTE] = ahead(drives[QUOTE])
        scores[RATIO] = ahead(np.log(np.maximum(drives[QUOTE], 1.0)))
    return JudgedRaces(
        arrivals.took_s[places],
        days.astype("M8[D]").astype(np.int64).astype(np.int32),
        {OURS: mean_s, **others},
        {OURS: median_s, **others},
        scores,
        pair.gain_s,
        pair.second_first,
        seed,
    )
