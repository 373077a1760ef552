"""Predicted times and target radii of many trips."""

from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import pytest

from ideal_dispatch import Model, RoadNetwork, Trips, target_radius
from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.export import export
from ideal_dispatch.learning.trip_radii import TripRadii, trip_radii
from tests.unit.learning.worlds import town, trainer, trips


@pytest.fixture(scope="module")
def world() -> tuple[Model, RoadNetwork, Trips]:
    network = town(2)
    table = trips(network, 90, distinct=12)
    alone = np.arange(90) == 7
    table = replace(table, destination=np.where(alone, table.origin, table.destination))
    made = trainer(network, table)
    return export(made.model, made.problem), network, table


def _same(ours: TripRadii, theirs: TripRadii) -> None:
    for name in ("predicted_s", "lower", "upper", "contexts", "features"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.paths == theirs.paths


def test_radii_are_those_of_single_trips_and_proved(
    world: tuple[Model, RoadNetwork, Trips],
) -> None:
    model, network, table = world
    found = trip_radii(model, network, table)
    late = 0
    for i in range(len(table)):
        forecast = model.forecast(table.contexts[i], network)
        origin, destination = int(table.origin[i]), int(table.destination[i])
        observed = float(table.observed_s[i])
        path = network.shortest_path(forecast.nominal_times, origin, destination)
        assert found.paths[i] == path
        assert found.predicted_s[i] == path.time_s(forecast.nominal_times)
        np.testing.assert_array_equal(found.contexts[i], forecast.context_representation)
        single = target_radius(network, forecast.embeddings, origin, destination, observed)
        single.verify(network, forecast.embeddings, origin, destination, observed)
        if i == 7:
            assert found.lower[i] == found.upper[i] == single.upper == np.inf
            continue
        assert (single.upper == 0) == (found.upper[i] == 0) == (observed <= found.predicted_s[i])
        assert found.lower[i] <= single.upper * (1 + 1e-9)
        assert single.lower <= found.upper[i] * (1 + 1e-9)
        assert found.upper[i] == pytest.approx(single.upper, rel=1e-5)
        late += single.upper > 0
    assert 20 < late < 80, "some trips are late and some are not"


def test_answers_do_not_depend_on_how_work_is_shared(
    world: tuple[Model, RoadNetwork, Trips],
) -> None:
    model, network, table = world
    alone = trip_radii(model, network, table, jobs=1)
    _same(trip_radii(model, network, table, jobs=3), alone)
    seen: list[float] = []
    with joblib.parallel_config("loky", n_jobs=2):
        _same(trip_radii(model, network, table, report=seen.append), alone)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = trip_radii(model, network, table.select(order))
    np.testing.assert_allclose(shuffled.upper, alone.upper[order], rtol=1e-12)


def test_equal_contexts_share_a_forecast(
    world: tuple[Model, RoadNetwork, Trips], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, network, table = world
    asked, forecast = [], Model.forecast

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return forecast(*arguments)

    monkeypatch.setattr(Model, "forecast", counted)
    trip_radii(model, network, table, jobs=1)
    distinct = len({row.tobytes() for row in table.contexts})
    assert len(asked) <= distinct + 4, "one per context, one per task, one at the start"


def test_no_trips(world: tuple[Model, RoadNetwork, Trips]) -> None:
    model, network, table = world
    with pytest.raises(InputError, match="no trips: there is nothing to solve"):
        trip_radii(model, network, table.select([]))


@pytest.mark.slow
def test_dask_shares_the_work(world: tuple[Model, RoadNetwork, Trips]) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="the cluster extra is not installed: pip install dask distributed"
    )
    model, network, table = world
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as here,
        distributed.Client(here),
        joblib.parallel_config("dask"),
    ):
        shared = trip_radii(model, network, table)
    _same(shared, trip_radii(model, network, table, jobs=1))
