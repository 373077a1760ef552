"""An experiment from its file to the logs of its training and its test days."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.policy_tables import FittedParts, needed_parts
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import LOCK, locked
from ideal_dispatch.files import write_file
from ideal_dispatch.records import Trips
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import EXPERIMENT, Experiment, Ground, Live
from ideal_dispatch.replay.fitting import (
    ByDay,
    check_training,
    collect_trips,
    fit_parts,
    load_parts,
    missing_parts,
)
from ideal_dispatch.replay.incidents import RecordedCalls
from ideal_dispatch.replay.radii import radii_file, write_radii
from ideal_dispatch.toml_tables import complaints_about

STARTS, LEFT_OUT = "starts.jsonl", "left_out_calls.csv"
TRAINING, TEST, ALL = "training", "test", "all"

Watch = Callable[[str, float], None]
"""Told the step that goes on, and the share of it that is done."""


def run_experiment(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    test: bool = True,
    workers: int | None = 1,
    cluster: str | None = None,
    watch: Watch | None = None,
) -> Path:
    """Collect, fit and replay, for each world in a folder of its own.

    ``folder/WORLD/training`` has the training days, each decided with what the
    other days taught, ``folder/WORLD/test`` the test days, decided with what
    all training days taught; without ``test`` they are left alone. Whatever is
    finished is kept: the same call goes on with an interrupted experiment. An
    experiment with a transfer has test days alone. Every start is written down
    with its time and the experiment file's digest, and a second process on the
    same folder is refused.
    """
    with complaints_about(experiment.path):
        experiment.check_recorded()
    ground = experiment.ground()
    days = len(ground.recording.days)
    if not experiment.training_days < days:
        raise InputError(
            f"training_days {experiment.training_days}: the recording has {days} days, and at "
            "least one must be left to test"
        )
    if experiment.transferred is not None and not test:
        raise InputError(
            f"{experiment.name}: with a transfer nothing is fitted, so there are no training days "
            "to replay without the test days"
        )
    recorded = _checked_calls(experiment, ground)
    ground.traffic(experiment)  # or says what is wrong with its source
    if experiment.transferred is None:
        if needed_parts(experiment.policies):
            check_training(experiment)
    else:
        for world in experiment.worlds:
            transferred_parts(experiment, world)
    place = Path(folder)
    with locked(place):
        take_up(place, replace(experiment, live=Live()), ground.recording.checksum)
        if recorded is not None and recorded.words:
            warnings.warn(f"{recorded.words}; {place / LEFT_OUT} has all", stacklevel=2)
            recorded.write_left_out(place / LEFT_OUT)
        write_start(place, experiment, test)
        for world in experiment.worlds:
            stage = _Stage(experiment, ground, world, place / world, workers, cluster,
                           watch or (lambda step, share: None))  # fmt: skip
            if experiment.transferred is None:
                stage.replay_training()
            if test:
                stage.replay_test()
    return place


def calibration_of(run: str | os.PathLike[str], world: str) -> Path:
    """The folder of the training days on which a run's thresholds are set.

    It is the run's own, or that of the run whose fitted parts were carried over.
    """
    place = Path(run)
    if (place / STARTS).exists():
        last = json.loads((place / STARTS).read_text(encoding="utf-8").splitlines()[-1])
        place /= str(last.get("transfer", ""))
    return world_folder(place, world) / TRAINING


def transferred_parts(experiment: Experiment, world: World) -> Path:
    """The folder of the fitted parts that an experiment takes from another run."""
    assert experiment.transferred is not None
    other = world_folder(experiment.transferred, world)
    if missing := missing_parts(experiment, other / ALL):
        raise InputError(
            f"transfer: {other} has no {', '.join(missing)} of all training days; run its "
            "experiment to the end first, with the same policies"
        )
    return other / ALL


def world_folder(run: Path, world: str) -> Path:
    """The folder of a world in a run; runs before version 0.2 name it by its letter."""
    before = run / World(world).letter
    return before if before.exists() else run / World(world)


@dataclass(frozen=True, eq=False)
class _Stage:
    """An experiment in one world."""

    experiment: Experiment
    ground: Ground
    world: World
    folder: Path
    workers: int | None
    cluster: str | None
    watch: Watch

    def replay_training(self) -> None:
        """The training days in folds, each decided with what the days of the others taught."""
        training, dates = self.experiment.learning_days, self.ground.dates()
        fitted: dict[str, tuple[Policy, ...]] = {}
        # neighbours in time go to different folds, so that every fold has days of all seasons
        for fold in range(self.experiment.folds):
            own = list(training[fold :: self.experiment.folds])
            others = [day for day in training if day not in own]
            fitted |= dict.fromkeys(
                [dates[day] for day in own], self._policies(others, f"fold-{fold + 1}")
            )
        names = [policy.name for policy in next(iter(fitted.values()))]
        cross_fitted = tuple(
            ByDay(name, {date: policies[i] for date, policies in fitted.items()})
            for i, name in enumerate(names)
        )
        self._replay(cross_fitted, training, TRAINING)

    def replay_test(self) -> None:
        """The test days, decided with what all training days taught, be it of another run."""
        experiment = self.experiment
        if experiment.transferred is None:
            policies = self._policies(list(experiment.learning_days), ALL)
        else:
            parts = load_parts(experiment, transferred_parts(experiment, self.world))
            policies = experiment.policies_with(parts, self.ground)
        days = range(experiment.training_days, len(self.ground.dates()))
        self._replay(policies, days, TEST)
        if not radii_file(self.folder / TEST).exists():
            write_radii(self.folder / TEST, self.ground.traffic(experiment), policies)

    @cached_property
    def _trips(self) -> Trips:
        """The trips of all training days."""
        self._begin("trips of the past")
        days, file = self.experiment.learning_days, self.folder / "trips.trips"
        return collect_trips(self.experiment, self.ground, self.world, days, file)

    def _policies(self, days: list[int], name: str) -> tuple[Policy, ...]:
        """All policies, fitted on the numbered days where they learn something."""
        parts, experiment = FittedParts(), self.experiment
        if needed_parts(experiment.policies):
            trips = self._trips
            how = self._begin(f"learning from {len(days)} days ({name})")
            parts = fit_parts(
                experiment, self.ground, trips, self.world, days, self.folder / name, **how
            )
        return experiment.policies_with(parts, self.ground)

    def _replay(self, policies: tuple[Policy, ...], days: range, name: str) -> None:
        how = self._begin(f"replaying {len(days)} {name} days")
        calls = self.ground.calls(self.experiment, days)
        self.ground.replay(self.experiment, calls, policies, self.folder / name, **how)

    def _begin(self, step: str) -> dict[str, Any]:
        """Tell what comes; gives how it shall be replayed."""
        step = f"{self.world}: {step}"
        self.watch(step, 0.0)
        told = {"report": lambda done, whole: self.watch(step, done / whole)}
        return {"workers": self.workers, "cluster": self.cluster, **told}


def _checked_calls(experiment: Experiment, ground: Ground) -> RecordedCalls | None:
    """The recorded calls, where there are; refused where training or test days have none."""
    days, training = len(ground.recording.days), experiment.training_days
    recorded = ground.recorded_calls(experiment)
    if recorded is None:
        ground.calls(experiment, range(experiment.warm_up_days, days))
        return None
    parts = {"test": range(training, days)}
    if experiment.transferred is None:
        parts["training"] = experiment.learning_days
    for name, part in parts.items():
        if not recorded.of_days(ground.recording, part):
            told = recorded.words or f"{recorded.where}: {len(recorded.incidents):,} calls"
            raise InputError(f"{told}; none is of the {len(part)} {name} days")
    return recorded


def take_up(folder: Path, experiment: Experiment, recording: str | None) -> None:
    """Begin in a new folder, or go on with the same experiment; ``recording`` is a checksum."""
    values = asdict(experiment)
    for name in ("path", "folder", "digest"):
        values.pop(name)
    if not experiment.live.kind:
        del values["live"]
    if experiment.fleet is None:
        del values["fleet"]
    # a key that is not used is left out: runs that were begun before it existed go on
    if not experiment.calls.on_road:
        del values["calls"]["on_road"]
    for table, name in (("calls", "file"), ("calls", "units"), ("city", "territories")):
        if file := values[table].pop(name):
            content = (experiment.folder / file).read_bytes()
            digest = hashlib.blake2b(content, digest_size=16).hexdigest()
            values[table] |= {name: file, f"{name}_checksum": digest}
    values["recording"] = recording
    text = json.dumps(values, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    file = folder / EXPERIMENT
    if file.exists():
        if file.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{folder}: holds another experiment, or other traffic; name a new folder"
            )
        return
    if set(folder.iterdir()) - {folder / LOCK}:
        raise InputError(f"{folder}: holds other files and no experiment; name a new folder")
    write_file(file, text)


def write_start(folder: Path, experiment: Experiment, test: bool) -> None:
    """Note when the run was begun or taken up, with which file, and whether to its test days."""
    start: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment_file": experiment.digest,
        "test_days": test,
        "ideal-dispatch": version("ideal-dispatch"),
    }
    if experiment.transferred is not None:
        start["transfer"] = os.path.relpath(experiment.transferred, folder)
    with open(folder / STARTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(start) + "\n")
