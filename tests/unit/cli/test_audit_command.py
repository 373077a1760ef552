"""``ideal audit``: what an auditor sees, and what can go wrong."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from ideal_dispatch.cli.audit import RecordOptions, export, migrate, prune, verify
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import StoreError
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import entry
from tests.contracts.audit_store import execute
from tests.unit.cli.test_network_command import ideal


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A record of three calls, a year ago."""
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    store = AuditStore(url)
    at = datetime.now(UTC) - timedelta(days=364.5)
    store.append([entry(number, at=at + timedelta(days=number)) for number in range(3)])
    store.append([entry(9, at=datetime.now(UTC))])
    store.close()
    return url


def test_a_whole_chain(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    verify(RecordOptions(url))
    said, head = capsys.readouterr().out.splitlines()
    assert said == "whole: 4 rows"
    verify(RecordOptions(url), head=head.removeprefix("head: "))


def test_a_broken_chain_ends_with_code_1(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    execute(url, "DROP TRIGGER audit_no_update", "UPDATE audit SET kind = 'x' WHERE number = 2")
    with pytest.raises(typer.Exit) as ended:
        verify(RecordOptions(url))
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    assert said.err == "broken: row 2 was edited: its contents do not give its hash\n"
    assert said.out == ""


def test_pruning_and_exporting(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    prune(RecordOptions(url), keep_days=364)
    verify(RecordOptions(url))
    export(Path("all.csv"), RecordOptions(url))
    export(Path("new.jsonl"), RecordOptions(url), since=yesterday.date().isoformat())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 rows removed"
    assert lines[1] == "whole: 4 rows, 1 older ones pruned"
    assert lines[3] == "4 rows written to all.csv"
    assert lines[4] == "2 rows written to new.jsonl"
    assert len((tmp_path / "new.jsonl").read_text().splitlines()) == 2


def test_tables_are_made_by_migrating_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with pytest.raises(InputError, match="new.db: no such file"):
        verify(RecordOptions(url))
    migrate(RecordOptions(url))
    verify(RecordOptions(url))
    assert capsys.readouterr().out.startswith("tables are of version 0003\nwhole: 0 rows\n")
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="it has no tables, .* run `ideal audit migrate`"):
        verify(RecordOptions(f"sqlite:///{tmp_path / 'empty.db'}"))


def test_what_is_asked_for_wrongly(url: str, tmp_path: Path) -> None:
    for arguments in ({}, {"url": url, "config": tmp_path / "x.toml"}):
        with pytest.raises(InputError, match="which database. Give its URL, or .* --config"):
            verify(RecordOptions(**arguments))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="--keep-days 30: .* at least six months; give 183 or"):
        prune(RecordOptions(url), keep_days=30)
    with pytest.raises(InputError, match="how long are rows kept. Give --keep-days"):
        prune(RecordOptions(url))
    with pytest.raises(InputError, match="--since yesterday: write it as 2023-05-08 or"):
        export(tmp_path / "out.csv", RecordOptions(url), since="yesterday")
    with pytest.raises(InputError, match="--head 7: write it as 734:"):
        verify(RecordOptions(url), head="7")
    with pytest.raises(InputError, match="audit database: not a URL"):
        verify(RecordOptions("audit.db"))


def test_the_command_itself(url: str, tmp_path: Path) -> None:
    ended = ideal("audit", "verify", url, cwd=tmp_path)
    assert ended.stdout.startswith("whole: 4 rows\nhead: 4:")
    ended = ideal("audit", "verify", "mysql://host/audit", cwd=tmp_path, code=2)
    assert "error: audit database: mysql is not supported" in ended.stderr
