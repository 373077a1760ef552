"""``ideal train``: from trips to a model directory, with a report and checkpoints."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ideal_dispatch.cli.help import SPECIAL
from ideal_dispatch.cli.outputs import ForceOption, check_folder
from ideal_dispatch.cli.workers import ClusterOption, CoresOption
from ideal_dispatch.cluster import on_cluster
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.learning import TrainingRun
    from ideal_dispatch.learning.trainer import Trainer
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records import Trips

EPILOG = """\
Examples:
  ideal train out/trips.trips --network city.network -o model/
  ideal train out/trips.trips --network city.network -o model/ --resume
  ideal train trips.trips --network city.network -o paper/ --paper \\
    --radius-loss mean_absolute --coverage 0
  torchrun --nproc-per-node 2 --no-python \\
    ideal train trips.trips --network city.network -o model/ --distributed
"""

REPORT, NUMBERS = "report.html", "report.json"


def train(
    trips_file: Annotated[
        Path,
        typer.Argument(metavar="TRIPS", help="The file trips.trips of `ideal records prepare`."),
    ],
    network_file: Annotated[
        Path, typer.Option("--network", metavar="FILE", help="Your city's .network file.")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model."),
    ],
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is known of a road: its location (default; more accurate, for this city "
            "only) or its attributes, such as length and lanes (for other cities, too).",
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="polar|plain",
            rich_help_panel=SPECIAL,
            help="How roads may slow down together: polar (default) or the paper's plain.",
        ),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=SPECIAL,
            help="How many numbers describe a road; 16 by default.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=SPECIAL,
            help="How often all trips are gone through, at most; 24 by default.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Another number, other days to learn from and to test on."
        ),
    ] = None,
    params_file: Annotated[
        Path | None,
        typer.Option(
            "--params",
            metavar="FILE",
            rich_help_panel=SPECIAL,
            help="A .toml file with further parameters.",
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            rich_help_panel=SPECIAL,
            help="Train by the paper's Algorithm 1: slower and less accurate.",
        ),
    ] = False,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="day|trip",
            help="What is set aside to test on: whole days (default, where possible) or single "
            "trips.",
        ),
    ] = None,
    radius_loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=SPECIAL,
            help="How uncertainty is learned: quantile (default) or the paper's mean_absolute.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="How cautious to be: this share of trips shall take no longer than the model "
            "thinks possible. 0.8 by default; 0 promises nothing.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where training was interrupted.")
    ] = False,
    force: ForceOption = False,
    jobs: CoresOption = None,
    cluster: ClusterOption = None,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            rich_help_panel=SPECIAL,
            help="For torchrun: this is one of several processes.",
        ),
    ] = False,
) -> None:
    """Learn travel times and how far they may be off, from past trips.

    Writes the model, a card that describes it, report.html and report.json. Of
    the trips 70 % are learned from, 10 % tune the model and 20 % test it. Needs
    ideal-dispatch[train]. If it is interrupted, --resume goes on.
    """
    from ideal_dispatch.files import check_source

    for file in (trips_file, network_file, params_file):
        if file is not None:
            check_source(file)
    if resume and force:
        raise InputError("--resume goes on, --force starts anew: choose one")
    _check_output(output, [trips_file, network_file, params_file], resume, force)

    from ideal_dispatch.learning import TrainParams, split
    from ideal_dispatch.learning.processes import joined, take_part
    from ideal_dispatch.learning.settings import settings
    from ideal_dispatch.learning.training import default_split
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.records import Trips

    params, radius = settings(
        TrainParams.paper() if paper else TrainParams(),
        params_file,
        {"epochs": epochs, "seed": seed},
        {"features": features, "head": head, "dimension": dimension},
        {"loss": radius_loss, "coverage": coverage},
    )
    network, trips = RoadNetwork.load(network_file), Trips.load(trips_file)
    by: Any = split_by
    parts = split(trips, seed=params.seed, by=by) if by else default_split(trips, params.seed)
    with joined() if distributed else nullcontext(True) as first, _workers(first and cluster):
        if not first:
            take_part(network, trips, params, parts, output, resume)
            return
        output.mkdir(parents=True, exist_ok=True)
        _clear(output, resume)
        with _progress(params.epochs) as watch:
            from ideal_dispatch.learning import train as learn

            run = learn(network, trips, params, radius, parts=parts, folder=output,
                        resume=resume, watch=watch, jobs=jobs)  # fmt: skip
    _finish(run, network, trips, output)


def _check_output(folder: Path, inputs: list[Path | None], resume: bool, force: bool) -> None:
    """Refuse before the work what would overwrite a model, or files that are none."""
    from ideal_dispatch.forecast.model import CARD, MANIFEST

    files = (MANIFEST, CARD, REPORT, NUMBERS)
    checkpoint, model = _checkpoint(folder).exists(), (folder / MANIFEST).exists()
    there = next((name for name in files if (folder / name).exists()), None)
    if there and not (checkpoint or model):
        raise InputError(f"-o {folder}: holds {there} of something else; choose another folder")
    if checkpoint and not (resume or force):
        raise InputError(
            f"-o {folder}: holds an interrupted training; add --resume to go on with it or "
            "--force to start anew"
        )
    if model and not checkpoint and resume:
        raise InputError(f"-o {folder}: training is finished; add --force to train anew")
    check_folder(folder, files, resume or force, inputs)


def _checkpoint(folder: Path) -> Path:
    return folder / "checkpoint.safetensors"


def _clear(folder: Path, resume: bool) -> None:
    """Remove what a killed training left half-written, and an old checkpoint unless it goes on."""
    from ideal_dispatch.cli.terminal import err

    for part in folder.glob(f".{'[0-9a-f]' * 16}.part"):
        part.unlink()
    if not resume:
        _checkpoint(folder).unlink(missing_ok=True)
    elif not _checkpoint(folder).exists():
        err.print(f"{folder}: no checkpoint there, starting from the beginning", markup=False)


def _workers(address: str | bool | None) -> AbstractContextManager[None]:
    """Target radii on a dask cluster, where an address is given."""
    return on_cluster(str(address)) if address else nullcontext()


@contextmanager
def _progress(epochs: int) -> "Iterator[Callable[[str, float, Trainer], None]]":
    """Bars on a terminal, a line an epoch elsewhere."""
    from ideal_dispatch.cli.terminal import bars, err

    with bars() as show:

        def watch(stage: str, done: float, trainer: "Trainer") -> None:
            if stage != "training":
                show(stage, done, "")
                return
            last = trainer.history[-1]
            error = f"held-out error {last.validation_mae_s:.1f} s"
            finished = 1.0 if trainer.finished else done
            show(stage, finished, f"epoch {last.epoch}, loss {last.loss:.4f}, {error}")
            if not err.is_terminal:
                err.print(f"epoch {last.epoch} of {epochs}: loss {last.loss:.5f}, {error}")

        show("training", 0.0, "")
        yield watch


def _finish(run: "TrainingRun", network: "RoadNetwork", trips: "Trips", output: Path) -> None:
    """Fit the baselines, write report and model, drop the checkpoint, say how it went."""
    from dataclasses import replace

    from ideal_dispatch.cli.terminal import out, print_next, stages
    from ideal_dispatch.files import atomic_write
    from ideal_dispatch.learning.baselines import fit_baselines
    from ideal_dispatch.learning.training_report import summary, training_report

    with stages("Finishing") as progress:
        progress("baselines on the same trips")
        learned, held_out = trips.select(run.split.train), trips.select(run.split.validation)
        baselines = fit_baselines(network, learned, held_out)
        progress("the report")
        facts = summary(run, baselines)
        model = replace(run.model, details={**run.model.details, "scores": facts["scores"]})
        # the model last: where its manifest is, its report is
        training_report(run, baselines).save(output / REPORT)
        with atomic_write(output / NUMBERS) as file:
            text = json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False)
            file.write(f"{text}\n".encode())
        model.save(output)
        _checkpoint(output).unlink(missing_ok=True)
    _show(facts, output.name)
    out.print(f"wrote {output}; see {output / REPORT}", markup=False, soft_wrap=True)
    print_next("ideal", "model", "card", output)


def _show(facts: dict[str, Any], name: str) -> None:
    from ideal_dispatch.cli.terminal import print_facts, print_table, warn

    data, radius, shape = facts["data"], facts["radius"], facts["shape"]
    own = facts["scores"][0]
    rows = []
    for row in facts["scores"]:
        low, high = row.get("beyond_s", (None, None))
        more = row["mae_s"] - own["mae_s"]
        beyond = "" if low is None else f"{more:+.1f} ({low:+.1f} … {high:+.1f})"
        rows.append((row["name"], f"{row['mae_s']:.1f}", f"{row['mape_percent']:.1f}", beyond))
    print_table(("prediction of the test trips", "MAE s", "MAPE %", "beyond IDEAL (95 %)"), rows)
    level = radius["promised"]
    promise = "none promised" if level is None else f"{100 * level:g} % promised"
    print_facts(
        name or "model",
        {
            "trips": f"{data['train']:,} learned, {data['validation']:,} held out, "
            f"{data['test']:,} tested, by {data['split']}",
            "epochs": f"{len(facts['history'])}",
            "explained by the set": f"{100 * radius['coverage']:.1f} % of test trips, {promise}",
            "median radius": f"{radius['median']:.4f}",
            "effective rank": f"{shape['effective_rank']:.1f} of {shape['dimension']}",
        },
        justify="left",
    )
    for line in facts["warnings"]:
        warn(line)
