"""``ideal traffic record``: a log of what a router promises, again and again."""

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ideal_dispatch.cities import held_out_dates
from ideal_dispatch.cli.options import CityOptions, read_moment
from ideal_dispatch.cli.terminal import bars, print_facts, warn
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Count, Range, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.traffic.quote_recorder import NetworkSource


def record(
    output: Path,
    traffic_file: Path | None = None,
    google_key: Path | None = None,
    valhalla: str | None = None,
    segment: str = "static_ratio",
    answers: Path | None = None,
    network_file: Path | None = None,
    depots_file: Path | None = None,
    places: Count = 40,
    start: str | None = None,
    every: Annotated[float, Range(1)] | None = None,
    count: Count = 12,
    most: Count | None = None,
    seed: Whole = 0,
) -> None:
    r"""Log the times that a router promises from every depot, again and again.

    With --traffic the log also has the time that the drive really takes. After
    an interruption the same command continues the log on the same schedule.

    Options:
      -o, --output FILE  The log (.jsonl) to begin or to continue.
      --traffic FILE  Ask a .traffic file instead of a live router.
      --google-key FILE  Ask Google; the file holds your key of the Google Routes API.
      --valhalla URL  Ask a Valhalla server (a free router) at this address.
      --places NUMBER  How many random destinations to ask for.
      --start TIME  When to ask first, with the time zone: 2023-05-08T06:00+08:00. The default for a
          new log is now.
      --every SECONDS  Time between two rounds of asking; 300 by default.
      --count NUMBER  How many rounds, from the first on.
      --most NUMBER  Stop after this many requests in all; a live router may charge for each.

    For specialists:
      --segment WAY  How to get the time of the next road from Google: static_ratio, stopover or
          own_query.
      --answers FOLDER  Also keep the live router's answers as they came.

    Examples:
      ideal traffic record --traffic city.traffic \
        --start 2023-05-08T06:00+08:00 -o quotes.jsonl
      ideal traffic record --valhalla http://127.0.0.1:8002 --count 288 \
        -o quotes.jsonl
      ideal traffic record --google-key key.txt --most 2000 -o quotes.jsonl
    """
    import numpy as np

    from ideal_dispatch.outside_service import RequestBudget
    from ideal_dispatch.traffic.quote_recorder import Schedule, record_quotes

    city = CityOptions(network_file=network_file, depots_file=depots_file).city()
    budget, network = RequestBudget(most), city.network
    live = traffic_file is None
    named = {"--traffic": traffic_file, "--google-key": google_key, "--valhalla": valhalla}
    options = {"rng": np.random.default_rng(seed), "budget": budget}
    with _source(network, named, segment, answers, options) as source:
        first = None if start is None else read_moment("--start", start)
        if first is None and not live and not output.exists():
            raise InputError("--traffic needs --start: a moment of the recording, with its zone")
        places = min(places, network.num_nodes)
        chosen = np.random.default_rng(seed).choice(network.num_nodes, places, replace=False)
        pairs = [(d.node, int(place)) for d in city.depots for place in chosen if d.node != place]
        with bars() as show:
            summary = record_quotes(
                source, pairs, output, Schedule(count, first, every),
                budget=None if live else budget,
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
    if summary.failed and not summary.quoted:
        raise InputError(f"{output}: no quote came; the first failed with: {summary.failure}")


@contextmanager
def _source(
    network: "RoadNetwork",
    named: dict[str, Any],
    segment: str,
    answers: Path | None,
    options: dict[str, Any],
) -> "Iterator[NetworkSource]":
    """The one source that is ``named``; ``options`` are those of a live router."""
    given = [name for name, value in named.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            f"{' and '.join(given) or 'no router'} given: name one of {', '.join(named)}"
        )
    place = named[given[0]]
    if answers is not None:
        from ideal_dispatch.traffic.routing_service import RecordedAnswers

        options["answers"] = RecordedAnswers(answers)
    if given == ["--traffic"]:
        from ideal_dispatch.traffic.recording import RecordedTraffic
        from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

        recording = RecordedTraffic.load(place, network)
        if hidden := held_out_dates(recording, place):
            warn(
                f"{place}: test days from {min(hidden)} on; a log of them is for a last check alone"
            )
        yield ReplayedTraffic(recording)
        return
    from ideal_dispatch.traffic.routers import connect_router, read_key

    asked: dict[str, Any]
    if given == ["--google-key"]:
        kind, asked = "google", {"key": read_key(place), "segment": segment}
    else:
        if not place.startswith(("http://", "https://")):
            raise InputError(f"--valhalla {place}: write it as http://127.0.0.1:8002")
        kind, asked = "valhalla", {"url": place}
    with closing(connect_router(kind, network, **options, **asked)) as router:
        yield router
