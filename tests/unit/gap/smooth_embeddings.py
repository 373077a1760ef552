"""Embeddings of the kind a trained model gives: smooth over the city, rich in direction."""

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray


def smooth_embeddings(network: RoadNetwork, dimension: int, seed: int = 0) -> FloatArray:
    """√time times unit vectors that change over about a kilometre and with the road's class."""
    rng = np.random.default_rng(seed)
    middle_lon = (network.lon[network.tail] + network.lon[network.head]) / 2
    middle_lat = (network.lat[network.tail] + network.lat[network.head]) / 2
    metres = 111_000 * np.column_stack(
        [middle_lon * np.cos(np.radians(network.lat.mean())), middle_lat]
    )
    waves = np.cos(metres @ rng.normal(0, 1 / 1500, (2, 64)) + rng.uniform(0, 2 * np.pi, 64))
    classes = np.eye(14)[network.road_class]
    hidden = np.tanh(np.hstack([waves, classes]) @ rng.normal(0, 0.17, (78, 64)))
    vectors = hidden @ rng.normal(size=(64, dimension))
    vectors += 0.3 * rng.normal(size=vectors.shape)
    vectors -= vectors.mean(axis=0)
    spread, basis = np.linalg.eigh(np.cov(vectors.T).reshape(dimension, dimension))
    vectors = vectors @ basis / np.sqrt(spread)
    times = 1.4 * network.free_flow_times_s * rng.lognormal(0, 0.15, network.num_edges)
    unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    return np.sqrt(times)[:, None] * unit
