"""Recorded traffic: what loading costs, what a quote does, and the memory of both."""

import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import human, race
from ideal_dispatch.cities import TRAINING_DAYS, City, harbour_city, harbour_traffic
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

QUOTES = 40


def run(console: Console) -> None:
    city = harbour_city()
    table = Table(title="recorded traffic of the embedded city")
    for column in ("what", "median", "memory"):
        table.add_column(column, justify="left" if column == "what" else "right")
    whole = partial(harbour_traffic, city)
    taken = race({"load": whole})["load"]
    table.add_row("load the whole file", human(taken), _memory(whole))
    recording = whole().only(range(TRAINING_DAYS))
    _loading(table, city, recording)
    _quoting(table, city, recording)
    console.print(table)


def _loading(table: Table, city: City, recording: RecordedTraffic) -> None:
    hours = [sum(recording.stretches[i].bins for i in day) // 60 for day in recording.days]
    with TemporaryDirectory() as folder:
        for length in sorted(set(hours)):
            file = Path(folder) / f"{length}.traffic"
            recording.only([hours.index(length)]).save(file)
            load = partial(RecordedTraffic.load, file, city.network)
            taken = race({"load": load})["load"]
            table.add_row(f"load a day of {length} hours", human(taken), _memory(load))


def _quoting(table: Table, city: City, recording: RecordedTraffic) -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(city.network.num_nodes, size=QUOTES).tolist()
    trips = [(city.depots[i % 2].node, place) for i, place in enumerate(places)]
    longest = max(recording.stretches, key=lambda stretch: stretch.bins)
    start = longest.start + timedelta(hours=1)
    edges = f"{city.network.num_edges:,} edges"

    def first() -> ReplayedTraffic:
        world = ReplayedTraffic(recording)
        world.quote(*trips[0], start)
        return world

    taken = race({"quote": first})["quote"]
    table.add_row(f"the first quote after load, {edges}", human(taken), _memory(first))

    def truth() -> ReplayedTraffic:
        world = ReplayedTraffic(recording)
        world.realised_times(start)
        return world

    taken = race({"truth": truth})["truth"]
    table.add_row(f"the first truth of {longest.bins // 60} hours", human(taken), _memory(truth))

    world = first()
    minutes = cycle(range(longest.bins - 61))  # more of them than the world remembers

    def next_minute() -> None:
        world.quote(*trips[0], start + timedelta(minutes=next(minutes)))

    for _ in range(60):
        next_minute()  # the hour before, as a router that runs has seen it
    taken = race({"quote": next_minute}, seconds=3.0)["quote"]
    table.add_row(f"a quote in a new minute, {edges}", human(taken), "")
    anywhere = cycle(rng.uniform(0, (longest.bins - 61) * 60, 1000).tolist())

    def any_moment() -> None:
        world.quote(*trips[0], start + timedelta(seconds=next(anywhere)))

    taken = race({"quote": any_moment}, seconds=3.0)["quote"]
    table.add_row(f"a quote at any moment of a day, {edges}", human(taken), "")
    seconds = rng.uniform(0, 3600, QUOTES).tolist()
    asked = [(*trip, start + timedelta(seconds=s)) for trip, s in zip(trips, seconds, strict=True)]

    def known() -> None:
        for one in asked:
            world.quote(*one)

    taken = race({"quote": known}, seconds=3.0)["quote"] / QUOTES
    table.add_row(f"a quote, {edges}, minutes known", human(taken), "")


def _memory(make: Callable[[], object]) -> str:
    """What stays allocated of what is made."""
    tracemalloc.start()
    kept = make()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return f"{size / 1e6:.1f} MB"
