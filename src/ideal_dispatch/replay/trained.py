"""Models of travel times and of what quotes miss, trained on some past days and kept in files."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from ideal_dispatch.dispatch.fitted import USUAL, Form, Trained
from ideal_dispatch.dispatch.quarter_hours import QuarterHours
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model import MANIFEST
from ideal_dispatch.records import Trips
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.traffic.quote_log import QuoteLog

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainParams

DRIFT, HOURS = "drift", "hours.json"


@dataclass(frozen=True, slots=True, eq=False)
class PastDays:
    """Trips and quotes of the training days in one world."""

    trips: Trips
    quotes: QuoteLog
    convention: World


def model_folder(folder: Path, form: Form) -> Path:
    """Where a form of the model is kept."""
    return folder / ("model" if form == USUAL else "model-{}-{}".format(*form))


def load_models(folder: Path, forms: Collection[Form]) -> dict[Form, Model]:
    """The forms that were trained before."""
    return {form: Model.load(model_folder(folder, form)) for form in sorted({USUAL, *forms})}


def check_training(experiment: Experiment) -> None:
    """Refuse parameters of training that would be refused once the past is collected."""
    for trained in get_args(Trained):
        table = "paper_training" if trained == "paper" else "training"
        try:
            _params(experiment, trained)
        except InputError as error:
            raise InputError(f"[{table}] {error}") from None


def train_models(
    experiment: Experiment,
    ground: Ground,
    trips: Trips,
    dates: Collection[str],
    folder: Path,
    forms: Collection[Form],
) -> dict[Form, Model]:
    """The asked forms of the model and the usual one, from the trips of some dates.

    A network is trained once, in our practical mode or by the paper's
    Algorithm 1; its radius is fitted by both losses. What is there is read.
    """
    for trained in sorted({form[0] for form in forms} | {USUAL[0]}):
        ours, papers = (model_folder(folder, (trained, r)) for r in ("calibrated", "paper"))
        if (papers / MANIFEST).exists():
            continue
        from ideal_dispatch.learning import RadiusParams, split, train
        from ideal_dispatch.learning.splits import local_days

        wanted = [date.fromisoformat(day).toordinal() for day in dates]
        chosen = trips.select(np.flatnonzero(np.isin(local_days(trips), wanted)))
        parts = split(chosen, (0.8, 0.2, 0.0), experiment.seed, "day")
        run = train(ground.network, chosen, _params(experiment, trained), parts=parts)
        run.model.save(ours)
        run.with_radius(RadiusParams(loss="mean_absolute", coverage=None)).save(papers)
    return load_models(folder, forms)


def _params(experiment: Experiment, trained: Trained) -> "TrainParams":
    from ideal_dispatch.learning import TrainParams

    if trained == "paper":
        usual, changes = TrainParams.paper(seed=experiment.seed), experiment.paper_training
    else:
        usual, changes = TrainParams(seed=experiment.seed), experiment.training
    values = usual.as_dict()
    shape = values["architecture"] | dict(changes.get("architecture", {}))
    return TrainParams.from_dict(values | dict(changes) | {"architecture": shape})


def fit_drift_on(
    experiment: Experiment, ground: Ground, quotes: QuoteLog, dates: Collection[str], folder: Path
) -> DriftModel:
    """The drift of the quotes of some dates."""
    if not (folder / MANIFEST).exists():
        from ideal_dispatch.learning.drift_training import fit_drift

        chosen = _of_days(ground, quotes, dates)
        context = ground.recording.context
        fit_drift(ground.network, chosen, context, seed=experiment.seed).save(folder)
    return DriftModel.load(folder)


def fit_hours(ground: Ground, quotes: QuoteLog, dates: Collection[str]) -> QuarterHours:
    """What the quotes of some dates missed, by quarter hour."""
    lines = _of_days(ground, quotes, dates).lines
    local = ground.recording.calendar.local
    return QuarterHours.fit(
        [local(line.asked_at) for line in lines],
        [line.times["duration_s"] for line in lines],
        [line.realised_s for line in lines],
    )


def _of_days(ground: Ground, quotes: QuoteLog, dates: Collection[str]) -> QuoteLog:
    local = ground.recording.calendar.local
    kept = tuple(line for line in quotes.lines if local(line.asked_at).date().isoformat() in dates)
    if not kept:
        raise InputError("no quote of the training days is in the log; repeat the experiment")
    return replace(quotes, lines=kept)
