"""A model with predictions of its training trips by networks that have not seen them.

Days are divided into a few parts. For each part a network is trained on the others and
predicts the part's trips. A spread of response times that is fitted on such predictions
holds for future trips; fitted on trips that the networks learned from, it would be too
small. The model is the average of the networks.
"""

import os
from dataclasses import asdict, replace

import numpy as np

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
    days, day = np.unique(local_days(trips), return_inverse=True)
    if days.size < folds:
        raise InputError(
            f"{days.size} days of trips cannot be divided into {folds} parts; give more days"
        )
    of_day = np.empty(days.size, np.int64)
    order = np.random.default_rng([params.seed, _PARTS]).permutation(days.size)
    of_day[order] = np.arange(days.size) % folds
    part = of_day[day.reshape(-1)]
    every = np.arange(len(trips))
    whole = Split(every, every[:0], every[:0])
    unseen_s = np.empty(len(trips))
    members = []
    with one_thread():
        data = TrainingData.prepare(network, trips, whole, params)
        level = LowerLevel(network, trips, data.contexts)
        for number, member in enumerate(member_params(params)):
            own = np.flatnonzero(part == number)
            others = replace(data, train=np.flatnonzero(part != number), validation=own)
            options = CheckpointOptions(folder, resume=True)
            members.append(run_trainer(others, member, options, watch, number + 1, folds).finish())
            unseen_s[own] = level.solve(members[-1], own)[1]
        model = export(averaged(members), data)
        watch(TrainingProgress("target radii", 0.0))
        rng = np.random.default_rng([params.seed, _SAMPLE])
        some = np.sort(rng.permutation(len(trips))[:_RADIUS_TRIPS])
        radii = trip_radii(
            model, network, trips.select(some),
            report=lambda done: watch(TrainingProgress("target radii", done)),
        )  # fmt: skip
        held_out = np.arange(some.size) % 5 == 0
        fitted = fit_radius(
            settings.radius, radii.contexts, radii.features, radii.targets, held_out
        )
    details = {
        "data": data_facts(trips, whole) | {"split": "day"},
        "params": asdict(params),
        "versions": versions(),
    }
    weights = {**model.weights, **fitted.weights}
    return replace(model, weights=weights, radius_rule=fitted.rule, details=details), unseen_s


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
