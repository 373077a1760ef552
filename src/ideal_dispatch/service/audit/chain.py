"""The chain of rows on one connection: reading, appending, pruning."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    Mark,
    OutdatedUnits,
    OvertakenEntry,
    PromisedUnits,
    Row,
    at_text,
)
from ideal_dispatch.service.audit.schema import marks, rows
from ideal_dispatch.service.audit.units import UnitTables

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


def rows_where(*conditions: ColumnElement[bool], newest_first: bool = False) -> Any:
    """A query for whole rows, in their order."""
    order = rows.c.number.desc() if newest_first else rows.c.number
    return select(rows).where(*conditions).order_by(order)


def first_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The row that had a key first; the words of the condition are those of the index."""
    return and_(*conditions, rows.c.duplicate_of.is_(None))


# What every call needs is put together once: that takes longer than SQLite's own work.
OF_CALL = rows_where(rows.c.call_id == bindparam("call_id"), newest_first=True).limit(
    bindparam("most", type_=Integer)
)
OF_CALL_AND_KIND = OF_CALL.where(rows.c.kind == bindparam("kind"))
_CALLS = rows.c.call_id.in_(bindparam("calls", expanding=True))
_OF_IDS = rows_where(rows.c.id.in_(bindparam("ids", expanding=True)))
_OF_SLOTS = rows_where(  # all calls with all keys, as the index likes it
    first_of(_CALLS, rows.c.key.in_(bindparam("keys", expanding=True)))
)
_SINCE = select(rows.c.kind, rows.c.call_id, rows.c.number).where(
    first_of(_CALLS, rows.c.number > bindparam("number"))
)
_ANY_OF = select(rows.c.number).where(_CALLS).limit(1)
_AFTER = rows_where(rows.c.number > bindparam("number")).limit(_PAGE)
_INSERT = insert(rows)
_MARK = select(marks.c.number, marks.c.hash).where(marks.c.name == bindparam("mark"))
_MARK_LOCKED = _MARK.with_for_update()
_SET_MARK = update(marks).where(marks.c.name == bindparam("mark"))


def read(connection: Connection, query: Any, **values: Any) -> list[Row]:
    """What a query for rows finds."""
    return [Row(*found) for found in connection.execute(query, values)]


def read_chain(connection: Connection) -> Chain:
    """The whole chain, its rows a page at a time."""
    return Chain(read_mark(connection, "anchor"), read_mark(connection, "head"), _all(connection))


def _all(connection: Connection) -> Iterator[Row]:
    after = -(2**63)
    while page := read(connection, _AFTER, number=after):
        yield from page
        after = page[-1].number


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
    fresh: list[Row] = []
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
        checked = not keep_duplicates and (entry.promising or entry.kind == "units")
        if checked and (refusal := tables.state.refusal(entry)):
            outcomes.append(refusal)
            continue
        row = Row.after(head, entry, None if first is None else first.id)
        head = row.mark
        latest[entry.kind, entry.call_id] = head.number
        _note(known, row)
        if entry.slot is not None:
            known.setdefault(entry.slot, row)
        if first is None or first.id == entry.id:  # of two tries of one answer, the later was sent
            tables.state.take(entry)
        fresh.append(row)
        outcomes.append(row)
    if fresh:
        connection.execute(_INSERT, [asdict(row) for row in fresh])
        _set_mark(connection, "head", head)
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
        _note(known, row)
    slots = {entry.slot for entry in entries if entry.slot is not None}
    if slots:
        calls, keys = {slot[1] for slot in slots}, {slot[2] for slot in slots}
        for first in read(connection, _OF_SLOTS, calls=calls, keys=keys):
            known.setdefault((first.kind, first.call_id, first.key), first)
            _note(known, first)
    return known


def _note(known: dict[Any, Row], row: Row) -> None:
    """Know a row by its id, the first with that id, and by id and text."""
    known.setdefault(row.id, row)
    known[row.id, row.body] = row


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


def prune(connection: Connection, before: datetime) -> tuple[int, bool]:
    """Move the anchor over some of the oldest rows, say so in the chain, remove them.

    How many went, and whether there may be more.
    """
    head = read_mark(connection, "head", locked=True)
    anchor = read_mark(connection, "anchor")
    kept = select(rows.c.number).where(rows.c.at >= at_text(before))
    first_kept = connection.execute(kept.order_by(rows.c.number).limit(1)).scalar() or head.number
    last = min(first_kept - 1, anchor.number + _PRUNED_AT_ONCE)
    if last <= anchor.number:
        return 0, False
    last_hash = connection.execute(select(rows.c.hash).where(rows.c.number == last)).scalar()
    if last_hash is None:
        raise AuditError(
            f"audit row {last} is missing, nothing is pruned; run `ideal audit verify`"
        )
    body = {"event": "prune", "before": at_text(before), "number": last, "hash": last_hash}
    note = Entry("service", "", body, at=datetime.now(UTC))
    append(connection, [note], keep_duplicates=True)
    _set_mark(connection, "anchor", Mark(last, last_hash))
    gone = connection.execute(delete(rows).where(rows.c.number <= last)).rowcount
    return gone, gone == _PRUNED_AT_ONCE


def read_mark(connection: Connection, name: str, *, locked: bool = False) -> Mark:
    """The chain's head or anchor, for this transaction alone if ``locked``."""
    query = _MARK_LOCKED if locked else _MARK
    found = connection.execute(query, {"mark": name}).one_or_none()
    if found is None:
        raise AuditError(f"audit database: the chain's {name} is missing; restore a backup")
    return Mark(*found)


def _set_mark(connection: Connection, name: str, mark: Mark) -> None:
    connection.execute(_SET_MARK, {"mark": name, "number": mark.number, "hash": mark.hash})
