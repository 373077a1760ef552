"""Road-like networks of any size."""

import numpy as np

from ideal_dispatch import RoadNetwork


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
