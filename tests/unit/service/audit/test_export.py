"""Exports: for spreadsheets without formulas, for programs with everything."""

import csv
import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.export import COLUMNS, export
from ideal_dispatch.service.audit.record import Row, StoreError, canonical
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import AT, entry, stored
from tests.contracts.audit_store import execute

FORMULAS = ("=1+1", "+1+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "|calc")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuditStore]:
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    yield store
    store.close()


def test_csv_holds_no_formula(store: AuditStore, tmp_path: Path) -> None:
    stored(store, [entry(1, text, key=text, body={"note": text}) for text in FORMULAS])
    assert export(store, tmp_path / "out.csv") == len(FORMULAS)
    with open(tmp_path / "out.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["call_id"] for row in rows] == [f"'{text}" for text in FORMULAS]
    assert [row["key"] for row in rows] == [f"'{text}" for text in FORMULAS]
    assert [json.loads(row["body"])["note"] for row in rows] == list(FORMULAS)
    assert [row["number"] for row in rows] == [str(n + 1) for n in range(len(FORMULAS))]


def test_csv_has_columns_for_people(store: AuditStore, tmp_path: Path) -> None:
    answer = {
        "id": "r1", "decision": "send_second", "revision": 2, "latency_ms": 12.5, "gain_s": -3.5,
        "primary": {"depot": "Kelp Point", "unit": "A1"}, "second": {"depot": "Gannet Bay"},
        "nominal": {"primary_s": 300.5, "second_s": 280.0}, "threshold": {"seconds": 30.0},
        "gap": {"lower_s": 20.0, "upper_s": None}, "cost": {"lives": 0.0005, "hold_s": 240.0},
        "degraded": [{"code": "late"}, {"code": "x", "also": ["y", "z"]}],
    }  # fmt: skip
    said = {"action": "override", "reason_code": "other", "text": "=parade", "by": "desk"}
    stored(store, [
        entry(1, "c", body={"answer": answer, "request": {}, "actor": "cad"}),
        entry(2, "c", kind="response", key=None,
              body={"recommendation_id": "r1", "response": said, "actor": "desk"}),
        entry(3, "", kind="units", key=None, body={"units": {"Kelp Point": 1}, "actor": "cad"}),
    ])  # fmt: skip
    export(store, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", encoding="utf-8-sig", newline="") as file:
        advised, answered, units = csv.DictReader(file)
    assert list(advised)[:5] == ["number", "at", "kind", "call_id", "decision"]
    assert list(advised)[-1] == "body"
    told = {name: cell for name, cell in advised.items() if cell}
    assert told.items() >= {
        "call_id": "c", "decision": "send_second", "primary_depot": "Kelp Point",
        "primary_unit": "A1", "primary_s": "300.5", "second_depot": "Gannet Bay",
        "second_s": "280.0", "gain_s": "-3.5", "threshold_s": "30.0", "cost_lives": "0.0005",
        "hold_s": "240.0", "gap_lower_s": "20.0",
        "remarks": "late x y z", "who": "cad", "recommendation": "r1", "revision": "2",
    }.items()  # fmt: skip
    assert json.loads(advised["body"])["answer"] == answer
    assert (answered["response"], answered["reason"], answered["text"]) == (
        "override", "other", "'=parade",
    )  # fmt: skip
    assert (answered["who"], answered["recommendation"], answered["decision"]) == ("desk", "r1", "")
    assert units["text"] == "Kelp Point 1"


def test_csv_is_readable_in_every_script(store: AuditStore, tmp_path: Path) -> None:
    stored(store, [entry(1, "香港-1", body={"note": '軒尼詩道, "1" \ud800'})])
    export(store, tmp_path / "out.csv")
    content = (tmp_path / "out.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    text = content.decode("utf-8-sig")
    assert "軒尼詩道" in text
    assert "香港-1" in text
    assert "\\ud800" in text


def test_json_lines_hold_what_the_hashes_were_made_of(store: AuditStore, tmp_path: Path) -> None:
    rows = stored(store, [entry(number, body={"t": "香\ud800", "x": 0.1}) for number in range(3)])
    assert export(store, tmp_path / "out.jsonl") == 3
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    for line, row in zip(lines, rows, strict=True):
        values = json.loads(line)
        assert list(values) == list(COLUMNS)
        assert set(COLUMNS) == {field.name for field in fields(Row)}
        read = Row(**values | {"body": canonical(values["body"])})
        assert read.expected_hash == read.hash == row.hash


def test_a_stretch_of_time(store: AuditStore, tmp_path: Path) -> None:
    stored(store, [entry(number) for number in range(6)])
    since, until = AT + timedelta(minutes=2), AT + timedelta(minutes=4)
    assert export(store, tmp_path / "out.jsonl", since=since, until=until) == 2
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    names = [json.loads(line)["call_id"] for line in lines]
    assert names == ["call-2", "call-3"]
    assert export(store, tmp_path / "out.csv", since=AT + timedelta(days=1)) == 0


def test_an_export_that_fails_leaves_the_old_file(store: AuditStore, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    stored(store, [entry(1)])
    execute(
        f"sqlite:///{tmp_path / 'audit.db'}",
        "DROP TRIGGER audit_no_update", "UPDATE audit SET body = '{'",
    )  # fmt: skip
    with pytest.raises(StoreError, match="audit row 1: its body is not JSON; run"):
        export(store, target)
    assert target.read_text() == "old"


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
def test_only_the_owner_reads_an_export(store: AuditStore, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    target.write_text("old")
    target.chmod(0o644)
    stored(store, [entry(1)])
    export(store, target)
    assert target.stat().st_mode & 0o777 == 0o600


def test_other_endings_are_refused(store: AuditStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="out.xlsx: name a .csv or .jsonl file"):
        export(store, tmp_path / "out.xlsx")
