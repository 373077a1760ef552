"""Show whether made-up traffic is like real traffic, and why a second ambulance may help.

``python -m workshop.traffic days.traffic -o plausibility.html``
"""

from pathlib import Path

from ideal_dispatch.cities import held_out_dates
from ideal_dispatch.cli.help import CommandLine
from ideal_dispatch.cli.options import CityOptions, check_file
from ideal_dispatch.cli.terminal import say, stages, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.ranges import Count, Whole
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from workshop.page_parts import replace_part
from workshop.pictures import save_figures
from workshop.traffic.page import examine, markdown, nearest_region


def plausibility(
    files: list[Path],
    output: Path,
    days: Count = 8,
    synthetic_days: Whole = 7,
    hong_kong: Path | None = None,
    figures_folder: Path | None = None,
    page: Path | None = None,
    network_file: Path | None = None,
    depots_file: Path | None = None,
    seed: Whole = 0,
    force: bool = False,
) -> None:
    """Compare recordings with a synthetic world and with real speeds.

    Are peaks slower than nights? How long does a jam last, how far does it
    reach, how much do days differ? The same table is printed as Markdown.

    Options:
      FILE...  One or more .traffic files of one city.
      -o, --output FILE  The page to write, .html.
      --days NUMBER  Only so many days, the first; test days stay unseen.
      --synthetic-days NUMBER  Made-up days to compare with; 0 for none.
      --hong-kong FOLDER  Speeds measured in Hong Kong, to compare with.
      --figures FOLDER  Write every figure here, too, as .png.
      --page FILE  Write the table to this page of the docs, too.

    Example:
      python -m workshop.traffic days.traffic -o plausibility.html
    """
    check_file(output, force, [*files, network_file, depots_file])
    if figures_folder is not None and not figures_folder.is_dir():
        raise InputError(f"{figures_folder}: no such folder; create it first")
    city = CityOptions(network_file=network_file, depots_file=depots_file).city()
    network, depots, region = city.network, city.depots, city.region
    if region is None:
        region = nearest_region(network, depots)
    recordings = {}
    for file in files:
        whole = RecordedTraffic.load(file, network)
        simulated = len(files) == 1 and whole.provenance.get("engine") == "sumo"
        name = "SUMO" if simulated else file.stem
        if name in recordings or (synthetic_days and name == "synthetic"):
            raise InputError(f"{file}: another column is called {name}; rename the file")
        recordings[name] = whole.only(_shown(whole, file, days))
    with stages("Comparing") as show:
        if synthetic_days:
            show("synthetic world")
            params = SyntheticParams(days=synthetic_days, hours=((0, 24),), seed=seed)
            calendar = next(iter(recordings.values())).calendar
            recordings["synthetic"] = synthetic_traffic(network, calendar, params)
        found = examine(recordings, depots, region, real_folder=hong_kong, seed=seed, report=show)
        drawn = found.figures()
        write_file(output, found.html(drawn))
        if figures_folder is not None:
            save_figures(drawn, figures_folder)
    for line in found.warnings():
        warn(line)
    table = markdown(*found.table())
    if page is not None:
        replace_part(page, "plausibility", f"\n{table}\n")
    say(table)
    say(f"wrote {output}")


def _shown(recording: RecordedTraffic, file: Path, most: int) -> list[int]:
    """The first days, without those that are held out."""
    hidden = held_out_dates(recording, file)
    dates = [
        recording.calendar.local(recording.stretches[day[0]].start).date()
        for day in recording.days[:most]
    ]
    shown = [number for number, day in enumerate(dates) if day not in hidden]
    if len(shown) < len(dates):
        warn(f"{file}: {len(dates) - len(shown)} test days are left out")
    if not shown:
        raise InputError(f"{file}: all its days are test days of the embedded city")
    return shown


if __name__ == "__main__":
    app = CommandLine("Is made-up traffic like real traffic?")
    app.command()(plausibility)
    app()
