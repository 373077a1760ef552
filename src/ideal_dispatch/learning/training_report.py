"""The report of a training: the model beside baselines, and its radius by level."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS
from ideal_dispatch.learning import training_figures as figures
from ideal_dispatch.learning.baselines import FittedBaseline, TripTable
from ideal_dispatch.learning.radius_training import conformal_factor
from ideal_dispatch.learning.scores import Scores, paired_interval, scores
from ideal_dispatch.learning.training import TrainedModel
from ideal_dispatch.learning.training_figures import Reliability
from ideal_dispatch.report import Column, Figure, Interval, Report, Section, Table

LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_FEW_TRIPS = 100
_RISEN = 1.02  # of the held-out error: more than its own noise


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


@dataclass(frozen=True, slots=True, eq=False)
class TrainingReport:
    """How good a training run is: beside baselines, and against what its radius promises.

    ``rivals`` has the model first, then every baseline, on the same test trips, ``trips``.
    """

    run: TrainedModel
    trips: TripTable
    rivals: tuple[Rival, ...]
    reliability: Reliability

    @classmethod
    def of(cls, run: TrainedModel, baselines: Sequence[FittedBaseline]) -> "TrainingReport":
        """The report of a run, beside baselines that learned from the same trips."""
        table = TripTable.of(run.data.network, run.data.trips.select(run.judged))
        own = run.predicted_s[run.judged]
        rivals = [Rival("IDEAL", own, run.scores)]
        for baseline in baselines:
            seconds = baseline.predict(table)
            interval = paired_interval(table.observed_s, seconds, own)
            found = scores(table.observed_s, seconds)
            rivals.append(Rival(baseline.name, seconds, found, interval))
        return cls(run, table, tuple(rivals), reliability(run))

    @property
    def best_rival(self) -> Rival | None:
        """The baseline with the least error on the test trips."""
        return min(self.rivals[1:], key=lambda rival: rival.scores.mae_s, default=None)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before trusting the model, a line each."""
        run, found, best = self.run, self.reliability, self.best_rival
        lines, level, covered = list(run.warnings), run.radius_rule.level, run.coverage(run.judged)
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
        elif run.judged.size < _FEW_TRIPS:
            lines.append(f"{run.judged.size} test trips are few: every number here is a rough one")
        asked = np.flatnonzero(np.isclose(found.level, -1 if level is None else level))
        if asked.size and covered < found.low[asked[0]]:
            lines.append(
                f"the set explains {100 * covered:.1f} % of the test trips where "
                f"{100 * found.level[asked[0]]:.0f} % were promised, less than chance allows: test "
                "trips differ from those held out"
            )
        errors = [epoch.validation_mae_s for epoch in run.history]
        last = run.details["params"]["output"] == "last"
        if run.split.validation.size and last and errors[-1] > _RISEN * min(errors):
            lines.append(
                f"the error on the trips held out rose from {min(errors):.1f} s in epoch "
                f"{errors.index(min(errors)) + 1} to {errors[-1]:.1f} s in the last, whose weights "
                'are kept; output = "best" in --params keeps the others'
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The numbers in the types of JSON; ``scores`` has the model first."""
        details, found = self.run.details, self.reliability
        kept = ("data", "params", "radius_params", "history", "kept_epoch", "held_out_for")
        columns = ("level", "covered", "low", "high")
        return {
            "model": self.run.checksum,
            **{name: details[name] for name in kept},
            "scores": [rival.as_dict() for rival in self.rivals],
            "radius": details["radius"],
            "reliability": {
                "calibration_trips": found.calibration,
                "test_trips": found.trips,
                **{name: getattr(found, name).tolist() for name in columns},
            },
            "shape": details["shape"],
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
        run, best, own = self.run, self.best_rival, self.rivals[0]
        data, covered = run.details["data"], run.coverage(run.judged)
        held_out = "held-out trips" if run.split.validation.size else "training trips"
        used_for = " and ".join(run.details["held_out_for"])
        span = f" from {data['first']} to {data['last']}" if data["first"] else ""
        numbers = [("mean absolute error on test trips", f"{own.scores.mae_s:.1f} s")]
        if best is not None:
            numbers.append((f"best baseline: {best.name}", f"{best.scores.mae_s:.1f} s"))
        numbers += [
            ("of test trips explained by the set", f"{100 * covered:.1f} %"),
            (f"effective rank of the set, of {run.shape.dimension}",
             f"{run.shape.effective_rank:.1f}"),
        ]  # fmt: skip
        words = (
            f"{data['trips']:,} trips{span}: {data['train']:,} to learn from, "
            f"{data['validation']:,} held out{used_for and f' for {used_for}'}, {data['test']:,} "
            "to test. "
        ) + (
            "Whole days were set apart, so the test asks how well a new day is forecast."
            if data["split"] == "day"
            else "Trips were set apart one by one, so days of the test were partly seen in "
            "training: the test asks how well a known day is completed."
        )
        kept = f"The weights of epoch {run.kept_epoch} of {len(run.history)} are kept."
        curves = Figure(
            "training", "Training loss, and error on held-out trips",
            figures.curves(run.history, run.kept_epoch, held_out),
            "Left: the loss that training lowers. "
            f"Right: error on {held_out}. {kept if run.kept_epoch else ''} A right curve that "
            "rises while the left one falls means overfitting.",
        )  # fmt: skip
        steps = None if run.steps is None else "Every step of Algorithm 1 is in steps.csv."
        return Report(
            "Training report",
            f"Model {run.checksum}, learned from trips {run.data.trips.checksum} on network "
            f"{run.network_checksum}.",
            numbers,
            self.warnings,
            [
                Section.of("How far predictions are off", words, self.table, self._by_hour()),
                Section.of("How training went", curves, steps),
                Section.of("Learned speeds", _speeds(run)),
                Section.of("How much slower than predicted is plausible", self._radius()),
                Section.of("Shape of the scenario set", *self._shape()),
            ],
        )

    def html(self) -> str:
        """The page as HTML."""
        return self.page().html()

    def _by_hour(self) -> Figure | None:
        """The error by the hour of the call, where hours are known."""
        hours = (self.trips.hour[:, None] == np.arange(24)).astype(float)
        if not hours.any():
            return None
        shown = [self.rivals[0], *filter(None, [self.best_rival])]
        bars = [
            (one.name, *error_by(hours, np.abs(one.predicted_s - self.trips.observed_s)))
            for one in shown
        ]
        return Figure(
            "errors-by-hour", "Mean absolute error by the hour of the call",
            figures.by_hour(bars, hours.sum(axis=0)),
            "With 95 % intervals; hours with fewer than five test trips have no point. Where the "
            "model and the best baseline overlap, this test cannot distinguish them.",
        )  # fmt: skip

    def _radius(self) -> Figure:
        """Coverage by level, and the radii that trips needed."""
        run, rows, found = self.run, self.run.judged, self.reliability
        level, covered = run.radius_rule.level, run.coverage(rows)
        quick = (run.radii.upper[rows] == 0).mean()
        aim = (
            "This model promises no level; it reaches"
            if level is None
            else f"This model aims at {100 * level:g} % and reaches"
        )
        promised = None if level is None else (level, covered)
        return Figure(
            "radius", "Coverage by level, and the radii of the trips",
            figures.radius(found, promised, run.radii.upper, run.predicted_radii[rows]),
            "Left: the predicted radius is scaled on held-out trips so that a share of them (the "
            "level asked for) took no longer than the slowest scenario, and counted on test trips; "
            f"on the diagonal, promises are kept. {100 * quick:.0f} % of the test trips took no "
            "longer than predicted: even a radius of zero explains them, so the curve is flat "
            f"below that level. The band is what chance allows with {found.calibration:,} and "
            f"{found.trips:,} trips. {aim} {100 * covered:.1f} %. Right: the radius every trip "
            "would have needed, and the radii predicted for the test trips.",
        )  # fmt: skip

    def _shape(self) -> tuple[Figure, str]:
        """How strongly the set moves roads and trips together."""
        shape = self.run.shape
        rank = f"Effective rank {shape.effective_rank:.1f} of {shape.dimension}."
        if not np.isnan(shape.concentration):
            rank += (
                f" A trip's ‖G‖/tr G is {shape.concentration:.2f} in the median; 1 would mean that "
                "scenarios can only rescale a whole trip, and that no second way could ever become "
                "better."
            )
        bars = Figure(
            "shape", "Correlations that the scenario set implies", figures.shape_bars(shape),
            "Left: how strongly the set slows two roads down together, by their distance. Right: "
            "the same of two trips, by the part of the shorter way that both drive. Trips fix how "
            "long embeddings are and hardly where they point, so this is a choice of the model and "
            "no finding: it shows that the set is neither one factor for the whole city nor "
            "independent roads.",
        )  # fmt: skip
        return bars, rank


def reliability(run: TrainedModel) -> Reliability:
    """Coverage against level; levels that the held-out trips are too few for are left out."""
    from scipy.stats import betabinom

    held_out, rows = run.split.validation, run.split.test
    plain = replace(run.radius_rule, scale=1.0)
    predicted = plain(run.weights, run.radii.contexts.astype(np.float32), run.radii.features)
    targets = run.radii.targets
    found = []
    for level in LEVELS:
        factor = conformal_factor(targets[held_out], predicted[held_out], level)
        if factor is None or not rows.size:
            continue
        covered = (targets[rows] <= factor * predicted[rows]).mean()
        # the true coverage of the k-th of n ratios is Beta(k, n + 1 − k)
        rank = int(np.ceil((held_out.size + 1) * level))
        chance = betabinom(rows.size, rank, held_out.size + 1 - rank)
        found.append((level, covered, *(chance.ppf([0.025, 0.975]) / rows.size)))
    columns = np.array(found).reshape(-1, 4).T
    return Reliability(held_out.size, rows.size, *columns)


def error_by(groups: FloatArray, errors_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean error of each group of trips, (trips, groups), and 1.96 standard errors of it.

    A group of less than five trips is NaN.
    """
    weight = groups.sum(axis=0)
    count = np.where(weight >= 5, weight, np.nan)
    mean = (groups.T @ errors_s) / count
    apart = groups * (errors_s[:, None] - mean)
    return mean, 1.96 * np.sqrt((apart**2).sum(axis=0)) / count


def slowest_hour(run: TrainedModel) -> tuple[FloatArray, int | None]:
    """An ordinary training context at the hour when the model's roads are slowest; that hour.

    Ordinary is the median weather, the commonest weekday and month, and no holiday.
    """
    rows, columns = run.data.trips.contexts[run.split.train], run.encoding.columns
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
    slowest, longest_s = None, -np.inf
    for hour in run.seen.learned_hours:
        typical[columns.index("hour")] = hour
        total_s = float(run.model.forecast(typical, run.data.network).nominal_times.sum())
        if total_s > longest_s:
            slowest, longest_s = hour, total_s
    if slowest is not None:
        typical[columns.index("hour")] = slowest
    return typical, slowest


def _speeds(run: TrainedModel) -> Figure | str:
    """The map of learned speeds at the slowest hour, and of what moment it is."""
    network, columns = run.data.network, run.encoding.columns
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
