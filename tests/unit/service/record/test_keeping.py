"""Exporting and pruning: what is kept can still be verified, and read by people."""

import csv
import json
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import typer

from ideal_dispatch.cli import audit
from ideal_dispatch.cli.audit import RecordOptions
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import SECOND, ClockTable
from ideal_dispatch.service.record import audit as keeping
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.audit import CSV_COLUMNS, export, prune, verify
from ideal_dispatch.service.record.database import Database, Job
from tests.service_town import Town, application, local
from tests.service_town import town as town
from tests.unit.service.record.test_verification import fill

DAY_US = 86_400 * SECOND


@pytest.fixture
def database(town: Town, tmp_path: Path) -> Iterator[Database]:
    """A record of today."""
    url = f"sqlite:///{tmp_path}/record.db"
    with local(application(town.settings("kept.toml", audit={"url": url}))) as client:
        fill(client, town)
        note = client.advice(town.call("c-3", note="=1+1"))
        assert note["note"] == "=1+1"
    database = Database(url)
    yield database
    database.close()


class Later(ClockTable):
    """The database's clock, 400 days later."""

    def at(self, database_us: int, stepped_us: int = 0) -> int:
        return database_us + 400 * DAY_US


def count(database: Database, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    job = Job(time.monotonic() + 60)
    return int(database.read(lambda state: state.connection.execute(query).scalar_one(), job))


@pytest.mark.parametrize("at_once", [2_000, 3])
def test_pruning_keeps_what_is_young_and_the_state(
    database: Database, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_AT_ONCE", at_once)
    before = verify(database)
    assert prune(database, 183) == 0
    year_later = Database(str(database.url), Later())
    units = count(database, rows.unit)
    assert prune(year_later, 183) == before.rows
    after = verify(database)
    assert after.fault is None
    assert after.anchor == before.head
    assert after.rows == -(-before.rows // at_once)
    assert count(database, rows.advice) == 0
    assert count(database, rows.unit) == units
    assert prune(year_later, 183) == 0
    year_later.close()


def test_a_pruned_log_without_the_row_that_says_so_is_found(database: Database) -> None:
    path = database.url.database
    assert path is not None
    head = verify(database).head
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE head SET anchor = ?, anchor_hash = ?", (head.number, head.hash))
        connection.execute("DELETE FROM log")
    connection.close()
    assert "no row says that they were pruned" in (verify(database).fault or "")


def test_lines_of_json_hold_what_the_hashes_were_made_of(
    database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "record.jsonl"
    written = export(database, path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert written == len(rows) == verify(database).rows
    assert [row["number"] for row in rows] == [*range(1, len(rows) + 1)]
    assert rows[-1]["hash"] == verify(database).head.hash
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_table_for_people(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    export(database, path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    advice = next(row for row in rows if row["call_id"] == "c-1" and row["decision"])
    assert advice["decision"] == "send_second"
    assert float(advice["primary.arrival.expected_s"]) > 0.0
    assert next(row for row in rows if row["kind"] == "reply")["action"] == "accept"
    formula = next(row for row in rows if row["call_id"] == "c-3")
    assert '"=1+1"' in formula["body"]
    assert not any(cell.startswith("=") for row in rows for cell in row.values())


def test_rows_of_a_time(database: Database, tmp_path: Path) -> None:
    now = database.read(lambda state: state.now, Job(time.monotonic() + 60))
    assert export(database, tmp_path / "a.jsonl", since=now) == 0
    assert export(database, tmp_path / "b.jsonl", until=now) == verify(database).rows


def test_the_commands(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = RecordOptions(str(database.url))
    audit.verify(record)
    head = f"{verify(database).head.number}:{verify(database).head.hash}"
    assert head in capsys.readouterr().out
    audit.verify(record, head)
    with pytest.raises(typer.Exit) as ended:
        audit.verify(record, head[:-1] + ("1" if head[-1] == "0" else "0"))
    assert ended.value.exit_code == 1
    audit.export(tmp_path / "out.csv", record)
    assert (tmp_path / "out.csv").exists()
    with pytest.raises(InputError, match="six months"):
        audit.prune(record, keep_days=10)
    audit.prune(record, keep_days=200)
    with pytest.raises(InputError, match="no such file"):
        audit.verify(RecordOptions(f"{database.url}x"))
