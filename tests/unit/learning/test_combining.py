"""Several networks made one: what their average says, and what a student is taught."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning import TrainedModel, TrainingProgress, TrainParams, fit
from ideal_dispatch.learning.baselines import TripTable, best_on, boostings
from ideal_dispatch.learning.combining import averaged, lesson, member_params, student_params
from ideal_dispatch.learning.encoders import RepresentationNetwork, export
from ideal_dispatch.learning.lower_level import LowerLevel
from ideal_dispatch.learning.trainer import Trainer
from tests.unit.learning.worlds import SMALL, town, trainer, trips

NETWORK = town()
TRIPS = trips(NETWORK, 60)
PARAMS = TrainParams(SMALL, epochs=2, batch_size=16)


def _members(count: int = 3) -> list[Trainer]:
    made = [trainer(NETWORK, TRIPS, replace(PARAMS, seed=seed), held_out=10)
            for seed in range(count)]  # fmt: skip
    for one in made:
        one.run()
        one.finish()
    return made


def _log_times(network: RepresentationNetwork, made: Trainer) -> Any:
    edges = network.edge_part().detach()
    return np.log(network.all_times(made.lower_level.contexts, edges))


def test_an_average_has_the_geometric_mean_of_the_times() -> None:
    made = _members()
    for one in made:  # far from all bounds, so that averaging is all that happens
        one.model.least_s.fill_(1e-6)
        one.model.greatest_s.fill_(1e9)
    whole = averaged([one.model for one in made])
    apart = [_log_times(one.model, made[0]) for one in made]
    assert np.ptp(apart, axis=0).max() > 0.01, "the members differ"
    np.testing.assert_allclose(_log_times(whole, made[0]), np.mean(apart, axis=0), atol=2e-6)
    constants = [one.model.constant_s().item() for one in made]
    assert min(constants) < whole.constant_s().item() < max(constants)
    assert whole.static[0].out_features == 3 * SMALL.width
    assert whole.architecture.dimension == SMALL.dimension, "embeddings are no longer than before"


def test_the_exported_average_says_the_same() -> None:
    made = _members()
    whole, data = averaged([one.model for one in made]), made[0].data
    model = export(whole, data)
    theirs = np.exp(_log_times(whole, made[0]))
    for i in (0, 7, 33):
        forecast = model.forecast(TRIPS.contexts[i], NETWORK)
        np.testing.assert_allclose(
            forecast.nominal_times, theirs[made[0].lower_level.group[i]], rtol=1e-5
        )
        assert forecast.embeddings.shape == (NETWORK.num_edges, SMALL.dimension)
    assert model.trip_constant_s == pytest.approx(whole.constant_s().item(), rel=1e-6)


def test_members_differ_in_their_seeds_alone() -> None:
    params = replace(PARAMS, combine="distil", members=4, seed=3)
    made = member_params(params)
    assert len({one.seed for one in made}) == 4
    assert [replace(one, seed=3, combine="distil") for one in made] == [params] * 4
    assert member_params(params) == made
    assert not {one.seed for one in member_params(replace(params, seed=4))} & {
        one.seed for one in made
    }
    assert student_params(replace(params, epochs=5)).epochs == 3


def test_a_lesson_has_the_real_trips_and_what_the_teachers_expect_of_others() -> None:
    (made,) = _members(1)
    data = made.data
    taught = lesson(data, made.model, seed=5)
    n = len(TRIPS)
    np.testing.assert_array_equal(taught.trips.observed_s[:n], TRIPS.observed_s)
    np.testing.assert_array_equal(taught.contexts[:n], data.contexts)
    np.testing.assert_array_equal(taught.validation, data.validation)
    others = taught.train[taught.train >= n]
    assert others.size > 4000
    np.testing.assert_array_equal(np.sort(taught.train[taught.train < n]), data.train)
    known = TRIPS.select(data.train)
    ends = set(zip(known.origin.tolist(), known.destination.tolist(), strict=True))
    given = taught.trips.select(others)
    assert set(zip(given.origin.tolist(), given.destination.tolist(), strict=True)) == ends
    moments = {row.tobytes() for row in np.nan_to_num(known.contexts, nan=-1.0)}
    assert {row.tobytes() for row in np.nan_to_num(given.contexts, nan=-1.0)} == moments
    forest = best_on(
        boostings(located=False),
        TripTable.of(NETWORK, known),
        TripTable.of(NETWORK, TRIPS.select(data.validation)),
    )
    drives_s = LowerLevel(NETWORK, given, taught.contexts[others]).solve(
        made.model, np.arange(others.size)
    )[1]
    log_network = np.log(drives_s + made.model.constant_s().item())
    log_forest = np.log(forest.predict(TripTable.of(NETWORK, given)))
    np.testing.assert_allclose(
        np.log(given.observed_s), 0.4 * log_forest + 0.6 * log_network, atol=1e-9
    )
    again = lesson(data, made.model, seed=5)
    np.testing.assert_array_equal(again.trips.observed_s, taught.trips.observed_s)


def _run(combine: Any, **options: Any) -> TrainedModel:
    params = replace(PARAMS, combine=combine, members=2)
    return fit(NETWORK, TRIPS, params=params, parts="trip", **options)


@pytest.mark.parametrize("combine", ["average", "distil"])
def test_killed_in_any_network_and_resumed(combine: Any, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    seen: list[TrainingProgress] = []
    whole = _run(combine, watch=seen.append)
    epochs = sum(progress.epoch is not None for progress in seen)
    assert epochs == (4 if combine == "average" else 5), "two networks, and half as long a student"
    assert {p.stage for p in seen} >= {"network 1 of 2", "network 2 of 2"}
    for last in (1, 3):  # in the first network, in the second or the student
        folder = tmp_path / f"{last}"
        folder.mkdir()
        left = [last]

        def kill(progress: TrainingProgress, left: list[int] = left) -> None:
            left[0] -= progress.epoch is not None
            if progress.epoch is not None and left[0] == 0:
                raise Killed

        with pytest.raises(Killed):
            _run(combine, folder=folder, watch=kill)
        resumed = _run(combine, folder=folder, resume=True)
        assert resumed.model.checksum == whole.model.checksum
    assert whole.model.checksum != _run("none").model.checksum
    assert np.isfinite(whole.predicted_s).all()
    assert len(whole.history) == (2 if combine == "average" else 1)


def test_a_plain_head_cannot_be_averaged() -> None:
    with pytest.raises(InputError, match="^combine"):
        TrainParams.paper(combine="distil")
