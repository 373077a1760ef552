"""The proved gap of odd little towns: parallel roads, ties, roads of no time, one dimension."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ideal_dispatch import RoadNetwork, optimistic_gap
from ideal_dispatch.gap import certificate
from ideal_dispatch.gap.problem import GapProblem
from tests.theory.small_towns import Town


@st.composite
def towns(draw: st.DrawFn) -> Town:
    nodes = draw(st.integers(2, 6))
    node = st.integers(0, nodes - 1)
    roads = draw(st.lists(st.tuples(node, node), min_size=2, max_size=11))
    size = draw(st.integers(1, 3))
    row = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    embeddings = draw(st.lists(row, min_size=len(roads), max_size=len(roads)))
    depots = draw(st.lists(node, min_size=1, max_size=2, unique=True))
    tail, head = zip(*roads, strict=True)
    network = RoadNetwork.from_arrays(tail, head, [100.0] * len(roads), num_nodes=nodes)
    town = Town(
        network, np.array(embeddings, float), depots, draw(node), network.path([], origin=0)
    )
    paths = [edges for edges in town.all_paths() if edges.size]
    assume(paths)
    primary = network.path(paths[draw(st.integers(0, len(paths) - 1))])
    return Town(network, town.embeddings, depots, town.destination, primary)


@settings(max_examples=150, deadline=None)
@given(towns(), st.sampled_from([0.01, 0.3, 1.5]), st.sampled_from([-1.0, -1e-3, 1e-3, 2.0]))
def test_a_narrowed_search_is_right_in_odd_towns(town: Town, radius: float, off_s: float) -> None:
    exact = town.exact_gap(radius)
    search = certificate.Search(
        GapProblem.ask(*town.question(radius)), exact + off_s, stop_at_found=False
    )
    search.narrow()
    outcome = search.run()
    assert outcome.closed
    assert outcome.upper_s == pytest.approx(max(exact, exact + off_s), abs=1e-6)
    assert (outcome.found is not None) == (off_s < 0)


@settings(max_examples=100, deadline=None)
@given(towns(), st.sampled_from([0.01, 0.3, 1.5]))
def test_the_gap_of_odd_towns_is_exact_and_verified(town: Town, radius: float) -> None:
    gap = optimistic_gap(*town.question(radius))
    assert gap.status == "exact"
    assert gap.lower_s == pytest.approx(town.exact_gap(radius), abs=1e-6)
    gap.verify(*town.question(radius))
