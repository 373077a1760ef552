"""The audit as a file: CSV for people and spreadsheets, JSON lines for programs."""

import csv
import io
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, safe_cell
from ideal_dispatch.service.audit.record import Row, StoreError
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.clock import at_text

COLUMNS = (
    "number", "at", "kind", "call_id", "key", "id", "duplicate_of", "body", "previous_hash", "hash",
)  # fmt: skip

_ANSWER = {
    "decision": ("decision",),
    "primary_depot": ("primary", "depot"),
    "primary_unit": ("primary", "unit"),
    "primary_s": ("nominal", "primary_s"),
    "second_depot": ("second", "depot"),
    "second_s": ("nominal", "second_s"),
    "gain_s": ("gain_s",),
    "threshold_s": ("threshold", "seconds"),
    "cost_lives": ("cost", "lives"),
    "hold_s": ("cost", "hold_s"),
    "gap_lower_s": ("gap", "lower_s"),
    "gap_upper_s": ("gap", "upper_s"),
    "revision": ("revision",),
    "latency_ms": ("latency_ms",),
}
"""Columns of a CSV that tell of an answer, and where they stand in it."""

_RESPONSE = {"response": "action", "reason": "reason_code", "text": "text"}
_FIRST, _LAST = COLUMNS[:4], ("key", "id", "duplicate_of", "previous_hash", "hash", "body")

CSV_COLUMNS = (*_FIRST, *_ANSWER, "remarks", *_RESPONSE, "who", "recommendation", *_LAST)
"""For people: what they look for in columns of its own, and the whole row as JSON in the last."""


def export(
    store: AuditStore,
    path: str | os.PathLike[str],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """Write the rows of a time to a .csv or .jsonl file for its owner alone; how many.

    CSV is for reading: :data:`CSV_COLUMNS`, and cells that a spreadsheet would
    run begin with an apostrophe. JSON lines hold what the hashes were made of.
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


def _csv(rows: Iterator[Row]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    yield f"\ufeff{line.getvalue()}"  # without the mark spreadsheets guess the encoding
    for row in rows:
        line.seek(0)
        line.truncate()
        body = _body(row)
        values = {name: getattr(row, name) for name in COLUMNS} | _told(body)
        values["body"] = json.dumps(body, ensure_ascii=False)
        writer.writerow([safe_cell(values.get(name)) for name in CSV_COLUMNS])
        yield line.getvalue()


def _told(body: object) -> dict[str, object]:
    """What a row says, in columns for people; what it does not say is left out."""
    answer, said = _at(body, "answer"), _at(body, "response")
    told = {name: _at(answer, *path) for name, path in _ANSWER.items()}
    told |= {name: _at(said, key) for name, key in _RESPONSE.items()}
    degraded = _at(answer, "degraded")
    if isinstance(degraded, list):
        told["remarks"] = " ".join(code for one in degraded for code in _codes(one))
    units = _at(body, "units")
    if isinstance(units, dict):
        told["text"] = ", ".join(f"{depot} {count}" for depot, count in units.items())
    told["text"] = told["text"] or _at(body, "event")
    told["who"] = _at(body, "actor")
    told["recommendation"] = _at(body, "recommendation_id") or _at(answer, "id")
    return told


def _codes(remark: object) -> list[str]:
    """The codes of a remark, which may stand for several."""
    also = _at(remark, "also")
    return [str(_at(remark, "code")), *(map(str, also) if isinstance(also, list) else ())]


def _at(value: object, *path: str) -> object:
    """What stands at a path of keys, None where something is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _json(row: Row) -> str:
    values = {name: getattr(row, name) for name in COLUMNS} | {"body": _body(row)}
    return json.dumps(values, separators=(",", ":")) + "\n"


def _body(row: Row) -> object:
    try:
        return json.loads(row.body)
    except (ValueError, TypeError):
        raise StoreError(
            f"audit row {row.number}: its body is not JSON; run `ideal audit verify`"
        ) from None
