"""The service under load: decisions a second, latencies at half its capacity, at it and beyond.

Every worker is `ideal serve` at a port of its own, on the embedded city with the
shipped model, its training days as traffic and SQLite as audit; a bare endpoint
of the framework under the same server settings runs beside it, so that our share
of a latency can be seen. Capacity is what a few callers get who ask one call
after the other. Otherwise calls come at random moments whatever the answers, and
a latency counts from the moment a call was due. The callers are a process on the
same machine and take their share of its cores; the CPU time of the workers, a
call, does not mind a busy machine.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from compileall import compile_dir
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import uvloop
from rich.console import Console
from rich.table import Table

import ideal_dispatch
from benchmarks.callers import ASK, Callers
from benchmarks.ports import free_port
from benchmarks.stack import WorkerProcess
from benchmarks.timing import human
from ideal_dispatch.cities import HARBOUR_MODEL, TRAINING_DAYS, harbour_city, harbour_traffic

_STORM = 1, 3, 10  # times the capacity
_SETTLE_S = 6.0  # a worker's other solvers start when the first can advise

_CONFIG = """
[city]
name = "Port Almery"
network = "city.network"
depots = "depots.csv"
time_zone = "{zone}"
country = "{country}"
[model]
folder = {model}
gain = {gain}
[policy]
threshold = {{ cost = 0.002 }}
method = "{method}"
[traffic]
kind = "recorded"
file = "city.traffic"
[units]
default = 1000
[audit]
url = "sqlite:///audit.db"
[server]
solvers = {solvers}
queue = {queue}
log_level = "warning"
expiry_s = 2.0
[[tokens]]
name = "load"
role = "cad"
sha256 = "{hashed}"
[[tokens]]
name = "other"
role = "cad"
sha256 = "{other_hashed}"
"""


@dataclass(frozen=True)
class Town:
    """The embedded city's files, the token of the callers, and one of somebody else."""

    folder: Path
    places: list[dict[str, float]]
    token: str
    hashed: str
    other_token: str
    other_hashed: str

    @classmethod
    def write(cls, folder: Path) -> "Town":
        from ideal_dispatch.service.tokens import new_token

        city, rng = harbour_city(), np.random.default_rng(0)
        city.network.save(folder / "city.network")
        harbour_traffic(city).only(range(TRAINING_DAYS)).save(folder / "city.traffic")
        lon, lat = city.network.lon, city.network.lat
        rows = [f"{one.name},{lon[one.node]},{lat[one.node]}" for one in city.depots]
        (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
        nodes = rng.choice(city.network.num_nodes, 500, replace=False).tolist()
        places = [{"lon": float(lon[node]), "lat": float(lat[node])} for node in nodes]
        return cls(folder, places, *new_token(), *new_token())

    def config(self, workers: int, method: str) -> Path:
        """Settings with as many solvers as there are cores, over all workers."""
        city, model = harbour_city(), HARBOUR_MODEL
        path = self.folder / f"{workers}.toml"
        path.write_text(_CONFIG.format(
            zone=city.time_zone, country=city.country, method=method,
            hashed=self.hashed, other_hashed=self.other_hashed,
            model=json.dumps(str(model)), gain=json.dumps(str(model / "response_times.json")),
            solvers=max(2 // workers, 1), queue=max(16 // workers, 1),
        ))  # fmt: skip
        return path

    @contextmanager
    def served(self, workers: int, method: str, bare: bool) -> Iterator[tuple[Callers, float]]:
        """Workers ready for calls, and how long the last of them took to start."""
        config = self.config(workers, method)
        with ExitStack() as stack:
            running, took_s = {}, 0.0
            for port in [free_port() for _ in range(workers)]:
                theirs = [sys.executable, "-m", "benchmarks.service", str(config), str(port)]
                worker = WorkerProcess(config, port, theirs if bare else None)
                stack.callback(worker.stop)
                began = time.perf_counter()
                worker.start()
                took_s = time.perf_counter() - began
                running[port] = worker.pid
            time.sleep(_SETTLE_S)
            yield Callers(running, self.token, self.places), took_s


def bare(config: str, port: int) -> None:
    """An endpoint that reads a JSON body and answers at once, under our server's settings."""
    from fastapi import FastAPI

    from ideal_dispatch.service.http import server
    from ideal_dispatch.service.settings import ServiceSettings

    app = FastAPI()

    @app.post(ASK)
    async def answer(body: dict[str, object]) -> dict[str, object]:
        return {"call_id": body["call_id"]}

    server.run(app, ServiceSettings.load(config), "127.0.0.1", port, 1)


def run(
    console: Console,
    seconds: float = 15.0,
    workers: Sequence[int] = (1, 2),
    method: str = "multistart",
) -> None:
    """Print two tables; ``seconds`` at most for one latency."""
    quiet = Table(title=f"The embedded city, {method}; latency at half the service's capacity")
    for column in ("workers", "", "start", "capacity", "calls/s", "calls", "CPU each", "p50", "p99",
                   "p99.9"):  # fmt: skip
        quiet.add_column(column, justify="right" if column else "left")
    storm = Table(title="The capacity offered, and three and ten times as much")
    for column in ("workers", "calls/s", "CPU each", "admitted/s", "p50", "p99", "refused", "p50",
                   "p99", "no advice", "failed"):  # fmt: skip
        storm.add_column(column, justify="right")
    compile_dir(str(Path(ideal_dispatch.__file__).parent), quiet=1)  # as pip leaves a package
    with TemporaryDirectory() as folder:
        town = Town.write(Path(folder))
        for number in workers:
            half = 0.0
            for name in ("ideal serve", "bare endpoint"):
                with town.served(number, method, name != "ideal serve") as (callers, took_s):
                    uvloop.run(callers.offered(1.0, 10.0))  # connections, caches
                    most = uvloop.run(callers.capacity(seconds / 5))
                    half = half or most.rate / 2
                    calm = uvloop.run(callers.offered(min(seconds, 1000 / half), half))
                    quiet.add_row(
                        str(number), name, human(took_s), f"{most.rate:,.0f}/s", f"{half:,.0f}",
                        f"{calm.count('answered'):,}", human(calm.cpu_each_s),
                        *map(human, calm.quantiles()),
                    )  # fmt: skip
                    for times in _STORM if name == "ideal serve" else ():
                        wild = uvloop.run(callers.offered(seconds / 5, times * most.rate))
                        storm.add_row(
                            str(number), f"{times * most.rate:,.0f}", human(wild.cpu_each_s),
                            f"{wild.rate:,.0f}", *map(human, wild.quantiles()[:2]),
                            f"{wild.count('refused'):,}",
                            *map(human, wild.quantiles("refused")[:2]),
                            str(wild.count("no advice")), str(wild.count("failed")),
                        )  # fmt: skip
    console.print(quiet)
    console.print(storm)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average at the end {load}")


if __name__ == "__main__":
    bare(sys.argv[1], int(sys.argv[2]))
