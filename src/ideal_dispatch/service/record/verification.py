"""Is the record whole? The chain of the log, and whether the state rows are its fold."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.database import Database, Job
from ideal_dispatch.service.record.rows import TABLES, AdviceRow, LogRow, Mark, image

_PATIENCE_S = 3600.0
_MOVED_AT_MOST = 100_000  # rows; how far a row is looked for that was moved
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the log found: ``fault`` is None where all of it is whole.

    Otherwise it names the first row in doubt.
    """

    rows: int
    anchor: Mark
    head: Mark
    fault: str | None


@dataclass(frozen=True, slots=True)
class Chain:
    """All rows at one moment: ``anchor`` is the last pruned row, ``head`` the last written."""

    anchor: Mark
    head: Mark
    rows: Iterator[LogRow]


def read_chain(connection: Connection) -> Chain:
    """The log, a page at a time."""
    found = connection.execute(sa.select(rows.head)).one_or_none()
    if found is None:
        raise InputError("the head of the log is missing; restore a backup")

    def pages() -> Iterator[LogRow]:
        last, table = -1, rows.log
        while True:
            query = sa.select(table).where(table.c.number > last).order_by(table.c.number)
            page = connection.execute(query.limit(_PAGE)).all()
            for row in page:
                yield LogRow(*row)
            if len(page) < _PAGE:
                return
            last = page[-1].number

    return Chain(Mark(found.anchor, found.anchor_hash), Mark(found.number, found.hash), pages())


def parse_mark(text: str) -> Mark:
    """A head as ``ideal audit verify`` prints it: number and hash."""
    number, _, hashed = text.partition(":")
    if not number.isdecimal() or len(hashed) != 64:
        raise InputError(f"--head {text}: write it as 734:… with the 64 letters of the hash")
    return Mark(int(number), hashed.lower())


def verify(database: Database, noted: Mark | None = None) -> Verification:
    """Walk the whole log and fold it; ``noted`` is a head that was written down earlier.

    A chain that was recomputed as a whole, head included, is only told from the true one by a
    noted head.
    """
    with database.snapshot(Job(time.monotonic() + _PATIENCE_S)) as connection:
        chain, fold = read_chain(connection), _Fold()
        last, fault, count = chain.anchor, None, 0
        noted_is_there, prunings = noted == last, set[Mark]()
        for row in chain.rows:
            fault = _fault(row, last, chain)
            if fault is None:
                fault = fold.take(row, prunings)
            if fault is not None:
                break
            last, count = row.mark, count + 1
            noted_is_there |= last == noted
        else:
            pruned = not chain.anchor.number or chain.anchor in prunings
            fault = _fault_at_the_ends(last, chain, pruned, None if noted_is_there else noted)
            fault = fault or fold.difference(connection)
        return Verification(count, chain.anchor, chain.head, fault)


class _Fold:
    """The state that the log says: the last image of every row."""

    def __init__(self) -> None:
        self._images: dict[str, dict[str, Any]] = {table.name: {} for table in TABLES.values()}
        self._answers: dict[str, Any] = {}
        self._views: dict[str, Any] = {}

    def take(self, row: LogRow, prunings: set[Mark]) -> str | None:
        """Know what a row changes; what is wrong with it, if anything."""
        try:
            body = json.loads(row.body)
            for table, images in body.get("changes", {}).items():
                self._images[table].update(images)
            if row.kind == "recommendation":
                self._answers[body["answer"]["id"]] = body["answer"]
            elif row.kind == "dispatch":
                self._views[body["id"]] = body["dispatch"]
            elif row.kind == "prune":
                prunings.add(Mark(body["number"], body["hash"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return f"row {row.number} cannot be understood ({error!r})"
        return None

    def difference(self, connection: Connection) -> str | None:
        """The first row of the state that is not as the log says."""
        for kind, table in TABLES.items():
            said = {id_: one for id_, one in self._images[table.name].items() if one is not None}
            for found in connection.execute(sa.select(table)):
                row = kind(**found._mapping)
                same = said.pop(row.id, None) == image(row)
                if isinstance(row, AdviceRow):
                    same &= row.says(self._answers.get(row.id, {}))
                    same &= json.loads(row.view or "null") == self._views.get(row.id)
                if not same:
                    return f"{table.name} {row.id!r} is not as the log says"
            if said:
                missing = next(iter(said))
                return f"{table.name} {missing!r} is missing, and no row of the log says so"
        return None


def _fault(row: LogRow, last: Mark, chain: Chain) -> str | None:
    """What is wrong with the row after the last one that is whole."""
    if row.number <= last.number:
        words = f"stands before the anchor at row {last.number}, where all rows were pruned"
        return f"row {row.number} {words}"
    if row.number > last.number + 1:
        return f"{_numbers(last.number + 1, row.number - 1)} missing, before row {row.number}"
    linked = row.previous_hash == last.hash
    if _hash(row) == row.hash:
        if linked:
            return None
        if last.number == chain.anchor.number:
            return f"row {row.number} does not follow the rows that came before it"
        words = f"row {last.number} is not the one that row {row.number} was written after"
        return f"{words}: it was rewritten with a new hash"
    if not linked:
        top = min(chain.head.number, row.number + _MOVED_AT_MOST)
        for number in range(max(1, row.number - _MOVED_AT_MOST), top + 1):
            if _hash(replace(row, number=number)) == row.hash:
                words = f"row {row.number} was written as row {number}: rows changed places"
                return f"{words}, or some were taken out"
    return f"row {row.number} was edited: its contents do not give its hash"


def _fault_at_the_ends(last: Mark, chain: Chain, pruned: bool, noted: Mark | None) -> str | None:
    """What is missing before or after rows that are whole; ``noted`` is a head not among them."""
    head, anchor = chain.head, chain.anchor
    if last.number < head.number:
        gone = _numbers(last.number + 1, head.number)
        return f"{gone} missing: the end of the log was cut"
    if last.number > head.number:
        return f"row {head.number + 1} was added behind the head of the log"
    if last.hash != head.hash:
        return f"row {last.number} is not the one that the head of the log names"
    if not pruned:
        return f"{_numbers(1, anchor.number)} missing, and no row says that they were pruned"
    if noted is None or noted.number < anchor.number:
        return None
    if noted.number > head.number:
        gone = _numbers(head.number + 1, noted.number)
        return f"{gone} missing: the noted head came after them"
    return f"row {noted.number} is not the one that was noted: the log was rewritten"


def _hash(row: LogRow) -> str | None:
    try:
        return row.expected_hash
    except (InputError, UnicodeEncodeError):  # a value that no text column should hold
        return None


def _numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"
