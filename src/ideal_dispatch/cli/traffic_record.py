"""``ideal traffic record``: a log of what a router promises, again and again."""

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ideal_dispatch.cli.moments import read_moment
from ideal_dispatch.cli.places import (
    DepotsOption,
    NetworkOption,
    depots_and_regions,
    read_network,
)
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.traffic.budget import RequestBudget
    from ideal_dispatch.traffic.quote_recorder import NetworkSource

EPILOG = """Examples:

  ideal traffic record --traffic city.traffic --start 2023-05-08T06:00+08:00 -o quotes.jsonl

  ideal traffic record --valhalla http://127.0.0.1:8002 --count 288 -o quotes.jsonl

  ideal traffic record --google-key key.txt --most 2000 -o quotes.jsonl
"""


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
    depots_file: DepotsOption = None,
    places: Annotated[int, typer.Option(min=1, help="Random places asked for.")] = 40,
    start: Annotated[
        str | None,
        typer.Option(help="First asking, with zone; else as the log began, a new one now."),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds between askings; else as the log began, or 300."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many askings since the first.")] = 12,
    most: Annotated[
        int | None, typer.Option(min=1, help="So many requests or quotes for the whole log.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other places.")] = 0,
) -> None:
    """Log what a router promises from every depot, again and again.

    Where the truth is known, as in a recording, it is logged beside the quote.
    The same command goes on with an interrupted log, on the schedule it began.
    """
    import numpy as np

    from ideal_dispatch.cli.terminal import bars, print_facts, warn
    from ideal_dispatch.traffic.budget import RequestBudget
    from ideal_dispatch.traffic.quote_recorder import record_quotes

    rng, budget = np.random.default_rng(seed), RequestBudget(most)
    network = read_network(network_file)
    live = traffic_file is None
    with _source(network, traffic_file, google_key, valhalla, rng, budget) as source:
        first = None if start is None else read_moment("--start", start)
        if first is None and not live and not output.exists():
            raise InputError("--traffic needs --start: a moment of the recording, with its zone")
        depots, _ = depots_and_regions(network, network_file, depots_file)
        places = min(places, network.num_nodes)
        chosen = np.random.default_rng(seed).choice(network.num_nodes, places, replace=False)
        pairs = [(d.node, int(place)) for d in depots for place in chosen if d.node != place]
        with bars() as show:
            summary = record_quotes(
                source, pairs, first, every, count, output,
                budget=None if live else budget,
                requests=budget if live else None,
                progress=lambda done, all_: show("asking", done / all_, f"{done:,} of {all_:,}"),
            )  # fmt: skip
    for note in summary.notes:
        warn(note)
    facts = {"quoted": summary.quoted, "failed": summary.failed, "were there": summary.present,
             "missed": summary.missed}  # fmt: skip
    if live:
        facts["requests, all runs"] = budget.spent
    print_facts(output.name, {name: f"{value:,}" for name, value in facts.items()})
    if summary.stopped:
        warn(summary.stopped)


@contextmanager
def _source(
    network: "RoadNetwork",
    traffic_file: Path | None,
    google_key: Path | None,
    valhalla: str | None,
    rng: "Generator",
    budget: "RequestBudget",
) -> "Iterator[NetworkSource]":
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

        yield RecordedWorld(RecordedTraffic.load(traffic_file, network))
    elif google_key is not None:
        from ideal_dispatch.files import check_source
        from ideal_dispatch.traffic.google_routes import GoogleRoutes

        check_source(google_key)
        key = google_key.read_text(encoding="utf-8", errors="replace").strip()
        with closing(GoogleRoutes.connect(network, key, rng, budget=budget)) as google:
            yield google
    else:
        from ideal_dispatch.traffic.valhalla import Valhalla

        if not str(valhalla).startswith(("http://", "https://")):
            raise InputError(f"--valhalla {valhalla}: write it as http://127.0.0.1:8002")
        with closing(Valhalla.connect(network, str(valhalla), rng, budget=budget)) as server:
            yield server
