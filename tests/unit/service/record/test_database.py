"""Work on a database ends in time, or says why; nothing of a failed change stays."""

import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import micros
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job, State, Transaction, see_units
from ideal_dispatch.service.units import Unit
from tests.postgres import Postgres


def soon(seconds: float = 60.0) -> Job:
    return Job(time.monotonic() + seconds)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/record.db"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_database()


def note(database: Database, text: str, job: Job | None = None) -> None:
    """Add a row to the log."""

    def change(tx: Transaction) -> None:
        tx.log("service", "", {"event": text})

    database.change(change, job or soon())


def events(database: Database) -> list[str]:
    query = sa.select(rows.log.c.body).order_by(rows.log.c.number)
    return [
        body.split('"')[3]
        for body in database.read(lambda state: state.connection.scalars(query).all(), soon())
    ]


def test_many_writers_at_once_number_the_rows_in_order(url: str) -> None:
    """Two pools, as two workers have them: no number twice, none left out, moments in order."""
    both = [Database(url) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(note, both[n % 2], f"n{n}") for n in range(200)]:
            written.result()
    assert sorted(events(both[0])) == sorted(f"n{n}" for n in range(200))
    query = sa.select(rows.log.c.number, rows.log.c.at).order_by(rows.log.c.number)
    found = both[1].read(lambda state: state.connection.execute(query).all(), soon())
    assert [row.number for row in found] == [*range(1, 201)]
    assert [row.at for row in found] == sorted(row.at for row in found)
    for one in both:
        one.close()


def test_a_change_that_fails_leaves_nothing(url: str) -> None:
    database = Database(url)
    note(database, "first")

    def change(tx: Transaction) -> None:
        tx.put(Unit("A1", "D0", "at_station", 1, 1, 1))
        tx.log("units", "", {})
        raise InputError("no")

    with pytest.raises(InputError):
        database.change(change, soon())
    assert events(database) == ["first"]
    assert database.read(lambda state: state.units(), soon()) == []
    database.close()


def test_a_change_that_no_row_says_is_an_error(url: str) -> None:
    database = Database(url)
    unit = Unit("A1", "D0", "at_station", 1, 1, 1)
    with pytest.raises(AssertionError):
        database.change(lambda tx: tx.put(unit), soon())
    database.close()


def test_positions_and_a_change_do_not_wait_for_each_other(url: str) -> None:
    """Nor is a position lost that came after the change had read the unit."""
    database, other = Database(url), Database(url)
    units = [Unit(id_, "D0", "at_station", 1, 1, 1) for id_ in ("A1", "B1")]

    def add(tx: Transaction) -> None:
        for one in units:
            tx.put(one)
        tx.log("units", "", {})

    database.change(add, soon())
    seen = [replace(one, lon=1.0, lat=2.0, seen_at=5, told_at=5, status_at=5) for one in units]
    reported: list[Future[None]] = []

    def promise(tx: Transaction) -> None:
        for one in reversed(tx.units()):
            tx.put(one.held("c-1", "advised", 10))
            if not reported:
                reported.append(pool.submit(
                    other.touch, partial(see_units, units=seen), soon()
                ))  # fmt: skip
            wait(reported, 0.3)  # PostgreSQL does it at once, SQLite after this change
        tx.log("units", "", {})

    with ThreadPoolExecutor(1) as pool:
        database.change(promise, soon())
        reported[0].result()
    found = database.read(lambda state: state.units(), soon())
    for one in found:
        assert (one.promised_to, one.lon, one.seen_at) == ("c-1", 1.0, 5)
        assert (one.told_at, one.status_at) == (5, 5)
    changed = [replace(one, status="on_scene", status_at=9) for one in units]  # as another knew it
    database.touch(partial(see_units, units=changed), soon())
    assert {one.status_at for one in database.read(lambda state: state.units(), soon())} == {5}
    database.close()
    other.close()


def test_an_older_position_replaces_one_of_a_clock_that_ran_ahead(url: str) -> None:
    database = Database(url)
    now = database.read(lambda state: state.now, soon())
    ahead = {"A1": now + 3_600_000_000, "B1": now + 1_000_000, "C1": None}
    units = [Unit(id_, "D0", "at_station", 1, 1, 1, lon=1.0, lat=1.0, seen_at=at)
             for id_, at in ahead.items()]  # fmt: skip

    def add(tx: Transaction) -> None:
        for one in units:
            tx.put(one)
        tx.log("units", "", {})

    database.change(add, soon())
    seen = [replace(one, lon=2.0, seen_at=now) for one in units]
    database.touch(partial(see_units, units=seen), soon())
    found = database.read(lambda state: state.units(), soon())
    assert [one.lon for one in found] == [2.0, 1.0, 2.0]
    silent = [replace(one, lon=None, lat=None, seen_at=None, told_at=now) for one in units]
    database.touch(partial(see_units, units=silent), soon())
    found = database.read(lambda state: state.units(), soon())
    assert [(one.lon, one.told_at) for one in found] == [(2.0, now), (1.0, now), (2.0, now)]
    database.close()


def test_work_that_is_too_late_is_not_committed(url: str) -> None:
    database = Database(url)
    note(database, "first")
    job = soon()

    def change(tx: Transaction) -> None:
        tx.log("service", "", {"event": "late"})
        job.due = 0.0

    with pytest.raises(RecordUnavailableError):
        database.change(change, job)
    assert events(database) == ["first"]
    database.close()


def test_a_statement_that_waits_is_given_up(postgres: Postgres) -> None:
    """As of a server that is frozen: whoever waits for the thread has it back."""
    database = Database(postgres.new_database(), timeout_s=60.0)
    note(database, "first")
    job, failed = soon(), threading.Event()

    sleep = sa.text("SELECT pg_sleep(60)")

    def hang() -> None:
        with pytest.raises(RecordUnavailableError):
            database.read(lambda state: state.connection.execute(sleep), job)
        failed.set()

    thread = threading.Thread(target=hang)
    thread.start()
    while job.phase != "database":
        time.sleep(0.01)
    time.sleep(0.2)
    job.give_up()
    assert failed.wait(30)
    thread.join()
    note(database, "second")  # on another connection
    assert events(database) == ["first", "second"]
    database.close()


def test_a_lost_connection_is_made_again(postgres: Postgres) -> None:
    url = postgres.new_database()
    database, other = Database(url), Database(url)
    note(database, "first")
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    other.read(lambda state: state.connection.exec_driver_sql(cut).all(), soon())
    note(database, "second")
    assert events(database) == ["first", "second"]
    database.close()
    other.close()


def test_a_wrong_statement_stays_an_error_of_the_program(url: str) -> None:
    """Called "unavailable", it would be looked for in the database."""
    database = Database(url)
    with pytest.raises(sa.exc.SQLAlchemyError):
        database.read(lambda state: state.connection.execute(sa.text("SELECT nothing")), soon())
    database.close()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/record.db")
    note(database, "first")
    assert stat.S_IMODE((tmp_path / "record.db").stat().st_mode) == 0o600
    database.close()


def test_time_is_the_databases(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose own clock is an hour off writes the same moments."""
    database = Database(url)
    note(database, "first")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    first = database.read(lambda state: state.now, soon())
    assert first > micros(
        __import__("datetime").datetime(2026, 1, 1, tzinfo=__import__("datetime").UTC)
    )
    database.close()


def test_a_clock_that_was_set_back_a_little_stands_still(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/record.db")
    note(database, "first")
    ahead = database.read(lambda state: state.now, soon()) + 5_000_000

    def move(state: State) -> None:
        state.connection.execute(sa.update(rows.head).values(at=ahead))

    database.touch(move, soon())
    assert database.read(lambda state: state.now, soon()) == ahead
    database.close()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE TABLE audit (number INTEGER); CREATE TABLE alembic_version (v TEXT)", "0.2"),
        ("CREATE TABLE head (version INTEGER); INSERT INTO head VALUES (99)", "version 99"),
        ("CREATE TABLE log (x INTEGER)", "'log'"),
    ],
)
def test_tables_of_others_are_refused(tmp_path: Path, statement: str, named: str) -> None:
    path = tmp_path / "record.db"
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    database = Database(f"sqlite:///{path}")
    with pytest.raises(InputError, match=named):
        note(database, "first")
    database.close()


def test_an_encoding_without_all_letters_is_refused(postgres: Postgres) -> None:
    database = Database(postgres.new_database("LATIN1"))
    with pytest.raises(InputError, match="UTF8"):
        note(database, "first")
    database.close()


@pytest.mark.parametrize(
    "url",
    ["nonsense", "mysql://host/database", "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?x=1"],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(InputError):
        Database(url)


def test_no_message_names_a_password() -> None:
    database = Database("postgresql://ideal:secret@127.0.0.1:1/nothing", timeout_s=1.0)
    with pytest.raises(RecordUnavailableError) as refused:
        note(database, "first")
    assert "secret" not in str(refused.value)
    database.close()


def test_one_worker_makes_the_tables(url: str) -> None:
    """All of them may start at once on an empty database."""
    workers = [Database(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        asked: list[Callable[[], Any]] = [lambda one=one: note(one, "start") for one in workers]  # type: ignore[misc]
        for done in [pool.submit(one) for one in asked]:
            done.result()
    assert events(workers[0]) == ["start"] * 4
    for one in workers:
        one.close()
