"""Replays of the embedded city under the router's policies, in synthetic traffic.

An incident is two quotes with their alternatives, three decisions, the drives of
both stations and a hindsight optimum, written to a log. A drive
is timed with the trees that all drives of an incident share, worked out anew for
each, and by asking for a whole quote at every junction. Time and memory are of a
process of its own, which calls the workers and writes the log; with one worker it
does all the work, and its CPU time does not mind a busy machine.
"""

import resource
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from joblib.externals.loky import get_reusable_executor
from rich.console import Console
from rich.table import Table

from benchmarks.timing import human, race
from ideal_dispatch import Calendar
from ideal_dispatch.cities import City, harbour_city
from ideal_dispatch.dispatch import Assignment
from ideal_dispatch.dispatch.policies import IntervalPolicy, RouterDual, RouterPolicy
from ideal_dispatch.replay import Replay, World, drive, run_replay, sample_incidents
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic

INCIDENTS = 1000
POLICIES = RouterPolicy(), RouterDual(), IntervalPolicy()
_DAYS = 2


class Requerying:
    """The same world without its trees."""

    def __init__(self, world: ReplayedTraffic) -> None:
        self._world = world

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """See :class:`ReplayedTraffic`."""
        return self._world.quote(origin, destination, at)


def _ground() -> tuple[City, RecordedTraffic]:
    city = harbour_city()
    calendar = Calendar(city.time_zone, city.country)
    return city, synthetic_traffic(
        city.network, calendar, SyntheticParams(days=_DAYS, hours=((7, 10),))
    )


def _replayed(incidents: int, workers: int) -> tuple[float, float, float]:
    """Seconds and CPU seconds of a replay, and the most megabytes ever held."""
    city, recording = _ground()
    weights = np.ones(city.network.num_nodes)
    calls = sample_incidents(recording, weights, max(incidents // _DAYS, 1), seed=0)
    replay = Replay(ReplayedTraffic(recording), city.depots, POLICIES, region=city.region)
    with TemporaryDirectory() as folder:
        for part, name in ((calls[:64], "warm"), (calls, "whole")):  # workers start on the first
            start, cpu = perf_counter(), process_time()
            run_replay(replay, part, Path(folder) / name, workers=workers)
            seconds, cpu_s = perf_counter() - start, process_time() - cpu
    if workers > 1:
        get_reusable_executor().shutdown()  # this process ends only after its workers
    return seconds, cpu_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(console: Console, incidents: int = INCIDENTS, workers: Sequence[int] = (1, 2)) -> None:
    """Print two tables."""
    table = Table(title="Replay of the embedded city, router policies only")
    for column in ("workers", "incidents", "incidents/s", "per CPU second", "most memory"):
        table.add_column(column, justify="right")
    context = get_context("spawn")
    for number in workers:
        for count in (incidents // 4, incidents):
            with ProcessPoolExecutor(1, mp_context=context) as apart:
                seconds, cpu_s, megabytes = apart.submit(_replayed, count, number).result()
            table.add_row(
                str(number), f"{count:,}", f"{count / seconds:,.0f}",
                f"{count / cpu_s:,.0f}" if number == 1 else "", f"{megabytes:,.0f} MB",
            )  # fmt: skip
    console.print(table)
    console.print(_drives())


def _drives(trips: int = 20) -> Table:
    """Adaptive drives, with trees and without."""
    city, recording = _ground()
    network, world = city.network, ReplayedTraffic(recording)
    calls = sample_incidents(recording, np.ones(network.num_nodes), trips // _DAYS, seed=1)
    told = [Assignment(0, world.quote(city.depots[0].node, one.node, one.at).path) for one in calls]

    def driven(source: ReplayedTraffic | Requerying) -> int:
        pairs = zip(told, calls, strict=True)
        return sum(
            drive(source, network, one, call.node, call.at, World.INSTANTANEOUS).edges.size
            for one, call in pairs
        )

    def fresh() -> int:
        world._recorded._towards.cache_clear()
        return driven(world)

    times = race(
        {
            "trees, shared": lambda: driven(world),
            "trees, new": fresh,
            "a quote per junction": lambda: driven(Requerying(world)),
        }
    )
    table = Table(title=f"An adaptive drive of {driven(world) / len(calls):.0f} segments")
    for column in ("by", "time"):
        table.add_column(column, justify="left" if column == "by" else "right")
    for name, seconds in times.items():
        table.add_row(name, human(seconds / len(calls)))
    return table
