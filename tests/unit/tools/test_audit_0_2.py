"""An audit that version 0.2.0 wrote: whole as it is, and every kind of tampering is found."""

import csv
import gzip
import json
import re
import runpy
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.postgres import Postgres

SCRIPT = ROOT / "tools" / "audit_0_2.py"
HEAD = "11:d8d73b57380819778cbe56d54bc7d59a376df949b58f89df7e077c457820be21"
"""What `ideal audit verify` of 0.2.0 printed: rows 4 to 11, 1 to 3 pruned, row 10 a duplicate."""


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """The audit, without the triggers that keep honest programs from changing it."""
    file = tmp_path / "audit.db"
    file.write_bytes(gzip.decompress((ROOT / "tests/data/audit_0_2.db.gz").read_bytes()))
    change(file, "DROP TRIGGER audit_no_update")
    change(file, "DROP TRIGGER audit_no_delete")
    return file


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def run(command: str, address: object, *more: str) -> "subprocess.CompletedProcess[str]":
    """The script by a Python that sees no package of ours."""
    return subprocess.run(
        [sys.executable, "-I", SCRIPT, command, str(address), *more],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_whole_audit_is_whole(audit: Path) -> None:
    done = run("verify", f"sqlite:///{audit}", "--head", HEAD)
    assert done.returncode == 0, done.stderr
    assert "8 rows" in done.stdout
    assert f"head: {HEAD}" in done.stdout
    assert sorted(audit.parent.iterdir()) == [audit]


TAMPERED = {
    "edited body": (
        "UPDATE audit SET body = replace(body, 'parade', 'circus') WHERE number = 7",
        7,
    ),
    "edited call": ("UPDATE audit SET call_id = 'other' WHERE number = 5", 5),
    "broken bytes": ("UPDATE audit SET body = CAST(x'7BFF' AS TEXT) WHERE number = 6", 6),
    "no text at all": ("UPDATE audit SET body = x'7BFF' WHERE number = 6", 6),
    "removed row": ("DELETE FROM audit WHERE number = 8", 8),
    "removed row, closed up": (
        "DELETE FROM audit WHERE number = 8; UPDATE audit SET number = number - 1 WHERE number > 8",
        8,
    ),
    "moved rows": (
        "UPDATE audit SET number = 99 WHERE number = 6; UPDATE audit SET number = 6 "
        "WHERE number = 7; UPDATE audit SET number = 7 WHERE number = 99",
        6,
    ),
    "cut end": ("DELETE FROM audit WHERE number > 9", 9),
    "added row": (
        "INSERT INTO audit SELECT 12, 'x', kind, call_id, 'x', at, body, duplicate_of, "
        "previous_hash, hash FROM audit WHERE number = 11",
        12,
    ),
    "row before the anchor": (
        "INSERT INTO audit SELECT 2, 'x', kind, call_id, 'x', at, body, duplicate_of, "
        "previous_hash, hash FROM audit WHERE number = 7",
        2,
    ),
    "cut beginning": (
        "DELETE FROM audit WHERE number < 6; UPDATE audit_marks SET number = 5, hash = "
        "(SELECT previous_hash FROM audit WHERE number = 6) WHERE name = 'anchor'",
        5,
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found_and_its_row_named(name: str, audit: Path) -> None:
    statements, row = TAMPERED[name]
    for statement in statements.split("; "):
        change(audit, statement)
    done = run("verify", f"sqlite:///{audit}")
    assert done.returncode == 1, done.stderr
    assert re.search(rf"\b{row}\b", done.stderr)


def test_a_chain_rewritten_as_a_whole_is_found_by_a_noted_head(audit: Path) -> None:
    row: Any = runpy.run_path(str(SCRIPT))["Row"]
    with closing(sqlite3.connect(audit)) as connection, connection:
        names = ", ".join(row.__slots__)
        query = f"SELECT {names} FROM audit WHERE number >= 7 ORDER BY number"
        previous = connection.execute("SELECT hash FROM audit WHERE number = 6").fetchone()[0]
        for values in connection.execute(query).fetchall():
            contents = dict(zip(row.__slots__, values, strict=True)) | {"previous_hash": previous}
            contents["body"] = contents["body"].replace("parade", "circus")
            forged = row(**contents | {"hash": row(**contents).expected_hash})
            connection.execute(
                "UPDATE audit SET body = ?, previous_hash = ?, hash = ? WHERE number = ?",
                (forged.body, previous, forged.hash, forged.number),
            )
            previous = forged.hash
        connection.execute("UPDATE audit_marks SET hash = ? WHERE name = 'head'", (previous,))
    assert run("verify", f"sqlite:///{audit}").returncode == 0
    assert run("verify", f"sqlite:///{audit}", "--head", HEAD).returncode == 1


def test_all_rows_are_exported(audit: Path, tmp_path: Path) -> None:
    change(audit, "UPDATE audit SET body = CAST(x'7BFF' AS TEXT) WHERE number = 6")
    for name in ("audit.csv", "audit.jsonl"):
        done = run("export", f"sqlite:///{audit}", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    with (tmp_path / "audit.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [line["number"] for line in lines] == [int(row["number"]) for row in cells]
    assert [line["number"] for line in lines] == list(range(4, 12))
    assert lines[1]["body"]["answer"]["decision"] == cells[1]["decision"] == "primary_only"
    assert cells[3]["reason"] == "road_knowledge"
    assert isinstance(lines[2]["body"], str)  # the broken one
    assert run("export", f"sqlite:///{audit}", str(tmp_path / "audit.csv")).returncode == 2


@pytest.mark.parametrize("address", ["sqlite:///nothing.db", "audit.db", "mysql://host/audit"])
def test_what_is_no_audit_is_refused(address: str) -> None:
    assert run("verify", address).returncode == 2


def test_an_audit_in_postgresql_is_read(audit: Path, postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    address = postgres.new_database()
    with (
        closing(sqlite3.connect(audit)) as old,
        psycopg.connect(address.replace("+psycopg", "")) as new,
    ):
        new.execute(
            "CREATE TABLE audit (number bigint PRIMARY KEY, id text, kind text, call_id text, "
            "key text, at text, body text, duplicate_of text, previous_hash text, hash text)"
        )
        new.execute("CREATE TABLE audit_marks (name text PRIMARY KEY, number bigint, hash text)")
        for table, places in (("audit", 10), ("audit_marks", 3)):
            with new.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {table} VALUES ({', '.join(['%s'] * places)})",
                    old.execute(f"SELECT * FROM {table}").fetchall(),
                )
    assert run("verify", address, "--head", HEAD).returncode == 0
    with psycopg.connect(address.replace("+psycopg", "")) as new:
        new.execute("UPDATE audit SET body = '{}' WHERE number = 5")
    done = run("verify", address)
    assert done.returncode == 1
    assert "5" in done.stderr
