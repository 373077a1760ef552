"""Small worlds to learn in, and trainers made of them."""

from typing import Any

import numpy as np
import torch

from ideal_dispatch import RoadNetwork, Trips
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import Split, TrainParams
from ideal_dispatch.learning.trainer import Trainer
from ideal_dispatch.learning.training_data import TrainingData

SMALL = Architecture("attributes", dimension=3, width=5, hour_harmonics=1)


def town(seed: int = 0, nodes: int = 12, roads: int = 40) -> RoadNetwork:
    """A random town of several road classes, joined by a ring, with places."""
    rng = np.random.default_rng(seed)
    ring, extra = rng.permutation(nodes), rng.integers(0, nodes, (2, roads - nodes))
    return RoadNetwork.from_arrays(
        np.concatenate([ring, extra[0]]),
        np.concatenate([np.roll(ring, -1), extra[1]]),
        rng.uniform(80, 600, roads),
        114.0 + 0.01 * rng.random(nodes),
        22.0 + 0.01 * rng.random(nodes),
        speed_kmh=rng.choice([30.0, 50.0, 70.0], roads),
        lanes=rng.integers(1, 5, roads),
        oneway=rng.random(roads) < 0.5,
        road_class=rng.integers(0, 14, roads),
    )


def contexts(count: int, rng: np.random.Generator) -> FloatArray:
    """Encoded rows: some rain unknown, pressure never known, always January."""
    rows = np.zeros((count, len(ContextEncoding().columns)))
    rows[:, 0] = rng.normal(24.0, 4.0, count)
    rows[:, 1] = np.where(rng.random(count) < 0.2, np.nan, rng.exponential(1.0, count))
    rows[:, 2:4] = rng.uniform(5.0, 95.0, (count, 2))
    rows[:, 4] = np.nan
    rows[:, 5] = rng.integers(0, 24, count)
    rows[np.arange(count), 6 + rng.integers(0, 7, count)] = 1.0
    rows[:, 13] = 1.0
    return rows


def trips(network: RoadNetwork, count: int = 40, seed: int = 0, distinct: int = 8) -> Trips:
    """Trips of arbitrary times between different nodes, in ``distinct`` different contexts."""
    rng = np.random.default_rng(seed)
    origin = rng.integers(network.num_nodes, size=count)
    destination = (origin + rng.integers(1, network.num_nodes, count)) % network.num_nodes
    paths = network.shortest_paths(network.free_flow_times_s, origin, destination)
    free_flow = np.array([path.time_s(network.free_flow_times_s) for path in paths])
    return Trips(
        origin.astype(np.int32),
        destination.astype(np.int32),
        free_flow * rng.uniform(0.8, 3.0, count),
        contexts(distinct, rng)[rng.integers(distinct, size=count)],
        network_checksum=network.checksum,
    )


def trainer(
    network: RoadNetwork,
    table: Trips,
    params: TrainParams | None = None,
    held_out: int = 0,
    **changes: Any,
) -> Trainer:
    """A trainer that holds out the last trips."""
    if params is None:
        given: dict[str, Any] = {"architecture": SMALL, "epochs": 3, "batch_size": 8}
        params = TrainParams(**given | changes)
    rows = np.arange(len(table))
    last = len(table) - held_out
    parts = Split(rows[:last], rows[last:], rows[:0])
    return Trainer(TrainingData.prepare(network, table, parts, params), params)


def in_double(made: Trainer) -> Trainer:
    """The same trainer computing in double precision, so that differences are sharp."""
    made.model.double()
    made.model.base_s = torch.tensor(made.data.base_s)
    bounds_s = made.data.bounds.on(made.data.network).expected_s
    made.model.least_s, made.model.greatest_s = map(torch.tensor, bounds_s)
    made.model.inputs = torch.tensor(made.data.edges)
    made.lower_level.contexts = made.lower_level.contexts.double()
    made._target = torch.tensor(made.data.trips.observed_s)
    return made


def gradient(made: Trainer) -> FloatArray:
    """The direction that :meth:`Trainer.direction` left, as one vector."""
    parts = [parameter.grad for parameter in made.model.parameters()]
    assert all(part is not None for part in parts)
    flat: FloatArray = torch.cat([p.flatten() for p in parts if p is not None]).double().numpy()
    return flat


def weights(made: Trainer) -> FloatArray:
    """All weights as one vector."""
    flat: FloatArray = (
        torch.nn.utils.parameters_to_vector(made.model.parameters()).detach().double().numpy()
    )
    return flat
