"""Shortest paths beside scipy, igraph, rustworkx and networkx.

One to all: distances from one node. One to one: the path between two nodes.
Batch of 64: 64 cost vectors, one path each, as training and scenario sets ask
for; each library gets its new costs in the cheapest way it offers.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import igraph
import networkx as nx
import numpy as np
import rustworkx as rx
from rich.console import Console
from rich.table import Table
from scipy.sparse import csgraph, csr_array

from benchmarks.networks import street_grid
from benchmarks.timing import human, race
from ideal_dispatch import RoadNetwork

SIZES = (2_500, 30_000, 300_000)
dijkstra: Any = csgraph.dijkstra
PEERS = ("scipy", "igraph", "rustworkx", "networkx")


class Peers:
    """The same network in the other libraries."""

    def __init__(self, network: RoadNetwork) -> None:
        self.network = network
        size, edges = network.num_nodes, network.num_edges
        pairs = list(zip(network.tail.tolist(), network.head.tolist(), strict=True))
        self.igraph = igraph.Graph(n=size, edges=pairs, directed=True)
        self.rustworkx = rx.PyDiGraph()
        self.rustworkx.add_nodes_from(range(size))
        self.rustworkx.add_edges_from([(u, v, e) for e, (u, v) in enumerate(pairs)])
        self.networkx = nx.DiGraph()
        self.networkx.add_edges_from((u, v, {"edge": e}) for e, (u, v) in enumerate(pairs))
        # the grid has no parallel edges, so scipy's matrix holds each edge once
        numbered = csr_array(
            (np.arange(edges) + 1.0, (network.tail, network.head)), shape=(size, size)
        )
        self.slot = numbered.data.astype(int) - 1
        self.scipy = numbered

    def matrix(self, costs: Any) -> Any:
        self.scipy.data = costs[self.slot]
        return self.scipy

    def costs(self, name: str, costs: Any) -> Any:
        """Costs in the form that the library ``name`` takes."""
        return self.matrix(costs) if name == "scipy" else costs.tolist()


def _one_to_all(network: RoadNetwork, peers: Peers, costs: Any, source: int) -> dict[str, Any]:
    listed, matrix = costs.tolist(), peers.matrix(costs)
    return {
        "ours": lambda: network.distances(costs, source),
        "scipy": lambda: dijkstra(matrix, indices=source),
        "igraph": lambda: peers.igraph.distances(source=source, weights=listed),
        "rustworkx": lambda: rx.digraph_dijkstra_shortest_path_lengths(
            peers.rustworkx, source, listed.__getitem__
        ),
        "networkx": lambda: nx.single_source_dijkstra_path_length(
            peers.networkx, source, weight=lambda u, v, data: listed[data["edge"]]
        ),
    }


def _path(peers: Peers, name: str, costs: Any, source: int, target: int) -> Any:
    """One path of a peer, with costs as :meth:`Peers.costs` gives them."""
    if name == "scipy":
        before = dijkstra(costs, indices=source, return_predecessors=True)[1]
        path = [target]
        while path[-1] != source:
            path.append(int(before[path[-1]]))
        return path[::-1]
    if name == "igraph":
        return peers.igraph.get_shortest_path(source, target, weights=costs, output="epath")
    if name == "rustworkx":
        return rx.digraph_dijkstra_shortest_paths(
            peers.rustworkx, source, target, weight_fn=costs.__getitem__
        )
    return nx.dijkstra_path(
        peers.networkx, source, target, weight=lambda u, v, data: costs[data["edge"]]
    )


def _one_to_one(
    network: RoadNetwork, peers: Peers, costs: Any, source: int, target: int
) -> dict[str, Callable[[], object]]:
    calls = {
        name: partial(_path, peers, name, peers.costs(name, costs), source, target)
        for name in PEERS
    }
    return {"ours": lambda: network.shortest_path(costs, source, target), **calls}


def _batch(network: RoadNetwork, peers: Peers, rng: np.random.Generator) -> dict[str, Any]:
    costs = network.free_flow_times_s * rng.uniform(0.7, 1.8, (64, network.num_edges))
    origins, targets = rng.integers(0, network.num_nodes, (2, 64))

    def one_by_one(name: str) -> Callable[[], object]:
        def solve() -> None:
            for row, origin, target in zip(costs, origins.tolist(), targets.tolist(), strict=True):
                _path(peers, name, peers.costs(name, row), origin, target)

        return solve

    calls: dict[str, Any] = {name: one_by_one(name) for name in PEERS}
    return {"ours": lambda: network.shortest_paths(costs, origins, targets), **calls}


def run(console: Console, sizes: Sequence[int] = SIZES, seconds: float = 1.0) -> None:
    """Print one table; answers are checked to be equal before anything is timed."""
    table = Table(title="Shortest paths: median time, and how many times longer others take")
    for column in ("query", "edges", "ours", *PEERS):
        table.add_column(column, justify="left" if column == "query" else "right")
    for size in sizes:
        network = street_grid(size)
        peers = Peers(network)
        rng = np.random.default_rng(1)
        costs = network.free_flow_times_s * rng.uniform(0.7, 1.8, network.num_edges)
        source, target = (int(network.snap(114 + 0.001 * x, 22 + 0.001 * x).node)
                          for x in np.sqrt(size / 2.8) * np.array([0.3, 0.7]))  # fmt: skip
        _check(network, peers, costs, source, target)
        queries = {
            "one to all": _one_to_all(network, peers, costs, source),
            "one to one": _one_to_one(network, peers, costs, source, target),
            "batch of 64": _batch(network, peers, rng),
        }
        for query, contenders in queries.items():
            if query == "batch of 64" and size == SIZES[-1]:
                contenders.pop("networkx")  # minutes a round
            times = race(contenders, seconds)
            ratios = [
                f"{times[peer] / times['ours']:.1f}×" if peer in times else "–" for peer in PEERS
            ]
            table.add_row(query, f"{network.num_edges:,}", human(times["ours"]), *ratios)
    console.print(table)


def _check(network: RoadNetwork, peers: Peers, costs: Any, source: int, target: int) -> None:
    ours = network.distances(costs, source)
    theirs = dijkstra(peers.matrix(costs), indices=source)
    np.testing.assert_allclose(ours, theirs)
    path = network.shortest_path(costs, source, target)
    edges = peers.igraph.get_shortest_path(source, target, weights=costs.tolist(), output="epath")
    assert path.edges.tolist() == edges
