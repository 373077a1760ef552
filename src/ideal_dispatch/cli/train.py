"""``ideal train``: from trips to a model directory, with a report and checkpoints."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ideal_dispatch.cli.options import check_folder
from ideal_dispatch.cli.terminal import bars, err, print_facts, print_next, print_table, say, warn
from ideal_dispatch.cluster import on_cluster
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainedModel, TrainingProgress, TrainingSettings
    from ideal_dispatch.learning.training import Watch


def train(
    trips_file: Path,
    network_file: Path,
    output: Path,
    features: str | None = None,
    head: str | None = None,
    dimension: int | None = None,
    epochs: int | None = None,
    combine: str | None = None,
    seed: int | None = None,
    params_file: Path | None = None,
    paper: bool = False,
    split: str | None = None,
    radius_loss: str | None = None,
    coverage: float | None = None,
    resume: bool = False,
    force: bool = False,
    jobs: Count | None = None,
    cluster: str | None = None,
) -> None:
    r"""Learn travel times and how far they may be off, from past trips.

    Writes the model, a card that describes it, report.html and report.json. The
    model learns from 70 % of the trips, 10 % tune it and 20 % test it. Needs
    ideal-dispatch[train]. If it is interrupted, --resume continues it.

    Options:
      TRIPS  The file trips.trips of `ideal records prepare`.
      --network FILE  Your city's .network file.
      -o, --output FOLDER  Folder for the model.
      --features NAME  What is known of a road: its location (default; more accurate, for this city
          only) or its attributes, such as length and lanes (for other cities, too).
      --combine average|distil  Learn from several trainings: their average, or one model that they
          and gradient boosting teach. More accurate, most of all where trips are few; takes three
          to five times as long.
      --seed NUMBER  Start of all random draws: another number, another result.
      --split day|trip  What is set aside to test on: whole days (default, where possible) or single
          trips.
      --coverage SHARE  How cautious to be: this share of trips shall take no longer than the model
          thinks possible. 0.8 by default; 0 promises nothing.
      --resume  Continue an interrupted training.

    For specialists:
      --head polar|plain  How roads may slow down together: polar (default) or the paper's plain.
      --dimension NUMBER  How many numbers describe a road; 16 by default.
      --epochs NUMBER  How often to go through all trips, at most; 24 by default.
      --params FILE  A .toml file with further parameters.
      --paper  Train by the paper's Algorithm 1: slower and less accurate.
      --radius-loss NAME  How uncertainty is learned: quantile (default) or the paper's
          mean_absolute.

    Examples:
      ideal train out/trips.trips --network city.network -o model/
      ideal train out/trips.trips --network city.network -o model/ --resume
      ideal train trips.trips --network city.network -o paper/ --paper \
        --radius-loss mean_absolute --coverage 0
    """
    from ideal_dispatch.files import check_source

    check_source(trips_file, network_file, params_file)
    if resume and force:
        raise InputError("--resume continues, --force starts from the beginning: choose one")

    from ideal_dispatch.learning import TrainingSettings, fit
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records import Trips

    _check_output(output, [trips_file, network_file, params_file], resume, force)
    network, trips = RoadNetwork.load(network_file), Trips.load(trips_file)
    settings = TrainingSettings.read(
        params_file,
        {
            "epochs": epochs,
            "combine": combine,
            "seed": seed,
            "architecture": {"features": features, "head": head, "dimension": dimension},
            "radius": {"loss": radius_loss, "coverage": coverage},
        },
        paper=paper,
        trips_per_road=len(trips) / network.num_edges,
    )
    with on_cluster(cluster) if cluster else nullcontext(), _progress(settings) as watch:
        made = fit(
            network, trips, params=settings.params, radius=settings.radius,
            parts=cast(Any, split), folder=output, resume=resume, watch=watch, jobs=jobs,
        )  # fmt: skip
        made.save(output, watch)
    _show(made, output)


def _check_output(folder: Path, inputs: list[Path | None], resume: bool, force: bool) -> None:
    """Refuse before the work what would overwrite a model or files of something else."""
    from ideal_dispatch.forecast.model_directory import MANIFEST
    from ideal_dispatch.learning.checkpoint import checkpoints
    from ideal_dispatch.learning.training import FILES

    checkpoint, model = bool(checkpoints(folder)), (folder / MANIFEST).exists()
    there = next((name for name in FILES if (folder / name).exists()), None)
    if there and not (checkpoint or model):
        raise InputError(f"-o {folder}: holds {there} of something else; choose another folder")
    if checkpoint and not (resume or force):
        raise InputError(
            f"-o {folder}: holds an interrupted training; add --resume to continue it or "
            "--force to start from the beginning"
        )
    if model and not checkpoint and resume:
        raise InputError(f"-o {folder}: training is finished; add --force to train again")
    check_folder(folder, FILES, resume or force, inputs)
    if resume and not checkpoint:
        err.print(f"{folder}: no checkpoint there, starting from the beginning", markup=False)


@contextmanager
def _progress(settings: "TrainingSettings") -> "Iterator[Watch]":
    """Bars on a terminal, a line an epoch elsewhere."""
    with bars() as show:

        def watch(progress: "TrainingProgress") -> None:
            epoch, remark = progress.epoch, ""
            if epoch is not None:
                error = f"held-out error {epoch.validation_mae_s:.1f} s"
                remark = f"epoch {epoch.epoch}, loss {epoch.loss:.4f}, {error}"
                if not err.is_terminal:
                    whole = settings.params.epochs
                    err.print(f"epoch {epoch.epoch} of {whole}: loss {epoch.loss:.5f}, {error}")
            show(progress.stage, progress.done, remark)

        show("training", 0.0, "")
        yield watch


def _show(made: "TrainedModel", folder: Path) -> None:
    """Say how it went, and what comes next."""
    from ideal_dispatch.learning.training import REPORT

    report, data, radius = made.report, made.details["data"], made.details["radius"]
    held_out, kept = " and ".join(made.details["held_out_for"]), made.kept_epoch
    print_table(report.table.header, report.table.text_rows(), report.table.bold)
    level = radius["promised"]
    promise = "none promised" if level is None else f"{100 * level:g} % promised"
    print_facts(
        folder.name or "model",
        {
            "trips": f"{data['train']:,} learned, {data['validation']:,} held out"
            f"{held_out and f' for {held_out}'}, {data['test']:,} tested, by {data['split']}",
            "epochs": f"{len(made.history)}{f', epoch {kept} kept' if kept else ''}",
            "explained by the set": f"{100 * radius['coverage']:.1f} % of test trips, {promise}",
            "median radius": f"{radius['median']:.4f}",
            "effective rank": f"{made.shape.effective_rank:.1f} of {made.shape.dimension}",
        },
        justify="left",
    )
    for line in report.warnings:
        warn(line)
    say(f"wrote {folder}; see {folder / REPORT}")
    print_next("ideal", "model", "card", folder)
