"""From trips to a model in one call: what is kept, what is measured, what is promised."""

from collections.abc import Sequence
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
    TrainingProgress,
    TrainingRun,
    TrainingSettings,
    TrainParams,
    train,
)
from ideal_dispatch.learning.checkpoint import OLD_CHECKPOINT, checkpoint_name
from ideal_dispatch.learning.training import default_split
from ideal_dispatch.toml_tables import built
from tests.planted import planted_trips
from tests.unit.learning.worlds import SMALL, contexts, town, trainer, trips

NETWORK = town()
TRIPS = trips(NETWORK, 60)
PARAMS = TrainParams(SMALL, epochs=3, batch_size=16)
RADIUS = RadiusParams(epochs=20)
ROWS = np.arange(60)


def _run(table: Trips = TRIPS, params: TrainParams = PARAMS, **changes: Any) -> TrainingRun:
    return train(NETWORK, table, TrainingSettings(params, RADIUS), jobs=1, **changes)


@pytest.fixture(scope="module")
def run() -> TrainingRun:
    return _run()


def test_same_seed_same_model(run: TrainingRun, tmp_path: Path) -> None:
    run.model.save(tmp_path / "a")
    _run().model.save(tmp_path / "b")
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    assert first == second
    assert _run(params=replace(PARAMS, seed=1)).model.checksum != run.model.checksum


def test_what_the_model_tells_about_itself(run: TrainingRun) -> None:
    details = run.model.details
    parts = run.split
    sizes = [part.size for part in (parts.train, parts.validation, parts.test)]
    data = details["data"]
    assert [data[name] for name in ("train", "validation", "test")] == sizes == [42, 6, 12]
    assert (data["split"], data["scored_on"], data["first"]) == ("trip", "test", None)
    assert data["checksum"] == TRIPS.checksum
    assert built(TrainParams, details["params"], "") == PARAMS
    assert len(details["history"]) == len(run.history) == 3
    (own,) = details["scores"]
    errors = np.abs(run.predicted_s - TRIPS.observed_s)[parts.test]
    assert own["mae_s"] == pytest.approx(errors.mean())
    covered = (run.radii.upper <= run.predicted_radii)[parts.test].mean()
    assert details["radius"]["coverage"] == pytest.approx(covered) == run.coverage(parts.test)
    assert set(details["versions"]) >= {"python", "numpy", "torch", "ideal-dispatch"}


def test_predictions_are_those_of_the_model(run: TrainingRun) -> None:
    for i in (0, 20, 59):
        forecast = run.model.forecast(TRIPS.contexts[i], NETWORK, run.radii.paths[i])
        path = NETWORK.shortest_path(
            forecast.nominal_times, int(TRIPS.origin[i]), int(TRIPS.destination[i])
        )
        drive_s = path.time_s(forecast.nominal_times)
        assert run.predicted_s[i] == drive_s + run.model.trip_constant_s > drive_s
        assert run.predicted_radii[i] == pytest.approx(forecast.radius, rel=1e-5)


def test_killed_and_resumed(run: TrainingRun, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def kill(progress: TrainingProgress) -> None:
        if progress.epoch is not None and progress.epoch.epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        _run(folder=tmp_path, watch=kill)
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint_name()]
    seen: list[TrainingProgress] = []
    resumed = _run(folder=tmp_path, resume=True, watch=seen.append)
    assert resumed.model.checksum == run.model.checksum
    assert [now.stage for now in seen] == ["training", "target radii", "target radii"]
    assert seen[0].done == seen[-1].done == 1.0
    finished = _run(folder=tmp_path, resume=True)
    assert finished.model.checksum == run.model.checksum, "nothing was left to train"
    with pytest.raises(InputError, match="made with other trips, network or parameters"):
        _run(folder=tmp_path, resume=True, params=replace(PARAMS, seed=1))
    anew = _run(folder=tmp_path, params=replace(PARAMS, seed=1))
    assert anew.model.checksum != run.model.checksum, "without --resume it starts anew"


def test_a_checkpoint_of_an_older_version_is_told(tmp_path: Path) -> None:
    (tmp_path / OLD_CHECKPOINT).write_bytes(b"of version 0.1")
    with pytest.raises(InputError, match="a checkpoint of version 0.1, .*; delete it to start"):
        _run(folder=tmp_path, resume=True)


def test_resume_without_a_checkpoint_starts(run: TrainingRun, tmp_path: Path) -> None:
    assert _run(folder=tmp_path, resume=True).model.checksum == run.model.checksum


@pytest.mark.parametrize(
    ("parts", "scored_on", "heading"),
    [
        (Split(ROWS[:40], ROWS[40:50], ROWS[50:]), "test", "on test trips"),
        (Split(ROWS[:40], ROWS[:0], ROWS[40:]), "test", "on test trips"),
        (Split(ROWS[:40], ROWS[40:], ROWS[:0]), "validation", "on held-out trips"),
        (Split(ROWS, ROWS[:0], ROWS[:0]), "train", "on its own training trips"),
        (Split(ROWS[:2], ROWS[2:3], ROWS[3:4]), "test", "on test trips"),
    ],
)
def test_parts_may_be_empty(parts: Split, scored_on: str, heading: str, tmp_path: Path) -> None:
    run = _run(parts=parts)
    assert run.model.details["data"]["scored_on"] == scored_on
    run.model.save(tmp_path)
    assert f"## Accuracy {heading}" in (tmp_path / "card.md").read_text()
    if parts.validation.size < 4:
        assert any("held-out trips are too few" in line for line in run.warnings)


def test_trips_of_known_days_are_split_by_day() -> None:
    at = np.datetime64("2024-01-01", "s") + ROWS * np.timedelta64(8, "h")
    by_day = replace(TRIPS, at=at)
    parts = default_split(by_day, TrainingSettings())
    days = [set(at[part].astype("M8[D]").tolist()) for part in (parts.train, parts.test)]
    assert not days[0] & days[1]
    run = _run(by_day)
    data = run.model.details["data"]
    assert (data["split"], data["first"], data["last"]) == ("day", "2024-01-01", "2024-01-20")
    there = replace(by_day, provenance={"time_zone": "America/New_York"})
    data = _run(there).model.details["data"]
    assert data["first"] == "2023-12-31", "the city's own day, not that of UTC"


def test_fit_takes_single_trips_and_contexts() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    given = [
        Trip(int(o), int(d), Context(start + timedelta(hours=i)), float(t))
        for i, (o, d, t) in enumerate(
            zip(TRIPS.origin, TRIPS.destination, TRIPS.observed_s, strict=True)
        )
    ]

    def fit(trips: Trips | Sequence[Trip], contexts: Any = None) -> Model:
        return ideal.fit(NETWORK, trips, contexts, params=PARAMS, radius=RADIUS)

    model = fit(given)
    assert model.checksum == fit(Trips.of(given)).checksum
    rows = contexts(60, np.random.default_rng(0))
    by_rows = fit(given, rows)
    assert by_rows.checksum != model.checksum
    by_contexts = fit(Trips.of(given), [trip.context for trip in given])
    assert by_contexts.checksum == model.checksum
    with pytest.raises(InputError, match="contexts: expected one per trip, 60, got 59"):
        fit(given, rows[:59])
    with pytest.raises(InputError, match="contexts: expected 60 × 27 values, got 60 × 5"):
        fit(given, rows[:, :5])


def test_trips_of_another_network_are_refused() -> None:
    with pytest.raises(InputError, match="the trips belong to another network"):
        train(town(1), TRIPS)
    with pytest.raises(InputError, match="cannot be split|give more trips"):
        train(NETWORK, TRIPS.select([]))


def test_the_papers_algorithm_runs_as_printed() -> None:
    run = _run(params=TrainParams.paper(epochs=3))
    assert run.model.architecture.head == "plain"
    assert len(run.history) == 3


def test_threads_of_torch_are_given_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    _run()
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
