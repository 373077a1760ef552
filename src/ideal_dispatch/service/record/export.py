"""The log as a file: CSV for people and spreadsheets, JSON lines for programs."""

import csv
import io
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, safe_cell
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import LogRow
from ideal_dispatch.service.record.verification import log_rows

_PATIENCE_S = 3600.0

_ANSWER = {
    "decision": ("decision",),
    "revision": ("revision",),
    "primary_depot": ("primary", "depot"),
    "primary_unit": ("primary", "unit"),
    "primary_arrives_s": ("primary", "arrival", "expected_s"),
    "second_depot": ("second", "depot"),
    "second_unit": ("second", "unit"),
    "second_arrives_s": ("second", "arrival", "expected_s"),
    "gain_s": ("gain_s",),
    "second_first": ("second_first",),
    "threshold_s": ("why", "threshold", "seconds"),
    "cost_lives": ("why", "cost", "lives"),
    "gap_lower_s": ("why", "gap", "lower_s"),
    "gap_upper_s": ("why", "gap", "upper_s"),
    "latency_ms": ("made_with", "latency_ms"),
}
"""Columns of a CSV about an answer, and where they stand in it."""

CSV_COLUMNS = (
    "number", "at", "kind", "call_id", *_ANSWER, "remarks", "action", "reason", "text", "who",
    "recommendation", "previous_hash", "hash", "body",
)  # fmt: skip
"""For people: what they look for in columns of its own, and the whole row as JSON in the last."""


def export(
    database: Database,
    path: str | os.PathLike[str],
    *,
    since: int | None = None,
    until: int | None = None,
) -> int:
    """Write the rows of a time to a .csv or .jsonl file for its owner alone; how many.

    CSV is for reading: cells that a spreadsheet would run begin with an apostrophe. JSON lines
    hold what the hashes were made of.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".jsonl"):
        raise InputError(f"{os.fspath(path)}: name a .csv or .jsonl file")
    count, job = 0, Job(time.monotonic() + _PATIENCE_S)
    with database.snapshot(job) as connection, atomic_write(path) as file:
        os.fchmod(file.fileno(), 0o600)  # places of patients
        rows = (
            row for row in log_rows(connection)
            if (since is None or row.at >= since) and (until is None or row.at < until)
        )  # fmt: skip
        for line in _csv(rows) if kind == ".csv" else map(_json, rows):
            file.write(line.encode("utf-8", "backslashreplace"))
            count += 1
    return count - (kind == ".csv")


def _csv(rows: Iterator[LogRow]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    yield f"\ufeff{line.getvalue()}"  # without the mark spreadsheets guess the encoding
    for row in rows:
        line.seek(0)
        line.truncate()
        body = row.content
        values = {**asdict(row), "at": moment_text(row.at), **_columns(body)}
        values["body"] = json.dumps(body, ensure_ascii=False)
        writer.writerow([safe_cell(values.get(name)) for name in CSV_COLUMNS])
        yield line.getvalue()


def _columns(body: dict[str, Any]) -> dict[str, Any]:
    """What a row says, in columns for people; what it does not say is left out."""
    answer, said = body.get("answer") or {}, body.get("reply") or {}
    remarks = [code for one in answer.get("degraded", ()) for code in (one["code"], *one["also"])]
    return {
        **{name: _at(answer, *path) for name, path in _ANSWER.items()},
        "remarks": " ".join(remarks),
        "action": said.get("action"),
        "reason": said.get("reason_code"),
        "text": said.get("text") or body.get("event"),
        "who": body.get("actor") or said.get("by"),
        "recommendation": answer.get("id") or body.get("id"),
    }


def _at(value: Any, *path: str) -> Any:
    """What stands at a path of keys, None where something is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _json(row: LogRow) -> str:
    return json.dumps(asdict(row) | {"body": row.content}, separators=(",", ":")) + "\n"
