"""Training: the same each time, resumed bit for bit, with one line when it cannot go on."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ideal_dispatch import RoadNetwork, Trips
from ideal_dispatch.errors import FileFormatError, InputError, UnreachableError
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.checkpoint import load_checkpoint, save_checkpoint
from ideal_dispatch.learning.lower_level import TrainingError
from ideal_dispatch.learning.trainer import Epoch, Trainer
from ideal_dispatch.toml_tables import built
from tests.unit.learning.worlds import SMALL, town, trainer, trips, weights

NETWORK = town()
TRIPS = trips(NETWORK, 40)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _trained(**changes: Any) -> Trainer:
    made = trainer(NETWORK, TRIPS, held_out=8, **changes)
    made.run()
    made.finish()
    return made


KINDS: list[dict[str, Any]] = [
    {"optimiser": "adam"},
    {"optimiser": "adam", "loss": "huber", "smoothness": 1e-4, "rarer_paths": False,
     "path_refreshes": 2, "output": "best"},
    {"optimiser": "adam", "perturbation": 0.05, "path_refreshes": 0},
    {"optimiser": "sgd", "perturbation": 0.05, "steps": "power", "batches": "uniform",
     "output": "random"},
    {"optimiser": "sgd", "output": "last", "smoothness": 0.0},
]  # fmt: skip


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (weights(_trained(seed=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("changes", KINDS)
def test_resumed_after_any_epoch_the_result_is_the_same(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    epochs = 4
    whole = trainer(NETWORK, TRIPS, held_out=8, epochs=epochs, **changes)

    def keep(made: Trainer) -> None:
        save_checkpoint(made, tmp_path / f"{len(made.history)}.pt")

    whole.run(keep)
    last, chosen = weights(whole), weights_of(whole.chosen)
    for done in range(1, epochs + 1):
        again = trainer(NETWORK, TRIPS, held_out=8, epochs=epochs, **changes)
        load_checkpoint(again, tmp_path / f"{done}.pt")
        assert len(again.history) == done
        again.run(keep)
        np.testing.assert_array_equal(weights(again), last)
        np.testing.assert_array_equal(weights_of(again.chosen), chosen)
        assert [e.loss for e in again.history] == [e.loss for e in whole.history]


def weights_of(tensors: dict[str, torch.Tensor]) -> Any:
    return torch.cat([tensors[name].flatten() for name in sorted(tensors)]).numpy()


def test_perturbation_is_undone_after_each_step() -> None:
    made = trainer(NETWORK, TRIPS, perturbation=0.1, path_refreshes=0)
    made.optimiser = torch.optim.SGD(made.model.parameters(), lr=0.0)
    made.params = replace(made.params, learning_rate=1e-30)
    before = weights(made)
    made._step(np.arange(8), 0)
    np.testing.assert_allclose(weights(made), before, atol=1e-25)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(_trained(epochs=1), path)
    return path


def test_a_checkpoint_of_another_training_is_refused(checkpoint: Path) -> None:
    other = replace(TRIPS, observed_s=TRIPS.observed_s + 1)
    for made in (
        trainer(NETWORK, TRIPS, held_out=8, epochs=1, seed=9),
        trainer(NETWORK, TRIPS, held_out=8, epochs=1, architecture=replace(SMALL, width=6)),
        trainer(NETWORK, other, held_out=8, epochs=1),
        trainer(NETWORK, TRIPS, held_out=9, epochs=1),
        trainer(town(1), trips(town(1), 40), held_out=8, epochs=1),
    ):
        with pytest.raises(InputError, match="other trips, network or parameters"):
            load_checkpoint(made, checkpoint)


@pytest.mark.parametrize("kind", ["truncated", "text", "folder", "none", "foreign"])
def test_what_is_no_whole_checkpoint(checkpoint: Path, kind: str) -> None:
    whole = checkpoint.read_bytes()
    checkpoint.unlink()
    if kind == "folder":
        checkpoint.mkdir()
    elif kind == "foreign":
        torch.save({"x": torch.zeros(3)}, checkpoint)
    elif kind != "none":
        checkpoint.write_bytes(whole[:-50] if kind == "truncated" else b"weights, all of them")
    with pytest.raises(FileFormatError, match="delete it to start"):
        load_checkpoint(trainer(NETWORK, TRIPS, held_out=8, epochs=1), checkpoint)


def test_a_failed_checkpoint_leaves_the_last(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(_trained(epochs=2), checkpoint)
    assert checkpoint.read_bytes() == before
    assert list(checkpoint.parent.iterdir()) == [checkpoint]


def _history(made: Trainer, errors: list[float]) -> None:
    made.history = [Epoch(i + 1, 1.0, error, 0.0) for i, error in enumerate(errors)]


@pytest.mark.parametrize("output", ["best", "last", "random"])
def test_early_stopping_waits_for_its_patience(output: Any) -> None:
    made = trainer(NETWORK, TRIPS, epochs=20, patience=2, output=output)
    for errors, stop in (([5.0, 4.0], False), ([5.0, 4.0, 4.5, 4.4], False),
                         ([5.0, 4.0, 4.5, 4.4, 4.0], True)):  # fmt: skip
        _history(made, errors)
        assert made.best_epoch == 2
        assert made.finished == stop, "only an improvement counts, a tie is none"
    steady = trainer(NETWORK, TRIPS, epochs=20, patience=20, output=output)
    _history(steady, [1.0] + [2.0] * 18)
    assert not steady.finished, "as patient as there are epochs: it never stops early"


def test_the_best_epoch_is_what_is_kept() -> None:
    made = trainer(NETWORK, TRIPS, held_out=8, epochs=30, patience=3, learning_rate=0.1,
                   output="best")  # fmt: skip
    seen: list[Any] = []
    made.run(lambda trainer: seen.append(weights(trainer)))
    assert len(made.history) < 30, "stopped early"
    made.finish()
    np.testing.assert_array_equal(weights(made), seen[made.best_epoch - 1])
    best = min(epoch.validation_mae_s for epoch in made.history)
    assert made.validation_error_s() == pytest.approx(best)


@pytest.mark.parametrize(
    ("head", "refreshes", "optimiser", "rate"),
    [("polar", 2, "adam", 1e6), ("plain", 0, "sgd", 1e30), ("polar", 0, "sgd", 1e6)],
)
def test_divergence_is_an_error(head: Any, refreshes: int, optimiser: Any, rate: float) -> None:
    shape = replace(SMALL, head=head)
    made = trainer(
        NETWORK, TRIPS, architecture=shape, learning_rate=rate, optimiser=optimiser,
        path_refreshes=refreshes, epochs=30,
    )  # fmt: skip
    with pytest.raises(TrainingError, match="learning_rate"):
        made.run()


def _moved(**ends: Any) -> Trips:
    """The first trips, between other nodes of any network."""
    return replace(TRIPS.select(np.arange(len(ends["origin"]))), network_checksum="", **ends)


def test_unreachable_trips_are_named() -> None:
    network = RoadNetwork.from_arrays([0, 1, 2], [1, 0, 0], [100.0] * 3)
    table = _moved(origin=[0, 1, 0], destination=[1, 0, 2])
    with pytest.raises(UnreachableError, match="trip 2: node 2 cannot be reached from node 0"):
        trainer(network, table)


@pytest.mark.parametrize(
    "changes",
    [
        {"contexts": np.tile(TRIPS.contexts[:1], (40, 1))},
        {"contexts": np.full((40, 27), np.nan)},
        {"contexts": np.zeros((40, 27))},
        {"destination": np.where(np.arange(40) % 3 == 0, TRIPS.origin, TRIPS.destination)},
        {
            "observed_s": np.choose(
                np.arange(40) % 4, [1e-3, 1e7, TRIPS.observed_s, TRIPS.observed_s]
            )
        },
    ],
)
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_odd_trips_can_be_learned_from(changes: dict[str, Any], loss: Any) -> None:
    made = trainer(NETWORK, replace(TRIPS, **changes), held_out=8, loss=loss)
    made.run()
    assert all(np.isfinite(epoch.loss) for epoch in made.history)
    assert np.isfinite(weights(made)).all()


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_trips_of_impossible_speeds_are_refused(factor: float) -> None:
    with pytest.raises(InputError, match="km/h on a typical road"):
        trainer(NETWORK, replace(TRIPS, observed_s=factor * TRIPS.observed_s))


def test_one_class_of_road_and_few_trips() -> None:
    n = np.arange(5)
    ring = RoadNetwork.from_arrays(n, (n + 1) % 5, np.full(5, 80.0))
    table = _moved(origin=[0, 2], destination=[2, 4])
    made = trainer(ring, table)
    made.run()
    assert made.history[-1].validation_mae_s > 0, "without a held-out part, of the training part"
    still = replace(table, destination=table.origin)
    for few, held_out in ((table, 1), (still, 0)):
        with pytest.raises(InputError):
            trainer(ring, few, held_out=held_out)


def test_trips_that_stay_where_they_are_give_no_direction() -> None:
    table = replace(TRIPS, destination=np.where(np.arange(40) < 5, TRIPS.origin, TRIPS.destination))
    made = trainer(NETWORK, table, trip_constant=False)
    made.direction(np.arange(5))
    assert all(
        parameter.grad is None or not parameter.grad.any() for parameter in made.model.parameters()
    )


def test_everything_is_fitted_on_the_training_part() -> None:
    made = trainer(NETWORK, TRIPS, held_out=20)
    strange = TRIPS.contexts.copy()
    strange[20:, 0] = 1000.0
    other = trainer(
        NETWORK, replace(TRIPS, contexts=strange, observed_s=TRIPS.observed_s * np.where(
            np.arange(40) < 20, 1.0, 50.0)), held_out=20,
    )  # fmt: skip
    assert made.data.base_ratio == other.data.base_ratio
    np.testing.assert_array_equal(made.data.contexts[:20], other.data.contexts[:20])
    made.run()
    other.run()
    last = [trainer.history[-1].loss for trainer in (made, other)]
    assert last[0] == pytest.approx(last[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "absolute"}, {"learning_rate": 0.0}, {"learning_rate": float("nan")},
        {"smoothness": -1.0}, {"epochs": 0}, {"epochs": 2.5}, {"batch_size": "64"}, {"seed": -1},
        {"seed": 2**32}, {"dropout": 1.0}, {"step_power": 0.0},
    ],
)  # fmt: skip
def test_parameters_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(changes))}"):
        TrainParams(**changes)


def test_parameters_as_plain_values() -> None:
    params = TrainParams.paper(seed=7).with_architecture(dimension=5)
    assert built(TrainParams, asdict(params), "") == params
    assert built(TrainParams, {"architecture": {"width": 3}}, "").architecture.width == 3


def test_paths_are_renewed_ever_more_rarely() -> None:
    params = TrainParams()
    renewed = [epoch for epoch in range(30) if params.renews_paths(epoch)]
    assert renewed == [0, 1, 2, 3, 5, 7, 10, 13, 17, 21, 26]
    steady = replace(params, rarer_paths=False)
    assert all(steady.renews_paths(epoch) for epoch in range(30))


def test_decay_shrinks_as_much_however_many_trips_there_are() -> None:
    for trips_known, batch in ((1500, 64), (150_000, 64), (6000, 16)):
        params = TrainParams(batch_size=batch)
        steps = trips_known / batch
        assert steps * params.decay(trips_known) == pytest.approx(1500 / 64)
    assert TrainParams(batch_size=64).decay(10) == TrainParams(batch_size=10).decay(10)
    assert TrainParams(weight_decay=0.3).decay(7) == 0.3


def test_the_constant_of_a_trip_is_learned_and_never_decays() -> None:
    """Trips of free flow plus half a minute, and all other weights held at zero."""
    paths = NETWORK.shortest_paths(NETWORK.free_flow_times_s, TRIPS.origin, TRIPS.destination)
    free_flow_s = np.array([path.time_s(NETWORK.free_flow_times_s) for path in paths])
    late = replace(TRIPS, observed_s=free_flow_s + 30.0)
    made = trainer(NETWORK, late, epochs=60, weight_decay=100.0)
    assert made.model.constant_s().item() == pytest.approx(0.1 * late.observed_s.mean(), rel=1e-4)
    made.model.base_s.copy_(torch.tensor(NETWORK.free_flow_times_s))
    made.run()
    assert made.model.constant_s().item() == pytest.approx(30.0, abs=3.0)
    rows = np.arange(40)
    drives = made.lower_level.solve(made.model, rows)[1]
    np.testing.assert_allclose(made.predict(rows) - drives, made.model.constant_s().item())
    without = trainer(NETWORK, late, trip_constant=False)
    assert without.model.constant_s().item() == 0.0
    assert "trip_constant" not in without.model.state_dict()


def test_dropout_leaves_out_its_share_and_keeps_the_mean() -> None:
    made = trainer(NETWORK, TRIPS, dropout=0.3, architecture=replace(SMALL, width=400))
    rows = np.arange(20)
    first, again, later = made._kept(rows, 3), made._kept(rows, 3), made._kept(rows, 4)
    assert first is not None
    assert again is not None
    assert later is not None
    assert first.shape == (np.unique(made.lower_level.group[rows]).size, 400)
    assert torch.equal(first, again), "nothing to store when training is resumed"
    assert not torch.equal(first, later)
    assert float((first == 0).float().mean()) == pytest.approx(0.3, abs=0.03)
    assert float(first.mean()) == pytest.approx(1.0, abs=0.05)
    assert trainer(NETWORK, TRIPS, dropout=0.0)._kept(rows, 3) is None


def test_dropout_changes_the_direction_of_a_step_and_no_forecast() -> None:
    made = trainer(NETWORK, TRIPS, dropout=0.5)
    rows = np.arange(16)
    before = made.predict(rows)
    made.direction(rows)
    whole = [p.grad.clone() for p in made.model.parameters() if p.grad is not None]
    made.direction(rows, made._kept(rows, 0))
    partly = [p.grad.clone() for p in made.model.parameters() if p.grad is not None]
    assert any(not torch.allclose(a, b) for a, b in zip(whole, partly, strict=True))
    np.testing.assert_array_equal(made.predict(rows), before)
