"""Proposition 3: −G of the shortest paths, and no other path, are subgradients of f₂."""

import numpy as np
import pytest

from ideal_dispatch import ScenarioSet
from ideal_dispatch.arrays import FloatArray
from tests.theory.small_towns import Town, random_town


def _f2(town: Town, scenarios: ScenarioSet, metric: FloatArray) -> float:
    times = scenarios.times(metric)
    return -float(town.network.distances(times, town.depots)[town.destination])


@pytest.mark.parametrize("seed", range(20))
def test_shortest_path_is_a_subgradient(seed: int) -> None:
    town, rng = random_town(seed), np.random.default_rng(seed)
    scenarios = town.scenarios(1.0)
    here, *others = scenarios.sample(30, rng)
    path = town.network.shortest_path(scenarios.times(here), town.depots, town.destination)
    slope = -scenarios.path_matrix(path)
    value = _f2(town, scenarios, here)
    for there in others:
        linear = value + float(np.sum(slope * (there - here)))
        assert _f2(town, scenarios, there) >= linear - 1e-9 * (1 + abs(linear))


@pytest.mark.parametrize("seed", range(20))
def test_only_shortest_paths_are(seed: int) -> None:
    """f₂ is homogeneous, so a longer path's plane lies above it at a smaller multiple of X."""
    town, rng = random_town(seed), np.random.default_rng(seed)
    scenarios = town.scenarios(1.0)
    here = scenarios.sample(1, rng)[0]
    value = _f2(town, scenarios, here)
    for edges in town.all_paths():
        slope = -scenarios.path_matrix(edges)
        above = float(np.sum(slope * (0.5 * here - here))) + value - _f2(town, scenarios, here / 2)
        longer = float(scenarios.times(here)[edges].sum()) + value
        assert above == pytest.approx(longer / 2, abs=1e-9)
        assert longer >= -1e-9


def test_at_a_tie_every_mixture_is_a_subgradient() -> None:
    town = random_town(3)
    embeddings = np.array(town.embeddings)
    path = town.network.shortest_path((embeddings**2).sum(axis=1), town.depots, town.destination)
    # a copy of the shortest path's first edge, turned: as long at X = I, different elsewhere
    first = int(path.edges[0])
    rng = np.random.default_rng(0)
    turned = rng.normal(size=(1, embeddings.shape[1]))
    turned *= np.linalg.norm(embeddings[first]) / np.linalg.norm(turned)
    network = type(town.network).from_arrays(
        np.append(town.network.tail, town.network.tail[first]),
        np.append(town.network.head, town.network.head[first]),
        np.append(town.network.length_m, 1.0),
    )
    scenarios = ScenarioSet(np.vstack([embeddings, turned]), 1.0)
    twin = path.edges.copy()
    twin[0] = network.num_edges - 1
    slopes = [-scenarios.path_matrix(path.edges), -scenarios.path_matrix(twin)]
    other = Town(network, scenarios.embeddings, town.depots, town.destination, path)
    identity = np.eye(scenarios.dimension)
    value = _f2(other, scenarios, identity)
    for share in (0.0, 0.3, 1.0):
        slope = share * slopes[0] + (1 - share) * slopes[1]
        for there in scenarios.sample(20, rng):
            linear = value + float(np.sum(slope * (there - identity)))
            assert _f2(other, scenarios, there) >= linear - 1e-9 * (1 + abs(linear))
