"""Statements on one connection: reading rows, and appending to the chain."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    insert,
    select,
    update,
)

from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    Mark,
    OvertakenEntry,
    Row,
    StoredRow,
)
from ideal_dispatch.service.audit.store import Outcome
from ideal_dispatch.service.audit.tables import marks, rows
from ideal_dispatch.service.audit.unit_tables import UnitTables

_CLEANED = 64  # rows, after which promises that ended are removed
_COLUMNS = [field.name for field in fields(StoredRow)]


def rows_where(*conditions: ColumnElement[bool], newest_first: bool = False) -> Any:
    """A query for whole rows, in their order."""
    order = rows.c.number.desc() if newest_first else rows.c.number
    return select(*(rows.c[name] for name in _COLUMNS)).where(*conditions).order_by(order)


def first_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The row that had a key first; the words of the condition are those of the index."""
    return and_(*conditions, rows.c.duplicate_of.is_(None))


# What every call needs is put together once: that takes longer than SQLite's own work.
OF_CALL = rows_where(rows.c.call_id == bindparam("call_id"), newest_first=True).limit(
    bindparam("most", type_=Integer)
)
OF_CALL_AND_KIND = OF_CALL.where(rows.c.kind == bindparam("kind"))
_OF_IDS = rows_where(rows.c.id.in_(bindparam("ids", expanding=True)))
_OF_SLOTS = rows_where(  # all calls with all keys, as the index likes it
    first_of(
        rows.c.call_id.in_(bindparam("calls", expanding=True)),
        rows.c.key.in_(bindparam("keys", expanding=True)),
    )
)
_SINCE = select(rows.c.kind, rows.c.call_id, rows.c.number).where(
    rows.c.call_id.in_(bindparam("calls", expanding=True)),
    rows.c.number > bindparam("number"),
    rows.c.duplicate_of.is_(None),
)
_ANY_OF = select(rows.c.number).where(rows.c.call_id.in_(bindparam("calls", expanding=True)))
_ANY_OF = _ANY_OF.limit(1)
_INSERT = insert(rows)
_MARK = select(marks.c.number, marks.c.hash).where(marks.c.name == bindparam("mark"))
_MARK_LOCKED = _MARK.with_for_update()
_SET_MARK = update(marks).where(marks.c.name == bindparam("mark"))


def append(
    connection: Connection, entries: Sequence[Entry], *, keep_duplicates: bool
) -> list[Outcome]:
    """Rows for the entries at the end of the chain, or why there are none."""
    before = head = read_mark(connection, "head", locked=True)
    looked_up = entries if keep_duplicates else _not_new(connection, entries)
    new = {entry.call_id for entry in entries} - {entry.call_id for entry in looked_up}
    tables = UnitTables(connection, entries, new)
    known = _known(connection, looked_up, again=keep_duplicates)
    latest = {} if keep_duplicates else _latest(connection, looked_up, head)
    outcomes: list[Outcome] = []
    fresh: list[StoredRow] = []
    for entry in entries:
        same = known.get((entry.id, entry.text))
        if same is not None:
            outcomes.append(same)
            continue
        first = known.get(entry.id) or known.get(entry.slot)
        if first is not None and not keep_duplicates:
            outcomes.append(DuplicateEntry(first.entry, first))
            continue
        if entry.seen is not None and latest.get((entry.kind, entry.call_id), 0) > entry.seen:
            outcomes.append(OvertakenEntry(entry))
            continue
        if not keep_duplicates and (refusal := tables.refusal(entry)):
            outcomes.append(refusal)
            continue
        duplicate_of = None if first is None else first.entry.id
        stored = StoredRow.after(head.number, head.hash, entry, duplicate_of)
        row = Row(stored.number, entry, duplicate_of, stored.previous_hash, stored.hash)
        head = Mark(stored.number, stored.hash)
        latest[entry.kind, entry.call_id] = head.number
        _note(known, row)
        if entry.slot is not None:
            known.setdefault(entry.slot, row)
        if first is None or first.entry.id == entry.id:  # the answer that left, of two tries
            tables.take(entry)
        fresh.append(stored)
        outcomes.append(row)
    if fresh:
        connection.execute(
            _INSERT, [{name: getattr(row, name) for name in _COLUMNS} for row in fresh]
        )
        set_mark(connection, "head", head)
        tables.keep(clean=head.number // _CLEANED > before.number // _CLEANED)
    return outcomes


def _not_new(connection: Connection, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Entries less those of calls without any row, which is what their writers had seen."""
    new = {entry.call_id for entry in entries if entry.seen == 0}
    if not new or connection.execute(_ANY_OF, {"calls": new}).first() is not None:
        return entries
    return [entry for entry in entries if entry.call_id not in new]


def _known(connection: Connection, entries: Sequence[Entry], again: bool) -> dict[Any, Row]:
    """Rows on record that share an id, or kind, call and key, with an entry; by either.

    An entry with a key is looked up by its id only where it may have been written before as a
    duplicate, ``again``: else the row of its key is its own, or the one that was first.
    """
    known: dict[Any, Row] = {}
    ids = [entry.id for entry in entries if again or entry.slot is None]
    for row in read(connection, _OF_IDS, ids=ids) if ids else ():
        _note(known, row.row())
    slots = {entry.slot for entry in entries if entry.slot is not None}
    if slots:
        calls, keys = {slot[1] for slot in slots}, {slot[2] for slot in slots}
        for row in read(connection, _OF_SLOTS, calls=calls, keys=keys):
            first = row.row()
            known.setdefault(first.entry.slot, first)
            _note(known, first)
    return known


def _note(known: dict[Any, Row], row: Row) -> None:
    """Know a row by its id, the first with that id, and by id and text."""
    known.setdefault(row.entry.id, row)
    known[row.entry.id, row.entry.text] = row


def _latest(
    connection: Connection, entries: Sequence[Entry], head: Mark
) -> dict[tuple[str, str], int]:
    """Of each kind and call the last row, where it is after what writers of entries had seen."""
    seen = [entry.seen for entry in entries if entry.seen is not None]
    if not seen or min(seen) >= head.number:
        return {}
    calls = {entry.call_id for entry in entries if entry.seen is not None}
    found = connection.execute(_SINCE, {"calls": calls, "number": min(seen)})
    latest: dict[tuple[str, str], int] = {}
    for kind, call_id, number in found:
        latest[kind, call_id] = max(number, latest.get((kind, call_id), 0))
    return latest


def read(connection: Connection, query: Any, **values: Any) -> list[StoredRow]:
    """What a query for rows finds."""
    return [StoredRow(*found) for found in connection.execute(query, values)]


def read_mark(connection: Connection, name: str, *, locked: bool = False) -> Mark:
    """The chain's head or anchor, for this transaction alone if ``locked``."""
    query = _MARK_LOCKED if locked else _MARK
    found = connection.execute(query, {"mark": name}).one_or_none()
    if found is None:
        raise AuditError(f"audit database: the chain's {name} is missing; restore a backup")
    return Mark(*found)


def set_mark(connection: Connection, name: str, mark: Mark) -> None:
    """Move the chain's head or anchor."""
    connection.execute(_SET_MARK, {"mark": name, "number": mark.number, "hash": mark.hash})
