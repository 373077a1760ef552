"""Learning from trips whose routes are unseen finds the times that were planted."""

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork, Trips
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.baselines import TripTable, constant
from ideal_dispatch.learning.encoders import export
from tests.unit.learning.worlds import contexts, trainer

HELD_OUT = 200
TIERS = np.digitize(np.arange(14), [5, 10])
"""Three kinds of roads by class: fast, middling and slow for their speed limit."""


def planted_times_s(network: RoadNetwork, hour: float) -> FloatArray:
    """Seconds per edge: a factor of its tier, and rush hours that fast roads suffer most from."""
    tier = TIERS[network.road_class]
    rush = np.exp(-(((hour - 17) / 4) ** 2))
    times: FloatArray = (
        network.free_flow_times_s
        * np.array([1.0, 1.5, 2.2])[tier]
        * (1 + np.array([0.7, 0.5, 0.3])[tier] * rush)
    )
    return times


def planted(network: RoadNetwork, count: int, seed: int) -> tuple[Trips, FloatArray]:
    """Trips with noise of 10 % on their times, and the times without it."""
    rng = np.random.default_rng(seed)
    rows = contexts(120, rng)[rng.integers(120, size=count)]
    origin = rng.integers(network.num_nodes, size=count)
    destination = (origin + rng.integers(1, network.num_nodes, count)) % network.num_nodes
    times = np.array([planted_times_s(network, hour) for hour in rows[:, 5]])
    paths = network.shortest_paths(times, origin, destination)
    exact = np.array([path.time_s(row) for path, row in zip(paths, times, strict=True)])
    observed = exact * np.exp(0.1 * rng.standard_normal(count))
    return Trips(origin.astype(np.int32), destination.astype(np.int32), observed, rows), exact


def _check_recovery(network: RoadNetwork, trips: int, params: TrainParams, within: float) -> None:
    """Held-out errors are ``within`` that of the best constant; tiers and hours are found."""
    table, exact = planted(network, trips, seed=1)
    made = trainer(network, table, params, held_out=HELD_OUT)
    made.run()
    model = export(made.finish(), made.data)
    learn, rows = made.data.train, made.data.validation
    error = np.abs(made.predict(rows) - exact[rows]).mean()
    learned_from, judged_by = (TripTable.of(network, table.select(part)) for part in (learn, rows))
    plain = constant().fit(learned_from).predict(judged_by)
    assert error < within * np.abs(plain - exact[rows]).mean()
    noise = np.abs(table.observed_s - exact)[rows].mean()
    assert error < noise, "the truth is closer than any trip it was learned from"
    hours = table.contexts[:, 5]
    tier = TIERS[network.road_class]
    found: dict[int, FloatArray] = {}
    truth: dict[int, FloatArray] = {}
    for hour in (3, 17):
        forecast = model.forecast(table.contexts[hours == hour][0], network)
        for times, ratios in (
            (forecast.nominal_times, found),
            (planted_times_s(network, hour), truth),
        ):
            per_edge = times / network.free_flow_times_s
            ratios[hour] = np.array([np.median(per_edge[tier == kind]) for kind in range(3)])
    for hour in (3, 17):
        assert (np.diff(found[hour]) > 0.15).all(), "roads keep the order of their slowness"
        np.testing.assert_allclose(found[hour], truth[hour], rtol=0.25)
    assert (found[17] > found[3]).all(), "and rush hours theirs"


def test_planted_times_are_found_again(grid: RoadNetwork) -> None:
    params = TrainParams(Architecture("attributes", width=32), epochs=12, weight_decay=1e-4)
    _check_recovery(grid, 1200, params, 0.35)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [Architecture("attributes"), Architecture("location"), Architecture(head="plain")]
)
def test_planted_times_are_found_again_in_a_city(shape: Architecture) -> None:
    _check_recovery(harbour_city().network, 2000, TrainParams(shape, weight_decay=1e-4), 0.35)
