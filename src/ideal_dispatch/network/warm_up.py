"""Compiling the kernels before they are needed; the result is cached on disk.

``python -m ideal_dispatch.network.warm_up`` after installing takes seconds
once; every later process then starts with compiled kernels. A service calls
:func:`warm_up` before it answers.
"""

import numpy as np

from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.network.road_network import RoadNetwork


def warm_up() -> None:
    """Run every network kernel once on a triangle, with the only types it is ever called with."""
    tail, head = [0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]
    lon, lat = [0.0, 0.001, 0.0], [0.0, 0.0, 0.001]
    network = RoadNetwork.from_arrays(tail, head, np.full(6, 150.0), lon, lat)
    times = network.free_flow_times_s
    potential = network.distances_to(times, 2)
    network.shortest_path(times, 0, 2)
    network.shortest_path(times, 0, 2, potential_s=potential)
    path = network.shortest_paths(times, [0], [2], threads=1)[0]
    match_route(network, path.coordinates(network))


if __name__ == "__main__":
    warm_up()
