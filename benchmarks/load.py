"""The service as deployed, while its parts fail: ``make load`` prints a table and asserts nothing.

deploy/nginx.conf before two workers on the embedded city, with PostgreSQL. Callers ask one call
after the other, as fast as they are answered. Every row has workers and a database of its own, and
at its end the record is verified and every acknowledged advice is looked up in it. All of it
listens on loopback, ends by itself within minutes, and stops what it started also when it is
interrupted.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
import psycopg
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from benchmarks.callers import Outcome
from benchmarks.hosts import Host, host, missing_namespaces
from benchmarks.load_clients import Caller, Ended, Endless, endless_head, memory_mb, probe, storm
from benchmarks.relay import relay
from benchmarks.service import Town
from benchmarks.stack import (
    PATIENCE_S,
    ROOT,
    WORKER_PORTS,
    WorkerProcess,
    missing_programs,
    proxied,
    running,
)
from benchmarks.timing import human
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.audit import verify
from ideal_dispatch.service.record.database import Database, Job
from tests.postgres import Postgres, missing_server, running_postgres
from workshop.bench_page import conditions, markdown, measured, write_part

CAD_S = 3.0
"""How long a CAD waits. A call that is answered later is lost."""

HANDBOOK = ("deployment.md", "operations.md")
"""The pages that say how to restart the workers one after the other."""

_CALLERS = 4
_STORMING = 200
_HEADS: tuple[Endless, ...] = ("headers", "value", "line")
_EXPIRY_S = 0.5  # an advice: units are free again for the next calls
_FREE = 50  # units of each depot
_AWAY_S = 10.0
_DELAY_S = 0.5
_HANGING = '''
"""A policy that hangs at some calls: what a fault of a plug-in does to a worker."""
import time
from dataclasses import dataclass
from ideal_dispatch.dispatch.policies import Ideal

@dataclass(frozen=True)
class Hanging(Ideal):
    name: str = "hanging"

    def decide(self, situation, rng):
        if hash(situation.incident.name) % 400 == 0:
            time.sleep(3600.0)
        return super().decide(situation, rng)
'''


@dataclass(frozen=True)
class Row:
    """What callers got while something failed. What is ``wrong`` with the record stays empty."""

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
    def of(
        cls,
        what: str,
        got: Outcome,
        others_wait_s: float | None = None,
        wrong: Sequence[str] = (),
    ) -> "Row":
        """The row of an outcome: none is refused or lost, or p99 is below ``others_wait_s``."""
        answered = [s for kind in ("answered", "no advice") for s in got.seconds.get(kind, ())]
        calls, refused = sum(map(len, got.seconds.values())), got.count("refused")
        lost = got.count("failed") + sum(one > CAD_S for one in answered)
        if others_wait_s is None:
            aim, reached = "none refused or lost", refused + lost == 0
        else:
            aim = f"p99 under {human(others_wait_s)}"
            reached = bool(answered) and float(np.quantile(answered, 0.99)) < others_wait_s
        none, reached = got.count("no advice"), reached and not wrong
        words = "; ".join(wrong)
        return cls(what, aim, reached, calls, refused, lost, none, tuple(answered), words)

    def cells(self) -> list[str]:
        """As text, in the order of the table's columns."""
        times = np.quantile(self.seconds, [0.5, 0.99]) if self.seconds else (np.nan, np.nan)
        reached = f"{'yes' if self.reached else 'no'}{self.measured and f' ({self.measured})'}"
        counts = (self.calls, self.refused, self.lost, self.without_advice)
        return [self.what, *(f"{one:,}" for one in counts), *map(human, times), self.aim, reached]


@dataclass(frozen=True)
class Deployed:
    """A centre's service: nginx at a port before two workers, and their database."""

    town: Town
    workers: Sequence[WorkerProcess]
    port: int
    pool: Pool
    postgres: Postgres
    url: str

    def caller(self, name: str, port: int | None = None, token: str | None = None) -> Caller:
        """A client that asks through nginx, or at a bare port."""
        where = self.port if port is None else port
        return Caller(name, where, token or self.town.token, self.town.places, port is None)

    def calls(self, seconds: float) -> "AsyncResult[Outcome]":
        """A few callers, in a process of their own."""
        return self.pool.apply_async(storm, (self.caller("load"), _CALLERS, seconds))

    def row(self, what: str, got: Outcome) -> Row:
        """The row, once the record was verified and searched for what was acknowledged."""
        return Row.of(what, got, wrong=wrong_with(self.url, got.ids))


def wrong_with(url: str, ids: Sequence[str]) -> list[str]:
    """What is wrong with a record that should hold this advice."""
    database = Database(url, create=False, timeout_s=PATIENCE_S)
    try:
        fault = verify(database).fault
        query = sa.select(rows.advice.c.id)
        job = Job(time.monotonic() + PATIENCE_S)
        stored = set(database.read(lambda state: state.connection.execute(query).scalars(), job))
    finally:
        database.close()
    missing = len(set(ids) - stored)
    return [*([fault] if fault else []), *([f"{missing} not on record"] if missing else [])]


@contextmanager
def deployed(
    more: str = "",
    environment: dict[str, str] | None = None,
    delay_s: float = 0.0,
    disk: Path | None = None,
) -> Iterator[Deployed]:
    """Everything started, and stopped at the end.

    Settings may have ``more``; the database may answer ``delay_s`` later once units were reported,
    or lie on a ``disk``.
    """
    slow = threading.Event()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgres = stack.enter_context(running_postgres(folder=disk))
        url, town = postgres.new_database(), Town.write(folder)
        address = url
        if delay_s:
            port = stack.enter_context(relay(postgres.port, delay_s, slow))
            address = url.replace(f":{postgres.port}/", f":{port}/")
        config = town.config(2, address, expiry_s=_EXPIRY_S, more=more)
        if environment is not None:  # a policy of its own stands in the folder
            config.write_text(
                config.read_text().replace("[policy]", '[policy]\nkind = "hang:Hanging"')
            )
            (folder / "hang.py").write_text(_HANGING)
            environment = {"PYTHONPATH": str(folder)}
        workers = stack.enter_context(running(config, 2, environment))
        proxy = stack.enter_context(proxied(folder, [one.port for one in workers]))
        report(workers[0].url, town.token)
        slow.set()
        context = get_context("spawn")
        ignoring = (signal.SIGINT, signal.SIG_IGN)  # the process that started them ends them
        pool = stack.enter_context(context.Pool(2, signal.signal, ignoring))
        yield Deployed(
            town, workers, int(proxy.url.rpartition(":")[2]), pool, postgres, url
        )  # fmt: skip


def report(url: str, token: str) -> None:
    """Free units at every depot."""
    news = [{"depot": one.name, "free": _FREE} for one in harbour_city().depots]
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.put(f"{url}/v1/units", json=news, headers=headers, timeout=PATIENCE_S)
    answer.raise_for_status()


# --- what fails -------------------------------------------------------------------


def killed(seconds: float) -> Row:
    """One worker after the other is killed, and started again."""
    with deployed() as here:
        got, end, count = here.calls(seconds), time.monotonic() + 0.8 * seconds, 0
        while time.monotonic() < end:
            worker = here.workers[count % 2]
            worker.kill()
            time.sleep(1.0)
            worker.start()
            count += 1
        return here.row(f"{count} workers killed, one at a time", got.get())


def frozen(seconds: float) -> Row:
    """One worker is stopped for most of the time, and goes on."""
    with deployed() as here:
        got = here.calls(seconds)
        time.sleep(seconds / 8)
        os.kill(here.workers[0].pid, signal.SIGSTOP)
        try:
            time.sleep(seconds * 5 / 8)
        finally:
            os.kill(here.workers[0].pid, signal.SIGCONT)
        return here.row("a frozen worker", got.get())


def hanging(seconds: float) -> Row:
    """Some decisions hang for ever; a worker with two of them ends, and is started again."""
    with deployed(environment={}) as here:
        got, end = here.calls(seconds), time.monotonic() + seconds
        while time.monotonic() < end:
            for worker in here.workers:
                if not worker.alive:
                    worker.start()
            time.sleep(0.1)
        return here.row("one decision in 400 hangs for ever", got.get())


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
        return here.row(f"{rounds} rolling restarts", got.get())


def stopped(seconds: float, for_good: bool = False) -> Row:
    """The database crashes, and is back after ten seconds or never."""
    with deployed() as here:
        got = here.calls(seconds)
        time.sleep(seconds / 4)
        here.postgres.stop("immediate")
        time.sleep(0.0 if for_good else _AWAY_S)
        if not for_good:
            here.postgres.start()
        outcome = got.get()
        if for_good:
            here.postgres.start()  # to read the record
        what = "the database stopped for good" if for_good else "the database stopped for 10 s"
        return here.row(what, outcome)


def frozen_database(seconds: float) -> Row:
    """The database takes connections and statements, and says nothing for ten seconds."""
    with deployed() as here:
        got = here.calls(seconds)
        time.sleep(seconds / 4)
        processes = here.postgres.processes()
        for one in processes:
            os.kill(one, signal.SIGSTOP)
        time.sleep(_AWAY_S)
        for one in processes:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)
        return here.row("the database frozen for 10 s", got.get())


def slow(seconds: float) -> Row:
    """Every answer of the database comes half a second late."""
    with deployed(delay_s=_DELAY_S) as here:
        return here.row("the database 500 ms slow", here.calls(seconds).get())


def read_only(seconds: float) -> Row:
    """The database is read-only for ten seconds, as a replica is before it is promoted."""
    with deployed() as here:
        got = here.calls(seconds)
        time.sleep(seconds / 4)
        for value in ("on", "off"):
            address = here.url.replace("+psycopg", "")
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
                connection.execute("SELECT pg_reload_conf()")
            time.sleep(_AWAY_S if value == "on" else 0.0)
        return here.row("the database read-only for 10 s", got.get())


def disk_full(seconds: float) -> Row:
    """The database's disk is full for ten seconds: it crashes, and is started again."""
    with small_disk() as folder, deployed(disk=folder) as here:
        got = here.calls(seconds)
        time.sleep(seconds / 4)
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        time.sleep(_AWAY_S)
        filler.unlink()
        if not here.postgres.answers():
            with suppress(AssertionError):
                here.postgres.stop("immediate")
            here.postgres.start()
        return here.row("the database's disk full for 10 s", got.get())


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of its own, which root can mount."""
    folder = Path(tempfile.mkdtemp(prefix="ideal-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def cut_off(seconds: float) -> Row:
    """One of two hosts does not reach the database any more; nginx reaches both."""
    with ExitStack() as stack:
        pair: list[Host] = [stack.enter_context(host(name, n)) for n, name in enumerate("ab")]
        postgres = stack.enter_context(running_postgres([one.gateway for one in pair]))
        url, folder = postgres.new_database(), Path(stack.enter_context(TemporaryDirectory()))
        town = Town.write(folder)
        for one, other in zip(pair, reversed(pair), strict=True):
            # at the other cable's address, so that this way can be cut alone
            one.route(other.gateway)
            address = url.replace("127.0.0.1", other.gateway)
            stack.enter_context(one.worker(town.config(2, address, expiry_s=_EXPIRY_S)))
        report(pair[0].url, town.token)
        places = [one.url.removeprefix("http://") for one in pair]
        proxy = stack.enter_context(proxied(folder, places))
        pool = stack.enter_context(get_context("spawn").Pool(1))
        port = int(proxy.url.rpartition(":")[2])
        caller = Caller("cut", port, town.token, town.places, tls=True)
        got = pool.apply_async(storm, (caller, _CALLERS, seconds))
        time.sleep(seconds / 4)
        pair[0].block(pair[1].gateway)
        time.sleep(_AWAY_S)
        pair[0].unblock(pair[1].gateway)
        outcome = got.get()
        return Row.of(
            "one of two hosts cut off from the database for 10 s", outcome,
            wrong=wrong_with(url, outcome.ids),
        )  # fmt: skip


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
    killed,
    lambda s: frozen(s / 2),
    hanging,
    rolling_restart,
    stopped,
    lambda s: stopped(s / 2, for_good=True),
    frozen_database,
    lambda s: slow(s / 3),
    read_only,
    disk_full,
    cut_off,
    lambda s: storm_beside(s / 3, bare=True),
    lambda s: storm_beside(s / 3, bare=False),
    lambda s: endless_heads(s / 6),
)


def run(
    console: Console, seconds: float = 60.0, rows: Sequence[Callable[[float], Row]] = ROWS
) -> None:
    """Print the table; ``seconds`` for the longest row."""
    if missing := missing_programs() or missing_server() or missing_namespaces():
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
