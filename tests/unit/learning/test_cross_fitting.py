"""Networks that have not seen a day say how long its trips take."""

from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.records import Trips
from tests.planted import planted_trips

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch.learning import TrainingSettings, TrainParams
from ideal_dispatch.learning.cross_fitting import cross_fit

PARAMS = TrainParams(epochs=2, batch_size=16).with_architecture(
    features="attributes", dimension=4, width=8
)
SETTINGS = TrainingSettings(PARAMS)


@pytest.fixture(scope="module")
def trips(grid: RoadNetwork) -> Trips:
    made = planted_trips(grid, 120, seed=5)
    days = np.datetime64("2023-03-01T04:00:00") + np.arange(120) // 8 * np.timedelta64(1, "D")
    return replace(made, at=days)


def test_a_trip_is_predicted_by_who_has_not_seen_it(grid: RoadNetwork, trips: Trips) -> None:
    model, unseen_s = cross_fit(grid, trips, SETTINGS, folds=3)
    assert unseen_s.shape == (120,)
    assert model.details["data"]["last"] == "2023-03-15"
    assert model.details["data"]["checksum"] == trips.checksum
    assert model.scenario_set(trips.contexts[0], grid).radius > 0
    # a day that took ten times as long teaches the others, and not what is said of itself
    day = np.asarray(trips.at) == np.asarray(trips.at)[0]
    changed = replace(trips, observed_s=np.where(day, 3.0 * trips.observed_s, trips.observed_s))
    _, again_s = cross_fit(grid, changed, SETTINGS, folds=3)
    moved = np.abs(again_s / unseen_s - 1.0)
    assert moved[day].max() < moved[~day].max()


def test_training_goes_on_from_checkpoints(
    grid: RoadNetwork, trips: Trips, tmp_path: pytest.TempPathFactory
) -> None:
    one, one_s = cross_fit(grid, trips, SETTINGS, folds=2, folder=str(tmp_path))
    two, two_s = cross_fit(grid, trips, SETTINGS, folds=2, folder=str(tmp_path))
    np.testing.assert_array_equal(one_s, two_s)
    assert one.checksum == two.checksum


def test_few_days_are_refused(grid: RoadNetwork, trips: Trips) -> None:
    with pytest.raises(InputError, match="^1 days"):
        cross_fit(grid, trips.select(np.arange(8)), SETTINGS)
