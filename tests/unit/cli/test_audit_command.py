"""``ideal audit``: what an auditor sees, and what can go wrong."""

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from ideal_dispatch.cli.audit import RecordOptions, export, prune, verify
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import SECOND, ClockTable
from ideal_dispatch.service.errors import NoRecordError
from ideal_dispatch.service.record.database import Database, Job, Transaction
from ideal_dispatch.service.settings import ServiceSettings
from tests.unit.cli.test_network_command import ideal

DAY_US = 86_400 * SECOND


class DaysAgo(ClockTable):
    """The database's clock, so many days ago."""

    days = 0.0

    def at(self, database_us: int, stepped_us: int = 0) -> int:
        return database_us - round(self.days * DAY_US)


def note(tx: Transaction) -> None:
    tx.log("service", "", {"event": "started"})


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A record of three days a year ago, and of now."""
    url = f"sqlite:///{tmp_path / 'record.db'}"
    clock = DaysAgo()
    database = Database(url, clock)
    for days in (364.5, 363.5, 362.5, 0.0):
        clock.__class__.days = days
        database.change(note, Job(time.monotonic() + 60.0))
    database.close()
    return url


def test_a_whole_chain(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    verify(RecordOptions(url))
    said, head = capsys.readouterr().out.splitlines()
    assert said.startswith("whole: 4 rows")
    verify(RecordOptions(url), head=head.removeprefix("head: "))


def test_a_broken_chain_ends_with_code_1(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(tmp_path / "record.db") as connection:
        connection.execute("DROP TRIGGER log_no_update")
        connection.execute("UPDATE log SET kind = 'x' WHERE number = 2")
    connection.close()
    with pytest.raises(typer.Exit) as ended:
        verify(RecordOptions(url))
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    assert said.err.startswith("broken: row 2 ")
    assert said.out == ""


def test_pruning_and_exporting(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    prune(RecordOptions(url), keep_days=364)
    verify(RecordOptions(url))
    export(Path("all.csv"), RecordOptions(url))
    export(Path("new.jsonl"), RecordOptions(url), since="2020-01-01", until="2021-01-01")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 rows removed"
    assert lines[1].startswith("whole: 4 rows, 1 older ones pruned")
    assert lines[3] == "4 rows written to all.csv"
    assert lines[4] == "0 rows written to new.jsonl"
    with pytest.raises(InputError, match="--force"):
        export(Path("all.csv"), RecordOptions(url))


def test_reading_makes_no_record(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="new.db: no such file"):
        verify(RecordOptions(f"sqlite:///{tmp_path / 'new.db'}"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "empty.db").touch()
    with pytest.raises(NoRecordError, match="empty.db"):
        verify(RecordOptions(f"sqlite:///{tmp_path / 'empty.db'}"))


def test_what_is_asked_for_wrongly(url: str, tmp_path: Path) -> None:
    for both_or_none in (RecordOptions(), RecordOptions(url, tmp_path / "x.toml")):
        with pytest.raises(InputError, match="--config"):
            verify(both_or_none)
    with pytest.raises(InputError, match="--keep-days 30"):
        prune(RecordOptions(url), keep_days=30)
    with pytest.raises(InputError, match="--keep-days"):
        prune(RecordOptions(url))
    with pytest.raises(InputError, match="--since yesterday"):
        export(tmp_path / "out.csv", RecordOptions(url), since="yesterday")
    with pytest.raises(InputError, match="--head 7"):
        verify(RecordOptions(url), head="7")
    with pytest.raises(InputError, match="not a URL"):
        verify(RecordOptions("audit.db"))


def test_the_command_itself(url: str, tmp_path: Path) -> None:
    ended = ideal("audit", "verify", url, cwd=tmp_path)
    assert ended.stdout.startswith("whole: 4 rows")
    assert "\nhead: 4:" in ended.stdout
    ended = ideal("audit", "verify", "mysql://host/audit", cwd=tmp_path, code=2)
    assert "mysql" in ended.stderr


def test_pruning_goes_by_the_clock_of_the_settings(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A simulated clock that is 300 days ahead makes three of the rows older than 500 days."""
    now = datetime.now(UTC)
    settings = SimpleNamespace(
        database_url=url, clock=ClockTable(now + timedelta(days=300), now),
        audit=SimpleNamespace(retention_days=500),
    )  # fmt: skip
    monkeypatch.setattr(ServiceSettings, "load", lambda path: settings)
    prune(RecordOptions(config=tmp_path / "settings.toml"))
    assert capsys.readouterr().out.splitlines() == ["3 rows removed"]
