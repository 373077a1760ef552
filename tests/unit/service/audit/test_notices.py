"""PostgreSQL tells at once that something was written; nobody depends on it."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.notices import Listener, notify
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import verify
from tests.audit_entries import entry, stored
from tests.postgres import Postgres, end_listeners
from tests.waiting import PATIENCE_S, wait_for


class Heard:
    """Counts notices."""

    count = 0

    def __call__(self) -> None:
        self.count += 1


@contextmanager
def listening(url: str) -> Iterator[tuple[Listener, Heard]]:
    heard = Heard()
    listener = Listener(url, heard)
    listener.start()
    try:
        wait_for(lambda: heard.count == 1)  # what was before is not known
        yield listener, heard
    finally:
        listener.stop(PATIENCE_S)
        assert not listener.listening


def test_a_commit_is_heard_and_what_is_taken_back_is_not(postgres: Postgres) -> None:
    url = postgres.new_database()
    with closing(AuditStore(url)) as store, closing(Database(url)) as database:
        stored(store, [entry(1)])
        with listening(url) as (_, heard):
            with database.writing() as connection:
                notify(connection)
                connection.rollback()
            stored(store, [entry(2), entry(3)])  # two rows, one commit, one notice
            wait_for(lambda: heard.count == 2)
            store.append([entry(2)])  # on record already: nothing is new
            with database.writing() as connection:
                notify(connection)
            wait_for(lambda: heard.count >= 3)
            assert heard.count == 3


def test_a_lost_listener_comes_back(postgres: Postgres) -> None:
    """It looks then: what it missed it cannot know."""
    url = postgres.new_database()
    with closing(AuditStore(url)) as store, listening(url) as (listener, heard):
        assert end_listeners(url) == 1
        wait_for(lambda: heard.count == 2)
        assert listener.listening
        stored(store, [entry(2)])
        wait_for(lambda: heard.count == 3)


def test_it_waits_for_a_database_that_is_down(postgres: Postgres) -> None:
    url = postgres.new_database()
    postgres.stop("immediate")
    heard = Heard()
    listener = Listener(url, heard)
    try:
        listener.start()
        time.sleep(0.1)
        assert not listener.listening
    finally:
        postgres.start()
    wait_for(lambda: heard.count)
    listener.stop(PATIENCE_S)


def test_a_listener_keeps_nobody_from_writing(postgres: Postgres) -> None:
    """One that hears and never reads: PostgreSQL keeps its notices, and writers go on."""
    url = postgres.new_database()
    with (
        closing(AuditStore(url)) as store,
        psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as deaf,
    ):
        deaf.execute("LISTEN ideal_audit")
        for number in range(50):
            stored(store, [entry(number)])
        assert verify(store).rows == 50


def test_sqlite_has_no_notices(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    listener = Listener(url, lambda: pytest.fail("nothing can be heard"))
    listener.start()
    with closing(AuditStore(url)) as store, closing(Database(url)) as database:
        stored(store, [entry(1)])
        with database.writing() as connection:
            notify(connection)
    assert not listener.listening
    listener.stop()
