"""The training report: what was learned, how well, and what not to read into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS
from ideal_dispatch.learning import training_figures as figures
from ideal_dispatch.learning.baselines import FittedBaseline
from ideal_dispatch.learning.diagnostics import (
    Reliability,
    Rival,
    SharedPart,
    compare,
    error_by,
    judged_rows,
    reliability,
    shared_part,
    slowest_hour,
)
from ideal_dispatch.learning.training import TrainingRun
from ideal_dispatch.learning.trip_table import TripTable
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.pages import Page

_FEW_TRIPS = 100
_DISTANCE_GROUPS = 6

Named = Sequence[tuple[str, figures.Bars]]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingReport:
    """How good a training run is: beside baselines, and against what its radius promises.

    ``rivals`` has the model first, then every baseline, on the same test trips.
    """

    run: TrainingRun
    rivals: tuple[Rival, ...]
    reliability: Reliability
    shared: SharedPart | None

    @classmethod
    def of(cls, run: TrainingRun, baselines: Sequence[FittedBaseline]) -> "TrainingReport":
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

    def page(self) -> Page:
        """A page with numbers, figures and, under each, what it says in plain words."""
        run, best = self.run, self.best_rival
        model, shape = run.model, run.shape
        page = Page(
            "Training report",
            f"Model {model.checksum}, learned from trips {run.problem.trips.checksum} on network "
            f"{model.network_checksum}.",
        )
        mae_s = self.rivals[0].scores.mae_s
        facts = [("mean absolute error on test trips", f"{mae_s:.1f} s")]
        if best is not None:
            facts.append((f"best baseline: {best.name}", f"{best.scores.mae_s:.1f} s"))
        facts += [
            ("of test trips explained by the set", f"{100 * run.coverage(judged_rows(run)):.1f} %"),
            (f"effective rank of the set, of {shape.dimension}", f"{shape.effective_rank:.1f}"),
        ]
        page.facts(facts)
        page.text(_split_in_words(run))
        for line in self.warnings:
            page.warning(line)
        _accuracy(page, self)
        _course(page, run)
        _speeds(page, run)
        _radius(page, run, self.reliability)
        _shape(page, run)
        return page


def _split_in_words(run: TrainingRun) -> str:
    data = run.model.details["data"]
    between = f" from {data['first']} to {data['last']}" if data["first"] else ""
    kind = (
        "Whole days were set apart, so the test asks how well a new day is forecast."
        if data["split"] == "day"
        else "Trips were set apart one by one, so days of the test were partly seen in training: "
        "the test asks how well a known day is filled in."
    )
    return (
        f"{data['trips']:,} trips{between}: {data['train']:,} to learn from, "
        f"{data['validation']:,} held out to stop training and to calibrate the radius, "
        f"{data['test']:,} to test. {kind}"
    )


# --- sections -----------------------------------------------------------------------


def _accuracy(page: Page, report: TrainingReport) -> None:
    run, rivals = report.run, report.rivals
    page.heading("How far predictions are off")
    page.table(
        ("prediction", "MAE s", "MAPE %", "median s", "P90 s", "MAE beyond the model's, s (95 %)"),
        [
            (r.name, f"{r.scores.mae_s:.1f}", f"{r.scores.mape_percent:.1f}",
             f"{r.scores.median_s:.1f}", f"{r.scores.p90_s:.1f}",
             r.beyond(rivals[0]).replace("-", "−"))
            for r in rivals
        ],
        bold=[0],
    )  # fmt: skip
    page.text(
        f"All rows are scored on the same {rivals[0].scores.trips:,} test trips; baselines learned "
        "from the same trips and chose their settings on the same held-out ones. The last column "
        "is the difference to the model with its 95 % interval over which trips were tested: "
        "above zero throughout, the model is better beyond chance."
    )
    rows = judged_rows(run)
    table = TripTable.of(run.problem.network, run.problem.trips.select(rows))
    shown = [rivals[0], *filter(None, [report.best_rival])]
    hours = (table.hour[:, None] == np.arange(24)).astype(float)
    if hours.any():
        page.figure(
            figures.by_hour(_bars(shown, table, hours, np.ones(rows.size)), hours.sum(axis=0)),
            "Mean absolute error by the hour of the call, with 95 % intervals; hours with fewer "
            "than five test trips have none. Where the model and the best baseline overlap, this "
            "test cannot tell them apart.",
        )
    names, groups = _distance_groups(table.length_m)
    driven = np.flatnonzero(table.classes.sum(axis=0) >= 5)
    page.figure(
        figures.by_distance_and_class(
            names,
            _bars(shown, table, groups, table.observed_s),
            [ROAD_CLASSES[code].replace("_", " ") for code in driven],
            _bars(shown, table, table.classes[:, driven], table.observed_s),
        ),
        "Left: error as a share of the travel time by the length of the way; each group has about "
        "as many trips. Right: by road class; a trip counts for each class by the part of its way "
        "on it. Lengths and classes are of the fastest way on empty roads, for the way actually "
        "driven is not known.",
    )
    page.text(_shared_in_words(report.shared))


def _course(page: Page, run: TrainingRun) -> None:
    page.heading("How training went")
    errors = [epoch.validation_mae_s for epoch in run.history]
    keeps_best = run.model.details["params"]["output"] == "best"
    best = int(np.argmin(errors)) + 1 if keeps_best else None
    held_out = "held-out trips" if run.split.validation.size else "training trips"
    kept = {
        "best": f"The weights of epoch {best} are kept, which did best on {held_out}.",
        "last": "The weights of the last epoch are kept.",
        "random": "The weights before a random step are kept: the output of the paper's Theorem 6.",
    }[run.model.details["params"]["output"]]
    page.figure(
        figures.curves(run.history, best, held_out),
        "Left: the loss that training lowers, in units of the squared mean travel time. Right: "
        f"error on {held_out}. {kept} A right curve that rises while "
        "the left one falls means learning by heart.",
    )


def _speeds(page: Page, run: TrainingRun) -> None:
    page.heading("Learned speeds")
    network = run.problem.network
    if np.isnan(network.lon).any():
        page.text("This network has no coordinates, so there is no map.")
        return
    row, hour = slowest_hour(run)
    relative = network.free_flow_times_s / run.model.forecast(row, network).nominal_times
    when = "at any hour" if hour is None else f"at {hour:02d}:00"
    columns = run.model.encoding.columns
    day, month = (
        next((name for name in names if row[columns.index(name)] == 1.0), None)
        for names in (WEEKDAYS, MONTHS)
    )
    season = " ".join(
        part for part in (day and f"on a {day.title()}", month and f"in {month.title()}") if part
    )
    known = not np.isnan(row[[columns.index(name) for name in WEATHER_VARIABLES]]).all()
    weather = ", in median weather" if known else ""
    page.figure(
        figures.speed_map(network, relative, f"Learned speeds {when}"),
        f"Learned speed of every road over its limit (50 km/h where none is known) {when} {season}"
        f"{', the hour when roads are slowest' if hour is not None else ''}{weather}; "
        f"half of all roads lie between {100 * np.quantile(relative, 0.25):.0f} and "
        f"{100 * np.quantile(relative, 0.75):.0f} %. Where directions differ the slower is drawn. "
        "Roads that no trip used take the speed of roads like them; waiting at junctions is part "
        "of it.",
    )


def _radius(page: Page, run: TrainingRun, found: Reliability) -> None:
    page.heading("Radius: how much slower than predicted is plausible")
    rule, rows = run.model.radius_rule, judged_rows(run)
    promised = None if rule.level is None else (rule.level, run.coverage(rows))
    targets = run.radii.upper
    quick = float((targets[rows] == 0).mean())
    aim = (
        f"This model aims at {100 * rule.level:g} % and reaches {100 * promised[1]:.1f} %."
        if promised is not None and rule.level is not None
        else f"This model promises no level; it reaches {100 * run.coverage(rows):.1f} %."
    )
    page.figure(
        figures.radius(found, promised, targets, run.predicted_radii[rows]),
        "Left: the predicted radius is scaled on held-out trips so that a share of them (the level "
        "asked for) took no longer than the slowest scenario, and counted on test trips; on the "
        f"diagonal, promises are kept. {100 * quick:.0f} % of the test trips took no longer than "
        "predicted: even a radius of zero explains them, so the curve is flat below that level. "
        f"The band is what chance allows with {found.calibration:,} and {found.trips:,} "
        f"trips. {aim} Right: the radius every trip would have needed, and the radii predicted for "
        "the test trips.",
    )


def _shape(page: Page, run: TrainingRun) -> None:
    page.heading("Shape of the scenario set")
    shape = run.shape
    page.figure(
        figures.shape_bars(shape),
        "Left: how strongly the set slows two roads down together, by their distance. Right: the "
        "same of two trips, by the part of the shorter way that both drive. Trips fix how long "
        "embeddings are and hardly where they point, so this is a choice of the model, not a "
        "finding: read it to see that the set is neither one factor for the whole city nor "
        "independent roads.",
    )
    concentration = (
        f" A trip's ‖G‖/tr G is {shape.concentration:.2f} in the median; 1 would mean that "
        "scenarios can only rescale a whole trip, and that no second way could ever become better."
        if np.isfinite(shape.concentration)
        else ""
    )
    page.text(f"Effective rank {shape.effective_rank:.1f} of {shape.dimension}.{concentration}")


# --- parts of sections --------------------------------------------------------------


def _bars(rivals: Sequence[Rival], table: TripTable, groups: FloatArray, unit: FloatArray) -> Named:
    return [
        (rival.name, error_by(groups, np.abs(rival.predicted_s - table.observed_s), unit))
        for rival in rivals
    ]


def _distance_groups(length_m: FloatArray) -> tuple[list[str], FloatArray]:
    """Groups of about equal size by length, named by their ends in kilometres."""
    ends: npt.NDArray[np.float64] = np.unique(
        np.quantile(length_m, np.linspace(0, 1, _DISTANCE_GROUPS + 1))
    )
    inner = ends[1:-1]
    group = np.searchsorted(inner, length_m, side="right")
    names = [f"{low / 1000:.1f}–{high / 1000:.1f} km" for low, high in pairwise(ends.tolist())] or [
        f"{ends[0] / 1000:.1f} km"
    ]
    return names, np.eye(len(names))[group]


def _shared_in_words(shared: SharedPart | None) -> str:
    if shared is None:
        return (
            "How much of their error simultaneous trips share cannot be said: too few test trips "
            "fall into the same hour, or their times are not known."
        )
    return (
        f"Errors (the log of observed over predicted) of test trips that started in the same hour "
        f"correlate by {shared.correlation:.2f} (95 %: {shared.low:.2f} … {shared.high:.2f}; "
        f"{shared.pairs:,} pairs): about {100 * max(shared.correlation, 0):.0f} % of what remains "
        "is shared by the whole city, the rest belongs to the single trip."
    )
