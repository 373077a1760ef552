"""From trips to a model: training, target radii, calibration and what was measured."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.learning import distributed
from ideal_dispatch.learning.checkpoint import (
    checkpoint_name,
    load_checkpoint,
    refuse_old,
    save_checkpoint,
)
from ideal_dispatch.learning.combining import averaged, lesson, member_params, student_params
from ideal_dispatch.learning.encoders import RepresentationNetwork, export
from ideal_dispatch.learning.parameters import RadiusParams, TrainingSettings, TrainParams
from ideal_dispatch.learning.radius_training import FittedRadius, TripRadii, fit_radius, trip_radii
from ideal_dispatch.learning.scores import scores
from ideal_dispatch.learning.shape import Shape, describe_shape
from ideal_dispatch.learning.splits import PARTS, Split, local_days, split
from ideal_dispatch.learning.trainer import Epoch, Trainer
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trip, Trips


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The stage of a training, which share of it is done, and the epoch that just ended, if any."""

    stage: str
    done: float
    epoch: Epoch | None = None


Watch = Callable[[TrainingProgress], None]
"""Sees the progress of a training."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """A model and how it came about; arrays have one entry per trip.

    ``steps`` has those of Algorithm 1 under ``STEP_COLUMNS``, where plain steps were taken.
    """

    model: Model
    data: TrainingData
    split: Split
    history: tuple[Epoch, ...]
    radii: TripRadii
    predicted_radii: FloatArray
    shape: Shape
    warnings: tuple[str, ...]
    steps: FloatArray | None = None

    @property
    def predicted_s(self) -> FloatArray:
        """Predicted seconds of every trip."""
        return self.radii.predicted_s

    def coverage(self, rows: npt.NDArray[np.int64]) -> float:
        """Share of the trips whose time some scenario of their context explains."""
        return float((self.radii.upper[rows] <= self.predicted_radii[rows]).mean())

    def with_radius(self, radius: RadiusParams) -> Model:
        """The same travel times with a radius fitted in another way."""
        with one_thread():
            fitted = _fitted_radius(radius, self.radii, self.split)
        weights = {**self.model.weights, **fitted.weights}
        details = {k: v for k, v in self.model.details.items() if k != "radius"}  # of the other
        return replace(self.model, weights=weights, radius_rule=fitted.rule, details=details)


def train(
    network: RoadNetwork,
    trips: Trips,
    settings: TrainingSettings | None = None,
    *,
    parts: Split | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    jobs: int | None = None,
) -> TrainingRun:
    """Learn travel times and radii from trips.

    ``parts`` says which trips are learned from, held out and tested; by
    default 70/10/20, as ``settings.split`` says. With ``folder``, a checkpoint is
    kept there after every epoch and ``resume`` goes on from it. See
    :func:`train_model` for a whole model directory.
    """
    settings = settings or TrainingSettings()
    parts = parts or default_split(trips, settings)
    show = watch or (lambda progress: None)
    with one_thread():
        data = TrainingData.prepare(network, trips, parts, settings.params)
        learned = learn(data, settings.params, Place(folder, resume, show))
        model = export(learned.network, data)
        radii = trip_radii(
            model, network, trips, jobs=jobs,
            report=lambda done: show(TrainingProgress("target radii", done)),
        )  # fmt: skip
        fitted = _fitted_radius(settings.radius, radii, parts)
    weights = {**model.weights, **fitted.weights}
    model = replace(model, weights=weights, radius_rule=fitted.rule)
    predicted = fitted.rule(weights, radii.contexts.astype(np.float32), radii.features)
    predicted = np.minimum(predicted, radii.greatest)  # as the model will answer
    middle = int(parts.train[parts.train.size // 2])
    scenarios = model.scenario_set(trips.contexts[middle], network)
    shape = describe_shape(network, scenarios, [radii.paths[i] for i in parts.train])
    run = TrainingRun(
        model, data, parts, learned.history, radii, predicted, shape, fitted.warnings,
        learned.steps,
    )  # fmt: skip
    details = _details(run, settings, fitted.promised)
    return replace(run, model=replace(model, details=details))


def _fitted_radius(radius: RadiusParams, radii: TripRadii, parts: Split) -> FittedRadius:
    used = np.concatenate([parts.train, parts.validation])
    held_out = np.isin(used, parts.validation)
    return fit_radius(
        radius, radii.contexts[used], radii.features[used], radii.targets[used], held_out
    )


def fit(
    network: RoadNetwork,
    trips: Trips | Sequence[Trip],
    contexts: Sequence[Context] | npt.ArrayLike | None = None,
    *,
    params: TrainParams | None = None,
    radius: RadiusParams | None = None,
    parts: Split | None = None,
) -> Model:
    """A model of the network's travel times, learned from past trips.

    ``contexts`` replaces those of the trips: one :class:`Context` per trip, or
    their encoded rows. See :func:`train` for the rest and for what was measured.
    """
    table = trips if isinstance(trips, Trips) else Trips.of(trips)
    if contexts is not None:
        given: Any = contexts
        if len(given) != len(table):
            raise InputError(f"contexts: expected one per trip, {len(table)}, got {len(given)}")
        if len(given) and isinstance(given[0], Context):
            given = table.encoding.encode(given)
        table = replace(table, contexts=given)
    settings = TrainingSettings(params or TrainParams(), radius or RadiusParams())
    return train(network, table, settings, parts=parts).model


def take_part(
    network: RoadNetwork,
    trips: Trips,
    settings: TrainingSettings,
    folder: str | os.PathLike[str],
    resume: bool = False,
) -> None:
    """Train beside the first of several processes; what comes after training is its own."""
    parts, params = default_split(trips, settings), settings.params
    with one_thread():
        data = TrainingData.prepare(network, trips, parts, params)
        learn(data, params, Place(folder, resume))


def default_split(trips: Trips, settings: TrainingSettings) -> Split:
    """70/10/20 as told; else by day where all days are known and enough, or by trip."""
    by = settings.split
    if by is None:
        known = not np.isnat(np.asarray(trips.at)).any()
        by = "day" if known and np.unique(local_days(trips)).size >= 10 else "trip"
    return split(trips, seed=settings.params.seed, by=by)


@dataclass(frozen=True, slots=True)
class Place:
    """Where checkpoints are kept, whether to go on from them, and who watches."""

    folder: str | os.PathLike[str] | None = None
    resume: bool = False
    show: Watch = lambda progress: None


NOWHERE = Place()


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """A network and its epochs; of an average, the means of its members' epochs."""

    network: RepresentationNetwork
    history: tuple[Epoch, ...]
    steps: FloatArray | None = None


def learn(data: TrainingData, params: TrainParams, place: Place = NOWHERE) -> Learned:
    """The network that trips and settings give, without a radius."""
    if params.combine == "none":
        trainer = run_trainer(data, params, place, "training")
        trainer.finish()
        steps = trainer.step_table if params.optimiser == "sgd" else None
        return Learned(trainer.model, tuple(trainer.history), steps)
    members, histories = [], []
    for number, member in enumerate(member_params(params), 1):
        trainer = run_trainer(data, member, place, f"network {number} of {params.members}", number)
        members.append(trainer.finish())
        histories.append(trainer.history)
    average = averaged(members)
    if params.combine == "distil":
        place.show(TrainingProgress("what the teachers expect", 0.0))
        taught = lesson(data, average, params.seed)
        trainer = run_trainer(taught, student_params(params), place, "training")
        return Learned(trainer.finish(), tuple(trainer.history))
    together = [[astuple(epoch) for epoch in same] for same in zip(*histories, strict=False)]
    means = (
        (number, *np.mean(same, axis=0)[1:].tolist()) for number, same in enumerate(together, 1)
    )
    return Learned(average, tuple(Epoch(*mean) for mean in means))


def run_trainer(
    data: TrainingData, params: TrainParams, place: Place, stage: str, member: int = 0
) -> Trainer:
    """A trainer that is done; with a folder, its checkpoint is there."""
    trainer = Trainer(data, params)
    checkpoint = None
    if place.folder is not None:
        checkpoint = FilePath(place.folder) / checkpoint_name(member)
    if checkpoint is not None and place.resume:
        refuse_old(checkpoint.parent)
        if checkpoint.exists():
            load_checkpoint(trainer, checkpoint)

    def after_epoch(trainer: Trainer) -> None:
        if checkpoint is not None and distributed.is_first():
            save_checkpoint(trainer, checkpoint)
        done = 1.0 if trainer.finished else len(trainer.history) / params.epochs
        place.show(TrainingProgress(stage, done, trainer.history[-1]))

    trainer.run(after_epoch)
    return trainer


def _details(
    run: TrainingRun, settings: TrainingSettings, promised: float | None
) -> dict[str, Any]:
    trips, parts = run.data.trips, run.split
    known = len(trips) and not np.isnat(np.asarray(trips.at)).any()
    days = local_days(trips) if known else np.empty(0, int)
    scored_on = next(part for part in reversed(PARTS) if getattr(parts, part).size)
    test = getattr(parts, scored_on)
    own = scores(trips.observed_s[test], run.predicted_s[test])
    whole_days = known and not np.intersect1d(days[parts.train], days[test]).size
    details = {
        "data": {
            "trips": len(trips),
            "train": int(parts.train.size),
            "validation": int(parts.validation.size),
            "test": int(parts.test.size),
            "split": "day" if whole_days else "trip",
            "scored_on": scored_on,
            "first": str(date.fromordinal(int(days.min()))) if known else None,
            "last": str(date.fromordinal(int(days.max()))) if known else None,
            "weather": trips.weather_source,
            "checksum": trips.checksum,
        },
        "params": asdict(settings.params),
        "radius_params": asdict(settings.radius),
        "history": [asdict(replace(epoch, seconds=0.0)) for epoch in run.history],
        "scores": [{"name": "IDEAL", **asdict(own)}],
        "radius": {
            "coverage": run.coverage(parts.test) if parts.test.size else None,
            "promised": promised,
            "trips": int(parts.test.size),
            "median": float(np.median(run.predicted_radii[test])),
            "zero_share": float((run.radii.upper[parts.train] == 0).mean()),
            "warnings": list(run.warnings),
        },
        "shape": {
            "dimension": run.shape.dimension,
            "effective_rank": run.shape.effective_rank,
            "concentration": run.shape.concentration,
            "by_distance": run.shape.by_distance.tolist(),
            "by_overlap": run.shape.by_overlap.tolist(),
        },
        "versions": versions(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(details), parse_constant=lambda _: None)
    return plain


def versions() -> dict[str, str]:
    """What a model was made by, for its manifest."""
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
