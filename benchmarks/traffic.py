"""Recorded traffic: what a quote costs, and what loading a day does."""

import tracemalloc
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import human, race
from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic
from ideal_dispatch.traffic.recorded import RecordedWorld
from ideal_dispatch.traffic.recording import RecordedTraffic

QUOTES = 40


def run(console: Console) -> None:
    city = harbour_city()
    network = city.network
    recording = harbour_traffic(city).only(range(TRAINING_DAYS))
    table = Table(title="recorded traffic of the embedded city")
    for column in ("what", "median", "memory"):
        table.add_column(column, justify="left" if column == "what" else "right")
    hours = [sum(recording.stretches[i].bins for i in day) // 60 for day in recording.days]
    with TemporaryDirectory() as folder:
        for length in sorted(set(hours)):
            file = Path(folder) / f"{length}.traffic"
            recording.only([hours.index(length)]).save(file)
            taken = race({"load": partial(RecordedTraffic.load, file, network)})["load"]
            tracemalloc.start()
            kept = RecordedTraffic.load(file, network)
            size = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            table.add_row(f"load a day of {length} hours, {kept!r}", human(taken), _mb(size))
    world = RecordedWorld(recording)
    rng = np.random.default_rng(0)
    start = recording.stretches[2].start + timedelta(hours=1)
    asked = [
        (city.depots[i % 2].node, int(rng.integers(network.num_nodes)),
         start + timedelta(seconds=float(rng.uniform(0, 3600))))
        for i in range(QUOTES)
    ]  # fmt: skip

    def quote() -> None:
        for one in asked:
            world.quote(*one)

    taken = race({"quote": quote}, seconds=3.0)["quote"] / QUOTES
    table.add_row(f"a quote, {network.num_edges:,} edges, minutes known", human(taken), "")
    console.print(table)


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
