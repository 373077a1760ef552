"""``ideal fleet report``: the page of a simulated fleet."""

from pathlib import Path

from ideal_dispatch.cli.options import check_file
from ideal_dispatch.cli.terminal import say, stages, warn


def report(run: Path, output: Path | None = None, force: bool = False) -> None:
    """Make one HTML page of a simulated fleet: what seconds bring, and what they cost the others.

    Tables and figures of survival, first arrivals by priority, and unit hours, over load and
    fleet size where the run has several; from which load on always sending two does harm; what
    one more ambulance would bring instead. A run that is not finished can be reported, too.

    Options:
      RUN  A folder made by `ideal fleet simulate`.
      -o, --output FILE  The page to write; fleet.html in the run's folder by default, where it
          is always written anew.

    Examples:
      ideal fleet report out/fleet
      ideal fleet report out/fleet -o fleet.html
    """
    from ideal_dispatch.evaluation.fleet_report import PAGE, caveats, write_fleet_report
    from ideal_dispatch.evaluation.fleet_runs import FleetRuns

    page = output or run / PAGE
    check_file(page, force or output is None)
    with stages("Reporting"):
        runs = FleetRuns.read(run)
        write_fleet_report(runs, page)
    for line in caveats(runs):
        warn(line)
    say(f"wrote {page}")
