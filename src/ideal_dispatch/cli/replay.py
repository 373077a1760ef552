"""``ideal replay``: an experiment file becomes logs of its training and its test days."""

from pathlib import Path

from ideal_dispatch.cli.terminal import bars, print_next, say, warn
from ideal_dispatch.ranges import Count


def replay(
    file: Path,
    output: Path,
    training_only: bool = False,
    workers: Count | None = None,
    cluster: str | None = None,
) -> None:
    r"""Learn from past days, then replay calls under every policy in the same traffic.

    After an interruption the same command continues. The number of workers does
    not change the result. An experiment with a transfer table learns nothing: it
    uses what another run has learned.

    Options:
      EXPERIMENT  A .toml file that says which calls, days and policies.
      --training-only  Replay only the training days, not the test days.
      --workers NUMBER  Processor cores to use; all of them by default.

    Examples:
      ideal replay experiments/port_almery.toml -o runs/port --training-only
      ideal replay experiments/port_almery.toml -o runs/port --workers 2
      ideal report runs/port/experienced/test \
        --calibration runs/port/experienced/training
    """
    from ideal_dispatch.replay.experiment import Experiment
    from ideal_dispatch.replay.run_folder import read_manifest
    from ideal_dispatch.replay.study import TEST, TRAINING, calibration_of, run_experiment

    experiment = Experiment.load(file)
    with bars() as bar:
        run_experiment(
            experiment, output, test=not training_only, workers=workers, cluster=cluster,
            watch=lambda step, share: bar(step, share, ""),
        )  # fmt: skip
    made = TRAINING if training_only else TEST
    for world in experiment.worlds:
        say(f"wrote {output / world / made}")
        found = read_manifest(output / world / made)
        if lost := found["dropped"]:
            warn(
                f"{len(lost)} of {found['replayed'] + len(lost)} calls could not be replayed and "
                f"are left out; the first, {lost[0]['name']}: {lost[0]['reason']}"
            )
    first = output / experiment.worlds[-1]
    thresholds = calibration_of(output, first.name)
    command: list[object] = ["ideal", "report", first / made, "--world", first.name]
    if not training_only:
        command += ["--calibration", thresholds]
    if experiment.city.network:
        command += ["--network", experiment.folder / experiment.city.network]
    print_next(*command, "-o", first / "report")
