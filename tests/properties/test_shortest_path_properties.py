"""Shortest paths against independent implementations, and the canonical choice among ties."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra as scipy_dijkstra

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.network import shortest_path as kernels
from tests.properties.strategies import edge_costs, multigraphs


@st.composite
def problems(draw: st.DrawFn) -> tuple[RoadNetwork, Any, list[int], int]:
    network = draw(multigraphs())
    costs = draw(edge_costs(network))
    node = st.integers(0, network.num_nodes - 1)
    return network, costs, draw(st.lists(node, min_size=1, max_size=3)), draw(node)


def _networkx_distances(network: RoadNetwork, costs: Any, sources: list[int]) -> dict[int, float]:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(network.num_nodes))
    for tail, head, cost in zip(network.tail, network.head, costs, strict=True):
        if np.isfinite(cost):
            graph.add_edge(int(tail), int(head), weight=float(cost))
    found: dict[int, float] = nx.multi_source_dijkstra_path_length(graph, set(sources))
    return found


@given(problems())
def test_distances_equal_networkx(problem: tuple[RoadNetwork, Any, list[int], int]) -> None:
    network, costs, sources, _ = problem
    ours = network.distances(costs, sources)
    theirs = _networkx_distances(network, costs, sources)
    for node in range(network.num_nodes):
        assert ours[node] == theirs.get(node, np.inf)


@given(problems())
def test_distances_equal_scipy(problem: tuple[RoadNetwork, Any, list[int], int]) -> None:
    network, costs, sources, _ = problem
    # scipy adds parallel edges up and drops explicit zeros: give it the cheapest, made positive
    cheapest: dict[tuple[int, int], float] = {}
    for tail, head, cost in zip(network.tail.tolist(), network.head.tolist(), costs, strict=True):
        if np.isfinite(cost):
            cheapest[tail, head] = min(cheapest.get((tail, head), np.inf), max(cost, 1e-12))
    rows, columns = [k[0] for k in cheapest], [k[1] for k in cheapest]
    shape = (network.num_nodes, network.num_nodes)
    matrix = csr_array((list(cheapest.values()), (rows, columns)), shape=shape)
    theirs = scipy_dijkstra(matrix, indices=sources, min_only=True)
    assert network.distances(np.maximum(costs, 1e-12), sources) == pytest.approx(theirs)


@given(problems())
def test_path_is_valid_and_optimal(problem: tuple[RoadNetwork, Any, list[int], int]) -> None:
    network, costs, sources, target = problem
    distance = network.distances(costs, sources)[target]
    if np.isinf(distance):
        with pytest.raises(UnreachableError, match=f"node {target} cannot be reached"):
            network.shortest_path(costs, sources, target)
        return
    path = network.shortest_path(costs, sources, target)
    assert network.path(path.edges, origin=path.origin) == path
    assert path.origin in sources
    assert path.destination == target
    assert path.time_s(costs) == pytest.approx(distance, rel=1e-12)
    assert len(set(path.nodes(network).tolist())) == len(path) + 1, "no node twice"


@given(problems(), st.data())
def test_ties_do_not_depend_on_the_algorithm(
    problem: tuple[RoadNetwork, Any, list[int], int], data: st.DataObject
) -> None:
    network, costs, sources, target = problem
    nodes = np.array(sources, np.int32)
    everywhere = kernels.search(network.outgoing, costs, nodes)
    if np.isinf(everywhere[target]):
        return
    heap = np.empty(network.num_nodes)
    kernels.a_star(network.outgoing, costs, nodes, target, np.zeros(network.num_nodes), heap)
    scale = data.draw(st.floats(0, 1, exclude_min=True))
    potential = network.distances_to(costs, target)
    guided = kernels.search(network.outgoing, costs, nodes, target, scale * potential)
    stopped = kernels.search(network.outgoing, costs, nodes, target)

    def edges(g: Any) -> Any:
        return kernels.canonical_edges(network.incoming, costs, g, nodes, target).tolist()

    assert edges(everywhere) == edges(stopped) == edges(heap) == edges(guided)
    assert network.shortest_path(costs, sources, target).edges.tolist() == edges(everywhere)
    if len(sources) == 1:
        assert network.shortest_paths(costs, sources, [target])[0].edges.tolist() == edges(heap)


@given(problems())
def test_canonical_choice_by_enumeration(
    problem: tuple[RoadNetwork, Any, list[int], int],
) -> None:
    """With positive costs: reversed, it is the lexicographically smallest shortest path."""
    network, costs, sources, target = problem
    costs = np.where(np.isfinite(costs), np.clip(np.round(costs), 1, 8), np.inf)
    best: list[list[int]] = []
    shortest = network.distances(costs, sources)[target]
    if np.isinf(shortest) or network.num_edges > 14:
        return
    stack = [(target, 0.0, [])]  # type: list[tuple[int, float, list[int]]]
    while stack:
        node, cost, backwards = stack.pop()
        if cost == shortest and node in sources:
            best.append(backwards)
        stack.extend(
            (int(network.tail[edge]), cost + costs[edge], [*backwards, edge])
            for edge in np.flatnonzero(network.head == node).tolist()
            if cost + costs[edge] <= shortest
        )
    canonical = network.shortest_path(costs, sources, target).edges.tolist()
    assert canonical[::-1] == min(best)


def test_edges_of_no_cost_are_used_only_where_needed_and_few() -> None:
    # 0 → 1 costs 1 by edge 4; from there 2 is free by edge 0, but edge 5 leads to it directly
    tail, head = [1, 2, 3, 2, 0, 0], [2, 3, 4, 4, 1, 2]
    network = RoadNetwork.from_arrays(tail, head, np.ones(6))
    costs = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    assert network.shortest_path(costs, 0, 2).edges.tolist() == [5]
    assert network.shortest_path(costs, 0, 4).edges.tolist() == [5, 3], "one free edge, not two"


def test_uneven_costs_use_the_heap_and_agree(grid: RoadNetwork) -> None:
    """A few enormous costs make the buckets useless; the answer stays the same."""
    rng = np.random.default_rng(3)
    costs = rng.uniform(1, 2, grid.num_edges)
    costs[rng.choice(grid.num_edges, 40, replace=False)] = 1e9
    nodes = np.array([0], np.int32)
    buckets = np.empty(grid.num_nodes)
    heap = np.empty(grid.num_nodes)
    kernels.a_star(grid.outgoing, costs, nodes, -1, np.zeros(grid.num_nodes), heap)
    for exponent in (0, 290, -300):
        scaled = costs * 10.0**exponent
        kernels.dijkstra(grid.outgoing, scaled, nodes, -1, buckets)
        assert buckets == pytest.approx(heap * 10.0**exponent, rel=1e-9, abs=0)


def test_bucket_search_gives_up_on_too_many_labels() -> None:
    """A ladder that makes label correcting exponential is handed to the heap."""
    rungs = 18
    rows = [(0, 2 * rungs + 1, 1e9)]  # so costly that all the rest lies in one bucket
    for i in range(rungs):
        rows.append((2 * i, 2 * i + 2, 2.0 ** (rungs - i)))
        rows += [(2 * i, 2 * i + 1, 0.5), (2 * i + 1, 2 * i + 2, 0.25)]
    for order in (rows, rows[::-1]):
        tail, head, costs = (np.array(column) for column in zip(*order, strict=True))
        network = RoadNetwork.from_arrays(tail, head, np.ones(len(order)))
        query = (network.outgoing, costs, np.array([0], np.int32), -1)
        assert not kernels._bucket_search(*query, np.empty(network.num_nodes))
        assert network.distances(costs, 0)[2 * rungs] == 0.75 * rungs
