"""What a training run is worth: beside baselines, by kind of trip, and its radius by level."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS
from ideal_dispatch.learning import training_figures as figures
from ideal_dispatch.learning.baselines import FittedBaseline
from ideal_dispatch.learning.radius_training import conformal_factor
from ideal_dispatch.learning.scores import Scores, paired_interval, scores
from ideal_dispatch.learning.training import TrainedModel
from ideal_dispatch.learning.training_figures import Reliability
from ideal_dispatch.learning.trip_table import TripTable
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.report import Column, Figure, Interval, Report, Section, Table

LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_FEWEST_PAIRS = 30  # fewer simultaneous trips say nothing about what they share
_DRAWS = 500
_FEW_TRIPS = 100
_RISEN = 1.02  # of the held-out error: more than its own noise
_DISTANCE_GROUPS = 6


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

    def beyond(self, model: "Rival") -> Interval | None:
        """Its error beyond the model's with the interval; None for the model."""
        if self.beyond_s is None:
            return None
        return Interval(self.scores.mae_s - model.scores.mae_s, *self.beyond_s)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        interval = {} if self.beyond_s is None else {"beyond_s": list(self.beyond_s)}
        return {"name": self.name, **asdict(self.scores), **interval}


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


# --- the report -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TrainingReport:
    """How good a training run is: beside baselines, and against what its radius promises.

    ``rivals`` has the model first, then every baseline, on the same test trips.
    """

    run: TrainedModel
    rivals: tuple[Rival, ...]
    reliability: Reliability
    shared: SharedPart | None

    @classmethod
    def of(cls, run: TrainedModel, baselines: Sequence[FittedBaseline]) -> "TrainingReport":
        """The report of a run, beside baselines that learned from the same trips."""
        return cls(run, compare(run, baselines), reliability(run), shared_part(run))

    @property
    def best_rival(self) -> Rival | None:
        """The baseline with the least error on the test trips."""
        return min(self.rivals[1:], key=lambda rival: rival.scores.mae_s, default=None)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before trusting the model, a line each."""
        run, found, best = self.run, self.reliability, self.best_rival
        lines, rows, level = list(run.warnings), judged_rows(run), run.model.radius_rule.level
        if best is not None and best.beyond_s is not None and best.beyond_s[0] <= 0:
            worse = best.beyond_s[1] < 0
            lines.append(
                f"{best.name} predicts the test trips {'better than' if worse else 'as well as'} "
                "this model; learn from more trips, or try the other --features"
            )
        if not run.split.test.size:
            instead = "held-out" if run.split.validation.size else "training"
            lines.append(
                f"there are no test trips: errors here are of {instead} trips, so too good"
            )
        elif rows.size < _FEW_TRIPS:
            lines.append(f"{rows.size} test trips are few: every number here is a rough one")
        asked = np.flatnonzero(np.isclose(found.level, -1 if level is None else level))
        if asked.size and run.coverage(rows) < found.low[asked[0]]:
            lines.append(
                f"the set explains {100 * run.coverage(rows):.1f} % of the test trips where "
                f"{100 * found.level[asked[0]]:.0f} % were promised, less than chance allows: test "
                "trips differ from those held out"
            )
        errors = [epoch.validation_mae_s for epoch in run.history]
        kept = run.model.details["params"]["output"]
        if run.split.validation.size and kept == "last" and errors[-1] > _RISEN * min(errors):
            lines.append(
                f"the error on the trips held out rose from {min(errors):.1f} s in epoch "
                f"{errors.index(min(errors)) + 1} to {errors[-1]:.1f} s in the last, whose weights "
                'are kept; output = "best" in --params keeps the others'
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The numbers in the types of JSON; ``scores`` has the model first."""
        details, found = self.run.model.details, self.reliability
        return {
            "model": self.run.model.checksum,
            **{name: details[name] for name in ("data", "params", "radius_params", "history")},
            "scores": [rival.as_dict() for rival in self.rivals],
            "radius": details["radius"],
            "reliability": {
                "calibration_trips": found.calibration,
                "test_trips": found.trips,
                **{
                    key: getattr(found, key).tolist() for key in ("level", "covered", "low", "high")
                },
            },
            "shape": details["shape"],
            "shared_correlation": None if self.shared is None else self.shared.correlation,
            "warnings": self.warnings,
            "versions": details["versions"],
        }

    @property
    def table(self) -> Table:
        """The errors of the model and of every baseline on the test trips."""
        own = self.rivals[0]
        return Table(
            "scores",
            "Errors on the test trips",
            (Column("prediction"), Column("MAE s", arrow="↓"), Column("MAPE %", arrow="↓"),
             Column("median s", arrow="↓"), Column("P90 s", arrow="↓"),
             Column("MAE beyond the model's, s", signed=True)),
            tuple(
                (one.name, one.scores.mae_s, one.scores.mape_percent, one.scores.median_s,
                 one.scores.p90_s, one.beyond(own))
                for one in self.rivals
            ),
            frozenset({0}),
            f"All rows are scored on the same {own.scores.trips:,} test trips. Baselines learned "
            "from the same trips and chose their settings on the same held-out ones. The last "
            "column is the difference from the model with its 95 % interval over the test trips: "
            "above zero throughout, the model is better beyond chance.",
        )  # fmt: skip

    def page(self) -> Report:
        """The page: numbers, figures and, under each, what it says in plain words."""
        run, rows, best, own = self.run, judged_rows(self.run), self.best_rival, self.rivals[0]
        model, data, covered = run.model, run.model.details["data"], run.coverage(rows)
        numbers = [("mean absolute error on test trips", f"{own.scores.mae_s:.1f} s")]
        if best is not None:
            numbers.append((f"best baseline: {best.name}", f"{best.scores.mae_s:.1f} s"))
        numbers += [
            ("of test trips explained by the set", f"{100 * covered:.1f} %"),
            (f"effective rank of the set, of {run.shape.dimension}",
             f"{run.shape.effective_rank:.1f}"),
        ]  # fmt: skip
        stops = self._best_epoch is not None or model.details["params"]["patience"] is not None
        span = f" from {data['first']} to {data['last']}" if data["first"] else ""
        parted = (
            "Whole days were set apart, so the test asks how well a new day is forecast."
            if data["split"] == "day"
            else "Trips were set apart one by one, so days of the test were partly seen in "
            "training: the test asks how well a known day is filled in."
        )
        words = (
            f"{data['trips']:,} trips{span}: {data['train']:,} to learn from, "
            f"{data['validation']:,} held out{' to choose when to stop,' if stops else ''} to "
            f"calibrate the radius, {data['test']:,} to test. {parted}"
        )
        return Report(
            "Training report",
            f"Model {model.checksum}, learned from trips {run.data.trips.checksum} on network "
            f"{model.network_checksum}.",
            numbers,
            self.warnings,
            [
                Section.of("How far predictions are off", words, *self._errors()),
                Section.of("How training went", *self._training()),
                Section.of("Learned speeds", _speeds(run)),
                Section.of("How much slower than predicted is plausible", self._radius()),
                Section.of("Shape of the scenario set", *self._shape()),
            ],
        )

    def html(self) -> str:
        """The page as HTML."""
        return self.page().html()

    @property
    def _best_epoch(self) -> int | None:
        """The epoch whose weights are kept because it did best on the trips held out."""
        if self.run.model.details["params"]["output"] != "best":
            return None
        return int(np.argmin([epoch.validation_mae_s for epoch in self.run.history])) + 1

    def _errors(self) -> list[str | Table | Figure]:
        """The table of all predictions, and the error by hour, length and road class."""
        run, rows, own = self.run, judged_rows(self.run), self.rivals[0]
        found: list[str | Table | Figure] = [self.table]
        trips = TripTable.of(run.data.network, run.data.trips.select(rows))
        shown = [own, *filter(None, [self.best_rival])]
        hours = (trips.hour[:, None] == np.arange(24)).astype(float)
        if hours.any():
            bars = _bars(shown, trips, hours, np.ones(rows.size))
            found.append(
                Figure("errors-by-hour", "Mean absolute error by the hour of the call",
                       figures.by_hour(bars, hours.sum(axis=0)),
                       "With 95 % intervals; hours with fewer than five test trips have no point. "
                       "Where the model and the best baseline overlap, this test cannot "
                       "distinguish them.")
            )  # fmt: skip
        names, groups = _distance_groups(trips.length_m)
        driven = np.flatnonzero(trips.classes.sum(axis=0) >= 5)
        by_kind = figures.by_distance_and_class(
            names,
            _bars(shown, trips, groups, trips.observed_s),
            [ROAD_CLASSES[code].replace("_", " ") for code in driven],
            _bars(shown, trips, trips.classes[:, driven], trips.observed_s),
        )
        found.append(
            Figure("errors-by-length", "Error as a share of the travel time", by_kind,
                   "Left: by the length of the way; each group has about as many trips. Right: by "
                   "road class; a trip counts for each class by the part of its way on it. Lengths "
                   "and classes are of the fastest way on empty roads: the route that was driven "
                   "is unknown.")
        )  # fmt: skip
        if (shared := self.shared) is None:
            return [*found, "The shared part of simultaneous errors is unknown: too few test "
                    "trips fall into the same hour, or their times are unknown."]  # fmt: skip
        return [
            *found,
            "Errors (the log of observed over predicted) of test trips that started in the same "
            f"hour correlate by {shared.correlation:.2f} (95 %: {shared.low:.2f} … "
            f"{shared.high:.2f}; {shared.pairs:,} pairs): about "
            f"{100 * max(shared.correlation, 0):.0f} % of what remains is shared by the whole "
            "city, the rest belongs to the single trip.",
        ]

    def _training(self) -> list[str | Figure]:
        """Loss and error by epoch, and the steps of Algorithm 1 where they were recorded."""
        run, best = self.run, self._best_epoch
        held_out = "held-out trips" if run.split.validation.size else "training trips"
        kept = {
            "best": f"The weights of epoch {best} are kept, which did best on {held_out}.",
            "last": "The weights of the last epoch are kept.",
        }.get(
            run.model.details["params"]["output"],
            "The weights before a random step are kept: the output of the paper's Theorem 6.",
        )
        found: list[str | Figure] = [
            Figure("training", "Training loss, and error on held-out trips",
                   figures.curves(run.history, best, held_out),
                   "Left: the loss that training lowers, in units of the squared mean travel time. "
                   f"Right: error on {held_out}. {kept} A right curve that rises while the left "
                   "one falls means overfitting.")
        ]  # fmt: skip
        if run.steps is not None:
            found.append(
                Figure("steps", "Steps of Algorithm 1", figures.descent(run.steps),
                       "Left: objective and direction d of every step, on the batch and at the "
                       "perturbed weights. Right: the length of all weights; Theorems 2 and 6 "
                       "assume that it stays bounded. Every step is in steps.csv.")
            )  # fmt: skip
        return found

    def _radius(self) -> Figure:
        """Coverage by level, and the radii that trips needed."""
        run, rows, found = self.run, judged_rows(self.run), self.reliability
        level, covered = run.model.radius_rule.level, run.coverage(rows)
        quick = (run.radii.upper[rows] == 0).mean()
        aim = (
            "This model promises no level; it reaches"
            if level is None
            else f"This model aims at {100 * level:g} % and reaches"
        )
        drawn = figures.radius(
            found,
            None if level is None else (level, covered),
            run.radii.upper,
            run.predicted_radii[rows],
        )
        return Figure(
            "radius", "Coverage by level, and the radii of the trips", drawn,
            "Left: the predicted radius is scaled on held-out trips so that a share of them (the "
            "level asked for) took no longer than the slowest scenario, and counted on test trips; "
            f"on the diagonal, promises are kept. {100 * quick:.0f} % of the test trips took no "
            "longer than predicted: even a radius of zero explains them, so the curve is flat "
            f"below that level. The band is what chance allows with {found.calibration:,} and "
            f"{found.trips:,} trips. {aim} {100 * covered:.1f} %. Right: the radius every trip "
            "would have needed, and the radii predicted for the test trips.",
        )  # fmt: skip

    def _shape(self) -> list[str | Figure]:
        """How strongly the set moves roads and trips together."""
        shape = self.run.shape
        rank = f"Effective rank {shape.effective_rank:.1f} of {shape.dimension}."
        if not np.isnan(shape.concentration):
            rank += (
                f" A trip's ‖G‖/tr G is {shape.concentration:.2f} in the median; 1 would mean that "
                "scenarios can only rescale a whole trip, and that no second way could ever become "
                "better."
            )
        return [
            Figure("shape", "Correlations that the scenario set implies",
                   figures.shape_bars(shape),
                   "Left: how strongly the set slows two roads down together, by their distance. "
                   "Right: the same of two trips, by the part of the shorter way that both drive. "
                   "Trips fix how long embeddings are and hardly where they point, so this is a "
                   "choice of the model and no finding: it shows that the set is neither one "
                   "factor for the whole city nor independent roads."),
            rank,
        ]  # fmt: skip


def _speeds(run: TrainedModel) -> Figure | str:
    """The map of learned speeds at the slowest hour, and of what moment it is."""
    network, columns = run.data.network, run.model.encoding.columns
    if np.isnan(network.lon).any():
        return "This network has no coordinates, so there is no map."
    row, hour = slowest_hour(run)
    relative = network.free_flow_times_s / run.model.forecast(row, network).nominal_times
    when = "at any hour" if hour is None else f"at {hour:02d}:00"
    day, month = (
        next((name.title() for name in names if row[columns.index(name)] == 1.0), None)
        for names in (WEEKDAYS, MONTHS)
    )
    moment = when + (f" on a {day}" if day else "") + (f" in {month}" if month else "")
    if hour is not None:
        moment += ", the hour when roads are slowest"
    if not np.isnan(row[[columns.index(name) for name in WEATHER_VARIABLES]]).all():
        moment += ", in median weather"
    low, high = (f"{100 * np.quantile(relative, share):.0f}" for share in (0.25, 0.75))
    return Figure(
        "speeds", "Learned speed of every road over its limit",
        figures.speed_map(network, relative, f"Learned speeds {when}"),
        f"Speeds are those {moment}; where no limit is known it counts as 50 km/h. Half of all "
        f"roads lie between {low} and {high} %. Where directions differ the slower is drawn. Roads "
        "that no trip used take the speed of roads like them; waiting at junctions is part of it.",
    )  # fmt: skip


def _bars(
    rivals: Sequence[Rival], table: TripTable, groups: FloatArray, unit: FloatArray
) -> figures.Named:
    return [
        (rival.name, error_by(groups, np.abs(rival.predicted_s - table.observed_s), unit))
        for rival in rivals
    ]


def _distance_groups(length_m: FloatArray) -> tuple[list[str], FloatArray]:
    """Groups of about equal size by length, named by their ends in kilometres."""
    ends: FloatArray = np.unique(np.quantile(length_m, np.linspace(0, 1, _DISTANCE_GROUPS + 1)))
    inner = ends[1:-1]
    group = np.searchsorted(inner, length_m, side="right")
    names = [f"{low / 1000:.1f}–{high / 1000:.1f} km" for low, high in pairwise(ends.tolist())] or [
        f"{ends[0] / 1000:.1f} km"
    ]
    return names, np.eye(len(names))[group]
