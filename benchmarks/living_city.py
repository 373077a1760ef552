"""A living city through nginx, two workers and PostgreSQL, while parts of it die: ``make living``.

``ideal simulate`` plays the embedded city against the service as deployed, and this program closes
and opens roads beside it. Now and then a worker or the database is killed, or a worker frozen, and
started again. At the end the log is read from its first row to its last: everything that was
acknowledged must be in it, and nothing may contradict anything else. It prints a table with the
memory of the workers; its exit code is 1 where something was lost or contradicts. All of it listens
on loopback and ends by itself.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.exclusive import Logged, read
from benchmarks.load_clients import memory_mb
from benchmarks.service import Town
from benchmarks.stack import IDEAL, WorkerProcess, proxied, running
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.service.demo import MORNING
from tests.postgres import Postgres, running_postgres

_AT_HAND_S = 10.0  # real seconds in which an advice holds and a position is new
_FAULT_S = 15.0, 35.0  # real seconds between two faults
_CLOSURE_S = 20.0
_MEMORY_S = 60.0

_MORE = """
[fleet]
units = {{ {units} }}
calls_per_day = 125.0
[clock]
origin = "{origin}"
started = "{started}"
speed = {speed}
"""


@dataclass
class Acknowledged:
    """What the service said it had taken."""

    advices: set[str] = field(default_factory=set)
    unrecorded: int = 0
    replies: set[str] = field(default_factory=set)
    closures: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    reports: set[tuple[str, str | None, str]] = field(default_factory=set)
    slow: list[float] = field(default_factory=list)


def run(console: Console, minutes: float, speed: float, seed: int, keep: Path | None) -> int:
    """Run it, and print what was found; the number of things that are wrong."""
    rng = np.random.default_rng(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())) if keep is None else keep
        folder.mkdir(exist_ok=True)
        database = stack.enter_context(running_postgres())
        url, town = database.new_database(), Town.write(folder)
        workers = stack.enter_context(running(_config(town, url, speed), 2))
        place = folder / "proxy"
        place.mkdir()
        plain = [(" ssl http2;", ";")]  # the player knows no certificate of ours
        proxy = stack.enter_context(proxied(place, [one.port for one in workers], plain))
        address, log = proxy.url.replace("https", "http"), folder / "city.jsonl"
        city = stack.enter_context(_simulated(address, town.token, log, seed))
        headers = {"Authorization": f"Bearer {town.token}"}
        centre = httpx.Client(base_url=address, headers=headers, timeout=10.0)
        stack.callback(centre.close)
        got = Acknowledged()
        faults, memory = _disturb(console, rng, minutes, workers, database, centre, got)
        city.send_signal(signal.SIGINT)
        said = city.communicate(timeout=120)[0]
        _read_player(log, got)
        logged = read(url)
        problems = list(_problems(logged, got))
        console.print(said, markup=False)
        _print(console, logged, got, faults, memory, problems)
        return len(problems)


def _config(town: Town, url: str, speed: float) -> Path:
    """Settings of the embedded city on a fast clock, with the price of its units."""
    units = ", ".join(f'"{depot.name}" = 6' for depot in harbour_city().depots)
    more = _MORE.format(
        units=units, origin=MORNING, speed=speed, started=datetime.now(UTC).isoformat()
    )
    path = town.config(2, url, expiry_s=_AT_HAND_S * speed, more=more)
    text = path.read_text().replace("threshold = { cost = 0.002 }\n", "")
    path.write_text(text.replace("= 86400.0", f"= {_AT_HAND_S * speed}"))
    return path


@contextmanager
def _simulated(address: str, token: str, log: Path, seed: int) -> Iterator["subprocess.Popen[str]"]:
    secret = log.with_suffix(".token")
    secret.write_text(token)
    command = [
        str(IDEAL), "simulate", "--url", address, "--token-file", str(secret),
        "--seed", str(seed), "--log", str(log),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


# --- what happens meanwhile -------------------------------------------------------------


def _disturb(
    console: Console,
    rng: np.random.Generator,
    minutes: float,
    workers: Sequence[WorkerProcess],
    database: Postgres,
    centre: httpx.Client,
    got: Acknowledged,
) -> tuple[Counter[str], list[float]]:
    """Kill parts and close roads until the time is over; what failed, and memory by minute.

    At the end all parts run and all roads are open. The first worker is never killed: its memory
    is looked at.
    """
    faults, memory = Counter[str](), list[float]()
    until = time.monotonic() + 60.0 * minutes
    fault_at = time.monotonic() + rng.uniform(*_FAULT_S)
    closure_at = memory_at = time.monotonic() + 5.0
    while time.monotonic() < until:
        time.sleep(0.5)
        if time.monotonic() >= memory_at:
            memory_at = time.monotonic() + _MEMORY_S
            memory.append(memory_mb(workers[0].pid))
        if time.monotonic() >= closure_at:
            closure_at = time.monotonic() + _CLOSURE_S
            _close(centre, got, rng)
        if time.monotonic() >= fault_at:
            what = str(rng.choice(["worker killed", "worker frozen", "database killed"]))
            _fail(what, rng, workers, database)
            faults[what] += 1
            console.print(f"{until - time.monotonic():5.0f} s left: {what}")
            fault_at = time.monotonic() + rng.uniform(*_FAULT_S)
    for one in sorted(got.closures - got.ended):
        _open(centre, got, one)
    return faults, memory


def _fail(
    what: str, rng: np.random.Generator, workers: Sequence[WorkerProcess], database: Postgres
) -> None:
    if what == "worker killed":
        workers[1].kill()
        workers[1].start()
    elif what == "worker frozen":
        worker = workers[int(rng.integers(2))]
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(float(rng.uniform(2.0, 6.0)))
        os.kill(worker.pid, signal.SIGCONT)
    else:
        database.stop("immediate")
        time.sleep(float(rng.uniform(2.0, 8.0)))
        database.start()


def _close(centre: httpx.Client, got: Acknowledged, rng: np.random.Generator) -> None:
    """Close an edge, and open the oldest that is closed where there are several."""
    body = {"edges": [int(rng.integers(2000))], "reason": "living city"}
    with suppress(httpx.HTTPError):
        answer = centre.post("/v1/closures", json=body)
        if answer.status_code == 201:
            got.closures.add(answer.json()["id"])
    still = sorted(got.closures - got.ended)
    if len(still) > 3:
        _open(centre, got, still[0])


def _open(centre: httpx.Client, got: Acknowledged, id_: str) -> None:
    with suppress(httpx.HTTPError):
        if centre.delete(f"/v1/closures/{id_}").status_code == 204:
            got.ended.add(id_)


# --- what was found ---------------------------------------------------------------------


def _read_player(log: Path, got: Acknowledged) -> None:
    """What the service acknowledged to the player, line by line of its log."""
    for line in log.read_text().splitlines():
        one: dict[str, Any] = json.loads(line)
        if one["status"] != 200 or one["method"] == "GET":
            continue
        if one["path"].endswith("/reply"):
            got.replies.add(one["path"].split("/")[-2])
        elif one["path"].startswith("/v1/recommendations"):
            got.slow.append(one["ms"] / 1000.0)
            if one["said"]["state"] == "unrecorded":
                got.unrecorded += 1
            else:
                got.advices.add(one["said"]["id"])
        elif one["path"] == "/v1/units":
            ignored = {each["id"] for each in one["said"]["ignored"]}
            got.reports |= {
                (each["id"], each["call_id"], each["status"])
                for each in one["body"] if each["id"] not in ignored
            }  # fmt: skip


def _problems(logged: Logged, got: Acknowledged) -> Iterator[str]:
    """Whatever is lost, or contradicts something else."""
    yield from logged.broken
    yield from (f"advice {one} is not in the log" for one in got.advices - logged.advised)
    yield from (f"a reply to {one} is not in the log" for one in got.replies - set(logged.replied))
    yield from (f"closure {one} is not in the log" for one in got.closures - logged.closed)
    yield from (f"the end of closure {one} is not in the log" for one in got.ended - logged.opened)
    yield from (f"report {one} is not in the log" for one in got.reports - logged.reported)
    yield from (f"closure {one} ended without a beginning" for one in logged.opened - logged.closed)


def _print(
    console: Console,
    logged: Logged,
    got: Acknowledged,
    faults: Mapping[str, int],
    memory: Sequence[float],
    problems: Sequence[str],
) -> None:
    table = Table(title="A living city while its parts fail")
    table.add_column("what")
    table.add_column("", justify="right")
    for what, count in sorted(faults.items()):
        table.add_row(what, str(count))
    for kind, count in sorted(logged.rows.items()):
        table.add_row(f"rows: {kind}", f"{count:,}")
    table.add_row("advice acknowledged", f"{len(got.advices):,}")
    table.add_row("answers without a record", f"{got.unrecorded:,}")
    for name, share in (("median", 0.5), ("99 %", 0.99)):
        table.add_row(f"seconds to an answer, {name}", f"{np.quantile(got.slow, share):.3f}")
    table.add_row("replies acknowledged", f"{len(got.replies):,}")
    table.add_row("closures acknowledged", f"{len(got.closures):,}")
    table.add_row("different reports acknowledged", f"{len(got.reports):,}")
    shown = f"{memory[0]:.0f}, {memory[len(memory) // 2]:.0f}, {memory[-1]:.0f} MB"
    table.add_row("memory of a worker at the start, in the middle, at the end", shown)
    table.add_row("lost or contradicting", str(len(problems)))
    console.print(table)
    for one in problems[:20]:
        console.print(one, markup=False)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--minutes", type=float, default=20.0, help="real minutes")
    given.add_argument("--speed", type=float, default=60.0)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--keep", type=Path, help="a new folder for files and logs")
    sys.exit(min(run(Console(width=120), **vars(given.parse_args())), 1))
