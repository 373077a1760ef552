"""From trips to a model: training, target radii, calibration and what was measured."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.forecast import model_directory
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.learning.baselines import fit_baselines
from ideal_dispatch.learning.checkpoint import (
    checkpoint_name,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from ideal_dispatch.learning.combining import averaged, lesson, member_params, student_params
from ideal_dispatch.learning.encoders import RepresentationNetwork, export
from ideal_dispatch.learning.parameters import RadiusParams, SplitBy, TrainParams
from ideal_dispatch.learning.radius_training import FittedRadius, TripRadii, fit_radius, trip_radii
from ideal_dispatch.learning.scores import Scores, scores
from ideal_dispatch.learning.shape import Shape, describe_shape
from ideal_dispatch.learning.splits import PARTS, Split, default_split, local_days
from ideal_dispatch.learning.trainer import STEP_COLUMNS, Epoch, Trainer
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trip, Trips

if TYPE_CHECKING:
    from ideal_dispatch.learning.training_report import TrainingReport

REPORT, NUMBERS, STEPS = "report.html", "report.json", "steps.csv"
FILES = (*model_directory.FILES, REPORT, NUMBERS, STEPS)
"""The files of a finished model directory, beside the weights."""


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The stage of a training, the share of it that is done, and the epoch that just ended."""

    stage: str
    done: float
    epoch: Epoch | None = None


Watch = Callable[[TrainingProgress], None]
"""Receives the progress of a training."""


def _ignore(progress: TrainingProgress) -> None:
    """Nothing is shown."""


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """The folder that keeps the state of training after every epoch, if any.

    With ``resume`` training continues from the states that are there.
    """

    folder: str | os.PathLike[str] | None = None
    resume: bool = False


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrainedModel(Model):
    """A model that :func:`fit` has just trained, with its scores, history and predictions.

    Arrays have one entry per trip of ``data``. ``kept_epoch`` is the epoch, from 1, whose
    weights are kept; None where the networks of an average kept different ones.
    ``steps`` are those of Algorithm 1 under ``STEP_COLUMNS``, if plain steps were taken.
    """

    data: TrainingData
    split: Split
    history: tuple[Epoch, ...]
    kept_epoch: int | None
    radii: TripRadii
    predicted_radii: FloatArray
    shape: Shape
    warnings: tuple[str, ...]
    steps: FloatArray | None = None

    @cached_property
    def model(self) -> Model:
        """The model alone, as a saved and loaded one is."""
        return Model(**{f.name: getattr(self, f.name) for f in fields(Model) if f.init})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as the model alone."""
        return self.model.__reduce__()

    def rescaled(self, factor: float) -> Model:
        """See :meth:`Model.rescaled`; the scores of this training do not hold for the result."""
        return self.model.rescaled(factor)

    @property
    def predicted_s(self) -> FloatArray:
        """Predicted seconds of every trip."""
        return self.radii.predicted_s

    @property
    def judged(self) -> npt.NDArray[np.int64]:
        """The trips the model is scored on: the test part, or the next best if it is empty."""
        return next(part for part in reversed(self.split.parts) if part.size)

    @property
    def scores(self) -> Scores:
        """Errors on the :attr:`judged` trips."""
        return scores(self.data.trips.observed_s[self.judged], self.predicted_s[self.judged])

    def coverage(self, rows: npt.NDArray[np.int64]) -> float:
        """Share of the trips whose time some scenario of their context explains."""
        return float((self.radii.upper[rows] <= self.predicted_radii[rows]).mean())

    def with_radius(self, radius: RadiusParams) -> Model:
        """The same travel times with a radius fitted in another way."""
        with one_thread():
            fitted = _fitted_radius(radius, self.radii, self.split)
        details = {k: v for k, v in self.details.items() if k != "radius"}  # of the other
        weights = {**self.weights, **fitted.weights}
        return replace(self.model, weights=weights, radius_rule=fitted.rule, details=details)

    @cached_property
    def responses(self) -> ResponseModel:
        """How much times vary about the model, by the trips that it did not learn from."""
        from ideal_dispatch.learning.response_fitting import responses_of

        return responses_of(self)

    @cached_property
    def report(self) -> "TrainingReport":
        """The scores beside simpler predictors, which learn from the same trips on first use."""
        from ideal_dispatch.learning.training_report import TrainingReport

        parts = map(self.data.trips.select, (self.split.train, self.split.validation))
        return TrainingReport.of(self, fit_baselines(self.data.network, *parts))

    def save(self, folder: str | os.PathLike[str], watch: Watch = _ignore) -> None:
        """Write the folder of ``ideal train``: model, response times, card, report, its numbers.

        Checkpoints of the training are removed from ``folder``.
        """
        watch(TrainingProgress("baselines on the same trips", 0.0))
        place, facts = FilePath(folder), self.report.as_dict()
        watch(TrainingProgress("the report", 0.5))
        place.mkdir(parents=True, exist_ok=True)
        for half_written in place.glob(f".{'[0-9a-f]' * 16}.part"):
            half_written.unlink()
        (place / STEPS).unlink(missing_ok=True)
        if self.steps is not None:
            rows = ([number, *(f"{x:.9g}" for x in row)] for number, row in enumerate(self.steps))
            write_csv(place / STEPS, ("step", *STEP_COLUMNS), rows)
        numbers = json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False)
        write_file(place / REPORT, self.report.html())
        write_file(place / NUMBERS, f"{numbers}\n")
        # the model last: where its manifest is, its report is
        replace(self.model, details={**self.details, "scores": facts["scores"]}).save(place)
        if self.responses.rows:
            self.responses.save(place / model_directory.RESPONSE_TIMES)
        remove_checkpoints(place)


def fit(
    network: RoadNetwork,
    trips: Trips | Sequence[Trip],
    contexts: Sequence[Context] | npt.ArrayLike | None = None,
    *,
    params: TrainParams | None = None,
    radius: RadiusParams | None = None,
    parts: Split | SplitBy | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    jobs: int | None = None,
) -> TrainedModel:
    """A model of the network's travel times and their uncertainty, learned from past trips.

    ``contexts`` replaces those of the trips: one :class:`Context` per trip, or
    their encoded rows. ``parts`` are the trips to learn from, to hold out and to
    test on; by default 70/10/20, by "day" where ten days are known, else by "trip". With
    ``folder``, a checkpoint is kept there after every epoch, and ``resume`` continues from
    it; without ``resume`` training starts from the beginning. Target radii are computed in
    ``jobs`` threads. ``fit(…).save(folder)`` writes what ``ideal train`` writes.
    """
    table = trips if isinstance(trips, Trips) else Trips.of(trips)
    if contexts is not None:
        given: Any = contexts
        if len(given) != len(table):
            raise InputError(f"contexts: expected one per trip, {len(table)}, got {len(given)}")
        if len(given) and isinstance(given[0], Context):
            given = table.encoding.encode(given)
        table = replace(table, contexts=given)
    params, radius, show = params or TrainParams(), radius or RadiusParams(), watch or _ignore
    if not isinstance(parts, Split):
        parts = default_split(table, params.seed, parts)
    with one_thread():
        data = TrainingData.prepare(network, table, parts, params)
        learned = learn(data, params, CheckpointOptions(folder, resume), show)
        model = export(learned.network, data)
        radii = trip_radii(
            model, network, table, jobs=jobs,
            report=lambda done: show(TrainingProgress("target radii", done)),
        )  # fmt: skip
        fitted = _fitted_radius(radius, radii, parts)
    weights = {**model.weights, **fitted.weights}
    model = replace(model, weights=weights, radius_rule=fitted.rule)
    predicted = fitted.rule(weights, radii.contexts.astype(np.float32), radii.features)
    predicted = np.minimum(predicted, radii.greatest)  # as the model will answer
    middle = int(parts.train[parts.train.size // 2])
    scenarios = model.scenario_set(table.contexts[middle], network)
    made = TrainedModel(
        **{f.name: getattr(model, f.name) for f in fields(Model) if f.init},
        data=data,
        split=parts,
        history=learned.history,
        kept_epoch=learned.kept_epoch,
        radii=radii,
        predicted_radii=predicted,
        shape=describe_shape(network, scenarios, [radii.paths[i] for i in parts.train]),
        warnings=fitted.warnings,
        steps=learned.steps,
    )
    return replace(made, details=_details(made, params, radius, fitted.promised))


def _fitted_radius(radius: RadiusParams, radii: TripRadii, parts: Split) -> FittedRadius:
    used = np.concatenate([parts.train, parts.validation])
    held_out = np.isin(used, parts.validation)
    return fit_radius(
        radius, radii.contexts[used], radii.features[used], radii.targets[used], held_out
    )


@dataclass(frozen=True, slots=True, eq=False)
class LearnedNetwork:
    """A network and its epochs; of an average, the means of its members' epochs."""

    network: RepresentationNetwork
    history: tuple[Epoch, ...]
    kept_epoch: int | None
    steps: FloatArray | None = None


def learn(
    data: TrainingData,
    params: TrainParams,
    checkpoints: CheckpointOptions,
    watch: Watch,
) -> LearnedNetwork:
    """The network that trips and parameters give, without a radius."""
    if checkpoints.folder is not None and not checkpoints.resume:
        remove_checkpoints(checkpoints.folder)
    if params.combine == "none":
        trainer = run_trainer(data, params, checkpoints, watch)
        steps = trainer.step_table if params.optimiser == "sgd" else None
        return LearnedNetwork(trainer.finish(), tuple(trainer.history), trainer.kept_epoch, steps)
    trained = [
        run_trainer(data, member, checkpoints, watch, number, params.members)
        for number, member in enumerate(member_params(params), 1)
    ]
    average = averaged([trainer.finish() for trainer in trained])
    if params.combine == "distil":
        watch(TrainingProgress("teachers' expectations", 0.0))
        taught = lesson(data, average, params.seed)
        student = run_trainer(taught, student_params(params), checkpoints, watch)
        return LearnedNetwork(student.finish(), tuple(student.history), student.kept_epoch)
    epochs = zip(*(map(astuple, trainer.history) for trainer in trained), strict=False)
    means = (np.mean(same, axis=0)[1:].tolist() for same in epochs)
    history = tuple(Epoch(number, *mean) for number, mean in enumerate(means, 1))
    kept = {trainer.kept_epoch for trainer in trained}
    return LearnedNetwork(average, history, kept.pop() if len(kept) == 1 else None)


def run_trainer(
    data: TrainingData,
    params: TrainParams,
    checkpoints: CheckpointOptions,
    watch: Watch,
    member: int = 0,
    members: int = 0,
) -> Trainer:
    """A finished trainer; ``member`` numbers those of an average, each with its checkpoint."""
    trainer = Trainer(data, params)
    stage = f"network {member} of {members}" if member else "training"
    checkpoint = None
    if checkpoints.folder is not None:
        checkpoint = FilePath(checkpoints.folder) / checkpoint_name(member)
        if checkpoints.resume and checkpoint.exists():
            load_checkpoint(trainer, checkpoint)

    def after_epoch(trainer: Trainer) -> None:
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            save_checkpoint(trainer, checkpoint)
        done = 1.0 if trainer.finished else len(trainer.history) / params.epochs
        watch(TrainingProgress(stage, done, trainer.history[-1]))

    trainer.run(after_epoch)
    return trainer


def _details(
    made: TrainedModel, params: TrainParams, radius: RadiusParams, promised: float | None
) -> dict[str, Any]:
    """The facts of the training for the manifest, in the types of JSON: NaN is null."""
    radii, test = made.radii, made.split.test
    details = {
        "data": data_facts(made.data.trips, made.split),
        "params": asdict(params),
        "radius_params": asdict(radius),
        "history": [asdict(replace(epoch, seconds=0.0)) for epoch in made.history],
        "kept_epoch": made.kept_epoch,
        "held_out_for": [
            *(["stopping"] if params.patience is not None else []),
            *(["choosing the epoch"] if params.output == "best" else []),
            *(["the radius"] if radius.coverage is not None else []),
        ],
        "scores": [{"name": "IDEAL", **asdict(made.scores)}],
        "radius": {
            "coverage": made.coverage(test) if test.size else None,
            "promised": promised,
            "trips": int(test.size),
            "median": float(np.median(made.predicted_radii[made.judged])),
            "zero_share": float((radii.upper[made.split.train] == 0).mean()),
            "warnings": list(made.warnings),
        },
        "shape": {name: np.asarray(value).tolist() for name, value in asdict(made.shape).items()},
        "versions": versions(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(details), parse_constant=lambda _: None)
    return plain


def data_facts(trips: Trips, parts: Split) -> dict[str, Any]:
    """Which trips a model learned from, for its manifest."""
    scored_on = next(name for name in reversed(PARTS) if getattr(parts, name).size)
    by, first, last = "trip", None, None
    if not np.isnat(np.asarray(trips.at)).any():
        days = local_days(trips)
        if not np.intersect1d(days[parts.train], days[getattr(parts, scored_on)]).size:
            by = "day"
        first, last = (str(date.fromordinal(int(day))) for day in (days.min(), days.max()))
    return {
        "trips": len(trips),
        **{name: int(getattr(parts, name).size) for name in PARTS},
        "split": by,
        "scored_on": scored_on,
        "first": first,
        "last": last,
        "weather": trips.weather_source,
        "checksum": trips.checksum,
    }


def versions() -> dict[str, str]:
    """The versions that made a model, for its manifest."""
    packages = {name: version(name) for name in ("ideal-dispatch", "numpy", "torch")}
    return {"python": platform.python_version(), **packages}


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: batches are small, and sums then do not depend on the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
