"""Dead ends leave the corridor, nothing else does, and proofs are checked inside it."""

import dataclasses

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork, ScenarioSet, optimistic_gap
from ideal_dispatch.gap import certificate
from ideal_dispatch.gap.corridor import Corridor, without_dead_ends
from ideal_dispatch.gap.problem import GapProblem
from tests.theory.small_towns import Town, random_town


def with_dead_ends(town: Town, seed: int) -> Town:
    """The town, with two-way streets to new nodes that lead no further, some of them chained,
    a parallel lane into one and a loop.
    """
    rng = np.random.default_rng(seed)
    nodes = town.network.num_nodes
    beginnings = [int(v) for v in rng.integers(0, nodes, 3)] + [nodes, nodes + 3]
    new = range(nodes, nodes + len(beginnings))
    tail = [*beginnings, *new, beginnings[0], 0]
    head = [*new, *beginnings, nodes, 0]
    spurs = rng.normal(size=(len(tail), town.embeddings.shape[1]))
    network = RoadNetwork.from_arrays(
        [*town.network.tail, *tail], [*town.network.head, *head],
        [*town.network.length_m, *[100.0] * len(tail)],
    )  # fmt: skip
    return Town(
        network, np.vstack([town.embeddings, spurs]), town.depots, town.destination,
        network.path(town.primary.edges),
    )  # fmt: skip


def on_simple_paths(town: Town) -> set[int]:
    return {int(edge) for edges in town.all_paths() for edge in edges}


@pytest.mark.parametrize("seed", range(20))
def test_dead_ends_go_and_every_simple_path_stays(seed: int) -> None:
    town = with_dead_ends(random_town(seed, depots=1 + seed % 3), seed)
    problem = GapProblem.ask(*town.question(0.1))
    everything = np.arange(town.network.num_edges, dtype=np.int32)
    kept = set(without_dead_ends(problem, everything).tolist())
    assert on_simple_paths(town) <= kept
    assert not kept & set(range(len(random_town(seed).embeddings), town.network.num_edges))


def test_a_dead_end_where_paths_begin_or_end_stays() -> None:
    network = RoadNetwork.from_arrays([0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1], [100.0] * 6)
    scenarios = ScenarioSet(np.ones((6, 1)), 0.1)
    problem = GapProblem.ask(network, scenarios, [0], 2, network.path([0, 2]))
    everything = np.arange(6, dtype=np.int32)
    assert without_dead_ends(problem, everything).tolist() == [0, 1, 2, 3]
    assert without_dead_ends(problem, everything[:0]).tolist() == []


def test_a_corridor_knows_only_its_own_roads() -> None:
    town = random_town(3)
    problem = GapProblem.ask(*town.question(0.1))
    inside = Corridor.of(problem, np.sort(town.primary.edges))
    start, edge, other = inside.outgoing
    listed = [
        (int(edge[k]), int(other[k])) for v in range(7) for k in range(start[v], start[v + 1])
    ]
    heads = town.network.head[town.primary.edges]
    assert sorted(listed) == sorted(zip(town.primary.edges.tolist(), heads.tolist(), strict=True))
    on_the_way = set(town.primary.nodes(town.network).tolist())
    assert set(np.flatnonzero(np.isfinite(inside.to_destination)).tolist()) == on_the_way
    times_s = town.scenarios(0.1).nominal_times
    assert inside.to_destination[town.primary.origin] == pytest.approx(town.primary.time_s(times_s))
    everywhere = Corridor.everywhere(problem)
    assert (everywhere.to_destination <= inside.to_destination).all()
    assert not everywhere.spread.any()


@pytest.mark.parametrize("radius", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_gap_of_a_town_with_dead_ends_is_the_enumerated_one(seed: int, radius: float) -> None:
    town = with_dead_ends(random_town(seed, depots=1 + seed % 3), seed)
    question, exact = town.question(radius), town.exact_gap(radius)
    for target_s in (exact - 1.0, exact - 1e-3, exact + 1e-3, exact + 5.0):
        search = certificate.Search(GapProblem.ask(*question), target_s, stop_at_found=False)
        search.narrow()
        outcome = search.run()
        assert outcome.closed
        assert outcome.upper_s == pytest.approx(max(exact, target_s), abs=1e-6)
        assert (outcome.found is not None) == (exact > target_s)
    gap = optimistic_gap(*question)
    assert gap.lower_s == pytest.approx(exact, abs=1e-6)
    gap.verify(*question)


@pytest.mark.parametrize(("seed", "radius"), [(121, 3.0), (185, 3.0), (213, 0.3), (358, 1.0)])
def test_a_proof_that_keeps_to_its_corridor_is_verified_there(seed: int, radius: float) -> None:
    """Ways around it would be short under some base of these proofs."""
    question = random_town(seed, depots=1 + seed % 3).question(radius)
    gap = optimistic_gap(*question)
    search = certificate.Search(GapProblem.ask(*question), gap.lower_s + 5e-7, stop_at_found=False)
    search.narrow()
    proof = search.run().proof
    narrowed = dataclasses.replace(gap, proof=proof, upper_s=gap.lower_s + 5e-7)
    assert proof.corridor_multiplier.size
    narrowed.verify(*question)
