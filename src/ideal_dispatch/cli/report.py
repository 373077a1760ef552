"""``ideal report``: a replay becomes tables, figures and one page."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.options import check_folder, read_network
from ideal_dispatch.cli.terminal import print_report, say, stages
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Positive, Share, Whole

if TYPE_CHECKING:
    from ideal_dispatch.evaluation.outcomes import Outcomes
    from ideal_dispatch.network import RoadNetwork


def report(
    run: Path,
    output: Path = Path("report"),
    incident: str | None = None,
    network_file: Path | None = None,
    calibration: Path | None = None,
    survival: str = "waalewijn-2001",
    coverage: Share | None = None,
    within: Positive | None = None,
    seed: Whole = 0,
    force: bool = False,
) -> None:
    r"""Make one HTML page of a replay, its tables as CSV and its figures.

    Every policy is compared when it sends as many second ambulances as the others: the threshold
    for that is found on the days of --calibration or, without, on the days judged here.

    Options:
      RUN  A folder made by `ideal replay`, such as runs/port/test.
      --incident NAME  A call to draw on a map, besides the most telling ones.
      --network FILE  The run's .network file, for maps. The embedded city needs none.
      --calibration RUN  A run of other days that sets the thresholds.
      --coverage SHARE  Find the threshold of each policy that sends the fewest second ambulances
          and still reaches this share of calls in time, such as 0.925. It is found on the days of
          --calibration, where given, and goes into an experiment file as `threshold`.
      --within SECONDS  What in time means for --coverage: less driving than this; 720
          by default.
      --survival NAME  The published curve that says how survival falls with time.

    Examples:
      ideal report out/test --calibration out/training -o out/report
      ideal report out/test --incident 2023-05-20-0007 -o out/report
      ideal report out/test --calibration out/training --coverage 0.925 \
        --within 720 -o out/report
    """
    from ideal_dispatch.dispatch.survival import survival_curve
    from ideal_dispatch.evaluation.judged import Goal, Judged
    from ideal_dispatch.evaluation.metrics import TARGET_S
    from ideal_dispatch.evaluation.outcomes import Outcomes
    from ideal_dispatch.evaluation.replay_report import replay_report
    from ideal_dispatch.report import PAGE

    if within is not None and coverage is None:
        raise InputError("--within goes with --coverage; say which share of calls")
    goal = None if coverage is None else Goal(coverage, within or TARGET_S)
    check_folder(output, (PAGE,), force)
    with stages("Reporting") as progress:
        progress("reading")
        outcomes = Outcomes.load(run)
        trained = None if calibration is None else Outcomes.load(calibration)
        judged = Judged(outcomes, trained, survival_curve(survival), seed, goal)
        made = replay_report(judged, _network(outcomes, network_file), incident, progress)
        files = made.save(output)
    print_report(made, "arrival", "coverage")
    say(f"wrote {files[-1]} and {len(files) - 1} tables and figures")


def _network(outcomes: "Outcomes", file: Path | None) -> "RoadNetwork | None":
    """The run's own network: the file given, or the embedded city's where it is that."""
    network = read_network(file)
    if network.checksum == outcomes.manifest["network"]:
        return network
    if file is not None:
        raise InputError(f"{file}: another network than that of {outcomes.name}; give the run's")
    return None
