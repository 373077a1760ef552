"""Towns small enough to enumerate every path, for tests of the gap."""

from dataclasses import dataclass

import networkx as nx
import numpy as np

from ideal_dispatch import Path, RoadNetwork, ScenarioSet
from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.scenarios import burg


@dataclass(frozen=True)
class Town:
    """A random multigraph with embeddings, depots, a destination and a primary path."""

    network: RoadNetwork
    embeddings: FloatArray
    depots: list[int]
    destination: int
    primary: Path

    def scenarios(self, radius: float) -> ScenarioSet:
        return ScenarioSet(self.embeddings, radius)

    def question(self, radius: float) -> tuple[RoadNetwork, ScenarioSet, list[int], int, Path]:
        return self.network, self.scenarios(radius), self.depots, self.destination, self.primary

    def all_paths(self) -> list[IntArray]:
        """Every simple path from a depot to the destination, parallel edges told apart."""
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(self.network.num_nodes))
        for edge, (tail, head) in enumerate(
            zip(self.network.tail.tolist(), self.network.head.tolist(), strict=True)
        ):
            graph.add_edge(tail, head, key=edge)
        paths = []
        for depot in self.depots:
            if depot == self.destination:
                paths.append(np.empty(0, np.int32))
            paths.extend(
                np.array([key for _, _, key in steps], np.int32)
                for steps in nx.all_simple_edge_paths(graph, depot, self.destination)
                if steps
            )
        return paths

    def advantage(self, edges: IntArray, radius: float) -> float:
        """Δ(z): the largest advantage of one path over the primary, by Theorem 3."""
        scenarios = self.scenarios(radius)
        difference = scenarios.path_matrix(self.primary) - scenarios.path_matrix(edges)
        return -burg.minimise_linear(-difference, radius).value

    def exact_gap(self, radius: float) -> float:
        """δ by enumeration."""
        return max(self.advantage(edges, radius) for edges in self.all_paths())


def random_town(seed: int, depots: int = 2) -> Town:
    """A strongly connected town of 7 nodes; the primary is not always the fastest path."""
    rng = np.random.default_rng(seed)
    nodes = 7
    ring = rng.permutation(nodes)
    tail = np.concatenate([ring, rng.integers(0, nodes, 13)])
    head = np.concatenate([np.roll(ring, -1), rng.integers(0, nodes, 13)])
    size = int(rng.integers(1, 5))
    directions = rng.normal(size=(tail.size, size))
    embeddings = directions * rng.uniform(2, 8, tail.size)[:, None] / np.sqrt(size)
    network = RoadNetwork.from_arrays(tail, head, rng.uniform(50, 500, tail.size))
    places = rng.choice(nodes, depots + 1, replace=False).tolist()
    times = (embeddings**2).sum(axis=1) * rng.uniform(0.7, 1.4, tail.size)
    primary = network.shortest_path(times, places[0], places[-1])
    return Town(network, embeddings, places[:-1], places[-1], primary)
