"""Shortest paths without forbidden turns, against a search that remembers every edge driven."""

import heapq
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import UnreachableError
from tests.properties.strategies import edge_costs, multigraphs


@st.composite
def forbidding(draw: st.DrawFn) -> tuple[RoadNetwork, Any]:
    """A network that forbids some turns of two to four edges, and costs."""
    plain = draw(multigraphs(max_nodes=5, max_edges=18))
    turns = []
    for _ in range(draw(st.integers(0, 8)) if plain.num_edges else 0):
        turn = [draw(st.integers(0, plain.num_edges - 1))]
        for _ in range(draw(st.integers(1, 3))):
            onward = np.flatnonzero(plain.tail == plain.head[turn[-1]]).tolist()
            if onward:
                turn.append(draw(st.sampled_from(onward)))
        if len(turn) > 1:
            turns.append(turn)
    network = RoadNetwork.from_arrays(
        plain.tail, plain.head, plain.length_m, num_nodes=plain.num_nodes, forbidden_turns=turns
    )
    return network, draw(edge_costs(network))


def _remembering(
    network: RoadNetwork, costs: Any, node: int, behind: tuple[int, ...] = ()
) -> dict[int, float]:
    """Dijkstra over (node, last edges): what a forbidden turn is, and nothing cleverer."""
    turns = network.forbidden_turns
    memory = max((len(turn) - 1 for turn in turns), default=0)

    def remembered(edges: tuple[int, ...]) -> tuple[int, ...]:
        return edges[len(edges) - min(memory, len(edges)) :]

    start = (node, remembered(behind))
    reached, queue = {start: 0.0}, [(0.0, start)]
    best: dict[int, float] = {}
    while queue:
        cost, (here, driven) = heapq.heappop(queue)
        if cost > reached[here, driven]:
            continue
        best.setdefault(here, cost)
        for edge in np.flatnonzero(network.tail == here).tolist():
            longer = (*driven, edge)
            if any(longer[-len(turn) :] == turn for turn in turns) or math.isinf(costs[edge]):
                continue
            state = (int(network.head[edge]), remembered(longer))
            if cost + costs[edge] < reached.get(state, math.inf):
                reached[state] = cost + costs[edge]
                heapq.heappush(queue, (reached[state], state))
    return best


@given(forbidding())
def test_distances_and_paths(problem: tuple[RoadNetwork, Any]) -> None:
    network, costs = problem
    to = [network.distances_to(costs, target) for target in range(network.num_nodes)]
    for origin in range(network.num_nodes):
        best = _remembering(network, costs, origin)
        ours = network.distances(costs, origin)
        for target in range(network.num_nodes):
            expected = best.get(target, math.inf)
            assert ours[target] == expected
            assert to[target][origin] == pytest.approx(expected, rel=1e-12)
            if math.isinf(expected):
                with pytest.raises(UnreachableError):
                    network.shortest_path(costs, origin, target)
                continue
            path = network.shortest_path(costs, origin, target)
            assert network.path(path.edges, path.origin) == path
            assert (path.origin, path.destination) == (origin, target)
            assert network.forbidden_turn(path) is None
            assert path.time_s(costs) == pytest.approx(expected, rel=1e-12)


@given(forbidding(), st.data())
def test_ties_do_not_depend_on_the_algorithm(
    problem: tuple[RoadNetwork, Any], data: st.DataObject
) -> None:
    network, costs = problem
    target = data.draw(st.integers(0, network.num_nodes - 1))
    exact = network.distances_to(costs, target)
    loose = network.ignoring_turns.distances_to(costs, target)
    for origin in np.flatnonzero(np.isfinite(exact)).tolist():
        path = network.shortest_path(costs, origin, target)
        for potential in (exact, loose):
            share = data.draw(st.sampled_from([0.0, 0.5, 1 - 1e-12]))
            bound = share * np.where(np.isfinite(potential), potential, 0.0)
            assert network.shortest_path(costs, origin, target, potential_s=bound) == path
        assert network.shortest_paths(costs, [origin], [target]) == [path]


@given(forbidding(), st.data())
def test_what_lies_behind(problem: tuple[RoadNetwork, Any], data: st.DataObject) -> None:
    network, costs = problem
    if not network.num_edges:
        return
    behind = [data.draw(st.integers(0, network.num_edges - 1))]
    for _ in range(data.draw(st.integers(0, 3))):
        onward = np.flatnonzero(network.tail == network.head[behind[-1]]).tolist()
        if onward:
            behind.append(data.draw(st.sampled_from(onward)))
    node = int(network.head[behind[-1]])
    best = _remembering(network, costs, node, tuple(behind))
    for target in range(network.num_nodes):
        if target not in best:
            with pytest.raises(UnreachableError):
                network.shortest_path(costs, node, target, behind=behind)
            continue
        path = network.shortest_path(costs, node, target, behind=behind)
        assert path.time_s(costs) == pytest.approx(best[target], rel=1e-12)
