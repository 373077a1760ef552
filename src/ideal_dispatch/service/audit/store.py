"""The audit in SQLite or PostgreSQL: one chain of rows, whatever the number of workers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit import leases
from ideal_dispatch.service.audit.closures import Closure, keep_closures, read_closures
from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.fleet import read_fleet, write_places
from ideal_dispatch.service.audit.notices import notify
from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    Mark,
    OutdatedUnits,
    OvertakenEntry,
    PromisedUnits,
    Row,
)
from ideal_dispatch.service.audit.schema import columns, marks, rows
from ideal_dispatch.service.audit.units import UnitState, UnitTables, read_units
from ideal_dispatch.service.clock import at_text
from ideal_dispatch.service.units.unit import Unit

_CLEANED = 64  # rows, after which promises that ended are removed
_PAGE = 500
_PRUNED_AT_ONCE = 5_000  # the chain is locked meanwhile

Outcome = Row | DuplicateEntry | OvertakenEntry | PromisedUnits | OutdatedUnits
"""The row of an entry, or why it got none."""


@dataclass(frozen=True, slots=True)
class Chain:
    """All rows at one moment: ``anchor`` is the last pruned row, ``head`` the last written."""

    anchor: Mark
    head: Mark
    rows: Iterator[Row]


def _rows_where(*conditions: ColumnElement[bool], newest_first: bool = False) -> Any:
    """A query for whole rows, in their order."""
    order = rows.c.number.desc() if newest_first else rows.c.number
    return sa.select(rows).where(*conditions).order_by(order)


def _first_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The row that had a key first; the words of the condition are those of the index."""
    return sa.and_(*conditions, rows.c.duplicate_of.is_(None))


# What every call needs is put together once: that takes longer than SQLite's own work.
_OF_CALL = _rows_where(rows.c.call_id == sa.bindparam("call_id"), newest_first=True).limit(
    sa.bindparam("most", type_=sa.Integer)
)
_OF_CALL_AND_KIND = _OF_CALL.where(rows.c.kind == sa.bindparam("kind"))
_CALLS = rows.c.call_id.in_(sa.bindparam("calls", expanding=True))
_KNOWN = sa.union_all(
    sa.select(rows).where(rows.c.id.in_(sa.bindparam("ids", expanding=True))),
    sa.select(rows).where(  # all calls with all keys, as the index likes it
        _first_of(_CALLS, rows.c.key.in_(sa.bindparam("keys", expanding=True)))
    ),
).order_by("number")
_LATEST = (
    sa.select(rows.c.kind, rows.c.call_id, sa.func.max(rows.c.number))
    .where(_first_of(_CALLS, rows.c.number > sa.bindparam("number")))
    .group_by(rows.c.kind, rows.c.call_id)
)
_INSERT = sa.insert(rows)
_MARK = sa.select(marks.c.number, marks.c.hash).where(marks.c.name == sa.bindparam("mark"))
_MARK_LOCKED = _MARK.with_for_update()
_SET_MARK = sa.update(marks).where(marks.c.name == sa.bindparam("mark"))


class AuditStore:
    """Rows and units in the database at a URL; for many threads.

    The database is connected at the first use: a service starts although its database is down.
    With ``create`` an empty one gets its tables then; older tables need ``ideal audit migrate``.
    Writers take turns, in all processes: the chain's head is locked for each append (SQLite locks
    the whole file). Every method may raise a :class:`StoreError` of one line.
    """

    def __init__(self, url: str, *, timeout_s: float = 2.0, create: bool = True) -> None:
        self._database = Database(url, timeout_s=timeout_s, create=create)

    def append(self, entries: Sequence[Entry], *, keep_duplicates: bool = False) -> list[Outcome]:
        """For every entry its durable row, or why it got none.

        An entry that is on record already (the same id and contents) gets that
        row. With ``keep_duplicates`` all get a row, which says so where another
        entry had the key first; none is overtaken, outdated or short of units then.
        Counts of units and promises in an entry are known from then on.
        """
        if not entries:
            return []
        with self._database.writing() as connection:
            return append(connection, entries, keep_duplicates=keep_duplicates)

    def find(self, kind: str, call_id: str, key: str) -> Row | None:
        """The row that had this key first."""
        slot = (rows.c.call_id == call_id, rows.c.key == key, rows.c.kind == kind)
        return next(iter(self._rows(_rows_where(_first_of(*slot)).limit(1))), None)

    def get(self, id: str) -> Row | None:  # noqa: A002
        """The row of an entry."""
        return next(iter(self._rows(_rows_where(rows.c.id == id).limit(1))), None)

    def recent(self, kind: str, limit: int) -> list[Row]:
        """The last rows of a kind, newest first."""
        return self._rows(_rows_where(rows.c.kind == kind, newest_first=True).limit(limit))

    def since(self, kind: str, at: datetime, most: int) -> Iterator[Row]:
        """The rows of a kind since a moment, newest first, and of many about the last ``most``.

        Rows from a spool may be older than those before them: pages of rows are read until one has
        none of that time.
        """
        last, first = self.last_number(), at_text(at)
        while most > 0:
            page = _rows_where(rows.c.kind == kind, rows.c.number <= last, newest_first=True)
            read = self._rows(page.limit(_PAGE))
            within = [row for row in read if row.at >= first]
            yield from within
            if not within:
                return
            last, most = read[-1].number - 1, most - len(within)

    def of_call(self, call_id: str, limit: int, kind: str | None = None) -> list[Row]:
        """The last rows of a call, or of a kind of them, oldest first."""
        if kind is None:
            return self._rows(_OF_CALL, call_id=call_id, most=limit)[::-1]
        return self._rows(_OF_CALL_AND_KIND, call_id=call_id, kind=kind, most=limit)[::-1]

    def rows(self, after_number: int, limit: int) -> list[Row]:
        """Rows in their order, after the one of that number, not checked: few may be needed."""
        with self._database.reading() as connection:
            return _read(connection, _rows_where(rows.c.number > after_number).limit(limit))

    def last_number(self) -> int:
        """The number of the last row, 0 where there is none."""
        with self._database.reading() as connection:
            return _read_mark(connection, "head").number

    @contextmanager
    def chain(self) -> Iterator[Chain]:
        """The whole chain as it is at one moment, not checked, for verification and export."""
        with self._database.reading(snapshot=True) as connection:
            anchor, head = (_read_mark(connection, name) for name in ("anchor", "head"))
            paged = connection.execution_options(yield_per=_PAGE)
            with paged.execute(_rows_where()) as found:
                yield Chain(anchor, head, (Row(*one) for one in found))

    def prune(self, before: datetime) -> int:
        """Remove the oldest rows, up to the first that is not older; how many went."""
        gone, more = 0, True
        while more:
            with self._database.writing() as connection:
                went, more = _prune(connection, before)
            gone += went
        return gone

    def read_units(self) -> UnitState:
        """Counts and promises as they are now; some promises may have ended."""
        with self._database.reading() as connection:
            return read_units(connection)

    def read_fleet(self) -> list[Unit]:
        """The units of the fleet, with where they were seen last."""
        with self._database.reading() as connection:
            return read_fleet(connection)

    def write_places(self, seen: Sequence[Unit]) -> None:
        """Know where units were seen; it is in no row of the chain."""
        with self._database.writing() as connection:
            write_places(connection, seen)

    def take_lease(self, task: str, holder: str, for_s: float) -> bool:
        """Whether ``holder`` alone does a task for so many seconds from now on."""
        with self._database.writing() as connection:
            return leases.take(connection, task, holder, for_s)

    def read_closures(self) -> list[Closure]:
        """Closures as they are now; some may have ended by the clock."""
        with self._database.reading() as connection:
            return read_closures(connection)

    def close(self) -> None:
        """Give up the connections."""
        self._database.close()

    def _rows(self, query: Any, **values: Any) -> list[Row]:
        """Rows for use: each is checked here, in the thread that waits for the database."""
        with self._database.reading() as connection:
            found = _read(connection, query, **values)
        for row in found:
            _ = row.entry
        return found


def _read(connection: Connection, query: Any, **values: Any) -> list[Row]:
    return [Row(*found) for found in connection.execute(query, values)]


def append(
    connection: Connection, entries: Sequence[Entry], *, keep_duplicates: bool
) -> list[Outcome]:
    """Rows for the entries at the end of the chain, or why there are none."""
    before = head = _read_mark(connection, "head", locked=True)
    tables = UnitTables(connection, entries)
    known = _known(connection, entries)
    latest = _latest(connection, entries)
    outcomes: list[Outcome] = []
    fresh: list[Row] = []
    taken: list[Entry] = []
    for entry in entries:
        first = known.get(entry.id) or known.get(entry.slot)
        outcome: Outcome | None = known.get((entry.id, entry.text))  # it has a row already
        if outcome is None and not keep_duplicates:
            if first is not None:
                outcome = DuplicateEntry(first.entry)
            elif entry.seen is not None and entry.seen < max(
                latest.get((kind, entry.call_id), 0) for kind in _overtaking(entry)
            ):
                outcome = OvertakenEntry(f"call {entry.call_id!r}: look it up again")
            elif entry.promising or entry.kind == "units":
                outcome = tables.state.refusal(entry)
        if outcome is None:
            outcome = row = Row.after(head, entry, None if first is None else first.id)
            head = row.mark
            latest[entry.kind, entry.call_id] = head.number
            _note(known, row)
            if first is None or first.id == entry.id:  # of two tries, the later was sent
                tables.state.take(entry)
                taken.append(entry)
            fresh.append(row)
        outcomes.append(outcome)
    if fresh:
        connection.execute(_INSERT, [columns(row) for row in fresh])
        _set_mark(connection, "head", head)
        clean = head.number // _CLEANED > before.number // _CLEANED
        tables.keep(clean=clean)
        keep_closures(connection, taken, clean=clean)
        notify(connection)
    return outcomes


def _overtaking(entry: Entry) -> tuple[str, ...]:
    """Kinds of rows of its call that overtake an entry: its own; replies and advice each other."""
    kinds = {"reply": ("reassessment",), "reassessment": ("reply", "response")}
    return kinds.get(entry.kind, (entry.kind,))


def _known(connection: Connection, entries: Sequence[Entry]) -> dict[Any, Row]:
    """Rows on record that share an id, or kind, call and key, with an entry; by either."""
    known: dict[Any, Row] = {}
    ids, slots = {entry.id for entry in entries}, {entry.slot for entry in entries if entry.slot}
    calls, keys = {slot[1] for slot in slots}, {slot[2] for slot in slots}
    for row in _read(connection, _KNOWN, ids=ids, calls=calls, keys=keys):
        _note(known, row)
    return known


def _note(known: dict[Any, Row], row: Row) -> None:
    """Know a row by its id, by id and text, and by its key if it was the first to have that."""
    known.setdefault(row.id, row)
    known[row.id, row.body] = row
    if row.key is not None and row.duplicate_of is None:
        known.setdefault((row.kind, row.call_id, row.key), row)


def _latest(connection: Connection, entries: Sequence[Entry]) -> dict[tuple[str, str], int]:
    """Of each kind and call the last row, where it is after what writers of entries had seen."""
    seen = [entry.seen for entry in entries if entry.seen is not None]
    if not seen:
        return {}
    calls = {entry.call_id for entry in entries if entry.seen is not None}
    found = connection.execute(_LATEST, {"calls": calls, "number": min(seen)})
    return {(kind, call_id): number for kind, call_id, number in found}


def _prune(connection: Connection, before: datetime) -> tuple[int, bool]:
    """Move the anchor over some of the oldest rows, say so in the chain, remove them.

    How many went, and whether there may be more.
    """
    head = _read_mark(connection, "head", locked=True)
    anchor = _read_mark(connection, "anchor")
    kept = sa.select(rows.c.number).where(rows.c.at >= at_text(before))
    first_kept = connection.execute(kept.order_by(rows.c.number).limit(1)).scalar() or head.number
    last = min(first_kept - 1, anchor.number + _PRUNED_AT_ONCE)
    if last <= anchor.number:
        return 0, False
    last_hash = connection.execute(sa.select(rows.c.hash).where(rows.c.number == last)).scalar()
    if last_hash is None:
        raise AuditError(
            f"audit row {last} is missing, nothing is pruned; run `ideal audit verify`"
        )
    body = {"event": "prune", "before": at_text(before), "number": last, "hash": last_hash}
    note = Entry("service", "", body, at=clock.now())
    append(connection, [note], keep_duplicates=True)
    _set_mark(connection, "anchor", Mark(last, last_hash))
    gone = connection.execute(sa.delete(rows).where(rows.c.number <= last)).rowcount
    return gone, gone == _PRUNED_AT_ONCE


def _read_mark(connection: Connection, name: str, *, locked: bool = False) -> Mark:
    """The chain's head or anchor, for this transaction alone if ``locked``."""
    query = _MARK_LOCKED if locked else _MARK
    found = connection.execute(query, {"mark": name}).one_or_none()
    if found is None:
        raise AuditError(f"audit database: the chain's {name} is missing; restore a backup")
    return Mark(*found)


def _set_mark(connection: Connection, name: str, mark: Mark) -> None:
    connection.execute(_SET_MARK, {"mark": name, "number": mark.number, "hash": mark.hash})
