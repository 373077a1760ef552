"""Advice beside a fleet that moves: 300 units at one position a second, calls at half capacity.

One worker on the embedded city with SQLite as audit. The same 300 units are known in every run,
so that calls have the same candidates. In every second run their positions come in, one list a
second as ``ideal units follow`` sends it. Runs with and without take turns; a pair's ratio of p99
is what positions cost. ``--minutes`` then lets them move on and looks at the memory.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.callers import Callers, Outcome
from benchmarks.load_clients import memory_mb
from benchmarks.service import Town
from benchmarks.stack import children_of, running
from benchmarks.timing import human
from ideal_dispatch.cities import harbour_city

UNITS = 300
_STEP_DEGREES = 0.0002  # some 20 m
_FREE = 0.5  # of the units: the others are busy and move, too
_SETTLE_S = 6.0


class Fleet:
    """Units on a random walk from junction to junction, told to one worker."""

    def __init__(self, port: int, token: str) -> None:
        city, self._rng = harbour_city(), np.random.default_rng(0)
        self._port, self._token = port, token
        nodes = self._rng.choice(city.network.num_nodes, UNITS)
        self._places = np.column_stack([city.network.lon[nodes], city.network.lat[nodes]])
        self._stations = [city.depots[n % len(city.depots)].name for n in range(UNITS)]
        self.seconds: list[float] = []

    async def begin(self) -> None:
        """Tell of all of them, half of them free."""
        statuses = np.where(self._rng.random(UNITS) < _FREE, "available", "transporting")
        await self._put([
            {"id": f"U{n:03d}", "station": self._stations[n], "status": str(statuses[n]),
             "lon": lon, "lat": lat}
            for n, (lon, lat) in enumerate(self._places.tolist())
        ])  # fmt: skip

    async def move(self, seconds: float) -> None:
        """A position of every unit each second."""
        began = time.perf_counter()
        for second in range(round(seconds)):
            await asyncio.sleep(max(began + second - time.perf_counter(), 0.0))
            steps = self._rng.normal(0.0, _STEP_DEGREES, self._places.shape)
            headings = np.degrees(np.arctan2(steps[:, 0], steps[:, 1])) % 360.0
            self._places = self._places + steps
            news = [
                {"id": f"U{n:03d}", "lon": lon, "lat": lat, "heading": heading}
                for n, ((lon, lat), heading) in enumerate(
                    zip(self._places.tolist(), headings.tolist(), strict=True)
                )
            ]
            asked = time.perf_counter()
            await self._put(news)
            self.seconds.append(time.perf_counter() - asked)

    async def _put(self, news: Sequence[object]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = json.dumps(news).encode()
        head = (
            f"PUT /v1/fleet/units HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"positions were refused: {answer[:500].decode()}")


def run(console: Console, seconds: float = 30.0, pairs: int = 3, minutes: float = 0.0) -> None:
    """Print a row for each run, and the ratio of every pair."""
    table = Table(title=f"{UNITS} units at a position a second, calls at half the capacity")
    for column in ("positions", "calls", "CPU each", "p50", "p99", "a list", "ratio of p99"):
        table.add_column(column, justify="left" if column == "positions" else "right")
    with TemporaryDirectory() as folder:
        town = Town.write(Path(folder))
        config = town.config(1, "multistart")
        text = config.read_text()
        stale = "default = 1000\nposition_stale_s = 86400.0\n"
        config.write_text(text.replace("default = 1000\n", stale))
        with running(config) as (worker,):
            time.sleep(_SETTLE_S)
            callers = Callers({worker.port: worker.pid}, town.token, town.places)
            fleet = Fleet(worker.port, town.token)
            uvloop.run(fleet.begin())
            uvloop.run(callers.offered(1.0, 10.0))  # connections, caches
            half = uvloop.run(callers.capacity(seconds / 5)).rate / 2
            ratios = []
            for pair in range(pairs):
                still = _run(table, "still", callers, None, seconds, half, pair, None)
                moving = _run(table, "moving", callers, fleet, seconds, half, pair, still)
                ratios.append(float(moving.quantiles()[1] / still.quantiles()[1]))
            console.print(table)
            console.print(
                f"median ratio {np.median(ratios):.2f}; {half:.0f} calls a second offered"
            )
            if minutes:
                _remember(console, fleet, callers, half, minutes, worker.pid)


def _run(
    table: Table,
    name: str,
    callers: Callers,
    fleet: Fleet | None,
    seconds: float,
    rate: float,
    seed: int,
    beside: Outcome | None,
) -> Outcome:
    async def together() -> Outcome:
        moving = None if fleet is None else asyncio.create_task(fleet.move(seconds))
        got = await callers.offered(seconds, rate, seed)
        if moving is not None:
            await moving
        return got

    if fleet is not None:
        fleet.seconds.clear()
    got = uvloop.run(together())
    p50, p99, _ = got.quantiles()
    ratio = "" if beside is None else f"{p99 / beside.quantiles()[1]:.2f}"
    listed = "" if fleet is None else human(float(np.median(fleet.seconds)))
    table.add_row(
        name, f"{got.count('answered'):,}", human(got.cpu_each_s), human(p50), human(p99), listed,
        ratio,
    )  # fmt: skip
    return got


def _remember(
    console: Console, fleet: Fleet, callers: Callers, rate: float, minutes: float, process: int
) -> None:
    """The memory of the worker and its solvers, minute by minute."""
    table = Table(title="Memory while they move")
    for column in ("minute", "worker", "solvers"):
        table.add_column(column, justify="right")

    async def a_minute(seed: int) -> None:
        await asyncio.gather(fleet.move(60.0), callers.offered(60.0, rate, seed))

    for minute in range(round(minutes) + 1):
        if minute:
            uvloop.run(a_minute(100 + minute))
        solvers = sum(map(memory_mb, children_of(process)))
        table.add_row(str(minute), f"{memory_mb(process):.0f} MB", f"{solvers:.0f} MB")
    console.print(table)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--seconds", type=float, default=30.0)
    given.add_argument("--pairs", type=int, default=3)
    given.add_argument("--minutes", type=float, default=0.0)
    run(Console(width=120), **vars(given.parse_args()))
