"""The training report: what was learned, how well, and what not to read into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS
from ideal_dispatch.learning.baselines import FittedBaseline
from ideal_dispatch.learning.report import training_figures as figures
from ideal_dispatch.learning.report.diagnostics import (
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
from ideal_dispatch.learning.training import TrainedModel
from ideal_dispatch.learning.trip_table import TripTable
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.pages import figure_url, render

_FEW_TRIPS = 100
_RISEN = 1.02  # of the held-out error: more than its own noise
_DISTANCE_GROUPS = 6

Named = Sequence[tuple[str, figures.Bars]]


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

    def html(self) -> str:
        """A page with numbers, figures and, under each, what it says in plain words."""
        run, rows = self.run, judged_rows(self.run)
        model, level, covered = run.model, run.model.radius_rule.level, run.coverage(rows)
        held_out = "held-out trips" if run.split.validation.size else "training trips"
        best_epoch = None
        if model.details["params"]["output"] == "best":
            best_epoch = int(np.argmin([epoch.validation_mae_s for epoch in run.history])) + 1
        radius = figures.radius(
            self.reliability,
            None if level is None else (level, covered),
            run.radii.upper,
            run.predicted_radii[rows],
        )
        return render(
            "training_report.html",
            report=self,
            run=run,
            covered=covered,
            best_epoch=best_epoch,
            stops=best_epoch is not None or model.details["params"]["patience"] is not None,
            quick=(run.radii.upper[rows] == 0).mean(),
            descent="" if run.steps is None else figure_url(figures.descent(run.steps)),
            curves=figure_url(figures.curves(run.history, best_epoch, held_out)),
            radius=figure_url(radius),
            shape_bars=figure_url(figures.shape_bars(run.shape)),
            speeds=_speeds(run),
            **_errors_by_kind(self),
        )


def _errors_by_kind(report: TrainingReport) -> dict[str, str]:
    """Figures of the error by hour, where hours are known, and by length and road class."""
    run, rows = report.run, judged_rows(report.run)
    table = TripTable.of(run.data.network, run.data.trips.select(rows))
    shown = [report.rivals[0], *filter(None, [report.best_rival])]
    found = {"by_hour": ""}
    hours = (table.hour[:, None] == np.arange(24)).astype(float)
    if hours.any():
        bars = _bars(shown, table, hours, np.ones(rows.size))
        found["by_hour"] = figure_url(figures.by_hour(bars, hours.sum(axis=0)))
    names, groups = _distance_groups(table.length_m)
    driven = np.flatnonzero(table.classes.sum(axis=0) >= 5)
    by_kind = figures.by_distance_and_class(
        names,
        _bars(shown, table, groups, table.observed_s),
        [ROAD_CLASSES[code].replace("_", " ") for code in driven],
        _bars(shown, table, table.classes[:, driven], table.observed_s),
    )
    return found | {"by_kind": figure_url(by_kind)}


def _speeds(run: TrainedModel) -> dict[str, Any] | None:
    """The map of learned speeds at the slowest hour, and of what moment it is."""
    network, columns = run.data.network, run.model.encoding.columns
    if np.isnan(network.lon).any():
        return None
    row, hour = slowest_hour(run)
    relative = network.free_flow_times_s / run.model.forecast(row, network).nominal_times
    when = "at any hour" if hour is None else f"at {hour:02d}:00"
    day, month = (
        next((name.title() for name in names if row[columns.index(name)] == 1.0), None)
        for names in (WEEKDAYS, MONTHS)
    )
    return {
        "map": figure_url(figures.speed_map(network, relative, f"Learned speeds {when}")),
        "when": when,
        "slowest": hour is not None,
        "day": day,
        "month": month,
        "weather": not np.isnan(row[[columns.index(name) for name in WEATHER_VARIABLES]]).all(),
        "quartiles": [f"{100 * np.quantile(relative, share):.0f}" for share in (0.25, 0.75)],
    }


def _bars(rivals: Sequence[Rival], table: TripTable, groups: FloatArray, unit: FloatArray) -> Named:
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
