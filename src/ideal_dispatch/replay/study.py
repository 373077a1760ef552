"""An experiment from its file to the logs of its training and its test days."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ideal_dispatch.dispatch.decision import Decision, Policy
from ideal_dispatch.dispatch.settings import policies_from
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.fitting import PastDays, fit_parts
from ideal_dispatch.replay.past import collect_quotes, collect_trips
from ideal_dispatch.replay.run import replay

EXPERIMENT = "experiment.json"
TRAINING, TEST = "training", "test"

Watch = Callable[[str, float], None]
"""Told the step that goes on, and the share of it that is done."""


@dataclass(frozen=True, slots=True)
class ByDay:
    """A policy that was fitted for each day without that day."""

    name: str
    policies: Mapping[str, Policy]

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        return self.policies[situation.incident.at.date().isoformat()].decide(situation, rng)


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
    finished is kept: the same call goes on with an interrupted experiment.
    """
    ground = experiment.ground()
    days = len(ground.recording.days)
    if not experiment.training_days < days:
        raise InputError(
            f"training_days {experiment.training_days}: the recording has {days} days, and at "
            "least one must be left to test"
        )
    place = Path(folder)
    _take_up(place, experiment, ground)
    for world in experiment.worlds:
        _run_world(_Stage(experiment, ground, World(world), place / world, workers, cluster,
                          watch or (lambda step, share: None)), test)  # fmt: skip
    return place


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    experiment: Experiment
    ground: Ground
    world: World
    folder: Path
    workers: int | None
    cluster: str | None
    watch: Watch

    def past(self) -> PastDays:
        """Trips and quotes of all training days."""
        self.folder.mkdir(parents=True, exist_ok=True)
        days = range(self.experiment.training_days)
        given = self.experiment, self.ground, self.world, days
        self.watch(f"{self.world}: trips of the past", 0.0)
        trips = collect_trips(*given, self.folder / "trips.trips")
        self.watch(f"{self.world}: quotes of the past", 0.0)
        quotes = collect_quotes(*given, self.folder / "quotes.jsonl")
        return PastDays(trips, quotes, self.world)

    def policies(self, past: PastDays, days: list[int], name: str) -> tuple[Policy, ...]:
        """All policies, fitted on the numbered days."""
        step = f"{self.world}: learning from {len(days)} days ({name})"
        self.watch(step, 0.0)
        parts = fit_parts(
            self.experiment, self.ground, past, days, self.folder / name,
            workers=self.workers, cluster=self.cluster, report=self.report(step),
        )  # fmt: skip
        return policies_from(self.experiment.policies, parts)

    def replay(self, policies: tuple[Policy, ...], days: range, name: str) -> None:
        step = f"{self.world}: replaying {len(days)} {name} days"
        self.watch(step, 0.0)
        replay(
            self.ground.world(self.experiment), self.ground.network, self.ground.depots,
            self.ground.calls(self.experiment, days), policies, self.folder / name,
            region=self.ground.region, seed=self.experiment.seed, workers=self.workers,
            cluster=self.cluster, report=self.report(step),
        )  # fmt: skip

    def report(self, step: str) -> Callable[[int, int], None]:
        return lambda done, whole: self.watch(step, done / whole)


def _run_world(stage: _Stage, test: bool) -> None:
    experiment, dates = stage.experiment, stage.ground.dates()
    training = range(experiment.training_days)
    past = stage.past()
    fitted: dict[str, tuple[Policy, ...]] = {}
    # neighbours in time go to different folds, so that every fold has days of all seasons
    for fold in range(experiment.folds):
        own = list(training[fold :: experiment.folds])
        others = [day for day in training if day not in own]
        policies = stage.policies(past, others, f"fold-{fold + 1}")
        fitted |= {dates[day]: policies for day in own}
    names = [policy.name for policy in next(iter(fitted.values()))]
    cross_fitted = tuple(
        ByDay(name, {date: policies[i] for date, policies in fitted.items()})
        for i, name in enumerate(names)
    )
    stage.replay(cross_fitted, training, TRAINING)
    if test:
        policies = stage.policies(past, list(training), "all")
        stage.replay(policies, range(experiment.training_days, len(dates)), TEST)


def _take_up(folder: Path, experiment: Experiment, ground: Ground) -> None:
    """Begin in a new folder, or go on with the same experiment."""
    values = asdict(experiment)
    values.pop("folder")
    values["recording"] = ground.recording.checksum
    text = json.dumps(values, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    file = folder / EXPERIMENT
    if file.exists():
        if file.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{folder}: holds another experiment, or other traffic; name a new folder"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder}: holds other files and no experiment; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as opened:
        opened.write(text.encode())
