"""Compiling every kernel of the package before it is needed; the result is cached on disk.

``python -m ideal_dispatch.gap.warm_up`` after installing takes a minute once;
every later process then starts with compiled kernels. A service calls
:func:`warm_up` before it answers.
"""

import numpy as np

from ideal_dispatch.gap import certificate
from ideal_dispatch.gap.optimistic_gap import optimistic_gap
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.scenarios import ScenarioSet, target_radius


def warm_up() -> None:
    """Run every kernel once on a few roads, with the only types it is ever called with."""
    tail, head = [0, 1, 2, 1, 2, 0, 0], [1, 2, 0, 0, 1, 2, 2]
    lon, lat = [0.0, 0.001, 0.0], [0.0, 0.0, 0.001]
    network = RoadNetwork.from_arrays(tail, head, np.full(7, 150.0), lon, lat)
    times = network.free_flow_times_s
    network.shortest_path(times, 0, 2)
    network.shortest_path(times, 0, 2, potential_s=network.distances_to(times, 2))
    path = network.shortest_paths(times, [0], [2], threads=1)[0]
    match_route(network, path.coordinates(network))
    scenarios = ScenarioSet(np.random.default_rng(0).normal(3.0, 2.0, (7, 3)), 0.2)
    primary = network.path([5])
    for options in ({"method": "dca"}, {"method": "multistart"}, {"threshold_s": 5.0}, {}):
        optimistic_gap(network, scenarios, [0, 1], 2, primary, **options)
    search = certificate.Search(
        GapProblem.ask(network, scenarios, [0, 1], 2, primary), 0.0, stop_at_found=False
    )
    search.narrow()
    search.run()
    observed_s = 2.0 * primary.time_s(scenarios.nominal_times)
    target_radius(network, scenarios.embeddings, 0, 2, observed_s)


if __name__ == "__main__":
    warm_up()
