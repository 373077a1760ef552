"""nginx, two workers and PostgreSQL as deploy/ sets them up, with parts of it failing."""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from benchmarks.load import restarts
from benchmarks.ports import free_port
from benchmarks.stack import (
    DEPLOY,
    IDEAL,
    PATIENCE_S,
    WORKER_PORTS,
    WorkerProcess,
    proxied,
)
from ideal_dispatch.service.record.audit import log_rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import LogRow
from tests.deploy.conftest import client_of
from tests.postgres import Postgres
from tests.service_town import COUNTS, Town, bearer, counts
from tests.waiting import wait_for

PATIENT = (("2200ms", "8s"), ("2500ms", "12s"))
"""nginx takes a worker for frozen later than in the file: the machine of a test may be slow."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nginx_is_there")]

ASK = "/v1/recommendations"


def ideal(*arguments: str) -> str:
    """What a command says that must succeed."""
    done = subprocess.run([IDEAL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Stack:
    """Everything that a centre runs; ``owner`` is the URL of the tables' owner."""

    town: Town
    workers: list[WorkerProcess]
    client: httpx.Client
    plain_url: str
    postgres: Postgres
    owner: str

    def rows(self) -> list[LogRow]:
        database = Database(self.owner)
        try:
            with database.snapshot(Job(time.monotonic() + PATIENCE_S)) as connection:
                return list(log_rows(connection))
        finally:
            database.close()

    def logged(self, request_id: str) -> dict[str, Any]:
        """The line about a request, which a worker writes once it has answered."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for worker in self.workers:
                for line in worker.log.read_text().splitlines():
                    if request_id in line:
                        found: dict[str, Any] = json.loads(line)
                        return found
            time.sleep(0.05)
        raise AssertionError(f"no line about {request_id}")


def database(postgres: Postgres) -> tuple[str, str]:
    """A database made as the page on deployment says: URLs of its owner and of the service."""
    owner = postgres.new_database()
    tables = Database(owner)
    tables.read(lambda _: None, Job(time.monotonic() + PATIENCE_S))
    tables.close()
    with psycopg.connect(owner.replace("+psycopg", "")) as connection:
        connection.execute("DROP ROLE IF EXISTS ideal_service")
        connection.execute("CREATE ROLE ideal_service LOGIN")
        connection.execute((DEPLOY / "postgresql.sql").read_bytes())
    return owner, owner.replace("postgres@", "ideal_service@")


@pytest.fixture(scope="module")
def stack(
    nginx_is_there: None, town: Town, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    owner, url = database(postgres)
    server = {"queue": 8, "secure_cookie": True, "expiry_s": 1.0}  # units are free again soon
    config = town.config("stack.toml", audit={"url": url}, server=server)
    workers = [WorkerProcess(config, free_port()) for _ in range(2)]
    folder = tmp_path_factory.mktemp("nginx")
    try:
        for worker in workers:
            worker.start()
        with (
            proxied(folder, [one.port for one in workers], PATIENT) as proxy,
            client_of(proxy) as client,
        ):
            client.put("/v1/units", json=counts(**COUNTS), headers=bearer("cad")).raise_for_status()
            yield Stack(town, workers, client, proxy.plain_url, postgres, owner)
    finally:
        for worker in workers:
            worker.stop()


@dataclass
class Flood:
    """Callers that ask one call after the other, as a CAD does, and keep what they got."""

    stack: Stack
    name: str = "flood"
    callers: int = 4
    ids: dict[str, str] = field(default_factory=dict)  # of an answer on record: its call
    unrecorded: int = 0
    others: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Flood":
        for number in range(self.callers):
            self._threads.append(threading.Thread(target=self._ask, args=(number,)))
            self._threads[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def more(self, count: int) -> None:
        """Wait until so many more calls are answered, on record or not."""
        wanted = len(self.ids) + self.unrecorded + count
        wait_for(lambda: len(self.ids) + self.unrecorded >= wanted, lambda: self.others)

    def _ask(self, caller: int) -> None:
        turn = 0
        while not self._stop.is_set():
            turn += 1
            body = self.stack.town.call(f"{self.name}-{caller}-{turn}")
            try:
                answer = self.stack.client.post(ASK, json=body, headers=bearer("cad"))
            except httpx.TransportError as error:
                self.others[type(error).__name__] += 1
                continue
            if answer.status_code == 200 and answer.json()["state"] == "unrecorded":
                assert answer.json()["degraded"][0]["code"] == "record_unavailable"
                self.unrecorded += 1
            elif answer.status_code == 200:
                self.ids[answer.json()["id"]] = body["call_id"]
            else:
                self.others[f"{answer.status_code} {answer.json()['error']['code']}"] += 1


def test_killed_workers_and_a_stopped_database_lose_nothing(stack: Stack) -> None:
    """A worker dies, the database dies, the other worker dies meanwhile; all come back.

    No caller is left without an answer: nginx asks the other worker, and the same request may come
    twice. While the database is away, answers say that they are on no record.
    """
    left, right = stack.workers
    with Flood(stack) as flood:
        flood.more(40)
        left.kill()
        flood.more(40)
        left.start()
        flood.more(20)
        assert not flood.unrecorded
        stack.postgres.stop("immediate")
        try:
            flood.more(20)
            right.kill()
            flood.more(20)
            right.start()
            flood.more(20)
            assert flood.unrecorded
        finally:
            stack.postgres.start()
        recorded = len(flood.ids)
        wait_for(lambda: len(flood.ids) >= recorded + 30, lambda: flood.others)
    assert not flood.others
    rows = [row for row in stack.rows() if row.kind == "recommendation"]
    stored = {row.content["answer"]["id"]: row.call_id for row in rows}
    assert flood.ids.items() <= stored.items()
    assert set(Counter(row.call_id for row in rows).values()) == {1}
    assert ideal("audit", "verify", stack.owner).startswith("whole: ")


def test_a_frozen_worker_costs_no_caller_an_answer(stack: Stack) -> None:
    left = stack.workers[0]
    with Flood(stack, "frozen") as flood:
        flood.more(10)
        os.kill(left.pid, signal.SIGSTOP)
        try:
            flood.more(60)
        finally:
            os.kill(left.pid, signal.SIGCONT)
        flood.more(10)
    assert not flood.others
    assert not flood.unrecorded


def test_a_rolling_restart_by_the_words_of_the_handbook_refuses_nobody(stack: Stack) -> None:
    named = dict(zip(WORKER_PORTS, stack.workers, strict=True))
    with Flood(stack, "rolling") as flood:
        for port in [*restarts("operations.md"), *restarts("deployment.md")]:
            flood.more(10)
            named[port].stop()
            named[port].start()
        flood.more(10)
    assert not flood.others
    assert not flood.unrecorded


def test_the_service_may_not_change_what_is_on_record(stack: Stack) -> None:
    stack.client.post(ASK, json=stack.town.call("kept"), headers=bearer("cad"))
    url = stack.owner.replace("+psycopg", "").replace("postgres@", "ideal_service@")
    for statement in (b"DELETE FROM log", b"UPDATE log SET body = '{}'", b"TRUNCATE log",
                      b"DROP TABLE log", b"DELETE FROM head", b"DELETE FROM advice"):  # fmt: skip
        with (
            psycopg.connect(url) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)
    assert "kept" in {row.call_id for row in stack.rows()}


def test_events_pass_without_delay(stack: Stack) -> None:
    """A desk behind nginx hears at once what any worker answers."""
    with stack.client.stream("GET", "/v1/events", headers=bearer()) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"  # less than any buffer holds
        made = [
            stack.client.post(ASK, json=stack.town.call(f"heard-{n}"), headers=bearer("cad")).json()
            for n in range(4)
        ]
        waiting = {one["id"] for one in made}
        for line in lines:
            if line.startswith("data: {") and "decision" in line:
                waiting.discard(json.loads(line.removeprefix("data: "))["id"])
            if not waiting:
                break
        assert not waiting
        # pings keep it open for longer than nginx waits for an ordinary answer
        began = time.monotonic()
        while time.monotonic() - began < 12.0:
            next(lines)


def test_the_desk_is_fresh_and_cheap_to_ask_for(stack: Stack) -> None:
    page = stack.client.get("/")
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert "server" not in page.headers or "/" not in page.headers["server"]
    script = stack.client.get("/desk.css")
    assert script.headers["content-encoding"] == "gzip"
    again = stack.client.get("/desk.css", headers={"If-None-Match": script.headers["etag"]})
    assert again.status_code == 304
    plain = httpx.get(f"{stack.plain_url}/v1/city?x=1")
    assert plain.status_code == 308
    assert plain.headers["location"].endswith("/v1/city?x=1")


def test_sessions_and_addresses_through_the_proxy(stack: Stack) -> None:
    """The cookie is for TLS alone, and nobody can pretend to be another address."""
    token = bearer("dispatcher")["Authorization"].split()[1]
    signed_in = stack.client.post("/v1/session", json={"token": token})
    assert signed_in.status_code == 200
    cookie = signed_in.headers["set-cookie"]
    assert {"Secure", "HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    forged = {**bearer("auditor"), "X-Forwarded-For": "203.0.113.9"}
    answer = stack.client.get("/v1/city", headers=forged)
    mine = stack.logged(answer.headers["x-request-id"])
    assert (mine["client"], mine["path"]) == ("127.0.0.1", "/v1/city")


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    said: dict[str, Any] = answer.json()["error"]
    assert set(said) == {"code", "message", "where"}
    return answer.status_code, said["code"]


def test_what_nginx_refuses_has_the_form_of_the_api(stack: Stack) -> None:
    body = stack.town.call(note="x" * 2_000_000)
    assert refused(stack.client.post(ASK, json=body, headers=bearer("cad"))) == (413, "too_large")
    assert stack.client.get("/metrics", headers=bearer("admin")).status_code == 404


def test_without_any_worker_callers_know_at_once(tmp_path: Path) -> None:
    with proxied(tmp_path, [free_port(), free_port()]) as proxy, client_of(proxy) as client:
        answer = client.post(ASK, json={})
    assert refused(answer) == (503, "down")
    assert answer.headers["retry-after"] == "1"
