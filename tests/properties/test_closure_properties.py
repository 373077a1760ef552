"""Closed edges: what is found is what is found where the edges were really taken away."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork, optimistic_gap
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.scenarios.target_radius import target_radius
from tests.properties.strategies import edge_costs
from tests.properties.test_gap_properties import towns
from tests.properties.test_turn_properties import forbidding
from tests.theory.small_towns import Town


def removed(network: RoadNetwork, closed: list[int]) -> tuple[RoadNetwork, Any]:
    """The network without these edges, and the number that each of the others had."""
    kept = np.setdiff1d(np.arange(network.num_edges), closed)
    number = {int(edge): i for i, edge in enumerate(kept)}
    turns = [
        [number[edge] for edge in turn]
        for turn in network.forbidden_turns
        if not set(turn) & set(closed)
    ]
    less = RoadNetwork.from_arrays(
        network.tail[kept], network.head[kept], network.length_m[kept],
        num_nodes=network.num_nodes, forbidden_turns=turns,
    )  # fmt: skip
    return less, kept


def closures(network: RoadNetwork) -> st.SearchStrategy[list[int]]:
    """Some of the edges, perhaps none, perhaps one of them twice."""
    if not network.num_edges:
        return st.just([])
    return st.lists(st.integers(0, network.num_edges - 1), max_size=6)


@st.composite
def closing(draw: st.DrawFn) -> tuple[RoadNetwork, Any, list[int], int]:
    """A network that forbids some turns, costs, what is closed, and how much of it first."""
    network, costs = draw(forbidding())
    closed = draw(closures(network))
    return network, costs, closed, draw(st.integers(0, len(closed)))


_TIE = RoadNetwork.from_arrays([0, 0, 1], [1, 1, 0], [1, 1, 1], forbidden_turns=[(0, 2)])


@given(closing())
@example((_TIE, np.ones(3), [2], 0))  # edge 1 where 2 is closed, edge 0 where it is gone
def test_distances_and_paths_are_those_without_the_edges(
    problem: tuple[RoadNetwork, Any, list[int], int],
) -> None:
    """Among equally fast paths perhaps another one, where a forbidden turn drives a closed edge.

    That turn stays in the states of a driver, by which the choice is made.
    """
    network, costs, closed, some = problem
    less, kept = removed(network, closed)
    same_turns = len(less.forbidden_turns) == len(network.forbidden_turns)
    for shut in (
        network.closing(closed),
        network.closing(closed[:some]).closing(closed[some:]),  # one after the other
        replace(network, closed=tuple(closed)),
    ):
        assert shut.closed == tuple(sorted(set(closed)))
        for node in range(network.num_nodes):
            np.testing.assert_array_equal(
                shut.distances(costs, node), less.distances(costs[kept], node)
            )
            np.testing.assert_array_equal(
                shut.distances_to(costs, node), less.distances_to(costs[kept], node)
            )
            for target in range(network.num_nodes):
                try:
                    expected = less.shortest_path(costs[kept], node, target)
                except UnreachableError:
                    with pytest.raises(UnreachableError, match="closed edges"):
                        shut.shortest_path(costs, node, target)
                    continue
                path = shut.shortest_path(costs, node, target)
                if same_turns:
                    assert path.edges.tolist() == kept[expected.edges].tolist()
                assert path.time_s(costs) == pytest.approx(expected.time_s(costs[kept]), rel=1e-12)
                assert shut.path(path.edges, path.origin) == path
                assert shut.forbidden_turn(path) is None
                bound = less.distances_to(costs[kept], target)
                bound = np.where(np.isfinite(bound), 0.5 * bound, 0.0)
                assert shut.shortest_path(costs, node, target, potential_s=bound) == path
                assert shut.shortest_paths(costs, [node], [target]) == [path]


@given(forbidding(), st.data())
def test_the_rest_of_the_network_is_the_same(
    problem: tuple[RoadNetwork, Any], data: st.DataObject
) -> None:
    network, _ = problem
    closed = data.draw(closures(network))
    shut = network.closing(closed)
    assert shut.checksum == network.checksum
    assert shut.opened is network
    assert not network.closed
    times = data.draw(edge_costs(network))
    for node in range(network.num_nodes):  # nothing of the open network was changed
        np.testing.assert_array_equal(
            network.distances(times, node), shut.opened.distances(times, node)
        )
    for edge in closed:
        with pytest.raises(InputError, match=f"path drives edge {edge}, which is closed"):
            shut.path([edge])


@settings(max_examples=120, deadline=None)
@given(towns(), st.sampled_from([0.01, 0.3, 1.5]), st.booleans(), st.data())
def test_the_gap_is_that_without_the_edges_and_is_verified(
    town: Town, radius: float, turning: bool, data: st.DataObject
) -> None:
    """Also where the primary itself drives a closed road: of it only its times matter."""
    network = town.network
    if turning:
        pairs = [
            (a, b) for a in range(network.num_edges) for b in range(network.num_edges)
            if network.head[a] == network.tail[b]
        ]  # fmt: skip
        assume(pairs)
        network = replace(network, forbidden_turns=(data.draw(st.sampled_from(pairs)),))
    closed = data.draw(closures(network))
    shut = network.closing(closed)
    less, kept = removed(network, closed)
    reached = [less.distances(np.ones(less.num_edges), depot) for depot in town.depots]
    assume(np.isfinite(np.min(reached, axis=0)[town.destination]))
    question = (shut, *town.question(radius)[1:])
    gap = optimistic_gap(*question)
    assert gap.status == "exact"
    assert not set(gap.secondary.edges.tolist()) & set(closed)
    if not turning:
        open_ = [edges for edges in town.all_paths() if not set(edges.tolist()) & set(closed)]
        best = max(town.advantage(edges, radius) for edges in open_)
        assert gap.lower_s == pytest.approx(best, abs=1e-6)
    elif not set(town.primary.edges.tolist()) & set(closed):
        primary = less.path(np.searchsorted(kept, town.primary.edges))
        scenarios = replace(town.scenarios(radius), embeddings=town.embeddings[kept])
        same = optimistic_gap(less, scenarios, town.depots, town.destination, primary)
        assert gap.lower_s == pytest.approx(same.lower_s, abs=1e-6)
    gap.verify(*question)


@settings(max_examples=60, deadline=None)
@given(towns(), st.data())
def test_target_radii_are_those_without_the_edges(town: Town, data: st.DataObject) -> None:
    closed = data.draw(closures(town.network))
    less, kept = removed(town.network, closed)
    shut, depot = town.network.closing(closed), town.depots[0]
    times = (town.embeddings**2).sum(axis=1)
    assume(np.isfinite(less.distances(times[kept], depot)[town.destination]))
    observed_s = data.draw(st.sampled_from([0.5, 5.0, 40.0]))
    found = target_radius(shut, town.embeddings, depot, town.destination, observed_s)
    expected = target_radius(less, town.embeddings[kept], depot, town.destination, observed_s)
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper))
    found.verify(shut, town.embeddings, depot, town.destination, observed_s)
