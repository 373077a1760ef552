"""``ideal report``: a run becomes tables, figures and one page; several stand side by side."""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.options import check_folder, read_network
from ideal_dispatch.cli.terminal import out, print_table, say, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Positive, Share, Whole

if TYPE_CHECKING:
    from ideal_dispatch.evaluation.judged import Judged
    from ideal_dispatch.evaluation.outcomes import Outcomes
    from ideal_dispatch.evaluation.table import Table
    from ideal_dispatch.network import RoadNetwork


def report(
    runs: list[Path],
    output: Path = Path("report"),
    incident: str | None = None,
    network_file: Path | None = None,
    calibration: list[Path] | None = None,
    world: str | None = None,
    survival: str = "waalewijn-2001",
    coverage: Share | None = None,
    within: Positive | None = None,
    seed: Whole = 0,
    force: bool = False,
) -> None:
    r"""Make tables, figures and one HTML page of a replay; compare several replays.

    Tables are also written as .csv and LaTeX. Every policy is compared when it
    sends as many second ambulances as the others: the threshold for that is
    found on the days of --calibration or, without, on the days judged here.

    Options:
      RUN...  One or more folders made by `ideal replay`, such as runs/port/experienced/test.
      --incident NAME  A call to draw on a map, besides the most telling ones.
      --network FILE  The run's .network file, for maps. The embedded city needs none.
      --calibration RUN  A run of other days that sets the thresholds. Give one for all runs, or
          repeat it for each run.
      --world instantaneous|experienced  Judge in one world only. In instantaneous traffic a road
          takes what the router shows when it is entered, in experienced traffic what really
          happens. A and B are accepted too.
      --coverage SHARE  Find the threshold of each policy that sends the fewest second ambulances
          and still reaches this share of calls in time, such as 0.925. It is found on the days of
          --calibration, where given, and goes into an experiment file as `threshold`.
      --within SECONDS  What in time means for --coverage: less driving than this; 720
          by default.
      --survival NAME  The published curve that says how survival falls with time.

    Examples:
      ideal report out/test --calibration out/training -o out/report
      ideal report out/test --incident 2023-05-20-0007 --world experienced \
        -o out/report
      ideal report out/test --calibration out/training --coverage 0.925 \
        --within 720 -o out/report
      ideal report out/seed-1 out/seed-2 -o out/comparison
    """
    from ideal_dispatch.dispatch.survival import survival_curve
    from ideal_dispatch.evaluation.comparison import write_comparison
    from ideal_dispatch.evaluation.judged import Goal, Judged
    from ideal_dispatch.evaluation.metrics import TARGET_S
    from ideal_dispatch.evaluation.outcomes import Outcomes
    from ideal_dispatch.evaluation.report import caveats, write_report

    if incident is not None and len(runs) > 1:
        raise InputError("--incident goes with one run; give a single folder")
    if coverage is not None and len(runs) > 1:
        raise InputError("--coverage goes with one run; give a single folder")
    if within is not None and coverage is None:
        raise InputError("--within goes with --coverage; say which share of calls")
    goal = None if coverage is None else Goal(coverage, within or TARGET_S)
    page = "report.html" if len(runs) == 1 else "comparison.html"
    check_folder(output, (page, "tables", "figures"), force)
    with stages("Reporting") as progress:
        progress("reading")
        trained = [Outcomes.load(folder) for folder in calibration or ()]
        if len(trained) not in (0, 1, len(runs)):
            raise InputError(
                f"--calibration given {len(trained)} times for {len(runs)} runs; give one for "
                "all, or one for each in the same order"
            )
        curve, judged = survival_curve(survival), []
        for folder, other in zip(runs, cycle(trained or [None]), strict=False):
            outcomes = Outcomes.load(folder)
            shown = outcomes if world is None else outcomes.only(world)
            judged.append(Judged(shown, other, curve, seed, goal))
        if len(judged) > 1:
            progress("comparing")
            made = write_comparison(judged, output)
        else:
            network = _network(judged[0].outcomes, network_file)
            made = write_report(judged[0], output, network, incident, progress)
    for table in _main_tables(judged):
        out.print(table.title, style="bold", markup=False)
        print_table(table.header, table.text_rows(), table.bold)
    for one in judged:
        for line in caveats(one):
            warn(line if len(judged) == 1 else f"{one.outcomes.name}: {line}")
    say(f"wrote {made[-1]} and {len(made) - 1} tables and figures")


def _network(outcomes: "Outcomes", file: Path | None) -> "RoadNetwork | None":
    """The run's own network: the file given, or the embedded city's where it is that."""
    network = read_network(file)
    if network.checksum == outcomes.manifest["network"]:
        return network
    if file is not None:
        raise InputError(f"{file}: another network than that of {outcomes.name}; give the run's")
    return None


def _main_tables(judged: "list[Judged]") -> "list[Table]":
    from ideal_dispatch.evaluation import comparison
    from ideal_dispatch.evaluation.result_tables import arrival_table, coverage_table

    if len(judged) == 1:
        worlds = judged[0].outcomes.worlds
        covered = [coverage_table(judged[0], world) for world in worlds]
        arrivals = [arrival_table(judged[0], world) for world in worlds]
        return [*arrivals, *(table for table in covered if table is not None)]
    return [comparison.arrival_comparison(judged, world) for world in comparison.worlds(judged)]
