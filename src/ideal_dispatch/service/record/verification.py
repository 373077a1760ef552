"""Is the record whole? The chain of the log, and whether the state rows are its fold."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import TABLES, LogRow, Mark, image

_PATIENCE_S = 3600.0
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the log found: ``fault`` is None where all of it is whole.

    Otherwise it names the first row in doubt. ``anchor`` is the last pruned row, ``head`` the last
    one that was written.
    """

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
