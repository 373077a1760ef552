"""All that policies learn from past days, fitted on some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.dispatch.candidate import ALL_KINDS, OTHER_DEPOT, SecondKind
from ideal_dispatch.dispatch.controls import ROUTER_FEATURES, QuoteDifferencePolicy
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.dispatch.fitted import USUAL, FittedParts, SecondKinds, in_order
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.quarter_hours import QuarterHours
from ideal_dispatch.dispatch.settings import NeededParts, needed_parts
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.replay.by_day import ByDay
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG, Report, run_replay
from ideal_dispatch.replay.trained import (
    DRIFT,
    HOURS,
    PastDays,
    fit_drift_on,
    fit_hours,
    load_models,
    train_models,
)

if TYPE_CHECKING:
    from ideal_dispatch.learning.trigger import Trigger

_TRIGGER = "calls.trigger"
_ROUTER = "router"
_HOURS_GAIN = "hours-gain.json"
_USUAL_GAIN: tuple[SecondKinds, bool] = (in_order(ALL_KINDS), False)
_FEATURES = [field.name for field in fields(GainFeatures)]
_LEAST_DAYS = 2  # a drift is fitted on one day and stops with another


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """What was learned for each date from the other half of the dates."""

    drift: dict[str, DriftModel]
    hours: dict[str, QuarterHours]


def fit_parts(
    experiment: Experiment,
    ground: Ground,
    past: PastDays,
    days: Sequence[int],
    folder: Path,
    *,
    workers: int | None = 1,
    cluster: str | None = None,
    report: Report | None = None,
) -> FittedParts:
    """What the experiment's policies ask for, learned from the numbered days alone.

    The gain of corrected quotes is fitted on days that the correction was not:
    each half of the days with what the other half taught, where both have
    enough. All is kept in ``folder``; what is there is not fitted again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = needed_parts(experiment.policies)
    dates = [ground.dates()[day] for day in sorted(days)]
    models = train_models(experiment, ground, past.trips, dates, folder, asked.models)
    if asked.drift:
        fit_drift_on(experiment, ground, past.quotes, dates, folder / DRIFT)
    if asked.hours and not (folder / HOURS).exists():
        fit_hours(ground, past.quotes, dates).save(folder / HOURS)
    if _missing(asked, folder):
        apart = _apart(experiment, ground, past, dates, folder, asked)
        calls = [
            call for day in sorted(days) for call in ground.calls(experiment, range(day, day + 1))
        ]
        run_replay(
            ground.world(experiment), ground.network, ground.depots, calls,
            _observers(models[USUAL], asked, apart), folder / "replay", region=ground.region,
            seed=experiment.seed, workers=workers, cluster=cluster, report=report,
        )  # fmt: skip
        entries = list(read_log(folder / "replay" / LOG))
        for seconds, corrected in sorted(asked.gains):
            names = [_observer_name(kind, corrected) for kind in seconds]
            gain = _gain(entries, names, past.convention)
            gain.save(folder / _gain_file(seconds, corrected))
        if asked.hours:
            names = [_observer_name(kind, False) for kind in OTHER_DEPOT]
            _gain(entries, names, past.convention, apart.hours).save(folder / _HOURS_GAIN)
        if asked.trigger:
            _trigger(entries, past.convention, experiment.seed).save(folder / _TRIGGER)
    return load_parts(experiment, folder)


def missing_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Names of files that :func:`fit_parts` has still to write."""
    return _missing(needed_parts(experiment.policies), folder)


def _missing(asked: NeededParts, folder: Path) -> list[str]:
    names = [_gain_file(*gain) for gain in sorted(asked.gains)]
    names += [_HOURS_GAIN] if asked.hours else []
    names += [_TRIGGER] if asked.trigger else []
    return [name for name in names if not (folder / name).exists()]


def load_parts(experiment: Experiment, folder: Path) -> FittedParts:
    """What was fitted for the experiment's policies, or for those of another experiment."""
    asked = needed_parts(experiment.policies)
    models = load_models(folder, asked.models)
    gains = {
        (seconds, corrected): GainModel.load(folder / _gain_file(seconds, corrected))
        for seconds, corrected in asked.gains
    }
    return FittedParts(
        models[USUAL],
        DriftModel.load(folder / DRIFT) if asked.drift else None,
        gains.get(_USUAL_GAIN),
        _load_trigger(folder / _TRIGGER) if asked.trigger else None,
        gains.get((_USUAL_GAIN[0], True)),
        {form: model for form, model in models.items() if form != USUAL},
        gains,
        QuarterHours.load(folder / HOURS) if asked.hours else None,
        GainModel.load(folder / _HOURS_GAIN) if asked.hours else None,
    )


def _load_trigger(file: Path) -> "Trigger":
    from ideal_dispatch.learning.trigger import Trigger

    return Trigger.load(file)


def _gain_file(seconds: SecondKinds, corrected: bool) -> str:
    words = [] if seconds == _USUAL_GAIN[0] else [*seconds]
    return "-".join([*(["drift"] if corrected else []), "gain", *words]) + ".json"


def _apart(
    experiment: Experiment,
    ground: Ground,
    past: PastDays,
    dates: Sequence[str],
    folder: Path,
    asked: NeededParts,
) -> _Apart:
    """Drift and ratios for each half of the dates from the other, or from all if they are few."""
    halves = [dates[0::2], dates[1::2]]
    enough = len(halves[1]) >= _LEAST_DAYS
    drift: dict[str, DriftModel] = {}
    hours: dict[str, QuarterHours] = {}
    for number, own in enumerate(halves):
        others = halves[1 - number] if enough else dates
        place = folder / (f"{DRIFT}-half-{number + 1}" if enough else DRIFT)
        if asked.drift:
            made = fit_drift_on(experiment, ground, past.quotes, others, place)
            drift |= dict.fromkeys(own, made)
        if asked.hours:
            hours |= dict.fromkeys(own, fit_hours(ground, past.quotes, others))
    return _Apart(drift, hours)


def _observer_name(kind: SecondKind, corrected: bool) -> str:
    return f"{kind}, corrected" if corrected else kind


def _observers(model: Model, asked: NeededParts, apart: _Apart) -> list[Policy]:
    """Policies whose log has the rows to fit gains and a trigger on: one per kind of second."""
    found: list[Policy] = [QuoteDifferencePolicy(name=_ROUTER)]
    wanted = asked.gains | ({(OTHER_DEPOT, False)} if asked.hours else set())
    for kind, corrected in sorted({(kind, c) for seconds, c in wanted for kind in seconds}):
        name = _observer_name(kind, corrected)
        made = partial(
            Ideal, model, None, seconds=(kind,), report_gap=False, method="multistart", name=name
        )
        if corrected:
            by_day = {day: made(drift=drift) for day, drift in apart.drift.items()}
            found.append(ByDay(name, by_day))
        else:
            found.append(made())
    return found


def _gain(
    entries: Iterable[dict[str, Any]],
    policies: Sequence[str],
    convention: World,
    hours: dict[str, QuarterHours] | None = None,
) -> GainModel:
    """The spread of T₁ − T₂ over the seconds that the named policies considered.

    With ``hours``, of quotes that are multiplied by the ratio of their date and
    quarter hour: features are seconds of quotes, and so are multiplied alike.
    """
    rows, differences = [], []
    for entry in entries:
        incident, ratio = entry["incident"], 1.0
        if hours is not None:
            ratio = hours[incident["day"]].ratio(datetime.fromisoformat(incident["at"]))
        for decision in map(entry["decisions"].__getitem__, policies):
            if decision["second"] is None:
                continue
            details = decision["details"]
            rows.append([np.nan if details[n] is None else ratio * details[n] for n in _FEATURES])
            differences.append(_saved_s(entry, decision, convention))
    if not rows:
        raise InputError("no call of the training days has a second way; nothing to fit a gain on")
    return GainModel.fit(GainFeatures(*np.array(rows).T), differences)


def _trigger(entries: Iterable[dict[str, Any]], convention: World, seed: int) -> "Trigger":
    from ideal_dispatch.learning.trigger import fit_trigger

    rows, saved = [], []
    for entry in entries:
        decision = entry["decisions"][_ROUTER]
        if decision["second"] is not None:
            rows.append(decision["details"]["router_features"])
            saved.append(_saved_s(entry, decision, convention))
    return fit_trigger(np.array(rows), saved, seed, ROUTER_FEATURES)


def _saved_s(entry: dict[str, Any], decision: dict[str, Any], convention: World) -> float:
    first, second = (
        sum(entry["drives"][decision[who]][convention]["seconds"]) for who in ("primary", "second")
    )
    return float(first - second)
