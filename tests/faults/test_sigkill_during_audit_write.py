"""SIGKILL in the middle of writes: what was acknowledged is there, and the chain is whole."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import BlockingWriter
from tests.faults.audit_checks import all_rows, wait_for_replay
from tests.postgres import Postgres

ROUNDS = 8
NOWHERE = "postgresql://nobody@127.0.0.1:9/nothing"


def killed(url: str, spool: Path, seed: int) -> list[str]:
    """Ids acknowledged by writers that were all killed."""
    command = [
        sys.executable, "-m", "tests.faults.audit_killing", url, str(spool), str(ROUNDS), str(seed),
    ]  # fmt: skip
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=120, check=True)
    acknowledged: list[str] = json.loads(ended.stdout)
    assert len(acknowledged) >= ROUNDS
    return acknowledged


def check(url: str, spool: Path, acknowledged: list[str]) -> None:
    """Start once more: every acknowledged entry is one row."""
    store = AuditStore(url)
    with BlockingWriter(store, Spool(spool)) as writer:
        wait_for_replay(writer)
        rows = [row.entry.id for row in all_rows(store)]
    assert len(set(acknowledged)) == len(acknowledged)
    assert len(set(rows)) == len(rows)
    assert set(acknowledged) <= set(rows)
    assert len(rows) <= len(acknowledged) + 8 * ROUNDS  # in flight when the end came
    assert not list(spool.glob("*.sqlite"))


def test_sigkill_while_writing_to_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    check(url, tmp_path / "spool", killed(url, tmp_path / "spool", 1))
    with sqlite3.connect(tmp_path / "audit.db") as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    plain.close()


def test_sigkill_while_writing_to_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database()
    check(url, tmp_path / "spool", killed(url, tmp_path / "spool", 2))


def test_sigkill_while_writing_to_the_spool_and_while_it_is_replayed(tmp_path: Path) -> None:
    """First only the spool can be written; then writers are killed while they catch up."""
    url, spool = f"sqlite:///{tmp_path / 'audit.db'}", tmp_path / "spool"
    acknowledged = killed(NOWHERE, spool, 3)
    assert list(spool.glob("*.sqlite"))
    check(url, spool, acknowledged + killed(url, spool, 4))
