"""The shape of the scenario set is rich by construction, and lengths are what was learned.

c = ‖φ‖² does not change when embeddings turn, so the loss cannot find their
directions. The polar head fills all of ℝᵈ before and after training; the plain
head's rank is what the initialisation happened to give.
"""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork, ScenarioSet
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.shape import describe_shape
from tests.unit.learning.worlds import trainer, trips


@pytest.fixture(scope="module")
def city() -> RoadNetwork:
    return harbour_city().network


@pytest.mark.parametrize("features", ["attributes", "location"])
@pytest.mark.parametrize("seed", [0, 1])
def test_polar_sets_are_rich_from_the_start(city: RoadNetwork, features: str, seed: int) -> None:
    table = trips(city, 40)
    shape = Architecture(features)  # type: ignore[arg-type]
    made = trainer(city, table, TrainParams(shape, seed=seed))
    forecast = export(made.model, made.data).forecast(table.contexts[0], city)
    assert forecast.scenario_set.effective_rank >= 0.7 * shape.dimension
    paths = city.shortest_paths(forecast.nominal_times, table.origin, table.destination)
    measured = describe_shape(city, forecast.scenario_set, paths)
    assert measured.concentration < 0.9, "a scenario can do more than rescale whole trips"


def test_a_polar_set_stays_rich_while_training(grid: RoadNetwork) -> None:
    table = trips(grid, 150)
    made = trainer(grid, table, TrainParams(Architecture("attributes"), epochs=3))
    made.run()
    sets = export(made.finish(), made.data).scenario_set(table.contexts[0], grid)
    assert sets.effective_rank >= 0.7 * sets.dimension


def test_a_plain_set_says_how_poor_it_is(city: RoadNetwork) -> None:
    table = trips(city, 40)
    made = trainer(city, table, TrainParams(Architecture("attributes", "plain", crossings=False)))
    sets = export(made.model, made.data).scenario_set(table.contexts[0], city)
    assert 1.0 <= sets.effective_rank < 0.7 * sets.dimension


def test_the_loss_does_not_see_directions(grid: RoadNetwork) -> None:
    rng = np.random.default_rng(0)
    embeddings = rng.standard_normal((grid.num_edges, 4))
    turned = embeddings @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    np.testing.assert_allclose(
        ScenarioSet(turned, 0.0).nominal_times, ScenarioSet(embeddings, 0.0).nominal_times
    )


def test_shape_counts_what_it_says() -> None:
    """Two roads of equal direction, one across; trips that share nothing, half, all."""
    network = RoadNetwork.from_arrays(
        [0, 1, 2, 0], [1, 2, 3, 3], [100.0] * 4, [0, 0.001, 0.002, 0.003], [0.0] * 4
    )
    sets = ScenarioSet(np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 1.0]]), 0.1)
    paths = [network.path([0, 1]), network.path([1, 2]), network.path([3])]
    shape = describe_shape(network, sets, paths)
    assert shape.dimension == 2
    assert shape.effective_rank == pytest.approx(2.0, rel=0.1)
    # by overlap: {0,1} and {1,2} share half of the shorter: ⟨G, G′⟩ = 5 · 1 over 5 · √82
    assert shape.by_overlap[3] == pytest.approx(1 / np.sqrt(82))
    # none: {0,1} with {3} is at right angles, {1,2} with {3} at 9 / √82
    assert shape.by_overlap[0] == pytest.approx((0 + 9 / np.sqrt(82)) / 2)
    assert np.isnan(shape.by_overlap[[1, 2, 4]]).all()
    assert shape.concentration == pytest.approx(np.median([1.0, np.sqrt(82) / 10, 1.0]))


def test_without_coordinates_no_edge_is_near_another() -> None:
    network = RoadNetwork.from_arrays([0, 1, 2], [1, 2, 0], [100.0] * 3)
    sets = ScenarioSet(np.eye(3), 0.1)
    shape = describe_shape(network, sets, [network.path([0]), network.path([1, 2])])
    assert np.isnan(shape.by_distance).all()
    assert shape.by_overlap[0] == pytest.approx(0.0)
    lonely = describe_shape(network, sets, [network.path([0])])
    assert np.isnan(lonely.concentration)
