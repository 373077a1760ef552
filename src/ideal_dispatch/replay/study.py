"""An experiment from its file to the logs of its training and its test days."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ideal_dispatch.archive import FileKind
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.policy_tables import FittedParts, needed_parts
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import (
    MANIFEST,
    Run,
    Watch,
    digest,
    read_manifest,
    unwatched,
)
from ideal_dispatch.records import Trips
from ideal_dispatch.replay.experiment import Experiment, Ground
from ideal_dispatch.replay.fitting import (
    ByDay,
    check_training,
    collect_trips,
    fit_parts,
    load_parts,
    missing_parts,
)
from ideal_dispatch.replay.incidents import RecordedCalls
from ideal_dispatch.toml_tables import complaints_about

KIND = FileKind("ideal-dispatch experiment 2", 1, "experiment", "repeat it")
LEFT_OUT, TRIPS = "left_out_calls.csv", "trips.trips"
TRAINING, TEST, ALL = "training", "test", "all"


def run_experiment(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    test: bool = True,
    workers: int | None = 1,
    cluster: str | None = None,
    watch: Watch = unwatched,
) -> Path:
    """Collect, fit and replay into ``folder``, and return it.

    ``folder/training`` has the training days, each decided with what the
    other days taught, ``folder/test`` the test days, decided with what
    all training days taught; without ``test`` they are left alone. Whatever is
    finished is kept: the same call continues an interrupted experiment. An
    experiment with a transfer has test days alone. The manifest has the time of every
    start, and a second process on the same folder is refused.
    """
    with complaints_about(experiment.path):
        experiment.check_recorded()
    ground, training = experiment.ground(), experiment.learning_days
    dates, transferred = ground.dates(), experiment.transferred
    if not experiment.training_days < len(dates):
        raise InputError(
            f"training_days {experiment.training_days}: the recording has {len(dates)} days, and "
            "at least one must be left to test"
        )
    test_days = range(experiment.training_days, len(dates))
    if transferred is not None and not test:
        raise InputError(
            f"{experiment.name}: with a transfer nothing is fitted, so there are no training days "
            "to replay without the test days"
        )
    with complaints_about(experiment.path):
        recorded = ground.file_calls(experiment)
        for days in (test_days, *([] if transferred else [training])):
            if not ground.calls(experiment, days):
                raise InputError(f"[calls] file: none of its calls is of the {len(days)} days "
                                 f"from {dates[days[0]]}")  # fmt: skip
    ground.traffic(experiment)  # or says what is wrong with its source
    if transferred is not None:
        transferred_parts(experiment)
    elif needed_parts(experiment.policies):
        check_training(experiment)

    with Run.opened(folder, KIND, settings(experiment, ground)) as run:
        place, how = run.folder, {"workers": workers, "cluster": cluster}
        note_start(run, experiment, recorded)

        def begin(step: str) -> dict[str, Any]:
            watch(step, 0.0)
            return {**how, "report": lambda done, whole: watch(step, done / whole)}

        @cache
        def trips() -> Trips:
            watch("trips of the past", 0.0)
            return collect_trips(experiment, ground, training, place / TRIPS)

        def policies(days: Sequence[int], name: str) -> tuple[Policy, ...]:
            """All policies, fitted on the numbered days where they learn something."""
            parts = FittedParts()
            if needed_parts(experiment.policies):
                past, how = trips(), begin(f"learning from {len(days)} days ({name})")
                parts = fit_parts(experiment, ground, past, days, place / name, **how)
            return experiment.policies_with(parts, ground)

        def replay(decided_by: Sequence[Policy], days: range, name: str) -> None:
            calls, how = ground.calls(experiment, days), begin(f"replaying {len(days)} {name} days")
            ground.replay(experiment, calls, decided_by, place / name, **how)

        if transferred is None:
            fitted: dict[str, tuple[Policy, ...]] = {}
            # neighbours in time go to different folds, so that every fold has days of all seasons
            for fold in range(experiment.folds):
                own = training[fold :: experiment.folds]
                others = [day for day in training if day not in own]
                taught = policies(others, f"fold-{fold + 1}")
                fitted |= dict.fromkeys([dates[day] for day in own], taught)
            names = [policy.name for policy in next(iter(fitted.values()))]
            cross_fitted = [
                ByDay(name, {date: by_date[k] for date, by_date in fitted.items()})
                for k, name in enumerate(names)
            ]
            replay(cross_fitted, training, TRAINING)
        if test:
            if transferred is None:
                taught = policies(training, ALL)
            else:
                parts = load_parts(experiment, transferred_parts(experiment))
                taught = experiment.policies_with(parts, ground)
            replay(taught, test_days, TEST)
    return Path(folder)


def settings(experiment: Experiment, ground: Ground) -> dict[str, Any]:
    """All that the logs of an experiment depend on."""
    values = asdict(experiment)
    for name in ("path", "folder", "digest"):
        del values[name]
    recording = None if ground.recorded is None else ground.recorded.checksum
    city, calls = experiment.city, experiment.calls
    files = (city.depots, city.territories, calls.file, calls.units)
    inputs = {name: digest((experiment.folder / name).read_bytes()) for name in files if name}
    network = ground.network.checksum
    return {"experiment": values, "network": network, "recording": recording, "inputs": inputs}


def note_start(run: Run, experiment: Experiment, recorded: RecordedCalls | None) -> None:
    """Note the file of the experiment, whose parts are used, and which calls are left out."""
    run.note(experiment_file=experiment.digest)
    if experiment.transferred is not None:
        run.note(transfer=os.path.relpath(experiment.transferred, run.folder))
    if recorded is not None and recorded.words:
        warnings.warn(f"{recorded.words}; {run.folder / LEFT_OUT} has all", stacklevel=3)
        recorded.write_left_out(run.folder / LEFT_OUT)


def experiment_of(part: Path) -> dict[str, Any]:
    """The experiment that a log is part of, as its manifest has it; empty where it is of none."""
    place = part.resolve().parent
    if not (place / MANIFEST).is_file():
        return {}
    found: dict[str, Any] = read_manifest(place, KIND)["experiment"]
    return found


def calibration_of(run: str | os.PathLike[str]) -> Path:
    """The folder of the training days on which a run's thresholds are set.

    It is the run's own, or that of the run whose fitted parts were carried over.
    """
    place = Path(run)
    manifest = read_manifest(place, KIND)
    return place / str(manifest.get("transfer", "")) / TRAINING


def transferred_parts(experiment: Experiment) -> Path:
    """The folder of the fitted parts that an experiment takes from another run."""
    assert experiment.transferred is not None
    other = experiment.transferred
    if missing := missing_parts(experiment, other / ALL):
        raise InputError(
            f"transfer: {other} has no {', '.join(missing)} of all training days; run its "
            "experiment to the end first, with the same policies"
        )
    world = read_manifest(other, KIND)["experiment"]["world"]
    if world != experiment.world:
        raise InputError(
            f"transfer: {other} is of {world} traffic, this experiment of {experiment.world}"
        )
    return other / ALL
