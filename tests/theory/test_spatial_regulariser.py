"""[IDEAL] equation 7: the regulariser is the printed double sum, and so is its gradient."""

import numpy as np
import pytest
import torch

from ideal_dispatch import RoadNetwork
from ideal_dispatch.learning.trainer import SpatialRegulariser, adjacency
from tests.theory.test_learning_direction import regulariser
from tests.unit.learning.worlds import town

PARALLEL = RoadNetwork.from_arrays(
    [0, 0, 1, 1, 2, 2, 4], [1, 1, 0, 1, 3, 2, 5], [50.0, 80.0, 20.0, 9.0, 400.0, 30.0, 70.0]
)
"""Two parallel edges and their way back, a loop, a road apart with a loop, one all alone."""


def test_pairs_share_an_end_and_are_counted_once_each_way() -> None:
    dense = adjacency(PARALLEL).toarray()
    expected = np.zeros((7, 7))
    for group in ([0, 1, 2, 3], [4, 5]):
        expected[np.ix_(group, group)] = 1.0
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize("network", [PARALLEL, town(0), town(5, nodes=3, roads=20)])
def test_value_and_gradient_of_the_double_sum(network: RoadNetwork) -> None:
    rng = np.random.default_rng(0)
    static = torch.tensor(rng.standard_normal((network.num_edges, 3)), requires_grad=True)
    value = SpatialRegulariser(network)(static)
    brute = regulariser(network, static.detach().numpy())
    assert float(value.detach()) == pytest.approx(brute, rel=1e-6)
    value.backward()  # type: ignore[no-untyped-call]
    assert static.grad is not None
    along = rng.standard_normal(tuple(static.shape))
    here = static.detach().numpy()
    slope = (
        regulariser(network, here + 1e-5 * along) - regulariser(network, here - 1e-5 * along)
    ) / 2e-5
    assert float((static.grad.numpy() * along).sum()) == pytest.approx(slope, rel=1e-5)


def test_embeddings_that_grow_with_the_root_of_length_cost_nothing() -> None:
    network = town(1)
    static = torch.tensor(np.sqrt(network.length_m)[:, None] * [[1.0, -2.0]])
    assert float(SpatialRegulariser(network)(static)) == pytest.approx(0.0, abs=1e-3)


def test_a_single_edge_has_no_neighbour() -> None:
    alone = RoadNetwork.from_arrays([0], [1], [10.0])
    assert float(SpatialRegulariser(alone)(torch.ones(1, 2))) == 0.0
