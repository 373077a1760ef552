"""Is the record whole? The chain of the log, and whether the state rows are its fold."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import TABLES, AdviceRow, LogRow, Mark, image

_PATIENCE_S = 3600.0
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the log found: ``fault`` is None where all of it is whole.

    Otherwise it names the first row in doubt. ``anchor`` is the last pruned row, ``head`` the last
    one that was written.
    """

    rows: int
    anchor: Mark
    head: Mark
    fault: str | None


def parse_mark(text: str) -> Mark:
    """A head as ``ideal audit verify`` prints it: number and hash."""
    number, _, hashed = text.partition(":")
    if not number.isdecimal() or len(hashed) != 64:
        raise InputError(f"--head {text}: write it as 734:… with the 64 letters of the hash")
    return Mark(int(number), hashed.lower())


def log_rows(connection: Connection) -> Iterator[LogRow]:
    """All rows of the log, read a page at a time."""
    last, page = -1, [None] * _PAGE
    while len(page) == _PAGE:
        query = sa.select(rows.log).where(rows.log.c.number > last).order_by(rows.log.c.number)
        page = connection.execute(query.limit(_PAGE)).all()
        for found in page:
            row = LogRow(*found)
            yield row
            last = row.number


def verify(database: Database, noted: Mark | None = None) -> Verification:
    """Walk along the whole log and fold it; ``noted`` is a head that was written down earlier.

    Without a noted head, a log that was rewritten from end to end looks whole.
    """
    with database.snapshot(Job(time.monotonic() + _PATIENCE_S)) as connection:
        found = connection.execute(sa.select(rows.head)).one_or_none()
        if found is None:
            raise InputError("the head of the log is missing; restore a backup")
        anchor, head = Mark(found.anchor, found.anchor_hash), Mark(found.number, found.hash)
        fold, last, noted_is_there = _Fold(), anchor, noted in (None, anchor)
        fault, count = None, 0
        for row in log_rows(connection):
            fault = _fault(row, last) or fold.take(row)
            if fault is not None:
                break
            last, count = row.mark, count + 1
            noted_is_there |= last == noted
        else:
            if last.number < head.number:
                missing = _numbers(last.number + 1, head.number)
                fault = f"{missing} missing: the end of the log was cut"
            elif last.number > head.number:
                fault = f"row {head.number + 1} was added behind the head of the log"
            elif last.hash != head.hash:
                fault = f"row {last.number} is not the one that the head of the log names"
            elif anchor.number and anchor not in fold.prunings:
                fault = (
                    f"{_numbers(1, anchor.number)} missing, and no row says that they were pruned"
                )
            elif noted is not None and noted.number > head.number:
                missing = _numbers(head.number + 1, noted.number)
                fault = f"{missing} missing: the noted head came after them"
            elif noted is not None and noted.number >= anchor.number and not noted_is_there:
                fault = f"row {noted.number} is not the one that was noted: the log was rewritten"
            else:
                fault = fold.difference(connection)
        return Verification(count, anchor, head, fault)


@dataclass(slots=True)
class _Fold:
    """The state that the log describes: the last image of every row, answers and dispatches."""

    images: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {table.name: {} for table in TABLES.values()}
    )
    answers: dict[str, Any] = field(default_factory=dict)
    views: dict[str, Any] = field(default_factory=dict)
    prunings: set[Mark] = field(default_factory=set)

    def take(self, row: LogRow) -> str | None:
        """Fold in what a row changes; what is wrong with it, if anything."""
        try:
            body = json.loads(row.body)
            for table, images in body.get("changes", {}).items():
                self.images[table].update(images)
            if row.kind == "recommendation":
                self.answers[body["answer"]["id"]] = body["answer"]
            elif row.kind == "dispatch":
                self.views[body["id"]] = body["dispatch"]
            elif row.kind == "prune":
                self.prunings.add(Mark(body["number"], body["hash"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return f"row {row.number} cannot be understood ({error!r})"
        return None

    def difference(self, connection: Connection) -> str | None:
        """The first row of the state that differs from the log."""
        for kind, table in TABLES.items():
            said = {id_: one for id_, one in self.images[table.name].items() if one is not None}
            for found in connection.execute(sa.select(table)):
                row = kind(**found._mapping)
                same = said.pop(row.id, None) == image(row)
                if isinstance(row, AdviceRow):
                    same &= row.says(self.answers.get(row.id, {}))
                    same &= json.loads(row.view or "null") == self.views.get(row.id)
                if not same:
                    return f"{table.name} {row.id!r} differs from the log"
            if said:
                missing = next(iter(said))
                return f"{table.name} {missing!r} is missing, and no row of the log removed it"
        return None


def _fault(row: LogRow, last: Mark) -> str | None:
    """What is wrong with the row after the last one that is whole."""
    if row.number <= last.number:
        return f"row {row.number} stands before the anchor at row {last.number}"
    if row.number > last.number + 1:
        return f"{_numbers(last.number + 1, row.number - 1)} missing, before row {row.number}"
    try:
        expected = row.expected_hash
    except (InputError, UnicodeEncodeError):  # a value that no text column should hold
        expected = ""
    if expected != row.hash:
        return f"row {row.number} was edited: its contents do not give its hash"
    if row.previous_hash != last.hash:
        return f"row {row.number} does not follow row {last.number}: one of them was rewritten"
    return None


def _numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"
