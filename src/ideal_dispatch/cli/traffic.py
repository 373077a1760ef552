"""``ideal traffic``: simulated, synthetic and recorded traffic."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from ideal_dispatch.arrays import IntArray
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.network import Depot, RoadNetwork
    from ideal_dispatch.traffic.budget import RequestBudget
    from ideal_dispatch.traffic.quote_recorder import NetworkSource
    from ideal_dispatch.traffic.recording import RecordedTraffic
    from ideal_dispatch.traffic.sumo.day_plan import DayPlan

app = typer.Typer(help="Make, record and look at traffic.", no_args_is_help=True)

NetworkOption = Annotated[
    Path | None, typer.Option("--network", help="A .network file; the embedded city without.")
]
ZoneOption = Annotated[str, typer.Option("--time-zone", help="Of the city: Asia/Hong_Kong.")]
CountryOption = Annotated[str, typer.Option("--country", help="Of the holiday calendar.")]

_SIMULATE = """Examples:

  ideal traffic simulate --engine synthetic --days 6 -o city.traffic

  ideal traffic simulate --engine sumo --days 3 -o days.traffic --work out/sumo
"""


@app.command(epilog=_SIMULATE)
def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", help="The .traffic file to write.")],
    engine: Annotated[str, typer.Option(help="synthetic (seconds) or sumo (minutes a day).")] = (
        "synthetic"
    ),
    days: Annotated[int, typer.Option(min=1, help="How many days.")] = 6,
    first: Annotated[
        str, typer.Option(help="The first day; SUMO days are spread over its year.")
    ] = "2023-05-08",
    seed: Annotated[int, typer.Option(min=0, help="Another number, other days.")] = 0,
    network_file: NetworkOption = None,
    time_zone: ZoneOption = "Asia/Hong_Kong",
    country: CountryOption = "HK",
    work: Annotated[
        Path | None,
        typer.Option(help="Where finished SUMO days are kept; an interrupted run goes on."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="SUMO days at once; all cores by default.")
    ] = None,
) -> None:
    """Make traffic on a network: edge times in minutes, in one file."""
    from ideal_dispatch.cli.terminal import out, stages
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.files import check_target

    check_target(output)
    network, calendar = _network(network_file), Calendar(time_zone, country)
    begin = _day(first)
    if engine == "synthetic":
        from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic

        with stages("Simulating"):
            params = SyntheticParams(days=days, first=begin, seed=seed)
            recording = synthetic_traffic(network, calendar, params)
    elif engine == "sumo":
        from ideal_dispatch.cli.terminal import warn
        from ideal_dispatch.traffic.sumo.plausibility import broken_rules

        folder = work or output.with_suffix(".days")
        recording = _sumo(network, calendar, days, begin.year, seed, folder, workers)
        for line in broken_rules(recording):
            warn(f"not plausible: {line}")
    else:
        raise InputError(f"--engine {engine}: choose synthetic or sumo")
    recording.save(output)
    _show(recording, output)
    out.print(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB)")


@app.command(epilog="Example:\n\n  ideal traffic info city.traffic")
def info(
    file: Annotated[Path, typer.Argument(help="A .traffic file.")],
    network_file: NetworkOption = None,
) -> None:
    """Show what a recording holds: days, hours, how much was seen, how slow it was."""
    from ideal_dispatch.traffic.recording import RecordedTraffic

    _show(RecordedTraffic.load(file, _network(network_file)), file)


_PLAUSIBILITY = """Examples:

  ideal traffic plausibility city.traffic -o plausibility.html

  ideal traffic plausibility days.traffic --hong-kong speeds/ --figures images -o page.html
"""


@app.command(epilog=_PLAUSIBILITY)
def plausibility(
    files: Annotated[list[Path], typer.Argument(help=".traffic files of one network.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write, .html.")],
    days: Annotated[
        int, typer.Option(min=1, help="Only the first so many days; later ones stay unseen.")
    ] = 8,
    synthetic_days: Annotated[
        int, typer.Option(min=0, help="Days of the synthetic world beside them; 0 for none.")
    ] = 7,
    hong_kong: Annotated[
        Path | None, typer.Option(help="Folder with the real Hong Kong speeds.")
    ] = None,
    figures_folder: Annotated[
        Path | None, typer.Option("--figures", help="Write every figure here, too, as .png.")
    ] = None,
    network_file: NetworkOption = None,
    depots_file: Annotated[
        Path | None, typer.Option("--depots", help="CSV with name, lon, lat; or the city's own.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other calls.")] = 0,
) -> None:
    """Show whether recorded traffic is like traffic, and why a second ambulance may help.

    Peak and night, memory in time, reach over distance, days apart; and the
    three issues of the paper's introduction. The table is printed as Markdown.
    """
    from ideal_dispatch.cli.terminal import out, stages, warn
    from ideal_dispatch.evaluation import traffic_page
    from ideal_dispatch.files import check_target
    from ideal_dispatch.traffic.recording import RecordedTraffic

    check_target(output)
    if figures_folder is not None and not figures_folder.is_dir():
        raise InputError(f"{figures_folder}: no such folder; create it first")
    network = _network(network_file)
    depots, region = _depots(network, network_file, depots_file)
    recordings = {}
    for file in files:
        whole = RecordedTraffic.load(file, network)
        simulated = len(files) == 1 and whole.provenance.get("engine") == "sumo"
        name = "SUMO" if simulated else file.stem
        if name in recordings or (synthetic_days and name == "synthetic"):
            raise InputError(f"{file}: another column is called {name}; rename the file")
        recordings[name] = whole.only(range(min(days, len(whole.days))))
    with stages("Comparing") as show:
        if synthetic_days:
            from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic

            show("synthetic world")
            params = SyntheticParams(days=synthetic_days, hours=((0, 24),), seed=seed)
            calendar = next(iter(recordings.values())).calendar
            recordings["synthetic"] = synthetic_traffic(network, calendar, params)
        found = traffic_page.examine(
            recordings, depots, region, real_folder=hong_kong, seed=seed, report=show
        )
        drawn = found.figures()
        found.page(drawn).save(output)
        if figures_folder is not None:
            traffic_page.save_figures(drawn, figures_folder)
    for line in found.warnings():
        warn(line)
    out.print(traffic_page.markdown(*found.table()), markup=False, soft_wrap=True)
    out.print(f"wrote {output}")


_RECORD = """Examples:

  ideal traffic record --traffic city.traffic --start 2023-05-08T06:00+08:00 -o quotes.jsonl

  ideal traffic record --valhalla http://127.0.0.1:8002 --count 288 -o quotes.jsonl

  ideal traffic record --google-key key.txt --most 2000 -o quotes.jsonl
"""


@app.command(epilog=_RECORD)
def record(
    output: Annotated[Path, typer.Option("-o", "--output", help="The log, begun or continued.")],
    traffic_file: Annotated[
        Path | None, typer.Option("--traffic", help="A .traffic file in place of a live router.")
    ] = None,
    google_key: Annotated[
        Path | None, typer.Option(help="File with a Google Routes API key: ask Google.")
    ] = None,
    valhalla: Annotated[str | None, typer.Option(help="URL of a Valhalla server: ask it.")] = None,
    network_file: NetworkOption = None,
    depots_file: Annotated[
        Path | None, typer.Option("--depots", help="CSV with name, lon, lat; or the city's own.")
    ] = None,
    places: Annotated[int, typer.Option(min=1, help="Random places asked for.")] = 40,
    start: Annotated[
        str | None, typer.Option(help="First asking, with zone; now for a live router.")
    ] = None,
    every: Annotated[float, typer.Option(min=1, help="Seconds between askings.")] = 300.0,
    count: Annotated[int, typer.Option(min=1, help="How many askings.")] = 12,
    most: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many requests or quotes.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other places.")] = 0,
) -> None:
    """Log what a router promises from every depot, again and again.

    Where the truth is known, as in a recording, it is logged beside the quote.
    The same command goes on with an interrupted log.
    """
    import numpy as np

    from ideal_dispatch.cli.terminal import bars, print_facts, warn
    from ideal_dispatch.traffic.budget import RequestBudget
    from ideal_dispatch.traffic.quote_recorder import record_quotes

    rng = np.random.default_rng(seed)
    network = _network(network_file)
    budget = RequestBudget(most) if most is not None else None
    source = _source(network, traffic_file, google_key, valhalla, rng, budget)
    depots, _ = _depots(network, network_file, depots_file)
    places = min(places, network.num_nodes)
    chosen = np.random.default_rng(seed).choice(network.num_nodes, places, replace=False)
    pairs = [(d.node, int(place)) for d in depots for place in chosen if d.node != place]
    with bars() as show:
        summary = record_quotes(
            source, pairs, _moment(start, traffic_file is None), every, count, output,
            budget if traffic_file is not None else None,
            progress=lambda done, all_: show("asking", done / all_, f"{done:,} of {all_:,}"),
        )  # fmt: skip
    for note in summary.notes:
        warn(note)
    facts = {"quoted": summary.quoted, "failed": summary.failed, "were there": summary.present,
             "missed": summary.missed}  # fmt: skip
    print_facts(output.name, {name: f"{value:,}" for name, value in facts.items()})
    if summary.stopped:
        warn(summary.stopped)


def _source(
    network: "RoadNetwork",
    traffic_file: Path | None,
    google_key: Path | None,
    valhalla: str | None,
    rng: "Generator",
    budget: "RequestBudget | None",
) -> "NetworkSource":
    given = [name for name, value in (("--traffic", traffic_file), ("--google-key", google_key),
                                      ("--valhalla", valhalla)) if value is not None]  # fmt: skip
    if len(given) != 1:
        raise InputError(
            f"{' and '.join(given) or 'no router'} given: name one of --traffic, --google-key "
            "and --valhalla"
        )
    if traffic_file is not None:
        from ideal_dispatch.traffic.recorded import RecordedWorld
        from ideal_dispatch.traffic.recording import RecordedTraffic

        return RecordedWorld(RecordedTraffic.load(traffic_file, network))
    if google_key is not None:
        from ideal_dispatch.files import check_source
        from ideal_dispatch.traffic.google_routes import GoogleRoutes

        check_source(google_key)
        key = google_key.read_text(encoding="utf-8", errors="replace").strip()
        return GoogleRoutes.connect(network, key, rng, budget=budget)
    from ideal_dispatch.traffic.valhalla import Valhalla

    return Valhalla.connect(network, str(valhalla), rng, budget=budget)


def _depots(
    network: "RoadNetwork", network_file: Path | None, file: Path | None
) -> "tuple[Sequence[Depot], IntArray]":
    """Depots, and the number of the one whose territory each node is in."""
    if file is not None:
        from ideal_dispatch.evaluation.traffic_page import nearest_region
        from ideal_dispatch.network.csv_files import read_depots

        depots, elsewhere = read_depots(file, network)
        if not depots:
            raise InputError(f"{file}: no depot lies on this network; {elsewhere[0]}")
        return depots, nearest_region(network, depots)
    if network_file is not None:
        raise InputError("--network needs --depots: whose ambulances shall be asked for?")
    from ideal_dispatch.cities import harbour_city

    city = harbour_city()
    return city.depots, city.region


def _moment(text: str | None, live: bool) -> datetime:
    if text is None:
        if not live:
            raise InputError("--traffic needs --start: a moment of the recording, with its zone")
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--start {text}: write it as 2023-05-08T06:00+08:00") from None
    if moment.tzinfo is None:
        raise InputError(f"--start {text}: add the zone, as in 2023-05-08T06:00+08:00")
    return moment


def _network(file: Path | None) -> "RoadNetwork":
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork

    return harbour_city().network if file is None else RoadNetwork.load(file)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--first {text}: write it as 2023-05-08") from None


def _sumo(
    network: "RoadNetwork",
    calendar: "Calendar",
    days: int,
    year: int,
    seed: int,
    folder: Path,
    workers: int | None,
) -> "RecordedTraffic":
    from ideal_dispatch.cli.terminal import bars
    from ideal_dispatch.traffic.campaign import simulate as campaign
    from ideal_dispatch.traffic.sumo.planning import plan_days

    plans = plan_days(network, calendar, seed, year=year, days=days, whole_days=days // 6)
    done = 0
    with bars() as show:

        def report(plan: "DayPlan", cpu_s: float) -> None:
            nonlocal done
            done += 1
            show("simulating days", done / len(plans), f"{plan.date}: {cpu_s:.0f} CPU s")

        return campaign(network, calendar, plans, folder, workers=workers, report=report)


def _show(recording: "RecordedTraffic", file: Path) -> None:
    import numpy as np
    from rich.table import Table

    from ideal_dispatch.cli.terminal import out, print_facts
    from ideal_dispatch.traffic.recording import RATIOS

    arrays = {id(a): a for s in recording.stretches for a in (s.codes, s.truth) if a is not None}
    megabytes = sum(array.nbytes for array in arrays.values()) / 1e6
    print_facts(
        file.name,
        {
            "engine": str(recording.provenance.get("engine", "not stated")),
            "edges": f"{recording.network.num_edges:,}",
            "bin": f"{recording.bin_s} s",
            "days": str(len(recording.days)),
            "in memory": f"{megabytes:.0f} MB",
        },
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("day", "hours", "rain mm", "edge-minutes seen", "time / free flow"):
        table.add_column(column, justify="left" if column == "day" else "right")
    for stretch in recording.stretches:
        local, seen = recording.calendar.local(stretch.start), stretch.codes > 0
        table.add_row(
            f"{local:%a %d %b %Y}",
            f"{local:%H:%M}–{recording.calendar.local(recording.end(stretch)):%H:%M}",
            f"{stretch.weather[:, 1].sum():.0f}",
            f"{seen.mean():.0%}",
            f"{np.mean(RATIOS[stretch.codes[seen]]):.2f}" if seen.any() else "–",
        )
    out.print(table)
