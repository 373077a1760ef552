"""A model that is also known on days that it has not seen.

Days are dealt to a few parts. For each part a network is trained on the others, and says
how long the part's trips take: a prediction that has not seen the trip. What is fitted on
such predictions, such as the spread of response times, is right for the trips to
come; fitted on what the networks were trained on, it would be too small. The model is the
average of the networks.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.learning.combining import averaged, member_params
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.lower_level import LowerLevel
from ideal_dispatch.learning.parameters import RadiusParams, TrainingSettings, TrainParams
from ideal_dispatch.learning.radius_training import fit_radius, trip_radii
from ideal_dispatch.learning.splits import Split, local_days
from ideal_dispatch.learning.training import (
    CheckpointOptions,
    TrainingProgress,
    Watch,
    data_facts,
    one_thread,
    run_trainer,
    versions,
)
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

FOLDS = 5
_DECAY = 2.0
_RADIUS_TRIPS = 200  # a radius needs fewer trips than times of roads do, and each takes long
_PARTS, _SAMPLE = 7, 8  # streams of random numbers of one seed


def response_settings(seed: int = 0) -> TrainingSettings:
    """The training that suits unit logs: few arrivals on many roads."""
    return TrainingSettings(TrainParams.few(seed=seed), RadiusParams(seed=seed))


def cross_fit(
    network: RoadNetwork,
    trips: Trips,
    settings: TrainingSettings,
    *,
    folder: str | os.PathLike[str] | None = None,
    watch: Watch = lambda progress: None,
    folds: int = FOLDS,
) -> tuple[Model, FloatArray]:
    """The average of ``folds`` networks, and each trip's drive by the one that has not seen it.

    Drives are seconds along the fastest path, without the constant of a trip. With
    ``folder`` checkpoints are kept there, and training goes on from them. Weights decay
    twice as fast as those of ``ideal train``, unless the settings say how fast.
    """
    params = fold_params(settings, len(trips), folds)
    part = _dealt(trips, folds, params.seed)
    every = np.arange(len(trips))
    unseen_s = np.empty(len(trips))
    members = []
    with one_thread():
        data = TrainingData.prepare(network, trips, Split(every, every[:0], every[:0]), params)
        level = LowerLevel(network, trips, data.contexts)
        for number, member in enumerate(member_params(params)):
            own = np.flatnonzero(part == number)
            others = replace(data, train=np.flatnonzero(part != number), validation=own)
            options = CheckpointOptions(folder, resume=True)
            trainer = run_trainer(others, member, options, watch, number + 1, folds)
            made = trainer.finish()
            unseen_s[own] = level.solve(made, own)[1]
            members.append(made)
        model = export(averaged(members), data)
        watch(TrainingProgress("target radii", 0.0))
        model = _with_radius(
            model, network, trips, settings.radius, params.seed,
            lambda done: watch(TrainingProgress("target radii", done)),
        )  # fmt: skip
    details = {
        "data": data_facts(trips, Split(every, every[:0], every[:0])) | {"split": "day"},
        "params": asdict(params),
        "versions": versions(),
    }
    return replace(model, details=details), unseen_s


def fold_params(settings: TrainingSettings, trips: int, folds: int = FOLDS) -> TrainParams:
    """The parameters of the networks.

    The last weights are taken: to choose among them, the part that is left out would
    have to be looked at.
    """
    params = replace(
        settings.params, combine="average", members=folds, output="last", patience=None
    )
    if params.weight_decay is not None:
        return params
    return replace(params, weight_decay=_DECAY * params.decay(trips * (folds - 1) // folds))


def _dealt(trips: Trips, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The part of every trip; trips of one day are in one."""
    days, day = np.unique(local_days(trips), return_inverse=True)
    if days.size < folds:
        raise InputError(
            f"{days.size} days of trips cannot be dealt to {folds} parts; give more days"
        )
    order = np.random.default_rng([seed, _PARTS]).permutation(days.size)
    part = np.empty(days.size, np.int64)
    part[order] = np.arange(days.size) % folds
    return np.asarray(part[day.reshape(-1)])


def _with_radius(
    model: Model,
    network: RoadNetwork,
    trips: Trips,
    params: RadiusParams,
    seed: int,
    report: Callable[[float], None],
) -> Model:
    """The model with a radius fitted on some of the trips."""
    rng = np.random.default_rng([seed, _SAMPLE])
    some = np.sort(rng.permutation(len(trips))[:_RADIUS_TRIPS])
    radii = trip_radii(model, network, trips.select(some), report=report)
    held_out = np.arange(some.size) % 5 == 0
    fitted = fit_radius(params, radii.contexts, radii.features, radii.targets, held_out)
    return replace(model, weights={**model.weights, **fitted.weights}, radius_rule=fitted.rule)
