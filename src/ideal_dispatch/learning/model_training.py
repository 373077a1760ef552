"""From trips to a model directory: model, card, report and checkpoints."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.forecast import Model, model_directory
from ideal_dispatch.learning.baselines import fit_baselines
from ideal_dispatch.learning.checkpoint import OLD_CHECKPOINT, checkpoints
from ideal_dispatch.learning.parameters import TrainingSettings
from ideal_dispatch.learning.report.training_report import TrainingReport
from ideal_dispatch.learning.trainer import STEP_COLUMNS
from ideal_dispatch.learning.training import TrainingProgress, Watch, train
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

REPORT, NUMBERS, STEPS = "report.html", "report.json", "steps.csv"
FILES = (*model_directory.FILES, REPORT, NUMBERS, STEPS)
"""What a finished directory may have, beside the weights."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A model, the report of its training, and the folder that holds both."""

    model: Model
    report: TrainingReport
    folder: Path


def train_model(
    network: RoadNetwork,
    trips: Trips,
    folder: str | os.PathLike[str],
    settings: TrainingSettings | None = None,
    *,
    resume: bool = False,
    watch: Watch | None = None,
    jobs: int | None = None,
) -> TrainedModel:
    """Learn from trips and write a model directory, as ``ideal train`` does.

    The model learns from 70 % of the trips, 10 % tune it and 20 % test it,
    beside simpler predictors. A checkpoint is kept in ``folder`` after every
    epoch: ``resume`` goes on from it, otherwise training starts anew and
    replaces what is there. ``watch`` sees the progress; target radii are
    computed in ``jobs`` threads.
    """
    settings, place = settings or TrainingSettings(), Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for half_written in place.glob(f".{'[0-9a-f]' * 16}.part"):
        half_written.unlink()
    if not resume:
        for old in (*checkpoints(place), place / OLD_CHECKPOINT):
            old.unlink(missing_ok=True)
    show = watch or (lambda progress: None)
    run = train(network, trips, settings, folder=place, resume=resume, watch=show, jobs=jobs)
    show(TrainingProgress("baselines on the same trips", 0.0))
    train_trips, held_out = map(trips.select, (run.split.train, run.split.validation))
    baselines = fit_baselines(network, train_trips, held_out)
    show(TrainingProgress("the report", 0.5))
    report = TrainingReport.of(run, baselines)
    facts = report.as_dict()
    model = replace(run.model, details={**run.model.details, "scores": facts["scores"]})
    (place / STEPS).unlink(missing_ok=True)
    if run.steps is not None:
        rows = ([number, *(f"{x:.9g}" for x in row)] for number, row in enumerate(run.steps))
        write_csv(place / STEPS, ("step", *STEP_COLUMNS), rows)
    # the model last: where its manifest is, its report is
    numbers = json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False)
    for name, text in ((REPORT, report.html()), (NUMBERS, f"{numbers}\n")):
        write_file(place / name, text)
    model.save(place)
    for done in checkpoints(place):
        done.unlink()
    return TrainedModel(model, report, place)
