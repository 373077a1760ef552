"""What ``ideal audit`` does with the log: verify it, write it to a file, and prune it."""

import codecs
import csv
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, safe_cell
from ideal_dispatch.service.clock import SECOND, moment_text
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job, Transaction
from ideal_dispatch.service.record.rows import TABLES, AdviceRow, ClosureRow, LogRow, Mark, image

_PATIENCE_S = 3600.0
_PAGE = 500
_AT_ONCE = 2_000  # rows that are pruned; the head is locked meanwhile

_ANSWER = (
    "decision", "revision", "primary.depot", "primary.unit", "primary.arrival.expected_s",
    "second.depot", "second.unit", "second.arrival.expected_s", "gain_s", "second_first",
    "why.threshold.seconds", "why.cost.lives", "why.gap.lower_s", "why.gap.upper_s",
    "made_with.latency_ms",
)  # fmt: skip
"""Columns of a CSV about an answer, by where they stand in it."""

CSV_COLUMNS = (
    "number", "at", "kind", "call_id", *_ANSWER, "remarks", "action", "reason", "text", "who",
    "recommendation", "previous_hash", "hash", "body",
)  # fmt: skip
"""For people: what they look for in columns of its own, and the whole row as JSON in the last."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The last pruned row, the last written one, and the first fault; None where all is whole."""

    anchor: Mark
    head: Mark
    fault: str | None

    @property
    def rows(self) -> int:
        """How many a whole log has."""
        return self.head.number - self.anchor.number


def parse_mark(text: str) -> Mark:
    """A head as ``ideal audit verify`` prints it: number and hash."""
    number, _, hashed = text.partition(":")
    if not number.isdecimal() or len(hashed) != 64:
        raise InputError(f"--head {text}: write it as 734:… with the 64 letters of the hash")
    return Mark(int(number), hashed.lower())


def log_rows(connection: Connection) -> Iterator[LogRow]:
    """All rows of the log, read a page at a time."""
    query = sa.select(rows.log).order_by(rows.log.c.number)
    for found in connection.execute(query.execution_options(yield_per=_PAGE)):
        yield LogRow(*found)


def verify(database: Database, noted: Mark | None = None) -> Verification:
    """Walk along the whole log and fold it; ``noted`` is a head that was written down earlier.

    Without a noted head, a log that was rewritten from end to end looks whole.
    """
    with database.snapshot(Job(time.monotonic() + _PATIENCE_S)) as connection:
        found = connection.execute(sa.select(rows.head)).one_or_none()
        if found is None:
            raise InputError("the head of the log is missing; restore a backup")
        anchor, head = Mark(found.anchor, found.anchor_hash), Mark(found.number, found.hash)
        return Verification(anchor, head, next(_faults(connection, anchor, head, noted), None))


def _faults(connection: Connection, anchor: Mark, head: Mark, noted: Mark | None) -> Iterator[str]:
    """What is wrong with rows of the log, then at its ends, and then with rows of the state.

    Only the first can be relied on.
    """
    images: dict[str, dict[str, Any]] = {table.name: {} for table in TABLES.values()}
    last, pruned, noted_is_there = anchor, Mark(0, rows.FIRST_HASH), noted in (None, anchor)
    for row in log_rows(connection):
        if row.number <= last.number:
            yield f"row {row.number} stands before the anchor at row {last.number}"
        if row.number > last.number + 1:
            yield f"{_numbers(last.number + 1, row.number - 1)} missing, before row {row.number}"
        try:
            expected = row.expected_hash
        except (InputError, UnicodeEncodeError):  # a value that no text column should hold
            expected = ""
        if expected != row.hash:
            yield f"row {row.number} was edited: its contents do not give its hash"
        if row.previous_hash != last.hash:
            yield f"row {row.number} does not follow row {last.number}: one of them was rewritten"
        try:
            body = json.loads(row.body)
            for table, changed in body.get("changes", {}).items():
                images[table].update(changed)
            if row.kind == "prune":
                pruned = Mark(body["number"], body["hash"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            yield f"row {row.number} cannot be understood ({error!r})"
        last = row.mark
        noted_is_there |= last == noted

    if last.number < head.number:
        yield f"{_numbers(last.number + 1, head.number)} missing: the end of the log was cut"
    if last.number > head.number:
        yield f"row {head.number + 1} was added behind the head of the log"
    if last != head:
        yield f"row {last.number} is not the one that the head of the log names"
    if anchor != pruned:
        yield f"{_numbers(1, anchor.number)} missing, and no row says that they were pruned"
    if noted is not None and noted.number > head.number:
        missing = _numbers(head.number + 1, noted.number)
        yield f"{missing} missing: the noted head came after them"
    if noted is not None and noted.number >= anchor.number and not noted_is_there:
        yield f"row {noted.number} is not the one that was noted: the log was rewritten"

    for kind, state_table in TABLES.items():
        name, said = state_table.name, images[state_table.name]
        for found in connection.execute(sa.select(state_table)):
            state_row = kind(*found)
            if said.pop(state_row.id, None) != image(state_row):
                yield f"{name} {state_row.id!r} differs from the log"
        for id_, known in said.items():
            if known is not None:
                yield f"{name} {id_!r} is missing, and no row of the log removed it"


def _numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"


def export(
    database: Database,
    path: str | os.PathLike[str],
    *,
    since: int | None = None,
    until: int | None = None,
) -> int:
    """Write the rows of a time to a .csv or .jsonl file for its owner alone; how many."""
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
    for path in _ANSWER:
        value: Any = answer
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        columns[path] = value
    return columns


def prune(database: Database, keep_days: int) -> int:
    """Remove rows of the log and advice older than so many days; how many rows of the log went."""
    job, gone = Job(time.monotonic() + _PATIENCE_S), 0
    while True:
        removed = database.change(partial(_prune_some, keep_days=keep_days), job)
        gone += removed
        if removed < _AT_ONCE:
            return gone


def _prune_some(tx: Transaction, keep_days: int) -> int:
    """Move the anchor over some of the oldest rows, and remove them.

    Rows of the state are written again, so that the rest of the log still says what they are.
    """
    log, anchor = rows.log, tx.head.anchor
    before = tx.now - keep_days * 86_400 * SECOND
    oldest = sa.select(log.c.number, log.c.at, log.c.hash).where(log.c.number > anchor)
    oldest = oldest.order_by(log.c.number).limit(_AT_ONCE)
    old = list(takewhile(lambda row: row.at < before, tx.connection.execute(oldest)))
    if not old:
        return 0
    last = old[-1]
    if last.number != anchor + len(old):
        raise RecordUnavailableError(
            f"the log lacks rows before row {last.number}, nothing is pruned; "
            "run `ideal audit verify`"
        )
    asked = rows.advice.c.asked_at <= max(row.at for row in old)
    for answered in tx.rows_of(AdviceRow, sa.select(rows.advice).where(asked)):
        tx.delete(answered)
    for closed in tx.rows_of(ClosureRow, sa.select(rows.closure)):
        change = tx.delete if closed.over(before) else tx.put
        change(closed)
    for unit in tx.units():
        tx.put(unit)
    tx.log("prune", "", {
        "before": moment_text(before), "number": last.number, "hash": last.hash,
    })  # fmt: skip
    tx.connection.execute(sa.update(rows.head).values(anchor=last.number, anchor_hash=last.hash))
    tx.connection.execute(sa.delete(log).where(log.c.number <= last.number))
    return len(old)
