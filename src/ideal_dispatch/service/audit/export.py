"""The audit as a file: CSV for people and spreadsheets, JSON lines for programs."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.service.audit.record import StoredRow, StoreError, at_text
from ideal_dispatch.service.audit.store import AuditStore

COLUMNS = (
    "number", "at", "kind", "call_id", "key", "id", "duplicate_of", "body", "previous_hash", "hash",
)  # fmt: skip

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n|＝＋－＠]")


def export(
    store: AuditStore,
    path: str | os.PathLike[str],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """Write the rows of a time to a .csv or .jsonl file for its owner alone; how many.

    CSV is for reading: cells that a spreadsheet would run begin with an
    apostrophe. JSON lines hold what the hashes were made of.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".jsonl"):
        raise InputError(f"{os.fspath(path)}: name a .csv or .jsonl file")
    first = "" if since is None else at_text(since)
    last = "~" if until is None else at_text(until)
    count = 0
    with store.chain() as chain, atomic_write(path) as file:
        os.fchmod(file.fileno(), 0o600)  # places of patients
        rows = (row for row in chain.rows if first <= row.at < last)
        for line in _csv(rows) if kind == ".csv" else map(_json, rows):
            file.write(line.encode("utf-8", "backslashreplace"))
            count += 1
    return count - (kind == ".csv")


def _csv(rows: Iterator[StoredRow]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    yield f"\ufeff{line.getvalue()}"  # without the mark spreadsheets guess the encoding
    for row in rows:
        line.seek(0)
        line.truncate()
        values = {name: getattr(row, name) for name in COLUMNS}
        values["body"] = json.dumps(_body(row), ensure_ascii=False)
        writer.writerow([safe_cell(value) for value in values.values()])
        yield line.getvalue()


def _json(row: StoredRow) -> str:
    values = {name: getattr(row, name) for name in COLUMNS} | {"body": _body(row)}
    return json.dumps(values, separators=(",", ":")) + "\n"


def _body(row: StoredRow) -> object:
    try:
        return json.loads(row.body)
    except (ValueError, TypeError):
        raise StoreError(
            f"audit row {row.number}: its body is not JSON; run `ideal audit verify`"
        ) from None


def safe_cell(value: object) -> str:
    """A value as text that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if not isinstance(value, int) and _FORMULA.match(text) else text
