"""The service under load: calls a second, latencies at half of that and at 20 calls a second.

    ideal bench service
    python -m benchmarks.service --before ../before --rounds 3   # in turn with another checkout
    python -m benchmarks.service --minutes 20                    # memory while units move

Every worker is `ideal serve` at a port of its own, on the embedded city with the shipped model, its
training days as traffic, SQLite, and 300 units; a bare endpoint of the framework under the same
server settings runs beside it, so that our share of a latency can be seen. Saturation is what a few
callers get who ask one call after the other. Otherwise calls come at random moments whatever the
answers, and a latency counts from the moment a call was due. In every second run at 20 calls a
second all units report a position each second. The callers are a process on the same machine and
take their share of its cores; the processor time of the workers, a call, does not mind a busy
machine. The checkout before may be of version 0.2.0, whose settings and addresses were others.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from compileall import compile_dir
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import uvloop
from rich.console import Console
from rich.table import Table

import ideal_dispatch
from benchmarks.callers import ASK, Callers, Outcome
from benchmarks.load_clients import memory_mb
from benchmarks.ports import free_port
from benchmarks.stack import WorkerProcess, children_of
from benchmarks.timing import human
from ideal_dispatch.cities import HARBOUR_MODEL, TRAINING_DAYS, harbour_city, harbour_traffic

UNITS = 300
RATE = 20.0
"""Calls a second, where units stand and where they move."""

_STORM = 1, 3, 10  # times the capacity
_SETTLE_S = 6.0  # solvers of version 0.2 start when the first can advise
_STEP_DEGREES = 0.0002  # some 20 m
_FREE = 0.5  # of the units: the others are busy and move, too

_CONFIG = """
[city]
name = "Port Almery"
network = "city.network"
depots = "depots.csv"
time_zone = "{zone}"
country = "{country}"
[model]
folder = {model}
{responses} = {response_times}
[policy]
threshold = {{ cost = 0.002 }}
method = "multistart"
[traffic]
kind = "recorded"
file = "city.traffic"
[units]
position_stale_s = 86400.0
[audit]
url = "{database}"
[server]
{server}
queue = {queue}
log_level = "warning"
expiry_s = {expiry_s}
[[tokens]]
name = "load"
role = "admin"
sha256 = "{hashed}"
[[tokens]]
name = "other"
role = "cad"
sha256 = "{other_hashed}"
"""


@dataclass(frozen=True)
class Town:
    """The embedded city's files, the token of the callers, and one of another client."""

    folder: Path
    places: list[dict[str, float]]
    token: str
    hashed: str
    other_token: str
    other_hashed: str

    @classmethod
    def write(cls, folder: Path) -> "Town":
        from ideal_dispatch.service.settings import new_token

        city, rng = harbour_city(), np.random.default_rng(0)
        city.network.save(folder / "city.network")
        harbour_traffic(city).only(range(TRAINING_DAYS)).save(folder / "city.traffic")
        lon, lat = city.network.lon, city.network.lat
        rows = [f"{one.name},{lon[one.node]},{lat[one.node]}" for one in city.depots]
        (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
        nodes = rng.choice(city.network.num_nodes, 500, replace=False).tolist()
        places = [{"lon": float(lon[node]), "lat": float(lat[node])} for node in nodes]
        return cls(folder, places, *new_token(), *new_token())

    def config(
        self,
        workers: int = 1,
        database: str | None = None,
        *,
        expiry_s: float = 0.25,
        before: bool = False,
        more: str = "",
    ) -> Path:
        """Settings; an advice holds so briefly that units are free again for the next call."""
        city, model = harbour_city(), HARBOUR_MODEL
        name = f"{'before' if before else 'now'}-{workers}-{time.monotonic_ns()}"
        path = self.folder / f"{name}.toml"
        path.write_text(_CONFIG.format(
            zone=city.time_zone, country=city.country, hashed=self.hashed,
            other_hashed=self.other_hashed, model=json.dumps(str(model)),
            responses="gain" if before else "responses",
            response_times=json.dumps(str(model / "response_times.json")),
            server=f"solvers = {max(2 // workers, 1)}" if before else "",
            database=database or f"sqlite:///{name}.db",
            queue=max(16 // workers, 1), expiry_s=expiry_s,
        ) + more)  # fmt: skip
        return path


class Fleet:
    """Units on a random walk, reported to one worker."""

    def __init__(self, port: int, token: str, before: bool = False) -> None:
        city, self._rng = harbour_city(), np.random.default_rng(0)
        self._port, self._token = port, token
        self._path = "/v1/fleet/units" if before else "/v1/units"
        self._depot = "station" if before else "depot"
        nodes = self._rng.choice(city.network.num_nodes, UNITS)
        self._places = np.column_stack([city.network.lon[nodes], city.network.lat[nodes]])
        self._depots = [city.depots[n % len(city.depots)].name for n in range(UNITS)]
        self.seconds: list[float] = []

    async def begin(self) -> None:
        """Report all of them, half of them free."""
        statuses = np.where(self._rng.random(UNITS) < _FREE, "available", "transporting")
        await self._put([
            {"id": f"U{n:03d}", self._depot: self._depots[n], "status": str(statuses[n]),
             "lon": lon, "lat": lat}
            for n, (lon, lat) in enumerate(self._places.tolist())
        ])  # fmt: skip

    async def move(self, seconds: float) -> None:
        """A position of every unit each second."""
        began = time.perf_counter()
        for second in range(round(seconds)):
            await asyncio.sleep(max(began + second - time.perf_counter(), 0.0))
            self._places = self._places + self._rng.normal(0.0, _STEP_DEGREES, self._places.shape)
            asked = time.perf_counter()
            await self._put([
                {"id": f"U{n:03d}", "lon": lon, "lat": lat, "heading": 90.0}
                for n, (lon, lat) in enumerate(self._places.tolist())
            ])  # fmt: skip
            self.seconds.append(time.perf_counter() - asked)

    async def _put(self, news: Sequence[object]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = json.dumps(news).encode()
        head = (
            f"PUT {self._path} HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"positions were refused: {answer[:500].decode()}")


@dataclass(frozen=True)
class Contender:
    """What is measured: this checkout, another one ``before``, or a ``bare`` endpoint."""

    name: str
    workers: int
    before: Path | None = None
    bare: bool = False

    @contextmanager
    def served(self, town: Town) -> Iterator[tuple[Callers, Fleet, float]]:
        """Workers ready for calls about known units, and how long the last took to start."""
        config = town.config(self.workers, before=self.before is not None)
        environment = {} if self.before is None else {"PYTHONPATH": str(self.before / "src")}
        with ExitStack() as stack:
            running, took_s = {}, 0.0
            for port in [free_port() for _ in range(self.workers)]:
                theirs = [
                    sys.executable,
                    "-m",
                    "benchmarks.service",
                    "bare",
                    str(config),
                    str(port),
                ]
                worker = WorkerProcess(config, port, theirs if self.bare else None, environment)
                stack.callback(worker.stop)
                began = time.perf_counter()
                worker.start()
                took_s = time.perf_counter() - began
                running[port] = worker.pid
            time.sleep(_SETTLE_S)
            callers = Callers(running, town.token, town.places)
            fleet = Fleet(next(iter(running)), town.token, self.before is not None)
            if not self.bare:
                uvloop.run(fleet.begin())
            uvloop.run(callers.offered(1.0, 10.0))  # connections, caches
            yield callers, fleet, took_s


@dataclass
class Measured:
    """What one contender showed in one round."""

    start_s: float
    most: Outcome
    calm: Outcome
    still: Outcome | None = None
    moving: Outcome | None = None
    list_s: float = np.nan
    memory_mb: float = np.nan


def measure(contender: Contender, town: Town, seconds: float) -> Measured:
    """Saturation, latencies at half of it, and beside units that stand and that move."""
    with contender.served(town) as (callers, fleet, took_s):
        most = uvloop.run(callers.capacity(seconds / 3))
        half = most.rate / 2
        calm = uvloop.run(callers.offered(min(seconds, 1000 / half), half))
        made = Measured(took_s, most, calm)
        if contender.bare:
            return made
        made.still = uvloop.run(callers.offered(seconds, RATE, 1))

        async def together() -> Outcome:
            moving = asyncio.create_task(fleet.move(seconds))
            got = await callers.offered(seconds, RATE, 1)
            await moving
            return got

        made.moving = uvloop.run(together())
        made.list_s = float(np.median(fleet.seconds))
        made.memory_mb = sum(map(_family_mb, callers.processes))
        return made


def _family_mb(process: int) -> float:
    return memory_mb(process) + sum(map(_family_mb, children_of(process)))


def run(
    console: Console,
    seconds: float = 15.0,
    workers: Sequence[int] = (1, 2),
    before: Path | None = None,
    rounds: int = 1,
) -> None:
    """Print the tables; contenders take turns, and a cell is the median of its rounds."""
    compile_dir(str(Path(ideal_dispatch.__file__).parent), quiet=1)  # as pip leaves a package
    contenders = []
    for number in workers:
        contenders.append(Contender("ideal serve", number))
        if before is not None:
            contenders.append(Contender("before", number, before))
        contenders.append(Contender("bare endpoint", number, bare=True))
    found: dict[Contender, list[Measured]] = {one: [] for one in contenders}
    with TemporaryDirectory() as folder:
        town = Town.write(Path(folder))
        for number in range(rounds):
            for one in contenders if number % 2 == 0 else reversed(contenders):
                found[one].append(measure(one, town, seconds))
        _print(console, found)
        for number in workers:
            _storm(console, town, number, seconds / 3)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average at the end {load}")


def _print(console: Console, found: dict[Contender, list[Measured]]) -> None:
    half = Table(title="At saturation, and latency at half of that")
    for column in ("workers", "", "start", "calls/s", "CPU each", "p50", "p99", "memory"):
        half.add_column(column, justify="right" if column else "left")
    beside = Table(title=f"At {RATE:.0f} calls a second; {UNITS} units stand, or move each second")
    for column in ("workers", "", "p50", "p99", "p50, moving", "p99, moving", "a list"):
        beside.add_column(column, justify="right" if column else "left")
    for one, rows in found.items():
        quantiles = np.median([row.calm.quantiles() for row in rows], axis=0)
        memory_mb = float(np.median([row.memory_mb for row in rows]))
        half.add_row(
            str(one.workers), one.name, human(_median(row.start_s for row in rows)),
            f"{_median(row.most.rate for row in rows):,.0f}",
            human(_median(row.most.cpu_each_s for row in rows)), *map(human, quantiles[:2]),
            "" if one.bare else f"{memory_mb:.0f} MB",
        )  # fmt: skip
        if one.bare:
            continue
        pair = [
            np.median(
                [each.quantiles()[:2] for row in rows if (each := getattr(row, name))], axis=0
            )
            for name in ("still", "moving")
        ]
        beside.add_row(
            str(one.workers), one.name, *map(human, np.concatenate(pair)),
            human(_median(row.list_s for row in rows)),
        )  # fmt: skip
    console.print(half)
    console.print(beside)


def _median(values: Iterator[float]) -> float:
    return float(np.median(list(values)))


def _storm(console: Console, town: Town, workers: int, seconds: float) -> None:
    """What callers get who ask for more than there is."""
    table = Table(title=f"{workers} workers at their capacity, and at three and ten times as much")
    for column in ("calls/s", "CPU each", "admitted/s", "p50", "p99", "refused", "p50", "p99",
                   "no advice", "failed"):  # fmt: skip
        table.add_column(column, justify="right")
    with Contender("ideal serve", workers).served(town) as (callers, _, _):
        most = uvloop.run(callers.capacity(seconds))
        for times in _STORM:
            wild = uvloop.run(callers.offered(seconds, times * most.rate))
            table.add_row(
                f"{times * most.rate:,.0f}", human(wild.cpu_each_s), f"{wild.rate:,.0f}",
                *map(human, wild.quantiles()[:2]), f"{wild.count('refused'):,}",
                *map(human, wild.quantiles("refused")[:2]), str(wild.count("no advice")),
                str(wild.count("failed")),
            )  # fmt: skip
    console.print(table)


def remember(console: Console, minutes: int, seconds: float = 60.0) -> None:
    """The memory of one worker, minute by minute, while units move and calls come."""
    table = Table(title=f"Memory, {UNITS} units at a position a second, {RATE:.0f} calls a second")
    table.add_column("minute", justify="right")
    table.add_column("memory", justify="right")
    with TemporaryDirectory() as folder:
        town = Town.write(Path(folder))
        with Contender("ideal serve", 1).served(town) as (callers, fleet, _):

            async def a_minute(seed: int) -> None:
                await asyncio.gather(fleet.move(seconds), callers.offered(seconds, RATE, seed))

            for minute in range(minutes + 1):
                if minute:
                    uvloop.run(a_minute(minute))
                table.add_row(str(minute), f"{sum(map(_family_mb, callers.processes)):.0f} MB")
    console.print(table)


def bare(config: str, port: int) -> None:
    """An endpoint that reads a JSON body and answers at once, under our server's settings."""
    from fastapi import FastAPI

    from ideal_dispatch.service.http import server
    from ideal_dispatch.service.settings import ServiceSettings

    def say_ready() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as waiting:
            waiting.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().call_later(0.2, say_ready)
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post(ASK)
    async def answer(body: dict[str, object]) -> dict[str, object]:
        return {"call_id": body["call_id"]}

    server.run(app, ServiceSettings.load(config), "127.0.0.1", port, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        bare(sys.argv[2], int(sys.argv[3]))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, such as of version 0.2.0")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--minutes", type=int, default=0, help="look at the memory instead")
    given = parser.parse_args()
    screen = Console(width=120)
    if given.minutes:
        remember(screen, given.minutes)
    else:
        run(screen, given.seconds, (1, 2), given.before, given.rounds)
