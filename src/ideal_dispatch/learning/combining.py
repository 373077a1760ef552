"""Several networks combined into one: their average, or a network that they teach.

Single trips are mostly noise, and networks of different seeds err in different ways. The
average of their logarithmic times is algebraically a network of the same kind. Gradient
boosting errs in yet other ways, but predicts whole trips and no roads, so it can only
teach: a network of normal size learns from the real trips and from made-up ones, whose
times the teachers predict.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from ideal_dispatch.learning.baselines import TripTable, best_on, boostings
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level import LowerLevel
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.training_data import TrainingData

_LESSON, _MEMBERS = 4, 5  # streams of random numbers of one seed, beside those of the trainer
_SHARE_OF_BOOSTING = 0.4
_PER_TRIP, _LEAST = 2, 5000  # made-up trips: for each real one, and at least


def member_params(params: TrainParams) -> list[TrainParams]:
    """The settings of every network that is combined: they differ in their seeds."""
    seeds = np.random.default_rng([params.seed, _MEMBERS]).integers(2**32, size=params.members)
    return [replace(params, seed=int(seed), combine="none") for seed in seeds]


def student_params(params: TrainParams) -> TrainParams:
    """Half the epochs: there are about three times as many trips."""
    return replace(params, epochs=-(-params.epochs // 2), combine="none")


@torch.no_grad()
def averaged(members: Sequence[RepresentationNetwork]) -> RepresentationNetwork:
    """The network whose times are the geometric mean of the members', before bounds.

    Hidden layers stand side by side, so ϑ and θ are that many times as long;
    embeddings keep their dimension. All members have the polar head and the same inputs.
    """
    first, count = members[0], len(members)
    shape = first.architecture
    wide = replace(shape, dimension=count * shape.dimension, width=count * shape.width)
    whole = RepresentationNetwork(
        wide,
        first.inputs.numpy(),
        first.base_s.numpy(),
        (first.least_s.numpy(), first.greatest_s.numpy()),
        columns=first.get_parameter("dynamic.0.weight").shape[1],
        seed=0,
        constant_s=first.constant_s().item(),
    )
    for name, weight in whole.named_parameters():
        parts: list[torch.Tensor] = [member.get_parameter(name) for member in members]
        if name == "cross.out.weight":
            weight.copy_(torch.cat(parts, dim=1) / count)
        elif name in ("cross.out.bias", "trip_constant"):
            weight.copy_(torch.stack(parts).mean(dim=0))
        elif name.endswith(("bias", ".0.weight")):  # of the same inputs
            weight.copy_(torch.cat(parts))
        else:
            weight.copy_(torch.block_diag(*parts))  # type: ignore[no-untyped-call]
    whole.architecture = replace(wide, dimension=shape.dimension)
    return whole


def lesson(data: TrainingData, teacher: RepresentationNetwork, seed: int) -> TrainingData:
    """The training trips, and others with the ends of one and the moment of another.

    The times of these are the geometric mean of the network's prediction and of gradient
    boosting's, which has the same inputs and is fitted to the same trips.
    """
    trips, train, network = data.trips, data.train, data.network
    count = max(_PER_TRIP * train.size, _LEAST)
    ends, moments = np.random.default_rng([seed, _LESSON]).choice(train, (2, count))
    contexts = data.contexts[moments]
    undriven = replace(
        trips.select(ends), contexts=trips.contexts[moments], at=np.asarray(trips.at)[moments]
    )
    drives_s = LowerLevel(network, undriven, contexts).solve(teacher, np.arange(count))[1]
    judged = data.validation if data.validation.size else train
    located = teacher.architecture.features == "location"
    forest = best_on(
        boostings(located=located),
        TripTable.of(network, trips.select(train)),
        TripTable.of(network, trips.select(judged)),
    )
    forest_s = forest.predict(TripTable.of(network, undriven))
    network_s = drives_s + teacher.constant_s().item()
    driven = (drives_s > 0) & (forest_s > 0)  # not within one node
    ends, moments = ends[driven], moments[driven]
    share = _SHARE_OF_BOOSTING
    expected_s = np.exp(
        share * np.log(forest_s[driven]) + (1.0 - share) * np.log(network_s[driven])
    )
    every = np.arange(len(trips))
    rows, moment = np.concatenate([every, ends]), np.concatenate([every, moments])
    both = replace(
        trips.select(rows),
        contexts=trips.contexts[moment],
        at=np.asarray(trips.at)[moment],
        observed_s=np.concatenate([trips.observed_s, expected_s]),
    )
    return replace(
        data,
        trips=both,
        train=np.concatenate([train, np.arange(len(trips), len(both))]),
        free_flow_s=data.free_flow_s[rows],
        contexts=data.contexts[moment],
    )
