"""The database is away, frozen, locked, full or read-only, and workers are killed.

No record, no advice: calls are answered that there is none, changes are refused, and everything is
good again afterwards. What was acknowledged is there.
"""

import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.audit import verify
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.settings import AuditTable
from tests.postgres import Postgres
from tests.service_town import (
    PATIENCE_S,
    PATIENT,
    Client,
    Local,
    Served,
    Town,
    application,
    bearer,
    codes,
    local,
    serving,
)
from tests.waiting import wait_for

SOON = {"deadline_s": 2.0, "expiry_s": 3600.0}


def recorded(url: str) -> set[str]:
    """Ids of all advice on record; the record is whole."""
    database = Database(url, create=False, timeout_s=PATIENCE_S)
    try:
        found = verify(database)
        assert found.fault is None, found
        query = sa.select(rows.advice.c.id)
        job = Job(time.monotonic() + PATIENCE_S)
        return set(database.read(lambda state: state.connection.scalars(query).all(), job))
    finally:
        database.close()


# --- what fails ----------------------------------------------------------------------


@contextmanager
def stopped(postgres: Postgres, url: str) -> Iterator[None]:
    postgres.stop("immediate")
    try:
        yield
    finally:
        postgres.start()


@contextmanager
def frozen(postgres: Postgres, url: str) -> Iterator[None]:
    """It takes connections and statements, and says nothing."""
    processes = postgres.processes()
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@contextmanager
def locked(postgres: Postgres, url: str) -> Iterator[None]:
    """An open transaction of another program holds the head."""
    with psycopg.connect(url.replace("+psycopg", "")) as holder:
        holder.execute("LOCK TABLE head IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def read_only(postgres: Postgres, url: str) -> Iterator[None]:
    """As a replica is that has not been promoted yet."""
    name = url.rpartition("/")[2]

    def become(words: str) -> None:
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} {words} default_transaction_read_only")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    become("SET default_transaction_read_only = on; --")
    yield
    become("RESET")


POSTGRESQL = {one.__name__: one for one in (stopped, frozen, locked, read_only)}


@contextmanager
def file_locked(folder: Path) -> Iterator[None]:
    """Another program holds SQLite's lock and does not let go."""
    holder = sqlite3.connect(folder / "record.db", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        holder.close()


@contextmanager
def disk_full(folder: Path) -> Iterator[None]:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    yield
    filler.unlink()


SQLITE = {one.__name__: one for one in (file_locked, disk_full)}


@contextmanager
def disk(folder: Path, size: str = "4m") -> Iterator[Callable[[str], None]]:
    """A file system at this place, and what mounts it again in another way."""

    def mount(options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("a file system can only be mounted by root")

    folder.mkdir()
    mount(f"size={size}")
    try:
        yield lambda options: mount(f"remount,{options}")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


# --- what callers get ----------------------------------------------------------------


def served_without_a_record(client: Client, town: Town, name: str, made: dict[str, Any]) -> None:
    """Calls get an honest answer, changes are refused, and the worker stays ready for calls."""
    for number in range(2):
        said = client.advice(town.call(f"{name}-{number}"))
        assert (said["decision"], codes(said)[0]) == ("no_advice", "record_unavailable")
    changes = {
        "/v1/units": ("PUT", [town.unit("A9")]),
        f"/v1/recommendations/{made['id']}/reply": ("POST", {"action": "accept"}),
        "/v1/closures": ("POST", {"edges": [3]}),
    }
    for path, (method, body) in changes.items():
        refused = client.request(method, path, json=body, headers=bearer("admin"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "record_unavailable")
    assert client.get("/readyz").status_code == 200
    if client.get("/v1/units", headers=bearer()).status_code == 503:  # a full disk can be read
        assert client.get("/healthz").json()["parts"]["database"] != "ready"


def good_again(client: Client, town: Town, name: str, made: dict[str, Any]) -> dict[str, Any]:
    """Nothing has to be repaired: the next requests work, and what was refused was not done."""
    wait_for(lambda: client.get("/healthz").json()["parts"]["database"] == "ready")
    again = client.advice(town.call(f"{name}-again"))
    assert again["decision"] != "no_advice"
    assert client.read(f"/v1/recommendations/{made['id']}")["reply"] is None
    assert client.get("/v1/units/A9", headers=bearer()).status_code == 404
    assert client.read("/v1/closures") == []
    assert client.reply(made).status_code == 200
    return again


def through(
    client: Local, town: Town, url: str, name: str, fault: AbstractContextManager[None]
) -> None:
    client.report()
    before = [client.advice(town.call(f"{name}-before-{number}")) for number in range(2)]
    with fault:
        served_without_a_record(client, town, name, before[0])
    again = good_again(client, town, name, before[0])
    assert {one["id"] for one in (*before, again)} == recorded(url)


@pytest.mark.parametrize("fault", POSTGRESQL)
def test_postgresql_fails(town: Town, postgres: Postgres, fault: str) -> None:
    url = postgres.new_database()
    settings = town.settings(f"{fault}.toml", server=SOON, audit={"url": url})
    with local(application(settings)) as client:
        through(client, town, url, fault, POSTGRESQL[fault](postgres, url))


@pytest.mark.parametrize("fault", SQLITE)
def test_sqlite_fails(town: Town, tmp_path: Path, fault: str) -> None:
    with disk(tmp_path / "disk"):
        url = f"sqlite:///{tmp_path}/disk/record.db"
        settings = replace(town.settings(f"{fault}.toml", server=SOON), audit=AuditTable(url))
        with local(application(settings)) as client:
            through(client, town, url, fault, SQLITE[fault](tmp_path / "disk"))


def test_a_disk_that_is_read_only_at_first(town: Town, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/disk/record.db"
    settings = replace(town.settings("read-only.toml", server=SOON), audit=AuditTable(url))
    with disk(tmp_path / "disk") as remount:
        with local(application(settings)) as client:
            client.report()
            made = client.advice(town.call("before"))
        remount("ro")
        with local(application(settings)) as client:
            served_without_a_record(client, town, "read-only", made)
            remount("rw")
            again = good_again(client, town, "read-only", made)
        assert {made["id"], again["id"]} == recorded(url)


def test_a_database_that_is_away_at_the_start(town: Town, postgres: Postgres) -> None:
    url = postgres.new_database()
    settings = town.settings("away.toml", server=SOON, audit={"url": url})
    with stopped(postgres, url):
        with local(application(settings)) as client:
            made = client.advice(town.call("away"))
            assert codes(made)[0] == "record_unavailable"
            postgres.start()
            wait_for(lambda: client.get("/healthz").json()["parts"]["database"] == "ready")
            client.report()
            assert client.advice(town.call("there"))["decision"] != "no_advice"
        postgres.stop()


# --- kills ---------------------------------------------------------------------------


class Flood:
    """Callers that ask one call after the other, and keep the ids that they were given."""

    def __init__(self, client: Client, town: Town, callers: int = 4) -> None:
        self.ids: set[str] = set()
        self.refused = 0
        self._client, self._town, self._stop = client, town, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=[n]) for n in range(callers)]

    def __enter__(self) -> "Flood":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def more(self, count: int) -> None:
        """Wait until so many more are on record."""
        wanted = len(self.ids) + count
        wait_for(lambda: len(self.ids) >= wanted)

    def _ask(self, caller: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            with suppress(httpx.TransportError):
                answer = self._client.ask(self._town.call(f"{id(self)}-{caller}-{number}"))
                if answer.status_code == 200 and answer.json()["state"] != "unrecorded":
                    self.ids.add(answer.json()["id"])
                else:
                    self.refused += 1


def test_postgresql_crashes_in_the_middle_of_writes(town: Town, postgres: Postgres) -> None:
    """A commit whose answer was lost is looked up, and made once."""
    url = postgres.new_database()
    settings = town.settings("crashes.toml", server=PATIENT, audit={"url": url})
    with local(application(settings)) as client:
        client.report()
        with Flood(client, town) as flood:
            for _ in range(3):
                flood.more(10)
                with stopped(postgres, url):
                    wait_for(lambda before=flood.refused: flood.refused > before)  # type: ignore[misc]
            flood.more(10)
    assert flood.ids <= recorded(url)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_ends_in_the_middle_of_writes_loses_no_answer(
    town: Town, kind: str, how: signal.Signals, request: pytest.FixtureRequest
) -> None:
    """Whoever has an answer has its row; the same call again has the same answer."""
    name = f"{how.name}-{kind}.toml"
    audit = {}
    if kind == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        audit = {"url": postgres.new_database()}
    config = town.config(name, server=PATIENT, audit=audit)
    body = town.call("twice")

    def end(served: Served) -> None:
        os.kill(served.process.pid, how)
        served.process.wait(PATIENCE_S)

    with serving(config) as served:
        served.report()
        first = served.advice(body)
        with Flood(served, town) as flood:
            flood.more(30)
            end(served)
    with serving(config) as served:
        assert served.advice(body) == first
        revised = served.advice(town.call("twice", node=30))
        assert (revised["call_id"], revised["revision"]) == ("twice", 2)
    url = audit.get("url", f"sqlite:///{town.folder}/{name}.db")
    assert flood.ids | {first["id"], revised["id"]} <= recorded(url)
