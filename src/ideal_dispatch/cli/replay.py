"""``ideal replay``: an experiment file becomes logs of its training and its test days."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.terminal import bars, print_facts, print_next, say, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count

if TYPE_CHECKING:
    from ideal_dispatch.replay.experiment import Experiment


def replay(
    file: Path,
    output: Path,
    training_only: bool = False,
    workers: Count | None = None,
    cluster: str | None = None,
    live: bool = False,
    most: Count | None = None,
) -> None:
    r"""Learn from past days, then replay calls under every policy in the same traffic.

    After an interruption the same command continues. The number of workers does
    not change the result. An experiment with a transfer table learns nothing: it
    uses what another run has learned.

    With --live nothing recorded is replayed: calls are made one after the other, now, and
    ambulances are driven in real time by the router of the file's [live] table, which is asked
    at every junction.

    Options:
      EXPERIMENT  A .toml file that says which calls, days and policies.
      --training-only  Replay only the training days, not the test days.
      --workers NUMBER  Processor cores to use; all of them by default.
      --live  Drive in the traffic of now, segment by segment; takes as long as the drives do.
      --most NUMBER  With --live: send at most this many requests in all, over all starts. A live
          router may charge for each.

    Examples:
      ideal replay experiments/port_almery.toml -o runs/port --training-only
      ideal replay experiments/port_almery.toml -o runs/port --workers 2
      ideal report runs/port/test --calibration runs/port/training
      ideal replay --live live.toml --most 20000 -o runs/live
    """
    from ideal_dispatch.experiment.engine import read_manifest
    from ideal_dispatch.replay.experiment import Experiment
    from ideal_dispatch.replay.run import KIND
    from ideal_dispatch.replay.study import TEST, TRAINING, calibration_of, run_experiment

    experiment = Experiment.load(file)
    if live:
        if training_only or workers is not None or cluster is not None:
            raise InputError("--live goes without --training-only, --workers and --cluster")
        if most is None:
            raise InputError("--live needs --most: how many requests may be sent in all?")
        _drive_live(experiment, output, most)
        return
    if most is not None:
        raise InputError("--most goes with --live; recorded traffic costs no requests")
    with bars() as bar:
        run_experiment(
            experiment, output, test=not training_only, workers=workers, cluster=cluster,
            watch=lambda step, share: bar(step, share, ""),
        )  # fmt: skip
    made = TRAINING if training_only else TEST
    say(f"wrote {output / made}")
    found = read_manifest(output / made, KIND)
    if lost := found["dropped"]:
        warn(
            f"{len(lost)} of {found['replayed'] + len(lost)} calls could not be replayed and "
            f"are left out; the first, {lost[0]['name']}: {lost[0]['reason']}"
        )
    command: list[object] = ["ideal", "report", output / made]
    if not training_only:
        command += ["--calibration", calibration_of(output)]
    if experiment.city.network:
        command += ["--network", experiment.folder / experiment.city.network]
    print_next(*command, "-o", output / "report")


def _drive_live(experiment: "Experiment", output: Path, most: int) -> None:
    from ideal_dispatch.replay.live import run_live
    from ideal_dispatch.replay.study import calibration_of

    with bars() as bar:
        found = run_live(
            experiment, output, most,
            report=lambda done, whole: bar("driving", done / whole, f"{done:,} of {whole:,} calls"),
        )  # fmt: skip
    facts = {"driven": found.driven, "left out": len(found.dropped), "undriven": found.undriven,
             "requests, all starts": found.requests}  # fmt: skip
    print_facts(output.name, {name: f"{value:,}" for name, value in facts.items()})
    if found.void:
        warn(
            f"{found.void} calls were under way when an earlier start ended: their drives are "
            "void, and they were made anew or are undriven"
        )
    if lost := found.dropped:
        warn(
            f"{len(lost)} calls could not be driven to their end and are left out; the first, "
            f"{lost[0]['name']}: {lost[0]['reason']}"
        )
    if found.stopped:
        warn(
            f"stopped with {found.undriven} calls undriven: {found.stopped}; the same command "
            "with a larger --most goes on"
        )
    if not found.driven:
        raise InputError(f"{output}: no call could be driven")
    say(f"wrote {found.folder}")
    command: list[object] = ["ideal", "report", found.folder]
    thresholds = calibration_of(output)
    if thresholds.exists():
        command += ["--calibration", thresholds]
    if experiment.city.network:
        command += ["--network", experiment.folder / experiment.city.network]
    print_next(*command, "-o", found.folder.parent / "report")
