"""From trips to a model in one call: what is kept, what is measured, what is promised."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ideal_dispatch as ideal
from ideal_dispatch import Context, Model, RoadNetwork, Trip, Trips
from ideal_dispatch.errors import InputError
from ideal_dispatch.learning import (
    RadiusParams,
    Split,
    TrainedModel,
    TrainingProgress,
    TrainParams,
    fit,
)
from ideal_dispatch.learning.checkpoint import checkpoint_name
from ideal_dispatch.learning.splits import default_split
from ideal_dispatch.toml_tables import built
from tests.planted import planted_trips
from tests.unit.learning.worlds import SMALL, contexts, town, trainer, trips

NETWORK = town()
TRIPS = trips(NETWORK, 60)
PARAMS = TrainParams(SMALL, epochs=3, batch_size=16)
RADIUS = RadiusParams(epochs=20)
ROWS = np.arange(60)


def _fit(table: Any = TRIPS, params: TrainParams = PARAMS, **changes: Any) -> TrainedModel:
    return fit(NETWORK, table, params=params, radius=RADIUS, jobs=1, **changes)


@pytest.fixture(scope="module")
def made() -> TrainedModel:
    return _fit()


def test_same_seed_same_model(made: TrainedModel, tmp_path: Path) -> None:
    made.model.save(tmp_path / "a")
    _fit().model.save(tmp_path / "b")
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    assert first == second
    assert _fit(params=replace(PARAMS, seed=1)).checksum != made.checksum


def test_the_result_is_a_model_with_scores_and_history(made: TrainedModel) -> None:
    details, parts = made.details, made.split
    data = details["data"]
    sizes = [part.size for part in parts.parts]
    assert [data[name] for name in ("train", "validation", "test")] == sizes == [42, 6, 12]
    assert (data["split"], data["scored_on"], data["first"]) == ("trip", "test", None)
    assert data["checksum"] == TRIPS.checksum
    assert built(TrainParams, details["params"], "") == PARAMS
    assert len(details["history"]) == len(made.history) == details["kept_epoch"] == 3
    assert details["held_out_for"] == ["the radius"]
    errors = np.abs(made.predicted_s - TRIPS.observed_s)[parts.test]
    assert details["scores"][0]["mae_s"] == made.scores.mae_s == pytest.approx(errors.mean())
    covered = (made.radii.upper <= made.predicted_radii)[parts.test].mean()
    assert details["radius"]["coverage"] == pytest.approx(covered) == made.coverage(parts.test)
    assert set(details["versions"]) >= {"python", "numpy", "torch", "ideal-dispatch"}
    for plain in (made.model, pickle.loads(pickle.dumps(made))):
        assert type(plain) is Model
        assert plain.checksum == made.checksum
    assert type(made.rescaled(2.0)) is Model
    assert made.rescaled(2.0).base_ratio == 2.0 * made.base_ratio


def test_held_out_trips_may_stop_training_and_choose_the_epoch() -> None:
    params = replace(PARAMS, output="best", patience=1, epochs=9, learning_rate=0.1)
    made = _fit(params=params)
    errors = [epoch.validation_mae_s for epoch in made.history]
    assert made.kept_epoch == np.argmin(errors) + 1 < len(errors) < 9
    assert made.details["held_out_for"] == ["stopping", "choosing the epoch", "the radius"]


def test_predictions_are_those_of_the_model(made: TrainedModel) -> None:
    for i in (0, 20, 59):
        forecast = made.forecast(TRIPS.contexts[i], NETWORK, made.radii.paths[i])
        path = NETWORK.shortest_path(
            forecast.nominal_times, int(TRIPS.origin[i]), int(TRIPS.destination[i])
        )
        drive_s = path.time_s(forecast.nominal_times)
        assert made.predicted_s[i] == drive_s + made.trip_constant_s > drive_s
        assert made.predicted_radii[i] == pytest.approx(forecast.radius, rel=1e-5)


def test_another_radius_leaves_the_times(made: TrainedModel) -> None:
    other = made.with_radius(RadiusParams(loss="mean_absolute", coverage=None, epochs=20))
    assert other.radius_rule.loss == "mean_absolute"
    assert "radius" not in other.details
    both = [model.forecast(TRIPS.contexts[0], NETWORK) for model in (made, other)]
    np.testing.assert_array_equal(both[0].nominal_times, both[1].nominal_times)
    assert both[0].radius != both[1].radius


def test_killed_and_resumed(made: TrainedModel, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def kill(progress: TrainingProgress) -> None:
        if progress.epoch is not None and progress.epoch.epoch == 2:
            raise Killed

    folder = tmp_path / "new" / "model"
    with pytest.raises(Killed):
        _fit(folder=folder, watch=kill)
    assert [path.name for path in folder.iterdir()] == [checkpoint_name()]
    seen: list[TrainingProgress] = []
    resumed = _fit(folder=folder, resume=True, watch=seen.append)
    assert resumed.checksum == made.checksum
    assert [now.stage for now in seen] == ["training", "target radii", "target radii"]
    assert seen[0].done == seen[-1].done == 1.0
    assert _fit(folder=folder, resume=True).checksum == made.checksum, "nothing is left to train"
    other = replace(PARAMS, seed=1)
    with pytest.raises(InputError, match="other trips, network or parameters"):
        _fit(folder=folder, resume=True, params=other)
    assert _fit(folder=folder, params=other).checksum != made.checksum, "starts from the beginning"


def test_resume_without_a_checkpoint_starts(made: TrainedModel, tmp_path: Path) -> None:
    assert _fit(folder=tmp_path, resume=True).checksum == made.checksum


def test_a_training_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    fast = TrainParams(SMALL, epochs=30, learning_rate=1e30)
    for table, params in ((TRIPS.select(ROWS[:2]), PARAMS), (TRIPS, fast)):
        with pytest.raises(ideal.IdealError):
            _fit(table, params, folder=tmp_path / "model")
        assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("parts", "scored_on"),
    [
        (Split(ROWS[:40], ROWS[40:50], ROWS[50:]), "test"),
        (Split(ROWS[:40], ROWS[:0], ROWS[40:]), "test"),
        (Split(ROWS[:40], ROWS[40:], ROWS[:0]), "validation"),
        (Split(ROWS, ROWS[:0], ROWS[:0]), "train"),
        (Split(ROWS[:2], ROWS[2:3], ROWS[3:4]), "test"),
    ],
)
def test_parts_may_be_empty(parts: Split, scored_on: str, tmp_path: Path) -> None:
    made = _fit(parts=parts)
    assert made.details["data"]["scored_on"] == scored_on
    np.testing.assert_array_equal(made.judged, getattr(parts, scored_on))
    made.model.save(tmp_path)
    assert "## Accuracy on" in (tmp_path / "card.md").read_text()
    assert (made.details["radius"]["promised"] is None) == (parts.validation.size < 4)


def test_trips_of_known_days_are_split_by_day() -> None:
    at = np.datetime64("2024-01-01", "s") + ROWS * np.timedelta64(8, "h")
    by_day = replace(TRIPS, at=at)
    parts = default_split(by_day, seed=0)
    days = [set(at[part].astype("M8[D]").tolist()) for part in (parts.train, parts.test)]
    assert not days[0] & days[1]
    data = _fit(by_day).details["data"]
    assert (data["split"], data["first"], data["last"]) == ("day", "2024-01-01", "2024-01-20")
    assert _fit(by_day, parts="trip").details["data"]["split"] == "trip"
    there = replace(by_day, provenance={"time_zone": "America/New_York"})
    data = _fit(there).details["data"]
    assert data["first"] == "2023-12-31", "the city's own day, not that of UTC"


def test_fit_takes_single_trips_and_contexts() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    given = [
        Trip(int(o), int(d), Context(start + timedelta(hours=i)), float(t))
        for i, (o, d, t) in enumerate(
            zip(TRIPS.origin, TRIPS.destination, TRIPS.observed_s, strict=True)
        )
    ]
    model = _fit(given)
    assert model.checksum == _fit(Trips.of(given)).checksum
    rows = contexts(60, np.random.default_rng(0))
    assert _fit(given, contexts=rows).checksum != model.checksum
    own = [trip.context for trip in given]
    assert _fit(Trips.of(given), contexts=own).checksum == model.checksum
    for wrong in (rows[:59], rows[:, :5]):
        with pytest.raises(InputError, match="^contexts"):
            _fit(given, contexts=wrong)


def test_trips_of_another_network_are_refused() -> None:
    with pytest.raises(InputError, match="another network"):
        fit(town(1), TRIPS)
    with pytest.raises(InputError):
        fit(NETWORK, TRIPS.select([]))


def test_the_papers_algorithm_runs_as_printed() -> None:
    made = _fit(params=TrainParams.paper(epochs=3))
    assert made.architecture.head == "plain"
    assert made.steps is not None
    assert made.steps.shape == (3, 5)
    assert made.kept_epoch in (1, 2, 3)


def test_threads_of_torch_are_given_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    _fit()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_the_papers_setting_learns(grid: RoadNetwork) -> None:
    """Plain steps are slow, but they must not diverge and must get better."""
    table = planted_trips(grid, 300)
    params = TrainParams.paper(epochs=25, output="last")
    made = trainer(grid, table, params, held_out=60)
    before = made.validation_error_s()
    made.run()
    assert made.history[-1].validation_mae_s < before
    assert made.history[-1].loss < 0.8 * made.history[0].loss
