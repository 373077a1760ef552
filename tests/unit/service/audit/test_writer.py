"""Entries are durable before the caller hears of it, and nobody waits for long."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from ideal_dispatch.service.audit import writer as writer_module
from ideal_dispatch.service.audit.record import DuplicateEntry, Entry, NotRecordedError
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import verify
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import wait_for_replay
from tests.waiting import PATIENCE_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


@pytest.fixture
def store(path: Path) -> Iterator[AuditStore]:
    store = AuditStore(f"sqlite:///{path}", timeout_s=0.2)
    yield store
    store.close()  # tests read it after their writer closed it, which connects it again


@pytest.fixture
def writer(
    store: AuditStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BlockingWriter]:
    monkeypatch.setattr(writer_module, "_TIDY_S", 0.5)
    store.read_units()  # the tables are made
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        yield writer


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The database as long as someone else writes to it."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def calls(store: AuditStore) -> list[str]:
    return [row.entry.call_id for row in store.rows(0, 1_000_000)]


def test_an_entry_becomes_a_row(writer: BlockingWriter, store: AuditStore) -> None:
    written = writer.write(entry(1), PATIENCE_S)
    assert written is not None
    assert store.rows(0, 10) == [written]
    assert writer.error is None
    assert len(writer.spool) == 0


def test_a_duplicate_gets_the_first_answer(writer: BlockingWriter) -> None:
    first = writer.write(entry(1), PATIENCE_S)
    assert first is not None
    with pytest.raises(DuplicateEntry) as told:
        writer.write(entry(1), PATIENCE_S)
    assert told.value.entry == first.entry


def test_the_same_entry_twice_is_one_row(writer: BlockingWriter, store: AuditStore) -> None:
    one = entry(1)
    assert writer.write(one, PATIENCE_S) == writer.write(one, PATIENCE_S)
    assert len(store.rows(0, 10)) == 1


def test_callers_share_commits(path: Path, tmp_path: Path) -> None:
    store = AuditStore(f"sqlite:///{path}", timeout_s=PATIENCE_S)
    store.read_units()  # the tables are made
    commits: list[object] = []
    event.listen(store._database._engine, "commit", commits.append)
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        with locked(path):  # for less than the store waits: they gather meanwhile
            futures = [writer.submit(entry(number), PATIENCE_S) for number in range(100)]
        rows = [future.result(PATIENCE_S) for future in futures]
    assert [row.number for row in rows if row is not None] == list(range(1, 101))
    assert len(commits) < 10
    assert verify(store).fault is None
    store.close()


def test_a_coroutine_can_wait_for_an_entry(writer: BlockingWriter) -> None:
    async def write() -> list[object]:
        futures = [writer.submit(entry(number), PATIENCE_S) for number in range(5)]
        return await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))

    assert len(asyncio.run(write())) == 5


def test_a_caller_who_leaves_does_not_take_the_entry_along(
    writer: BlockingWriter, store: AuditStore
) -> None:
    async def leave() -> None:
        future = asyncio.wrap_future(writer.submit(entry(1), PATIENCE_S))
        future.cancel()

    asyncio.run(leave())
    writer.write(entry(2), PATIENCE_S)
    assert calls(store) == ["call-1", "call-2"]


def test_what_a_locked_database_does_not_take_is_spooled(
    writer: BlockingWriter, store: AuditStore, path: Path
) -> None:
    with locked(path):
        for number in range(6):
            assert writer.write(entry(number), PATIENCE_S) is None
        assert writer.error is not None
        assert len(writer.spool) == 6
    wait_for_replay(writer)
    assert calls(store) == [f"call-{number}" for number in range(6)]
    assert writer.write(entry(9), PATIENCE_S) is not None


def test_a_duplicate_in_the_spool_gets_the_first_answer(writer: BlockingWriter, path: Path) -> None:
    first = entry(1)
    with locked(path):
        assert writer.write(first, PATIENCE_S) is None
        assert writer.write(first, PATIENCE_S) is None  # the same entry, asked again
        with pytest.raises(DuplicateEntry) as told:
            writer.write(entry(1), PATIENCE_S)
    assert told.value.entry == first


def test_a_duplicate_found_at_replay_is_kept_and_says_so(
    writer: BlockingWriter, store: AuditStore, path: Path
) -> None:
    first = writer.write(entry(1), PATIENCE_S)
    assert first is not None
    with locked(path):
        later = entry(1, body={"decision": "primary_only"})
        assert writer.write(later, PATIENCE_S) is None
    wait_for_replay(writer)
    rows = store.rows(0, 10)
    assert [row.entry.id for row in rows] == [first.entry.id, later.id]
    assert [row.duplicate_of for row in rows] == [None, first.entry.id]


def test_new_entries_do_not_overtake_spooled_ones(
    writer: BlockingWriter, store: AuditStore, path: Path
) -> None:
    order: list[Entry] = []

    def write() -> bool:
        order.append(entry(len(order)))
        return writer.write(order[-1], PATIENCE_S) is None

    assert not write()
    with locked(path):
        assert all(write() for _ in range(300))
    direct = 0
    while direct < 20:  # while the spool is replayed, and after it
        direct += not write()
    wait_for_replay(writer)
    assert calls(store) == [one.call_id for one in order]
    assert verify(store).fault is None


def test_closing_writes_what_waits(store: AuditStore, path: Path, tmp_path: Path) -> None:
    writer = BlockingWriter(store, Spool(tmp_path / "spool"))
    futures = [writer.submit(entry(number), PATIENCE_S) for number in range(50)]
    writer.close()
    assert all(future.result(0) for future in futures)
    assert list((tmp_path / "spool").iterdir()) == []
    with pytest.raises(NotRecordedError, match="call 'call-1' is not on record .the audit is clos"):
        writer.write(entry(1))


def test_closing_without_a_database_leaves_a_spool(
    store: AuditStore, path: Path, tmp_path: Path
) -> None:
    store.read_units()
    writer = BlockingWriter(store, Spool(tmp_path / "spool"))
    with locked(path):
        futures = [writer.submit(entry(number), PATIENCE_S) for number in range(50)]
        writer.close(2.0)
        assert all(future.result(0) is None for future in futures)
    with BlockingWriter(AuditStore(f"sqlite:///{path}"), Spool(tmp_path / "spool")) as successor:
        wait_for_replay(successor)
        assert calls(store) == [f"call-{number}" for number in range(50)]


def test_many_callers_lose_nothing_while_locks_come_and_go(
    writer: BlockingWriter, store: AuditStore, path: Path
) -> None:
    acknowledged: list[str] = []
    stop = threading.Event()

    def work(worker: int) -> None:
        for number in range(40):
            one = entry(number, f"{worker}-{number}")
            writer.write(one, PATIENCE_S)
            acknowledged.append(one.id)

    def disturb() -> None:
        while not stop.is_set():
            with locked(path):
                time.sleep(0.3)
            time.sleep(0.1)

    disturber = threading.Thread(target=disturb)
    disturber.start()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    stop.set()
    disturber.join()
    wait_for_replay(writer)
    rows = store.rows(0, 1000)
    assert sorted(row.entry.id for row in rows) == sorted(acknowledged)
    for worker in range(6):  # each caller's entries are in the order of writing
        mine = [name for name in calls(store) if name.startswith(f"{worker}-")]
        assert mine == [f"{worker}-{number}" for number in range(40)]
    assert verify(store).fault is None


def test_what_a_dead_process_left_is_adopted_although_entries_keep_coming(
    writer: BlockingWriter, store: AuditStore, tmp_path: Path
) -> None:
    """The database is never idle, so nothing may wait until it is."""
    other = Spool(tmp_path / "spool")
    other.write([entry(0, "left")])
    writer.write(entry(1), PATIENCE_S)
    other.close()  # its lock ends, as with its process
    number, deadline = 1, time.monotonic() + PATIENCE_S
    while "left" not in calls(store):
        assert time.monotonic() < deadline
        number += 1
        assert writer.write(entry(number), PATIENCE_S) is not None
        time.sleep(0.1)
    wait_for_replay(writer)
    assert len(store.rows(0, 1_000_000)) == number + 1


def test_a_caller_waits_no_longer_than_it_said(
    writer: BlockingWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the database nor the disk answers."""
    monkeypatch.setattr(writer_module, "_MOST_OPEN", 3)
    with locked(path), writer.spool._writing:
        for number in range(3):
            with pytest.raises(NotRecordedError, match="nothing took it within 0.3 s"):
                writer.write(entry(number), 0.3)
        with pytest.raises(NotRecordedError, match="3 entries wait already"):
            writer.write(entry(4), 0.3)
