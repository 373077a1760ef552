"""All that policies learn from past days, fitted on some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.controls import ROUTER_FEATURES, QuoteDifferencePolicy
from ideal_dispatch.dispatch.expected_gain import GainFeatures, GainModel
from ideal_dispatch.dispatch.fitted import Fitted
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model import MANIFEST
from ideal_dispatch.learning.trigger import Trigger, fit_trigger
from ideal_dispatch.records import Trips
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG, Report, replay
from ideal_dispatch.traffic.quote_log import QuoteLog

_ROUTER = "router"
_FEATURES = [field.name for field in fields(GainFeatures)]


@dataclass(frozen=True, slots=True, eq=False)
class PastDays:
    """Trips and quotes of the training days in one world."""

    trips: Trips
    quotes: QuoteLog
    convention: World


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
) -> Fitted:
    """Model, drift, gain and trigger, learned from the numbered days alone.

    They are kept in ``folder``; what is there is not fitted again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dates = {ground.dates()[day] for day in days}
    model, paper_model = _models(experiment, ground, past.trips, dates, folder)
    drift = _drift(experiment, ground, past.quotes, dates, folder / "drift")
    parts = Fitted(model, drift, paper_model=paper_model)
    files = [folder / name for name in ("gain.json", "drift-gain.json", "calls.trigger")]
    if not files[-1].exists():
        calls = [
            call for day in sorted(days) for call in ground.calls(experiment, range(day, day + 1))
        ]
        replay(
            ground.world(experiment), ground.network, ground.depots, calls,
            [QuoteDifferencePolicy(name=_ROUTER), *_seconds(model, None), *_seconds(model, drift)],
            folder / "replay", region=ground.region, seed=experiment.seed, workers=workers,
            cluster=cluster, report=report,
        )  # fmt: skip
        entries = list(read_log(folder / "replay" / LOG))
        for corrected, file in zip((False, True), files, strict=False):
            names = [policy.name for policy in _seconds(model, drift if corrected else None)]
            _gain(entries, names, past.convention).save(file)
        _trigger(entries, past.convention, experiment.seed).save(files[-1])
    return replace(
        parts,
        gain=GainModel.load(files[0]),
        drift_gain=GainModel.load(files[1]),
        trigger=Trigger.load(files[2]),
    )


def _seconds(model: Model, drift: DriftModel | None) -> list[Ideal]:
    """A policy for each kind of second, whose log has the rows to fit a gain on."""
    return [
        Ideal(
            model, None, drift, seconds=(kind,), report_gap=False, method="multistart",
            name=f"{kind}, corrected" if drift else kind,
        )
        for kind in ("other-depot", "alternative", "gap-path")
    ]  # fmt: skip


def _models(
    experiment: Experiment, ground: Ground, trips: Trips, dates: set[str], folder: Path
) -> tuple[Model, Model]:
    """The model with a calibrated radius, and the same with the paper's."""
    ours, papers = folder / "model", folder / "paper-model"
    if not (papers / MANIFEST).exists():
        from ideal_dispatch.learning import TrainParams, split, train
        from ideal_dispatch.learning.radius import RadiusParams
        from ideal_dispatch.learning.splits import local_days

        wanted = [date.fromisoformat(day).toordinal() for day in dates]
        chosen = trips.select(np.flatnonzero(np.isin(local_days(trips), wanted)))
        params = TrainParams.from_dict(
            TrainParams(seed=experiment.seed).as_dict() | dict(experiment.training)
        )
        parts = split(chosen, (0.8, 0.2, 0.0), experiment.seed, "day")
        run = train(ground.network, chosen, params, parts=parts)
        run.model.save(ours)
        paper = run.with_radius(RadiusParams(loss="mean_absolute", coverage=None))
        paper.save(papers)
    return Model.load(ours), Model.load(papers)


def _drift(
    experiment: Experiment, ground: Ground, quotes: QuoteLog, dates: set[str], folder: Path
) -> DriftModel:
    if not (folder / MANIFEST).exists():
        from ideal_dispatch.learning.drift import fit_drift

        local = ground.recording.calendar.local
        kept = tuple(
            line for line in quotes.lines if local(line.asked_at).date().isoformat() in dates
        )
        chosen = replace(quotes, lines=kept)
        context = ground.recording.context
        fit_drift(ground.network, chosen, context, seed=experiment.seed).save(folder)
    return DriftModel.load(folder)


def _gain(
    entries: Iterable[dict[str, Any]], policies: Sequence[str], convention: World
) -> GainModel:
    """The spread of T₁ − T₂ over the seconds that the named policies considered."""
    rows, differences = [], []
    for entry in entries:
        for decision in map(entry["decisions"].__getitem__, policies):
            if decision["second"] is None:
                continue
            details = decision["details"]
            rows.append([np.nan if details[n] is None else details[n] for n in _FEATURES])
            differences.append(_saved_s(entry, decision, convention))
    if not rows:
        raise InputError("no call of the training days has a second way; nothing to fit a gain on")
    return GainModel.fit(GainFeatures(*np.array(rows).T), differences)


def _trigger(entries: Iterable[dict[str, Any]], convention: World, seed: int) -> Trigger:
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
