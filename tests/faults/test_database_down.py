"""The database is down: answers go on, entries wait in the spool, and enter in order."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import PATIENCE_S, all_rows, nothing_waits, wait_for_replay
from tests.postgres import Postgres

WAIT_S = 10.0  # of a caller, on a busy machine


@contextmanager
def stopped(postgres: Postgres) -> Iterator[None]:
    postgres.stop("immediate")
    try:
        yield
    finally:
        postgres.start()


def test_database_down_and_up_again(tmp_path: Path, postgres: Postgres) -> None:
    store = AuditStore(postgres.new_database())
    written = [entry(number) for number in range(60)]
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        for one in written[:20]:
            assert writer.write(one, PATIENCE_S) is not None
        with stopped(postgres):
            for one in written[20:40]:
                assert writer.write(one, WAIT_S) is None
            assert writer.error is not None
            assert len(writer.spool) == 20
        for one in written[40:]:
            writer.write(one, PATIENCE_S)
        wait_for_replay(writer)
        assert [row.entry for row in all_rows(store)] == written
    assert nothing_waits(tmp_path / "spool")


def test_database_down_at_the_start(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database()
    with stopped(postgres):
        with BlockingWriter(AuditStore(url), Spool(tmp_path / "spool")) as writer:
            assert writer.write(entry(1), WAIT_S) is None
        with BlockingWriter(AuditStore(url), Spool(tmp_path / "spool")) as writer:
            assert len(writer.spool) == 1
            assert writer.write(entry(2), WAIT_S) is None
    store = AuditStore(url)
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        wait_for_replay(writer)
        assert [row.entry.call_id for row in all_rows(store)] == ["call-1", "call-2"]


def test_database_down_in_the_middle_of_writes(tmp_path: Path, postgres: Postgres) -> None:
    """Crashes under load: a commit whose answer was lost is not written twice."""
    store = AuditStore(postgres.new_database())
    acknowledged: list[str] = []
    stop = threading.Event()

    def work(worker: int) -> None:
        number = 0
        while not stop.is_set():
            one = entry(number, f"{worker}-{number}")
            writer.write(one, PATIENCE_S)
            acknowledged.append(one.id)
            number += 1
            time.sleep(0.01)

    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(0.4)
            with stopped(postgres):
                time.sleep(0.2)
        wait_for_replay(writer)
        stop.set()
        for thread in threads:
            thread.join()
        wait_for_replay(writer)
        rows = all_rows(store)
    assert sorted(row.entry.id for row in rows) == sorted(acknowledged)
    assert writer.spooled > 0
    assert {row.duplicate_of for row in rows} == {None}


def test_database_frozen(tmp_path: Path, postgres: Postgres) -> None:
    """A server that accepts connections and says nothing costs no caller more than its time."""
    store = AuditStore(postgres.new_database(), timeout_s=1.0)
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        assert writer.write(entry(0), PATIENCE_S) is not None
        frozen = postgres.processes()
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        try:
            assert writer.write(entry(1), WAIT_S) is None
            assert writer.error == "audit database: no answer yet"
            for number in range(2, 10):
                assert writer.write(entry(number), WAIT_S) is None
        finally:
            for process in frozen:
                os.kill(process, signal.SIGCONT)
        wait_for_replay(writer)
        assert [row.entry.call_id for row in all_rows(store)] == [f"call-{n}" for n in range(10)]
