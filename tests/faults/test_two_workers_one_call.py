"""Two worker processes get the same call: one answer, one row; cut off, both are on record."""

import json
import time
from collections import Counter
from pathlib import Path

from ideal_dispatch.service.audit.record import Row, StoreError
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import PATIENCE_S, all_rows, nothing_waits, wait_for_replay
from tests.faults.audit_worker import Worker
from tests.postgres import Postgres

CALLS = 40


def test_two_workers_one_call(tmp_path: Path, postgres: Postgres) -> None:
    url, spool = postgres.new_database(), tmp_path / "spool"
    workers = [Worker.start(url, spool, name, CALLS, 30.0) for name in ("one", "two")]
    for worker in workers:
        worker.go()
    one, two = (worker.outcomes() for worker in workers)
    assert one == two  # whoever was first: both say the same answer
    store = AuditStore(url)
    rows = all_rows(store)
    assert {row.entry.id for row in rows} == {outcome["id"] for outcome in one}
    assert len(rows) == CALLS
    store.close()
    assert nothing_waits(spool)


def test_two_workers_one_call_without_a_database(tmp_path: Path, postgres: Postgres) -> None:
    """Both answer from one spool folder; later both answers are rows, the second a duplicate."""
    url, spool = postgres.new_database(), tmp_path / "spool"
    workers = [Worker.start(url, spool, name, CALLS, 2.0) for name in ("one", "two")]
    postgres.stop("immediate")
    try:
        for worker in workers:
            worker.go()
        outcomes = [worker.outcomes() for worker in workers]
    finally:
        postgres.start()
    assert all(outcome["spooled"] for said in outcomes for outcome in said)
    assert len(list(spool.glob("*.sqlite"))) == 2
    store = AuditStore(url)
    with BlockingWriter(store, Spool(spool)) as writer:
        wait_for_replay(writer)
        rows = all_rows(store)
    assert {row.entry.id for row in rows} == {one["id"] for said in outcomes for one in said}
    assert set(Counter(row.entry.call_id for row in rows).values()) == {2}
    firsts = {row.entry.id for row in rows if row.duplicate_of is None}
    assert {row.duplicate_of for row in rows if row.duplicate_of is not None} == firsts
    assert nothing_waits(spool)


def test_a_killed_worker_leaves_its_spool_to_the_other(tmp_path: Path, postgres: Postgres) -> None:
    url, spool = postgres.new_database(), tmp_path / "spool"
    postgres.stop("immediate")
    try:
        worker = Worker.start(url, spool, "one", CALLS, 2.0)
        worker.go()
        said = [worker.line() for _ in range(10)]
        worker.process.kill()
        worker.process.communicate()
    finally:
        postgres.start()
    assert len(said) == 10
    store = AuditStore(url)
    with BlockingWriter(store, Spool(spool)) as writer:
        wait_for_replay(writer)
        assert len(all_rows(store)) >= 10


def test_a_killed_worker_leaves_its_spool_to_a_busy_one(tmp_path: Path, postgres: Postgres) -> None:
    """The other lives on and gets calls all the time: there is no quiet moment to look around."""
    url, spool = postgres.new_database(), tmp_path / "spool"
    store = AuditStore(url)
    with BlockingWriter(store, Spool(spool)) as writer:
        postgres.stop("immediate")
        try:
            worker = Worker.start(url, spool, "one", CALLS, 2.0)
            worker.go()
            said = [json.loads(worker.line())["id"] for _ in range(10)]
            worker.process.kill()
            worker.process.communicate()
        finally:
            postgres.start()
        written, deadline = 0, time.monotonic() + PATIENCE_S
        while set(said) - {row.entry.id for row in _rows(store)}:
            assert time.monotonic() < deadline
            writer.write(entry(written, f"busy-{written}"), 2.0)
            written += 1
            time.sleep(0.2)
        wait_for_replay(writer)
        assert sum(row.entry.call_id.startswith("busy-") for row in all_rows(store)) == written
    assert nothing_waits(spool)


def _rows(store: AuditStore) -> list[Row]:
    """What is there now; none while the database is coming back."""
    try:
        return store.rows(0, 1_000_000)
    except StoreError:
        return []
