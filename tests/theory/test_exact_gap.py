"""The proved gap against enumeration, and what it must and must not depend on."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group

from ideal_dispatch import RoadNetwork, ScenarioSet, optimistic_gap, pairwise_gap
from ideal_dispatch.errors import CertificateError, IdealError, UnreachableError
from ideal_dispatch.gap import certificate
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.network import Depot
from tests.theory.small_towns import Town, random_town

RADII = (1e-6, 0.01, 0.1, 0.5, 2.0)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(20))
def test_interval_holds_the_enumerated_gap(seed: int, radius: float) -> None:
    town = random_town(seed, depots=1 + seed % 3)
    exact = town.exact_gap(radius)
    for method in ("dca", "multistart", "certified"):
        gap = optimistic_gap(*town.question(radius), method=method)
        assert gap.lower_s <= exact + 1e-6
        assert gap.upper_s >= exact - 1e-6
        gap.verify(*town.question(radius))
    assert gap.status == "exact"
    assert gap.lower_s == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(20))
def test_the_gap_over_open_roads_is_the_enumerated_one(seed: int, radius: float) -> None:
    """With the road closed that the second would take, as long as there is a way."""
    town = random_town(seed, depots=1 + seed % 3)
    before = optimistic_gap(*town.question(radius))
    assert len(before.secondary)
    shut = town.network.closing(before.secondary.edges[:1].tolist())
    question = (shut, *town.question(radius)[1:])
    paths = [edges for edges in town.all_paths() if not np.isin(edges, shut.closed).any()]
    if not paths:
        with pytest.raises(UnreachableError):
            optimistic_gap(*question)
        return
    gap = optimistic_gap(*question)
    exact = max(town.advantage(edges, radius) for edges in paths)
    assert gap.status == "exact"
    assert gap.lower_s == pytest.approx(exact, abs=1e-6)
    gap.verify(*question)
    with pytest.raises(IdealError):  # its second drives what is closed
        before.verify(*question)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(20))
def test_units_on_edges_start_with_the_rest_of_them(seed: int, radius: float) -> None:
    """The gap is that of a town with a road from where each of them is, to the same node."""
    town, rng = random_town(seed, depots=2), np.random.default_rng(seed)
    network, nodes = town.network, town.network.num_nodes
    into = [int(np.flatnonzero(network.head == node)[0]) for node in (*town.depots, 0)]
    units = [
        Depot(f"A{edge}", int(network.head[edge]), True, edge=edge, ahead=float(rng.random()))
        for edge in (into[0], into[1], into[1], into[2])
    ]
    asked = (*town.question(radius)[:2], units[1:], *town.question(radius)[3:], units[0])
    rests = [np.sqrt(one.ahead) * town.embeddings[one.edge] for one in units]
    roads = RoadNetwork.from_arrays(
        np.append(network.tail, nodes + np.arange(4)),
        np.append(network.head, [one.node for one in units]),
        np.append(network.length_m, np.ones(4)),
    )
    primary = roads.path([network.num_edges, *town.primary.edges])
    embeddings, starts = np.vstack([town.embeddings, rests]), [nodes + n for n in (1, 2, 3)]
    split = Town(roads, embeddings, starts, town.destination, primary)
    for shut in ((), (into[0],)):
        question = (network.closing(shut), *asked[1:])
        paths = [edges for edges in split.all_paths() if not np.isin(edges, shut).any()]
        if not paths:
            continue
        exact = max(split.advantage(edges, radius) for edges in paths)
        for method in ("dca", "multistart", "certified"):
            gap = optimistic_gap(*question, method=method)
            assert gap.lower_s <= exact + 1e-6
            assert gap.upper_s >= exact - 1e-6
            gap.verify(*question)
        assert gap.status == "exact"
        assert gap.lower_s == pytest.approx(exact, abs=1e-6)
    turns = [(e, f) for e in into for f in np.flatnonzero(network.tail == network.head[e]).tolist()]
    ours, theirs = (
        RoadNetwork.from_arrays(one.tail, one.head, one.length_m, forbidden_turns=turns[1::2])
        for one in (network, roads)
    )
    explicit = theirs, ScenarioSet(embeddings, radius), starts, town.destination, primary
    asked_there = (ours, *asked[1:])
    turned = None
    with suppress(UnreachableError):
        turned = optimistic_gap(*explicit)
    if turned is not None:
        found = optimistic_gap(*asked_there)
        assert found.lower_s == pytest.approx(turned.lower_s, abs=2e-6)
        found.verify(*asked_there)
    # nodes that the search has added, and none at all
    for nowhere in (nodes, nodes + 1, 99, -1) if len(gap.secondary) else ():
        with pytest.raises(CertificateError):
            replace(gap, secondary=replace(gap.secondary, origin=nowhere)).verify(*question)
    if radius == 0.1:
        whole = optimistic_gap(*asked[:2], [one.node for one in units[1:]], *asked[3:5])
        with pytest.raises(IdealError):
            whole.verify(*asked)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_those_of_the_enumerated_gap(seed: int, radius: float) -> None:
    town = random_town(seed)
    exact = town.exact_gap(radius)
    for threshold_s in (0.0, exact / 2, exact - 1e-3, exact + 1e-3, 2 * exact + 1):
        if threshold_s < 0:
            continue
        gap = optimistic_gap(*town.question(radius), threshold_s=threshold_s)
        assert gap.status in ("exact", "decided")
        assert gap.worth_sending is bool(exact > threshold_s)
        gap.verify(*town.question(radius))


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("seed", range(20))
def test_a_narrowed_search_finds_and_proves_the_same(seed: int, radius: float) -> None:
    """The corridor and its spread lose no path above the target, however early they come."""
    town = random_town(seed, depots=1 + seed % 3)
    exact = town.exact_gap(radius)
    problem = GapProblem.ask(*town.question(radius))
    for target_s in (exact - 1.0, exact - 1e-3, exact + 1e-3, exact + 5.0):
        search = certificate.Search(problem, target_s, stop_at_found=False)
        search.narrow()
        outcome = search.run()
        assert outcome.closed
        assert outcome.proof.corridor_multiplier.size == problem.depots.size
        assert outcome.upper_s == pytest.approx(max(exact, target_s), abs=1e-6)
        assert (outcome.found is not None) == (exact > target_s)
        if outcome.found is not None:
            assert town.advantage(outcome.found, radius) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_monotone_in_the_radius(seed: int) -> None:
    town = random_town(seed)
    gaps = [optimistic_gap(*town.question(radius)).lower_s for radius in (0.0, *RADII)]
    assert (np.diff(gaps) >= -1e-6).all()


@pytest.mark.parametrize("seed", range(15))
def test_radius_zero_is_the_nominal_difference(seed: int) -> None:
    town = random_town(seed)
    nominal = town.scenarios(0.0).nominal_times
    fastest = town.network.distances(nominal, town.depots)[town.destination]
    for method in ("certified", "multistart", "dca"):
        gap = optimistic_gap(*town.question(0.0), method=method)
        assert gap.status == "exact"
        assert gap.lower_s == pytest.approx(town.primary.time_s(nominal) - fastest, abs=1e-9)
        gap.verify(*town.question(0.0))


@pytest.mark.parametrize("seed", range(15))
def test_rotating_the_embeddings_changes_nothing(seed: int) -> None:
    town = random_town(seed)
    size = town.embeddings.shape[1]
    turn = ortho_group.rvs(size, random_state=seed) if size > 1 else np.array([[-1.0]])
    other = Town(town.network, town.embeddings @ turn, town.depots, town.destination, town.primary)
    ours, theirs = (optimistic_gap(*t.question(0.3)) for t in (town, other))
    assert ours.lower_s == pytest.approx(theirs.lower_s, abs=2e-6)
    assert ours.secondary == theirs.secondary or ours.lower_s == pytest.approx(
        town.advantage(theirs.secondary.edges, 0.3), abs=2e-6
    )


@pytest.mark.parametrize("seed", range(15))
def test_relabelling_nodes_and_edges_changes_nothing(seed: int) -> None:
    town, rng = random_town(seed), np.random.default_rng(seed)
    nodes, edges = rng.permutation(town.network.num_nodes), rng.permutation(town.network.num_edges)
    network = RoadNetwork.from_arrays(
        nodes[town.network.tail[edges]], nodes[town.network.head[edges]],
        town.network.length_m[edges],
    )  # fmt: skip
    where = np.argsort(edges)
    primary = network.path(where[town.primary.edges])
    depots = [int(nodes[depot]) for depot in town.depots]
    gap = optimistic_gap(
        network, ScenarioSet(town.embeddings[edges], 0.3), depots,
        int(nodes[town.destination]), primary,
    )  # fmt: skip
    assert gap.lower_s == pytest.approx(optimistic_gap(*town.question(0.3)).lower_s, abs=2e-6)


@pytest.mark.parametrize("seed", range(15))
def test_pairs_of_depots_agree_with_all_at_once(seed: int) -> None:
    town = random_town(seed, depots=4)
    together = optimistic_gap(*town.question(0.3))
    pairs = pairwise_gap(*town.question(0.3))
    assert pairs.status == together.status == "exact"
    assert pairs.lower_s == pytest.approx(together.lower_s, abs=2e-6)
    for threshold_s in (together.lower_s / 2, together.lower_s + 1):
        decided = pairwise_gap(*town.question(0.3), threshold_s=threshold_s)
        assert decided.worth_sending is bool(together.lower_s > threshold_s)
        assert len(decided.pairs) == 6
        for pair, gap in decided.pairs:
            question = town.question(0.3)
            gap.verify(question[0], question[1], pair, question[3], question[4])


def test_pairs_of_depots_need_not_agree_by_algorithm_2() -> None:
    """All depots at once: DCA stops at a local maximum that a single pair avoids."""
    question = random_town(3, depots=4).question(0.3)
    together = optimistic_gap(*question, method="dca").lower_s
    pairs = pairwise_gap(*question, method="dca")
    assert {gap.method for _, gap in pairs.pairs} == {"dca"}
    exact = optimistic_gap(*question).lower_s
    assert pairs.lower_s == pytest.approx(exact, abs=1e-5)
    assert together < exact - 10.0


def test_pairs_without_a_way_are_left_out() -> None:
    network = RoadNetwork.from_arrays([0, 0, 1], [3, 3, 3], [1.0] * 3, num_nodes=6)
    scenarios = ScenarioSet(np.diag([3.0, 3.1, 3.2]), 0.2)
    question = (network, scenarios, [0, 1, 4, 5], 3, network.path([0]))
    pairs = pairwise_gap(*question)
    assert [pair for pair, _ in pairs.pairs] == [(0, 1)]
    assert pairs.lower_s == pytest.approx(optimistic_gap(*question).lower_s, abs=1e-6)
    alone = pairwise_gap(network, scenarios, [1, 4], 3, network.path([2]))
    assert [pair for pair, _ in alone.pairs] == [(1,)]
    with pytest.raises(UnreachableError, match="node 3 cannot be reached from node 4 or node 5"):
        pairwise_gap(network, scenarios, [4, 5], 3, network.path([0]))
