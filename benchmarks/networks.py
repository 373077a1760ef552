"""Road-like networks of any size."""

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray


def street_grid(num_edges: int, seed: int = 0) -> RoadNetwork:
    """A jittered grid with missing blocks and one-way streets, largest strong part only."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(seed)
    side = round((num_edges / 2.8) ** 0.5)
    node = np.arange(side * side).reshape(side, side)
    lon = (node % side + rng.normal(0, 0.15, node.shape)).ravel() * 0.001 + 114
    lat = (node // side + rng.normal(0, 0.15, node.shape)).ravel() * 0.001 + 22
    a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    kept = rng.random(a.size) < 0.85
    a, b = a[kept], b[kept]
    two_way = rng.random(a.size) < 0.7
    tail, head = np.concatenate([a, b[two_way]]), np.concatenate([b, a[two_way]])
    graph = coo_array((np.ones(tail.size), (tail, head)), shape=(node.size, node.size))
    label = connected_components(graph.tocsr(), directed=True, connection="strong")[1]
    inside = label == np.bincount(label).argmax()
    edges = inside[tail] & inside[head]
    number = np.cumsum(inside) - 1
    tail, head = number[tail[edges]], number[head[edges]]
    order = np.lexsort((head, tail))
    length = rng.uniform(60, 180, order.size)
    return RoadNetwork.from_arrays(
        tail[order], head[order], length, lon[inside], lat[inside],
        speed_kmh=rng.choice([30.0, 50.0, 50.0, 70.0], order.size),
    )  # fmt: skip


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
