"""The log as a file: CSV for people and spreadsheets, JSON lines for programs."""

import codecs
import csv
import json
import os
import time
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
    "decision": "decision",
    "revision": "revision",
    "primary_depot": "primary.depot",
    "primary_unit": "primary.unit",
    "primary_arrives_s": "primary.arrival.expected_s",
    "second_depot": "second.depot",
    "second_unit": "second.unit",
    "second_arrives_s": "second.arrival.expected_s",
    "gain_s": "gain_s",
    "second_first": "second_first",
    "threshold_s": "why.threshold.seconds",
    "cost_lives": "why.cost.lives",
    "gap_lower_s": "why.gap.lower_s",
    "gap_upper_s": "why.gap.upper_s",
    "latency_ms": "made_with.latency_ms",
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
    with database.snapshot(job) as connection, atomic_write(path) as binary:
        os.fchmod(binary.fileno(), 0o600)  # places of patients
        file = codecs.getwriter("utf-8")(binary, "backslashreplace")
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        if kind == ".csv":
            file.write("\ufeff")  # without the mark spreadsheets guess the encoding
            table.writerow(CSV_COLUMNS)
        for row in log_rows(connection):
            if (since is not None and row.at < since) or (until is not None and row.at >= until):
                continue
            count += 1
            if kind == ".csv":
                columns = _columns(row)
                table.writerow([safe_cell(columns.get(name)) for name in CSV_COLUMNS])
            else:
                values = asdict(row) | {"body": row.content}
                file.write(json.dumps(values, separators=(",", ":")) + "\n")
    return count


def _columns(row: LogRow) -> dict[str, Any]:
    """What a row says, in columns for people; what it does not say is left out."""
    body = row.content
    answer, said = body.get("answer") or {}, body.get("reply") or {}
    remarks = [code for one in answer.get("degraded", ()) for code in (one["code"], *one["also"])]
    columns = {
        **asdict(row),
        "at": moment_text(row.at),
        "remarks": " ".join(remarks),
        "action": said.get("action"),
        "reason": said.get("reason_code"),
        "text": said.get("text") or body.get("event"),
        "who": body.get("actor") or said.get("by"),
        "recommendation": answer.get("id") or body.get("id"),
        "body": json.dumps(body, ensure_ascii=False),
    }
    for name, path in _ANSWER.items():
        value: Any = answer
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        columns[name] = value
    return columns
