"""The real service in processes of its own: killed, ended, doubled, cut off from its database."""

import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.stack import children_of
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.http.answer_schemas import Recommendation
from tests.postgres import Postgres
from tests.service_town import PATIENCE_S, Town, bearer, serving
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


def rows(url: str) -> list[Any]:
    store = AuditStore(url)
    try:
        return store.recent("recommendation", 10_000)
    finally:
        store.close()


def flood(url: str, town: Town, name: str, stop: threading.Event, got: dict[str, str]) -> None:
    """Ask until told to stop; what was answered is kept by its id."""
    number = 0
    with httpx.Client(timeout=PATIENCE_S) as client:
        while not stop.is_set():
            number += 1
            body = town.call(f"{name}-{number}")
            try:
                answer = client.post(f"{url}/v1/recommendations", json=body, headers=bearer("cad"))
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                got[answer.json()["id"]] = answer.text


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_sigkill_or_sigterm_of_the_service_loses_no_answer(town: Town, how: signal.Signals) -> None:
    """Whoever has an answer has its row: it was durable before the answer left."""
    name = f"kill-{how.name}.toml"
    config = town.config(name)
    got: dict[str, str] = {}
    stop = threading.Event()
    with serving(config) as served:
        threads = [
            threading.Thread(target=flood, args=(served.url, town, f"f{n}", stop, got))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(got) >= 30)
        os.kill(served.process.pid, how)
        served.process.wait(PATIENCE_S)
        stop.set()
        for thread in threads:
            thread.join()
    assert len(got) >= 30
    with serving(config):  # takes over a spool, if there is one
        pass
    stored = {row.entry.id for row in rows(f"sqlite:///{town.folder}/{name}.db")}
    assert set(got) <= stored


def test_sigterm_ends_soon_although_desks_listen(town: Town) -> None:
    with serving(town.config("listen.toml")) as served:
        with served.client.stream(
            "GET", f"{served.url}/v1/events", headers=bearer("dispatcher")
        ) as stream:
            pieces = stream.iter_raw()
            assert b"retry" in next(pieces)
            served.process.send_signal(signal.SIGTERM)
            try:
                for _ in pieces:
                    pass
            except httpx.TransportError:
                pass
        served.process.wait(PATIENCE_S)
        assert served.process.returncode in (0, -signal.SIGTERM)


def test_two_workers_one_call(town: Town, postgres: Postgres) -> None:
    """The same request at the same moment to two workers: one answer, one row, one event each."""
    url = postgres.new_database()
    config = town.config("two.toml", audit={"url": url})
    with serving(config, options=["--workers", "2"]) as served:
        bodies = [town.call(f"two-{n}", idempotency_key="k") for n in range(10)]
        answers: list[list[str]] = [[] for _ in bodies]
        clients = [httpx.Client(timeout=PATIENCE_S) for _ in range(6)]

        def ask(client: httpx.Client, number: int) -> None:
            where = f"{served.url}/v1/recommendations"
            answer = client.post(where, json=bodies[number], headers=bearer("cad"))
            assert answer.status_code == 200
            answers[number].append(answer.json()["id"])

        for number in range(len(bodies)):
            with ThreadPoolExecutor(len(clients)) as pool:
                list(pool.map(ask, clients, [number] * len(clients)))
        for client in clients:
            client.close()
        assert [len(set(ids)) for ids in answers] == [1] * len(bodies)
        assert [len(ids) for ids in answers] == [6] * len(bodies)
        stored = [row for row in rows(url) if row.entry.call_id.startswith("two-")]
        assert len(stored) == len(bodies)
        # units told to one worker are known to all
        for units in (5, 1):
            told = [{"depot": "D0", "units": units}]
            served.client.put(f"{served.url}/v1/units", json=told, headers=bearer("cad"))
        deadline = time.monotonic() + PATIENCE_S
        agreed = 0
        while agreed < 10 and time.monotonic() < deadline:
            with httpx.Client(timeout=PATIENCE_S) as fresh:  # to any worker
                found = fresh.get(f"{served.url}/v1/units", headers=bearer("cad")).json()
            agreed = agreed + 1 if found[0]["units"] == 1 else 0
            time.sleep(0.05)
        assert agreed == 10


def test_events_reach_desks_of_another_worker(town: Town, postgres: Postgres) -> None:
    url = postgres.new_database()
    with (
        serving(town.config("left.toml", audit={"url": url})) as left,
        serving(town.config("right.toml", audit={"url": url})) as right,
        right.client.stream("GET", f"{right.url}/v1/events", headers=bearer()) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        made = left.post(town.call("elsewhere")).json()
        response = {"action": "accept"}
        where = f"{left.url}/v1/recommendations/{made['id']}/response"
        left.client.post(where, json=response, headers=bearer("dispatcher"))
        heard = []
        for line in lines:
            if line.startswith("data:") and made["id"] in line:
                heard.append(line)
            if len(heard) == 2:
                break
        assert '"call_id": "elsewhere"' in heard[0]
        assert '"action": "accept"' in heard[1]


def test_database_down_while_serving(town: Town, postgres: Postgres) -> None:
    """PostgreSQL stops: answers go on, and every row is there afterwards."""
    url = postgres.new_database()
    with serving(town.config("down.toml", audit={"url": url})) as served:
        ids = [served.post(town.call(f"before-{n}")).json()["id"] for n in range(3)]
        postgres.stop("immediate")
        try:
            for number in range(5):
                answer = served.post(town.call(f"down-{number}"))
                made = Recommendation.model_validate(answer.json())
                assert made.decision != "no_advice"
                ids.append(made.id)
            body = town.call("again")
            first, second = served.post(body).json(), served.post(body).json()
            assert first == second  # also without a database
            ids.append(first["id"])
            revised = served.post(town.call("again", node=30)).json()
            assert (revised["revision"], revised["revision_of"]) == (2, first["id"])
            ids.append(revised["id"])
            assert served.get("/readyz").status_code == 200
            assert "spooling" in served.get("/healthz").json()["parts"]["audit"]
            assert served.get(f"/v1/recommendations/{first['id']}").status_code == 200
            assert served.get(f"/v1/recommendations/{'0' * 32}").status_code == 503
            assert len(served.get("/v1/recommendations").json()) >= 7
        finally:
            postgres.start()
        wait_for(lambda: served.get("/healthz").json()["parts"]["audit"] == "ready")
        assert {row.entry.id for row in rows(url)} >= set(ids)
        assert sum(row.entry.call_id == "again" for row in rows(url)) == 2


def test_database_locked_while_serving(town: Town) -> None:
    """Another program holds SQLite's lock: answers go to the spool."""
    with serving(town.config("locked.toml")) as served:
        ids = [served.post(town.call("unlocked")).json()["id"]]
        file = town.folder / "locked.toml.db"
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        for number in range(3):
            answer = served.post(town.call(f"locked-{number}"))
            assert answer.status_code == 200
            ids.append(answer.json()["id"])
        holder.execute("ROLLBACK")
        holder.close()
        wait_for(lambda: {row.entry.id for row in rows(f"sqlite:///{file}")} >= set(ids))


def test_killed_and_started_again_while_the_database_is_locked(town: Town) -> None:
    """What the dead process spooled is known to the next: same call, same answer."""
    config, file = town.config("twice.toml"), town.folder / "twice.toml.db"
    body = town.call("locked")
    with serving(config) as served:
        served.post(town.call("unlocked"))
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        first = served.post(body).json()
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(PATIENCE_S)
    with serving(config) as served:
        assert served.post(body).json() == first
        holder.execute("ROLLBACK")
        holder.close()
        wait_for(lambda: first["id"] in {row.entry.id for row in rows(f"sqlite:///{file}")})


def test_no_torch_and_no_secret_in_the_process(town: Town) -> None:
    """What the service has loaded and logged while it answered calls."""
    with serving(town.config("clean.toml")) as served:
        for number in range(3):
            served.post(town.call(f"clean-{number}"))
        served.client.get(f"{served.url}/v1/city", headers={"Authorization": "Bearer hush-hush"})
        pids = [served.process.pid, *children_of(served.process.pid)]  # the worker, its solvers
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
        assert "numpy" in maps
        assert "torch" not in maps
        log = served.log.read_text()
        assert '"call_id": "clean-0"' in log
        assert "hush-hush" not in log
        for role in ("cad", "auditor"):
            assert bearer(role)["Authorization"].split()[1] not in log
