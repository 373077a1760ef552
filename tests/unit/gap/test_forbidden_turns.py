"""The gap where turns are forbidden: exact over legal paths, legal itself, and verified."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch import optimistic_gap
from ideal_dispatch.errors import CertificateError
from ideal_dispatch.gap.optimistic_gap import Method, pairwise_gap
from tests.theory.small_towns import Town, random_town

RADIUS = 0.05


def _forbidding(seed: int) -> Town:
    """A random town that forbids turns of two and three edges, its best second path's first."""
    town, rng = random_town(seed), np.random.default_rng(seed)
    best = optimistic_gap(*town.question(RADIUS)).secondary.edges[:2].tolist()
    network, turns = town.network, [tuple(best)]
    for _ in range(6):
        turn = [int(rng.integers(network.num_edges))]
        for _ in range(int(rng.integers(1, 3))):
            turn.append(int(rng.choice(np.flatnonzero(network.tail == network.head[turn[-1]]))))
        turns.append(tuple(turn))
    turned = replace(network, forbidden_turns=tuple(turn for turn in turns if len(turn) > 1))
    return replace(town, network=turned)


def _legal(
    town: Town, node: int, left_s: float, driven: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Every way to the destination that makes no forbidden turn, within some nominal seconds."""
    if node == town.destination:
        yield driven
        return
    for edge in np.flatnonzero(town.network.tail == node).tolist():
        longer, after_s = (*driven, edge), left_s - float((town.embeddings[edge] ** 2).sum())
        ends = any(longer[-len(turn) :] == turn for turn in town.network.forbidden_turns)
        if after_s >= 0 and not ends:
            yield from _legal(town, int(town.network.head[edge]), after_s, longer)


SEEDS = range(10)  # in later ones nothing is left to reach, or very many ways


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gap_is_that_of_all_legal_paths(seed: int) -> None:
    town = _forbidding(seed)
    question, scenarios = town.question(RADIUS), town.scenarios(RADIUS)
    fastest_s = min(
        town.network.distances(scenarios.nominal_times, depot)[town.destination]
        for depot in town.depots
    )
    assert np.isfinite(fastest_s)
    # a slower path than this is slower than the fastest in every scenario
    widest = scenarios.eigenvalue_bounds
    limit_s = 1.001 * fastest_s * widest.upper / widest.lower
    paths = [path for depot in town.depots for path in _legal(town, depot, limit_s)]
    exact = max(town.advantage(np.array(path, np.int32), RADIUS) for path in paths)
    gap = optimistic_gap(*question)
    assert gap.status == "exact"
    assert gap.lower_s == pytest.approx(exact, abs=1e-6)
    assert town.network.forbidden_turn(gap.secondary) is None
    gap.verify(*question)
    methods: tuple[Method, ...] = ("multistart", "dca")
    for method in methods:
        estimate = optimistic_gap(*question, method=method)
        assert estimate.lower_s <= exact + 1e-6
        assert town.network.forbidden_turn(estimate.secondary) is None
        estimate.verify(*question)
    assert pairwise_gap(*question).lower_s == pytest.approx(exact, abs=1e-6)


def test_turns_matter_in_these_towns() -> None:
    smaller = 0
    for seed in SEEDS:
        town = _forbidding(seed)
        free = replace(town, network=town.network.ignoring_turns)
        with_turns, without = (
            optimistic_gap(*one.question(RADIUS)).lower_s for one in (town, free)
        )
        assert with_turns <= without + 1e-6
        smaller += with_turns < without - 1e-3
    assert smaller >= len(SEEDS) // 3


def test_a_second_path_with_a_forbidden_turn_is_refused() -> None:
    town = next(
        town
        for town in map(_forbidding, SEEDS)
        if town.network.forbidden_turn(optimistic_gap(*_free(town).question(RADIUS)).secondary)
    )
    gap = optimistic_gap(*_free(town).question(RADIUS))
    gap.verify(*_free(town).question(RADIUS))
    with pytest.raises(CertificateError, match="breaks or makes a forbidden turn at edge"):
        gap.verify(*town.question(RADIUS))


def _free(town: Town) -> Town:
    return replace(town, network=town.network.ignoring_turns)


def test_the_primary_may_have_made_a_forbidden_turn() -> None:
    """It was sent by somebody else; only its times matter."""
    town = _forbidding(SEEDS[0])
    edges = town.primary.edges.tolist()
    turned = replace(town.network, forbidden_turns=(tuple(edges[:2]),))
    town = replace(town, network=turned)
    assert turned.forbidden_turn(town.primary) is not None
    gap = optimistic_gap(*town.question(RADIUS))
    times = town.scenarios(RADIUS).times(gap.metric)
    expected_s = town.primary.time_s(times) - gap.secondary.time_s(times)
    assert gap.lower_s == pytest.approx(expected_s)
    gap.verify(*town.question(RADIUS))
