"""A living city through nginx, two workers and PostgreSQL, while workers, solvers and database die.

``ideal simulate`` runs the embedded city's fleet against the service as deployed, and this
program closes and opens roads beside it. Now and then a worker, a solver or the database is killed
and started again. At the end the chain is read from its first row to its last: everything that was
acknowledged must be in it, and nothing may contradict anything else. It prints a table; its exit
code is 1 where something was lost or contradicts. All of it listens on loopback and ends by itself.
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
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
from ideal_dispatch.service.audit.promises import Promises
from ideal_dispatch.service.audit.record import Row
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import verify
from ideal_dispatch.service.desk.demo import MORNING
from rich.console import Console
from rich.table import Table

from benchmarks.service import Town
from benchmarks.stack import IDEAL, WorkerProcess, proxied, running
from ideal_dispatch.cities import harbour_city
from tests.postgres import Postgres, running_postgres

_AT_HAND_S = 10.0  # real seconds in which an advice holds and a position is new
_FAULT_S = 15.0, 35.0  # real seconds between two faults
_SETTLE_S = 15.0
_CLOSURE_S = 20.0
_MOST_ROWS = 1_000_000

_MORE = """
position_stale_s = {stale}
[fleet]
units = {{ {units} }}
calls_per_day = 125.0
[clock]
origin = "{origin}"
started = "{started}"
speed = {speed}
[audit]
url = "{url}"
spool = "spool"
[server]
solvers = 1
queue = 8
log_level = "warning"
expiry_s = {stale}
[[tokens]]
name = "city"
role = "admin"
sha256 = "{hashed}"
"""


@dataclass
class Acknowledged:
    """What the service said it had taken."""

    advices: set[str] = field(default_factory=set)
    replies: Counter[str] = field(default_factory=Counter)
    closures: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    statuses: dict[str, list[str]] = field(default_factory=dict)


def run(console: Console, minutes: float, speed: float, seed: int, keep: Path | None) -> int:
    """Run it, and print what was found; the number of things that are wrong."""
    rng = np.random.default_rng(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())) if keep is None else keep
        folder.mkdir(exist_ok=True)
        database = stack.enter_context(running_postgres())
        url, town = database.new_database(), Town.write(folder)
        config = _config(town, url, speed)
        workers = stack.enter_context(running(config, 2))
        place = folder / "proxy"
        place.mkdir()
        plain = [(" ssl http2;", ";")]  # the city knows no certificate of ours
        proxy = stack.enter_context(proxied(place, [one.port for one in workers], plain))
        address, log = proxy.url.replace("https", "http"), folder / "city.jsonl"
        city = stack.enter_context(_simulated(address, town.token, log, seed))
        headers = {"Authorization": f"Bearer {town.token}"}
        centre = httpx.Client(base_url=address, headers=headers, timeout=10.0)
        stack.callback(centre.close)
        got = Acknowledged()
        faults = _disturb(console, rng, minutes, workers, database, centre, got)
        city.send_signal(signal.SIGINT)
        said = city.communicate(timeout=120)[0]
        time.sleep(_SETTLE_S)  # what waits in a spool comes on record
        store = AuditStore(url)
        stack.callback(store.close)
        _read_log(log, got)
        rows = store.rows(0, _MOST_ROWS)
        problems = list(_problems(store, rows, got))
        console.print(said, markup=False)
        _print(console, rows, got, faults, problems)
        return len(problems)


def _config(town: Town, url: str, speed: float) -> Path:
    """Settings of the embedded city on a fast clock, with the price of its units."""
    path = town.config(1, "multistart")
    head = path.read_text().partition("default = 1000\n")[0]
    units = ", ".join(f'"{depot.name}" = 6' for depot in harbour_city().depots)
    more = _MORE.format(
        stale=_AT_HAND_S * speed, units=units, origin=MORNING, speed=speed, url=url,
        started=datetime.now(UTC).isoformat(), hashed=town.hashed,
    )  # fmt: skip
    path.write_text(head.replace("threshold = { cost = 0.002 }\n", "") + "default = 2" + more)
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
) -> Counter[str]:
    """Kill parts and close roads until the time is over; what was killed, and how often.

    At the end all parts run and all roads are open.
    """
    faults = Counter[str]()
    until = time.monotonic() + 60.0 * minutes
    fault_at = time.monotonic() + rng.uniform(*_FAULT_S)
    closure_at = time.monotonic() + 5.0
    while time.monotonic() < until:
        time.sleep(0.5)
        if time.monotonic() >= closure_at:
            closure_at = time.monotonic() + _CLOSURE_S
            _close(centre, got, rng)
        if time.monotonic() >= fault_at:
            what = str(rng.choice(["worker", "solver", "database"], p=[0.4, 0.4, 0.2]))
            _kill(what, rng, workers, database)
            faults[what] += 1
            console.print(f"{until - time.monotonic():5.0f} s left: the {what} was killed")
            fault_at = time.monotonic() + rng.uniform(*_FAULT_S)
    for one in sorted(got.closures - got.ended):
        _open(centre, got, one)
    return faults


def _kill(
    what: str, rng: np.random.Generator, workers: Sequence[WorkerProcess], database: Postgres
) -> None:
    worker = workers[int(rng.integers(len(workers)))]
    if what == "worker":
        worker.kill()
        worker.start()
    elif what == "solver":
        for process in worker.solvers()[:1]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
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


def _read_log(log: Path, got: Acknowledged) -> None:
    """What the city was told that the service took."""
    for line in log.read_text().splitlines():
        one = json.loads(line)
        if one["kind"] == "advice":
            got.advices.add(one["id"])
        elif one["kind"] == "request" and one["status"] == 200 and one["method"] == "POST":
            part = one["path"].split("/")
            if part[-1] == "response":
                got.replies[part[-2]] += 1
        elif one["kind"] == "status":
            got.statuses.setdefault(one["id"], []).append(one["status"])


def _problems(store: AuditStore, rows: Sequence[Row], got: Acknowledged) -> Iterator[str]:
    """Whatever is lost, or contradicts something else."""
    fault = verify(store).fault
    if fault is not None:
        yield f"the chain is broken: {fault}"
    ids = {row.id for row in rows}
    yield from (f"advice {one} is not in the chain" for one in sorted(got.advices - ids))
    replied = Counter(
        row.entry.body.get("recommendation_id") or row.entry.body.get("dispatch_id")
        for row in rows if row.kind in ("response", "reply")
    )  # fmt: skip
    for one, count in got.replies.items():
        if replied[one] < 1:
            yield f"{count} replies to {one} were acknowledged, none is in the chain"
    closures = {row.entry.body["closure"]["id"] for row in rows
                if row.kind == "closure" and "closure" in row.entry.body}  # fmt: skip
    ended = Counter(row.entry.body["ended"] for row in rows
                    if row.kind == "closure" and "ended" in row.entry.body)  # fmt: skip
    yield from (f"closure {one} is not in the chain" for one in sorted(got.closures - closures))
    yield from (
        f"the end of closure {one} is not in the chain" for one in got.ended if not ended[one]
    )
    yield from (f"closure {one} ended without a beginning" for one in ended if one not in closures)
    yield from _unit_problems(rows, got)
    yield from _promise_problems(rows)
    yield from _dispatch_problems(rows)


def _unit_problems(rows: Sequence[Row], got: Acknowledged) -> Iterator[str]:
    """Every status that was told is on record, in its order; the same twice in a row is one."""
    recorded: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        for one in row.entry.body.get("units", ()) if row.kind == "unit" else ():
            recorded.setdefault(one["id"], []).append((one["since"], one["status"]))
    for unit, told in got.statuses.items():
        on_record = [status for _, status in sorted(recorded.get(unit, []))]
        if not _within(_once(told)[:-1], _once(on_record)):  # the last may have been on its way
            yield f"unit {unit}: told {_once(told)[-6:]}, on record {_once(on_record)[-6:]}"


def _once(values: Sequence[str]) -> list[str]:
    return [one for one, _ in groupby(values)]


def _within(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Whether all that is wanted is found in this order."""
    rest = iter(found)
    return all(one in rest for one in wanted)


def _promise_problems(rows: Sequence[Row]) -> Iterator[str]:
    """No unit is promised to two calls at once, where the promise could be checked."""
    promises, since = Promises(), dict[str, datetime]()
    for row in rows:
        entry = row.entry
        if row.duplicate_of is not None:
            continue
        if row.kind == "unit":
            for one in entry.body["units"]:
                since[one["id"]] = datetime.fromisoformat(one["since"])
        promises.take(entry)
        if row.kind != "recommendation" or _unchecked(entry.body["answer"]):
            continue
        for unit in (entry.body.get("takes") or {}).get("advised", ()):
            others = [
                one for one in promises
                if one.start == unit and one.call_id != row.call_id
                and one.at <= entry.at and one.holds(entry.at, since.get(unit), listed=False)
            ]  # fmt: skip
            if others:
                yield (
                    f"row {row.number}: {unit} is advised to {row.call_id}, and {others[0].kind} "
                    f"to {others[0].call_id}"
                )


def _unchecked(answer: Mapping[str, Any]) -> bool:
    codes = [code for one in answer["degraded"] for code in (one["code"], *one["also"])]
    return "promises_unknown" in codes


def _dispatch_problems(rows: Sequence[Row]) -> Iterator[str]:
    """An advice on a dispatch follows its acceptance, changes something, and is numbered.

    Another unit that is proposed in place of one that was taken changes something, too.
    """
    accepted, last = set[str](), dict[str, tuple[str, int, Any]]()
    advised: dict[str, str] = {}
    for row in rows:
        body = row.entry.body
        if row.duplicate_of is not None:
            continue
        if row.kind == "response" and body["response"]["action"] == "accept":
            accepted.add(body["recommendation_id"])
        elif row.kind == "reassessment":
            id_, said = body["dispatch_id"], body["said"]
            before = last.get(id_, ("keep", 0, None))
            if id_ not in accepted:
                yield f"row {row.number}: dispatch {id_} was never accepted"
            other = said["advice"] == before[0] == "send_one" and said["second"] != before[2]
            if not other and (said["advice"] == before[0] or said["changes"] != before[1] + 1):
                yield f"row {row.number}: {said['advice']} after {before[0]} in dispatch {id_}"
            last[id_], advised[row.id] = (said["advice"], said["changes"], said["second"]), id_
        elif row.kind == "reply" and advised.get(body["advice_id"]) != body["dispatch_id"]:
            yield f"row {row.number}: a reply to an advice that was never given"


def _print(
    console: Console,
    rows: Sequence[Row],
    got: Acknowledged,
    faults: Mapping[str, int],
    problems: Sequence[str],
) -> None:
    kinds = Counter(row.kind for row in rows)
    said = Counter(
        f"{row.entry.body['said']['advice']}: {row.entry.body['said']['reason'].split(':')[0]}"
        for row in rows if row.kind == "reassessment"
    )  # fmt: skip
    table = Table(title="A living city while its parts fail")
    table.add_column("what")
    table.add_column("", justify="right")
    for what, count in sorted(faults.items()):
        table.add_row(f"{what} killed", str(count))
    for kind, count in sorted(kinds.items()):
        table.add_row(f"rows: {kind}", f"{count:,}")
    for words, count in sorted(said.items()):
        table.add_row(words, str(count))
    table.add_row("advices acknowledged", f"{len(got.advices):,}")
    table.add_row("replies acknowledged", f"{sum(got.replies.values()):,}")
    table.add_row("closures acknowledged", f"{len(got.closures):,}")
    table.add_row("statuses told", f"{sum(map(len, got.statuses.values())):,}")
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
