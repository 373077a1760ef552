"""The database is locked by another process: nobody waits for it, nothing is lost."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter, entry
from tests.faults.audit_checks import PATIENCE_S, all_rows, nothing_waits, wait_for_replay
from tests.postgres import Postgres

WAIT_S = 10.0  # of a caller, on a busy machine; the database itself would wait longer
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def sqlite_locked(url: str) -> Iterator[None]:
    """Another process holds SQLite's lock and does not let go."""
    command = [sys.executable, "-c", HOLD, url.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield
        holder.communicate()


@contextmanager
def postgresql_locked(url: str) -> Iterator[None]:
    """Somebody's open transaction holds the table of rows."""
    plain = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(plain) as holder:
        holder.execute("LOCK TABLE audit IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_database_locked(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "sqlite":
        url, locked = f"sqlite:///{tmp_path / 'audit.db'}", sqlite_locked
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        url, locked = postgres.new_database(), postgresql_locked
    store = AuditStore(url, timeout_s=30.0)
    written = [entry(number) for number in range(30)]
    with BlockingWriter(store, Spool(tmp_path / "spool")) as writer:
        writer.write(written[0], PATIENCE_S)
        with locked(url):
            assert writer.write(written[1], WAIT_S) is None
            for one in written[2:20]:
                assert writer.write(one, PATIENCE_S) is None
        for one in written[20:]:
            writer.write(one, PATIENCE_S)
        wait_for_replay(writer)
        assert [row.entry for row in all_rows(store)] == written
    assert nothing_waits(tmp_path / "spool")
