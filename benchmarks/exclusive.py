"""Two workers, few units, many changes at once, and kills of workers: is anything broken.

    python -m benchmarks.exclusive                  # SQLite
    python -m benchmarks.exclusive --postgresql     # a server of its own
    python -m benchmarks.exclusive --operations 8000 --seed 2

Advice, replies, statuses, positions and deletions come at two workers from several threads, while
one of the workers is killed every few seconds. The clock of the second worker is an hour ahead.
Afterwards the log is read: no unit passed from one call to another while it was promised, every
acknowledged change is there, and the record verifies. Then two desks answer the same advice at
the same moment, again and again.
"""

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.ports import free_port
from benchmarks.stack import WorkerProcess
from ideal_dispatch.cities import HARBOUR_MODEL, harbour_city
from ideal_dispatch.service.record.audit import log_rows, verify
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import LogRow
from ideal_dispatch.service.settings import digest
from tests.postgres import running_postgres

UNITS, CALLS, CLIENTS = 10, 40, 8
AHEAD = """
import datetime, time
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + 3600.0
time.time_ns = lambda: nanoseconds() + 3600 * 10**9

class Ahead(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(hours=1)

datetime.datetime = Ahead
"""
"""The ``sitecustomize.py`` of a worker whose clock is an hour ahead."""

_DESKS = {name: f"{name}-{'x' * 32}" for name in ("one", "two")}


@dataclass
class Tally:
    """What was asked, and what the workers said; ``broken`` must stay empty."""

    answers: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    rows: int = 0
    acknowledged: int = 0
    twins: Counter[tuple[int, int]] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def write_config(folder: Path, database: str) -> Path:
    """Settings of the embedded city with two dispatchers, on a database."""
    city = harbour_city()
    city.network.save(folder / "city.network")
    lon, lat = city.network.lon, city.network.lat
    rows = [f"{one.name},{lon[one.node]},{lat[one.node]}" for one in city.depots]
    (folder / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]) + "\n")
    tokens = "".join(
        f'[[tokens]]\nname = "{name}"\nrole = "admin"\nsha256 = "{digest(token)}"\n'
        for name, token in _DESKS.items()
    )
    path = folder / "exclusive.toml"
    path.write_text(
        f'[city]\nname = "Port Almery"\nnetwork = "city.network"\ndepots = "depots.csv"\n'
        f'time_zone = "{city.time_zone}"\ncountry = "{city.country}"\n'
        f'[model]\nfolder = "{HARBOUR_MODEL}"\n[audit]\nurl = "{database}"\n'
        f'[server]\ndeadline_s = 10.0\nqueue = 64\nexpiry_s = 20.0\nlog_level = "warning"\n{tokens}'
    )
    return path


class Storm:
    """Random changes by several clients; what was acknowledged is kept."""

    def __init__(self, workers: list[WorkerProcess], operations: int, seed: int) -> None:
        self._workers, self._left, self._seed = workers, operations, seed
        self._lock, self.tally = threading.Lock(), Tally()
        self._depots = [depot.name for depot in harbour_city().depots]
        self._advices: list[str] = []
        self.advised: set[str] = set()
        self.replied: dict[str, str] = {}
        self.reported: set[tuple[str, str]] = set()  # unit and the call that names the report

    def run(self) -> None:
        """All operations, by all clients."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            for one in [pool.submit(self._client, n) for n in range(CLIENTS)]:
                one.result()

    def _client(self, number: int) -> None:
        rng = random.Random(1000 * self._seed + number)
        with httpx.Client(timeout=60, trust_env=False) as client:
            while True:
                with self._lock:
                    self._left -= 1
                    left = self._left
                if left < 0:
                    return
                worker = rng.choice(self._workers)
                token = _DESKS[rng.choice(list(_DESKS))]
                client.headers["Authorization"] = f"Bearer {token}"
                what = rng.choices(
                    (self._ask, self._reply, self._status, self._delete), (35, 35, 25, 5)
                )[0]
                try:
                    said = what(client, worker.url, rng, left)
                except httpx.TransportError:  # that worker was killed
                    said = "no answer"
                    with self._lock:
                        self._left += 1
                    time.sleep(0.2)
                with self._lock:
                    self.tally.answers[said] += 1

    def _ask(self, client: httpx.Client, url: str, rng: random.Random, number: int) -> str:
        body = {
            "call_id": f"call-{rng.randrange(CALLS)}", "idempotency_key": f"key-{number}",
            "location": {"lon": 117.21 + 0.065 * rng.random(), "lat": 21.585},
            "primary": {"unit": f"U{rng.randrange(UNITS)}"} if rng.random() < 0.5 else None,
            "threshold_s": -1000.0,
        }  # fmt: skip
        answer = client.post(f"{url}/v1/recommendations", json=body)
        if answer.status_code != 200:
            return f"advice {answer.status_code}"
        made = answer.json()
        if made["state"] != "unrecorded":
            with self._lock:
                self.advised.add(made["id"])
                self._advices.append(made["id"])
        return f"advice {made['decision']}"

    def _reply(self, client: httpx.Client, url: str, rng: random.Random, number: int) -> str:
        with self._lock:
            recent = self._advices[-12:]
        if not recent:
            return "nothing to answer"
        id_ = rng.choice(recent)
        action = rng.choice(("accept", "accept", "override"))
        body = {"action": action, "text": f"{number}"}
        if action == "override":
            body["reason_code"] = "other"
        answer = client.post(f"{url}/v1/recommendations/{id_}/reply", json=body)
        if answer.status_code == 200:
            with self._lock:
                before = self.replied.setdefault(id_, f"{number}")
                if before != f"{number}":
                    self.tally.broken.append(f"advice {id_} took two replies: {before}, {number}")
            return f"reply {action}"
        code = answer.json()["error"]["code"] if answer.status_code == 409 else answer.status_code
        return f"reply refused: {code}"

    def _status(self, client: httpx.Client, url: str, rng: random.Random, number: int) -> str:
        unit = f"U{rng.randrange(UNITS)}"
        body: dict[str, Any] = {"depot": rng.choice(self._depots), "status": "at_station"}
        if rng.random() < 0.25:
            body["status"] = rng.choice(("en_route", "out_of_service"))
            body["call_id"] = f"report-{number}"
        if rng.random() < 0.5:
            body |= {"lon": 117.21 + 0.065 * rng.random(), "lat": 21.585}
        if rng.random() < 0.3:  # a list of positions, as a radio gateway sends it
            places = [
                {"id": f"U{n}", "lon": 117.21 + 0.065 * rng.random(), "lat": 21.585}
                for n in rng.sample(range(UNITS), 3)
            ]
            listed = client.put(f"{url}/v1/units", json=places)
            return f"positions {listed.status_code}"
        answer = client.put(f"{url}/v1/units/{unit}", json=body)
        if answer.status_code != 200:
            return f"status {answer.status_code}"
        if "call_id" in body and not answer.json()["ignored"]:
            with self._lock:
                self.reported.add((unit, body["call_id"]))
        return "status"

    def _delete(self, client: httpx.Client, url: str, rng: random.Random, number: int) -> str:
        answer = client.delete(f"{url}/v1/units/U{rng.randrange(UNITS)}")
        return f"delete {answer.status_code}"


@dataclass
class Logged:
    """What the log of a record holds, and what in it must not be."""

    rows: Counter[str] = field(default_factory=Counter)
    advised: set[str] = field(default_factory=set)
    replied: dict[str, list[Any]] = field(default_factory=dict)
    reported: set[tuple[str, str | None, str]] = field(default_factory=set)  # unit, call, status
    closed: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)


def read(url: str) -> Logged:
    """Verify a record, and walk along its log.

    No unit may pass from one call to another while it is promised, unless the log says that the
    first call lost it; no advice may have two replies; no moment may come before an earlier one.
    """
    database, found = Database(url, create=False, timeout_s=600.0), Logged()
    try:
        fault = verify(database).fault
        found.broken += [] if fault is None else [fault]
        with database.snapshot(Job(time.monotonic() + 600.0)) as connection:
            _walk(log_rows(connection), found)
    finally:
        database.close()
    return found


def _walk(rows: Iterable[LogRow], found: Logged) -> None:
    holder: dict[str, tuple[str | None, int]] = {}
    taken: list[tuple[str, str | None, str]] = []  # to be explained by rows of the same change
    last_at = 0
    for row in rows:
        body = row.content
        found.rows[row.kind] += 1
        if row.at < last_at:
            found.broken.append(f"row {row.number}: the log runs backwards")
        last_at = row.at
        if "changes" in body:
            found.broken += [f"{unit} passed from {a} to {b}" for unit, a, b in taken]
            taken = []
        elif row.kind == "promise_lost":
            taken = [one for one in taken if one[:2] != (body["unit"], body["call_id"])]
        for unit, image in body.get("changes", {}).get("unit", {}).items():
            before, held_until = holder.get(unit, (None, 0))
            now_to = None if image is None else image["promised_to"]
            if before is not None and held_until > row.at and now_to not in (None, before):
                taken.append((unit, before, now_to))
            holder[unit] = now_to, 0 if image is None else image["promised_until"] or 0
            if image is not None:
                found.reported.add((unit, image["call_id"], image["status"]))
        if row.kind == "recommendation":
            answer = body["answer"]
            found.advised.add(answer["id"])
            if answer["state"] == "open" and answer["decision"] == "send_second":
                unit = answer["second"]["unit"]
                if holder.get(unit, (None, 0))[0] != row.call_id and not answer["simulated"]:
                    found.broken.append(f"advice {answer['id']}: {unit} is not promised to it")
        elif row.kind == "reply":
            if body["id"] in found.replied:
                found.broken.append(f"advice {body['id']} has two replies on record")
            found.replied.setdefault(body["id"], []).append(body["reply"])
        elif row.kind == "dispatch" and body["dispatch"]["reply"] is not None:
            found.replied.setdefault(body["id"], []).append(body["dispatch"]["reply"])
        elif row.kind == "closure":
            found.closed |= {body["closed"]} if "closed" in body else set()
            found.opened |= {body["ended"]} if "ended" in body else set()
    found.broken += [f"{unit} passed from {a} to {b}" for unit, a, b in taken]


def look_at(url: str, storm: Storm) -> None:
    """Read the whole log, and note what must not be."""
    tally, logged = storm.tally, read(url)
    tally.rows, tally.broken = logged.rows.total(), tally.broken + logged.broken
    tally.broken += [f"advice {one} is not on record" for one in storm.advised - logged.advised]
    reports = {(unit, call_id) for unit, call_id, _ in logged.reported}
    tally.broken += [f"report {one} is not on record" for one in storm.reported - reports]
    for id_, text in storm.replied.items():
        if [one["text"] for one in logged.replied.get(id_, ()) if "text" in one][:1] != [text]:
            tally.broken.append(f"reply {text} to {id_} is not on record")
    tally.acknowledged = len(storm.advised) + len(storm.replied) + len(storm.reported)


def twins(workers: list[WorkerProcess], count: int, tally: Tally) -> None:
    """Two desks answer one advice at the same moment, at two workers: one is first."""
    with ExitStack() as stack:
        desks = [
            stack.enter_context(httpx.Client(
                base_url=worker.url, timeout=60, trust_env=False,
                headers={"Authorization": f"Bearer {token}"},
            ))
            for worker, token in zip(workers, _DESKS.values(), strict=True)
        ]  # fmt: skip
        desks[0].put("/v1/units", json=[
            {"id": f"T{n}", "depot": harbour_city().depots[n % 2].name, "status": "at_station"}
            for n in range(UNITS)
        ])  # fmt: skip
        pool = stack.enter_context(ThreadPoolExecutor(2))
        for number in range(count):
            body = {
                "call_id": f"twin-{number}", "location": {"lon": 117.24, "lat": 21.585},
                "threshold_s": -1000.0,
            }  # fmt: skip
            made = desks[0].post("/v1/recommendations", json=body).json()
            if made["decision"] == "no_advice":
                tally.twins[0, 0] += 1
                continue
            start = threading.Barrier(2)

            def answer(which: int, id_: str = made["id"], start: Any = start) -> httpx.Response:
                said = ({"action": "accept"}, {"action": "override", "reason_code": "other"})[which]
                start.wait()
                return desks[which].post(f"/v1/recommendations/{id_}/reply", json=said)

            said = [one.result() for one in [pool.submit(answer, which) for which in range(2)]]
            first, other = sorted(one.status_code for one in said)
            tally.twins[first, other] += 1
            views = [desk.get(f"/v1/recommendations/{made['id']}").json() for desk in desks]
            winner = next((one for one in said if one.status_code == 200), None)
            if winner is None or any(view["reply"] != winner.json()["reply"] for view in views):
                tally.broken.append(f"twin {number}: views of the reply differ")
            used = [made[role]["unit"] for role in ("primary", "second") if made[role]]
            for status in ("on_scene", "at_station"):  # free again for the next pair
                desks[0].put("/v1/units", json=[{"id": one, "status": status} for one in used])


def run(
    folder: Path, database: str, operations: int, twin_count: int, seed: int, kill_every_s: float
) -> Tally:
    """The whole of it."""
    config = write_config(folder, database)
    (folder / "ahead").mkdir()
    (folder / "ahead" / "sitecustomize.py").write_text(AHEAD)
    paths = os.pathsep.join([str(folder / "ahead"), os.environ.get("PYTHONPATH", "")])
    workers = [
        WorkerProcess(config, free_port(), environment=environment)
        for environment in ({}, {"PYTHONPATH": paths})
    ]
    storm, done = Storm(workers, operations, seed), threading.Event()
    rng = random.Random(seed)

    def kill_now_and_then() -> None:
        while not done.wait(kill_every_s * rng.uniform(0.5, 1.5)):
            victim = rng.choice(workers)
            victim.kill()
            storm.tally.kills += 1
            victim.start()

    with ExitStack() as stack:
        for worker in workers:
            stack.callback(worker.stop)
            worker.start()
        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        try:
            storm.run()
        finally:
            done.set()
            killer.join()
        twins(workers, twin_count, storm.tally)
    look_at(database, storm)
    return storm.tally


def main() -> None:
    """Run it by the command line, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgresql", action="store_true", help="in place of SQLite")
    parser.add_argument("--operations", type=int, default=5000)
    parser.add_argument("--twins", type=int, default=300)
    parser.add_argument("--kill-every", type=float, default=4.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        database = f"sqlite:///{folder}/record.db"
        if given.postgresql:
            database = stack.enter_context(running_postgres()).new_database()
        began = time.monotonic()
        tally = run(
            Path(folder), database, given.operations, given.twins, given.seed, given.kill_every
        )
    done, passed_s = given.operations, time.monotonic() - began
    print(f"{done} operations, {tally.kills} kills, {tally.rows} rows, {passed_s:.0f} s")
    print(f"acknowledged advice, replies and reports: {tally.acknowledged}")
    for said, count in sorted(tally.answers.items()):
        print(f"  {said:<34}{count:>7}")
    print("two desks at once:", dict(tally.twins))
    print("broken:", json.dumps(tally.broken[:20], indent=1) if tally.broken else "nothing")
    raise SystemExit(bool(tally.broken))


if __name__ == "__main__":
    main()
