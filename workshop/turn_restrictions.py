"""What the turn restrictions of a map change: ``python -m workshop.turn_restrictions MAP``.

Every pair of nodes at free flow, routes matched back onto the network, and the optimistic
gap of random calls, each with and without the restrictions. The scenario sets are those of
the benchmark of the gap.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.networks import smooth_embeddings
from ideal_dispatch import RoadNetwork, optimistic_gap
from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.scenarios import ScenarioSet

CALLS, DEPOTS, ROUTES, QUERIES = 300, 3, 300, 3000
DIMENSION, RADII, LIMIT_S = 8, (0.05, 0.3), 0.5


def all_pairs(network: RoadNetwork) -> None:
    """How much longer the fastest legal paths are."""
    times, nodes = network.free_flow_times_s, range(network.num_nodes)
    plain = np.array([network.ignoring_turns.distances(times, node) for node in nodes])
    legal = np.array([network.distances(times, node) for node in nodes])
    apart = ~np.eye(len(nodes), dtype=bool)
    longer = legal[apart] - plain[apart]
    slower = longer > 1e-9
    print(f"{len(network.forbidden_turns)} forbidden turns, {np.isinf(legal).sum()} pairs cut off")
    print(
        f"pairs of nodes that take longer: {slower.mean():.1%} of {slower.size:,}; "
        f"by {longer[slower].mean():.0f} s in the mean, mean time {plain[apart].mean():.0f} s"
    )


def speed(network: RoadNetwork, rng: np.random.Generator) -> None:
    """Microseconds of one shortest path, best of five rounds."""
    ends = rng.integers(network.num_nodes, size=(QUERIES, 2)).tolist()

    def once(roads: RoadNetwork) -> None:
        for origin, target in ends:
            roads.shortest_path(roads.free_flow_times_s, origin, target)

    for name, roads in (("without", network.ignoring_turns), ("with", network)):
        best_s = _best_of(5, partial(once, roads)) / QUERIES
        print(f"a shortest path {name}: {1e6 * best_s:.0f} µs")


def _best_of(rounds: int, work: Callable[[], None]) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def matching(network: RoadNetwork, rng: np.random.Generator) -> None:
    """Legal routes, drawn with 5 m of noise and matched back."""
    plain, found = network.ignoring_turns, Counter[str]()
    for origin, target in rng.integers(network.num_nodes, size=(ROUTES, 2)).tolist():
        path = network.shortest_path(network.free_flow_times_s, origin, target)
        if len(path) < 3:
            continue
        line = path.coordinates(network)
        line = line + rng.normal(0, 5 / 111_000, line.shape)
        found["routes"] += 1
        for name, roads in (("with", network), ("without", plain)):
            match = match_route(roads, line, origin, target).path
            found[f"same path {name}"] += match == path
            found[f"forbidden turn {name}"] += network.forbidden_turn(match) is not None
    print("matched routes:", dict(found))


def gaps(network: RoadNetwork, radius: float, rng: np.random.Generator) -> None:
    """The gap of random calls with the restrictions, and as it is without them."""
    scenarios = ScenarioSet(smooth_embeddings(network, DIMENSION), radius)
    statuses, differences, turned, taken = Counter[str](), [], 0, {"with": 0.0, "without": 0.0}
    for _ in range(CALLS):
        *depots, node = rng.choice(network.num_nodes, DEPOTS + 1, replace=False).tolist()
        primary = network.shortest_path(scenarios.nominal_times, depots, node)
        found: dict[str, Any] = {}
        for name, roads in (("with", network), ("without", network.ignoring_turns)):
            start = time.perf_counter()
            question = (roads, scenarios, depots, node, primary)
            found[name] = optimistic_gap(*question, time_limit_s=LIMIT_S)
            taken[name] += time.perf_counter() - start
            statuses[f"{found[name].status} {name}"] += 1
        assert network.forbidden_turn(found["with"].secondary) is None
        turned += network.forbidden_turn(found["without"].secondary) is not None
        differences.append(found["without"].lower_s - found["with"].lower_s)
    apart = np.array(differences)
    print(f"radius {radius}; {turned} of {CALLS} second paths that ignore them make a "
          f"forbidden turn; their gap is larger in {(apart > 1e-6).sum()} calls, by "
          f"{apart[apart > 1e-6].mean():.1f} s in the mean and {apart.max():.1f} s at most; "
          f"{dict(statuses)}; ms a call: "
          f"{ {name: round(1000 * s / CALLS, 1) for name, s in taken.items()} }")  # fmt: skip


if __name__ == "__main__":
    roads, draw = read_network(sys.argv[1]), np.random.default_rng(0)
    all_pairs(roads)
    speed(roads, draw)
    matching(roads, draw)
    for rho in RADII:
        gaps(roads, rho, draw)
