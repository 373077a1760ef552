"""The service as deployed, while its parts fail: ``make load`` prints a table and asserts nothing.

deploy/nginx.conf before two workers with one solver each, on the embedded city with SQLite as
audit. Callers ask one call after the other, as fast as they are answered. Every row has workers
of its own. All of it listens on loopback, ends by itself within minutes, and stops what it
started also when it is interrupted.
"""

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.callers import Outcome
from benchmarks.load_clients import Caller, Ended, Endless, endless_head, memory_mb, probe, storm
from benchmarks.service import Town
from benchmarks.stack import (
    ROOT,
    WORKER_PORTS,
    WorkerProcess,
    missing_programs,
    proxied,
    running,
)
from benchmarks.timing import human
from ideal_dispatch.errors import InputError
from workshop.bench_page import conditions, markdown, measured, write_part

CAD_S = 3.0
"""How long a CAD waits. A call that is answered later is lost."""

HANDBOOK = ("deployment.md", "operations.md")
"""The pages that say how to restart the workers one after the other."""

_CALLERS = 4
_STORMING = 200
_HEADS: tuple[Endless, ...] = ("headers", "value", "line")


@dataclass(frozen=True)
class Row:
    """What callers got while something failed."""

    what: str
    aim: str
    reached: bool
    calls: int = 0
    refused: int = 0
    lost: int = 0
    without_advice: int = 0
    seconds: Sequence[float] = ()
    measured: str = ""

    @classmethod
    def of(cls, what: str, got: Outcome, others_wait_s: float | None = None) -> "Row":
        """The row of an outcome: nobody is refused or lost, or p99 is below ``others_wait_s``."""
        answered = [s for kind in ("answered", "no advice") for s in got.seconds.get(kind, ())]
        calls, refused = sum(map(len, got.seconds.values())), got.count("refused")
        lost = got.count("failed") + sum(one > CAD_S for one in answered)
        if others_wait_s is None:
            aim, reached = "none refused or lost", refused + lost == 0
        else:
            aim = f"p99 under {human(others_wait_s)}"
            reached = bool(answered) and float(np.quantile(answered, 0.99)) < others_wait_s
        none = got.count("no advice")
        return cls(what, aim, reached, calls, refused, lost, none, tuple(answered))

    def cells(self) -> list[str]:
        """As text, in the order of the table's columns."""
        times = np.quantile(self.seconds, [0.5, 0.99]) if self.seconds else (np.nan, np.nan)
        reached = f"{'yes' if self.reached else 'no'}{self.measured and f' ({self.measured})'}"
        counts = (self.calls, self.refused, self.lost, self.without_advice)
        return [self.what, *(f"{one:,}" for one in counts), *map(human, times), self.aim, reached]


@dataclass(frozen=True)
class Deployed:
    """A centre's service: nginx at a port before two workers."""

    town: Town
    workers: Sequence[WorkerProcess]
    port: int
    pool: Pool

    def caller(self, name: str, port: int | None = None, token: str | None = None) -> Caller:
        """Somebody who asks through nginx, or at a bare port."""
        where = self.port if port is None else port
        return Caller(name, where, token or self.town.token, self.town.places, port is None)

    def calls(self, seconds: float) -> "AsyncResult[Outcome]":
        """A few callers, in a process of their own."""
        return self.pool.apply_async(storm, (self.caller("load"), _CALLERS, seconds))


@contextmanager
def deployed() -> Iterator[Deployed]:
    """Everything started, and stopped at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        town = Town.write(folder)
        workers = stack.enter_context(running(town.config(2, "multistart"), 2))
        proxy = stack.enter_context(proxied(folder, [worker.port for worker in workers]))
        context = get_context("spawn")
        ignoring = (signal.SIGINT, signal.SIG_IGN)  # whoever started them ends them
        pool = stack.enter_context(context.Pool(2, signal.signal, ignoring))
        yield Deployed(town, workers, int(proxy.url.rpartition(":")[2]), pool)


# --- what fails -------------------------------------------------------------------


def solver_killed(seconds: float) -> Row:
    """The solver of one worker is killed every two seconds."""
    with deployed() as here:
        got, end = here.calls(seconds), time.monotonic() + seconds
        while time.monotonic() < end:
            for solver in here.workers[0].solvers():
                os.kill(solver, signal.SIGKILL)
            time.sleep(2.0)
        return Row.of("a solver killed every 2 s", got.get())


def frozen(seconds: float, solver: bool) -> Row:
    """One worker, or its solver, is stopped for most of the time, and goes on."""
    with deployed() as here:
        worker = here.workers[0]
        stopped = worker.solvers() if solver else [worker.pid]
        got = here.calls(seconds)
        time.sleep(seconds / 8)
        try:
            for process in stopped:
                os.kill(process, signal.SIGSTOP)
            time.sleep(seconds * 5 / 8)
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)
        return Row.of(f"a frozen {'solver' if solver else 'worker'}", got.get())


def rolling_restart(seconds: float) -> Row:
    """Both workers restarted again and again, as the handbook says."""
    ports = restarts(HANDBOOK[0])
    with deployed() as here:
        named = dict(zip(WORKER_PORTS, here.workers, strict=True))
        got, end, rounds = here.calls(seconds), time.monotonic() + 0.8 * seconds, 0
        while time.monotonic() < end:
            for port in ports:  # what `systemctl restart` does
                named[port].stop()
                named[port].start()
            rounds += 1
        return Row.of(f"{rounds} rolling restarts", got.get())


def restarts(page: str) -> list[int]:
    """The ports of the workers in the order in which a page of the handbook restarts them."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    line = re.search(r"^systemctl restart .*$", text, re.M)
    assert line is not None, page
    steps = [re.fullmatch(r"systemctl restart ideal-dispatch@(\d+)", step)
             for step in line[0].split(" && ")]  # fmt: skip
    return [int(step[1]) for step in steps if step is not None]


def storm_beside(seconds: float, bare: bool) -> Row:
    """One token asks on 200 connections; another one asks ten times a second."""
    with deployed() as here:
        port = here.workers[0].port if bare else None
        wild = here.caller("storm", port)
        calm = here.caller("other", port, here.town.other_token)
        storming = here.pool.apply_async(storm, (wild, _STORMING, seconds))
        time.sleep(1.0)
        beside = here.pool.apply_async(probe, (calm, seconds - 2.0))
        where = "at the bare port" if bare else "through nginx"
        row = Row.of(f"beside a storm {where}", beside.get(), others_wait_s=1.0)
        storming.get()
        return row


def endless_heads(seconds: float) -> Row:
    """Strangers at a bare port whose requests never begin."""
    with deployed() as here:
        worker = here.workers[0]
        before_mb = memory_mb(worker.pid, peak=True)
        ended: list[Ended] = here.pool.starmap(
            endless_head, [(worker.port, kind, seconds) for kind in _HEADS]
        )
        grown_mb = memory_mb(worker.pid, peak=True) - before_mb
        sent_mb = sum(one.sent_bytes for one in ended) / 1e6
        words = f"{grown_mb:.0f} MB, {sent_mb:,.0f} MB were sent"
        what, aim = "endless heads at the bare port", "less than 50 MB more memory"
        return Row(what, aim, grown_mb < 50.0, calls=len(ended), measured=words)


ROWS: Sequence[Callable[[float], Row]] = (
    solver_killed,
    lambda s: frozen(s / 2, solver=False),
    lambda s: frozen(s / 2, solver=True),
    rolling_restart,
    lambda s: storm_beside(s / 3, bare=True),
    lambda s: storm_beside(s / 3, bare=False),
    lambda s: endless_heads(s / 6),
)


def run(
    console: Console, seconds: float = 60.0, rows: Sequence[Callable[[float], Row]] = ROWS
) -> None:
    """Print the table; ``seconds`` for the longest row."""
    if missing := missing_programs():
        raise InputError(f"make load: {missing}")
    table = Table(title="nginx and two workers while parts fail; a call counts as lost after 3 s")
    words = ("what", "aim", "reached")
    for column in ("what", "calls", "refused", "lost", "no advice", "p50", "p99", "aim", "reached"):
        table.add_column(column, justify="left" if column in words else "right")
    for make in rows:
        table.add_row(*make(seconds).cells())
    console.print(table)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average at the end {load}")


def main() -> None:
    """Measure it here; SIGTERM ends it as Ctrl-C does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="put the table on docs/benchmarks.md")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        heading, printed = conditions(ROOT), measured(run)
        if given.write:
            parts = [heading, *map(markdown, printed)]
            write_part(ROOT / "docs" / "benchmarks.md", "load", "\n\n".join(parts))
    except InputError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("make load: interrupted; everything is stopped")


if __name__ == "__main__":
    main()
