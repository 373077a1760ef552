"""Audit rows in SQLite or PostgreSQL, one chain whatever the number of workers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from ideal_dispatch.service.audit import schema
from ideal_dispatch.service.audit.connection import Database
from ideal_dispatch.service.audit.record import (
    AuditError,
    DuplicateEntry,
    Entry,
    Mark,
    NoTablesError,
    Row,
    StoredRow,
    StoreError,
    at_text,
)
from ideal_dispatch.service.audit.store import AuditStore, Chain, DepotUnits, told_units
from ideal_dispatch.service.audit.tables import VERSION, marks, rows, units

_COLUMNS = [field.name for field in fields(StoredRow)]
_PAGE = 500
_PRUNED_AT_ONCE = 5_000  # the chain is locked meanwhile


def open_store(url: str, *, timeout_s: float = 2.0, create: bool = True) -> AuditStore:
    """The audit at a URL: ``sqlite:///audit.db`` or ``postgresql://user@host/database``.

    The database is connected at the first use, not now: a service starts
    although its database is down. With ``create`` an empty database gets its
    tables then; older tables need ``ideal audit migrate``.
    """
    return SqlStore(Database(url, timeout_s=timeout_s), create=create)


class SqlStore:
    """An :class:`AuditStore` in a database; its methods may be called from many threads.

    Writers take turns, in all processes: the chain's head is locked for each
    append (SQLite locks the whole file).
    """

    def __init__(self, database: Database, *, create: bool = True) -> None:
        self._database, self._create = database, create
        self._ready = False
        self._checking = threading.Lock()

    def append(self, entries: Sequence[Entry]) -> list[Row]:
        stored = []
        with self._writing() as connection:
            for outcome in _append(connection, entries, keep_duplicates=False):
                if isinstance(outcome, DuplicateEntry):
                    raise outcome  # and the transaction is taken back
                stored.append(outcome)
        return stored

    def append_each(
        self, entries: Sequence[Entry], *, keep_duplicates: bool = False
    ) -> list[Row | DuplicateEntry]:
        if not entries:
            return []
        with self._writing() as connection:
            return _append(connection, entries, keep_duplicates=keep_duplicates)

    def find(self, kind: str, call_id: str, key: str) -> Row | None:
        slot = (rows.c.call_id == call_id, rows.c.key == key, rows.c.kind == kind)
        return self._one(_first_of(*slot))

    def get(self, id: str) -> Row | None:  # noqa: A002
        return self._one(rows.c.id == id)

    def recent(self, kind: str, limit: int) -> list[Row]:
        query = _select().where(rows.c.kind == kind).order_by(rows.c.number.desc()).limit(limit)
        return self._rows(query)

    def of_call(self, call_id: str) -> list[Row]:
        return self._rows(_select().where(rows.c.call_id == call_id).order_by(rows.c.number))

    def rows(self, after_number: int, limit: int) -> list[Row]:
        return [row.row() for row in self.stored_rows(after_number, limit)]

    def stored_rows(self, after_number: int, limit: int) -> list[StoredRow]:
        query = _select().where(rows.c.number > after_number).order_by(rows.c.number)
        return self._stored(query.limit(limit))

    @contextmanager
    def chain(self) -> Iterator[Chain]:
        self._check()
        with self._database.reading(snapshot=True) as connection:
            yield Chain(_mark(connection, "anchor"), _mark(connection, "head"), _all(connection))

    def prune(self, before: datetime) -> int:
        gone = 0
        while True:
            with self._writing() as connection:
                head = _mark(connection, "head", locked=True)
                went = _prune(connection, head, before)
            gone += went
            if went < _PRUNED_AT_ONCE:
                return gone

    def read_units(self) -> list[DepotUnits]:
        self._check()
        with self._database.reading() as connection:
            return _units(connection)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check()
        with self._database.writing() as connection:
            yield connection

    def _one(self, condition: ColumnElement[bool]) -> Row | None:
        found = self._rows(_select().where(condition).order_by(rows.c.number).limit(1))
        return found[0] if found else None

    def _rows(self, query: Any) -> list[Row]:
        return [row.row() for row in self._stored(query)]

    def _stored(self, query: Any) -> list[StoredRow]:
        self._check()
        with self._database.reading() as connection:
            return [StoredRow(*values) for values in connection.execute(query)]

    def _check(self) -> None:
        """Make the tables where there are none, and refuse those of another version."""
        if self._ready:
            return
        with self._checking:
            with self._database.reading() as connection:
                found = schema.version(connection)
            if found is None and self._create:
                with self._database.writing() as connection:
                    schema.upgrade(connection)
            elif found is not None and found > VERSION:
                raise schema.newer(found)
            elif found is None:
                raise NoTablesError(
                    f"audit database {self._database.name}: it has no tables, version {VERSION} is "
                    "needed; run `ideal audit migrate`"
                )
            elif found != VERSION:
                raise StoreError(
                    f"audit database {self._database.name}: its tables are of version {found}, "
                    f"version {VERSION} is needed; run `ideal audit migrate`"
                )
            self._ready = True


def _select() -> Any:
    return select(*(rows.c[name] for name in _COLUMNS))


def _first_of(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The row that had a key first; the words of the condition are those of the index."""
    return and_(*conditions, rows.c.duplicate_of.is_(None))


def _append(
    connection: Connection, entries: Sequence[Entry], *, keep_duplicates: bool
) -> list[Row | DuplicateEntry]:
    head = _mark(connection, "head", locked=True)
    known = _known(connection, entries, again=keep_duplicates)
    outcomes: list[Row | DuplicateEntry] = []
    fresh: list[StoredRow] = []
    for entry in entries:
        same = known.get(entry.id)
        first = known.get(entry.slot) if same is None and entry.slot is not None else same
        if same is not None and same.entry.text == entry.text:
            outcomes.append(same)
            continue
        if first is not None and not keep_duplicates:
            outcomes.append(DuplicateEntry(first.entry, first))
            continue
        duplicate_of = None if first is None else first.entry.id
        stored = StoredRow.after(head.number, head.hash, entry, duplicate_of)
        row = Row(stored.number, entry, duplicate_of, stored.previous_hash, stored.hash)
        head = Mark(stored.number, stored.hash)
        known.setdefault(entry.id, row)
        if entry.slot is not None:
            known.setdefault(entry.slot, row)
        fresh.append(stored)
        outcomes.append(row)
    if fresh:
        connection.execute(
            insert(rows), [{name: getattr(row, name) for name in _COLUMNS} for row in fresh]
        )
        _set_mark(connection, "head", head)
        _keep_units(connection, [row.row().entry for row in fresh if row.kind == "units"])
    return outcomes


def _keep_units(connection: Connection, entries: Sequence[Entry]) -> None:
    """Set depots' free units to the newest that is told."""
    if not entries:
        return
    before = {one.depot: one for one in _units(connection)}
    after = dict(before)
    for entry in entries:
        for one in told_units(entry):
            if one.depot not in after or after[one.depot].updated_at <= one.updated_at:
                after[one.depot] = one
    for depot, one in after.items():
        if one != before.get(depot):
            at = at_text(one.updated_at)
            connection.execute(delete(units).where(units.c.depot == depot))
            connection.execute(insert(units).values(depot=depot, units=one.units, updated_at=at))


def _known(connection: Connection, entries: Sequence[Entry], again: bool) -> dict[Any, Row]:
    """Rows on record that share an id, or kind, call and key, with an entry; by either.

    An entry with a key is looked up by its id only where it may have been written before as a
    duplicate, ``again``: else the row of its key is its own, or the one that was first.
    """
    known: dict[Any, Row] = {}
    ids = [entry.id for entry in entries if again or entry.slot is None]
    for row in _read(connection, rows.c.id.in_(ids)) if ids else ():
        known.setdefault(row.entry.id, row)
    slots = {entry.slot for entry in entries if entry.slot is not None}
    calls, keys = {slot[1] for slot in slots}, {slot[2] for slot in slots}
    if slots:  # all calls with all keys, as the index likes it
        for row in _read(connection, _first_of(rows.c.call_id.in_(calls), rows.c.key.in_(keys))):
            known.setdefault(row.entry.slot, row)
            known.setdefault(row.entry.id, row)
    return known


def _read(connection: Connection, condition: ColumnElement[bool]) -> list[Row]:
    query = _select().where(condition).order_by(rows.c.number)
    return [StoredRow(*values).row() for values in connection.execute(query)]


def _mark(connection: Connection, name: str, *, locked: bool = False) -> Mark:
    query = select(marks.c.number, marks.c.hash).where(marks.c.name == name)
    found = connection.execute(query.with_for_update() if locked else query).one_or_none()
    if found is None:
        raise AuditError(f"audit database: the chain's {name} is missing; restore a backup")
    return Mark(*found)


def _set_mark(connection: Connection, name: str, mark: Mark) -> None:
    connection.execute(
        update(marks).where(marks.c.name == name).values(number=mark.number, hash=mark.hash)
    )


def _all(connection: Connection) -> Iterator[StoredRow]:
    """All rows in their order, a page at a time; duplicate numbers cannot be."""
    after = -(2**63)
    while True:
        query = _select().where(rows.c.number > after).order_by(rows.c.number).limit(_PAGE)
        page = [StoredRow(*values) for values in connection.execute(query)]
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].number


def _prune(connection: Connection, head: Mark, before: datetime) -> int:
    """Move the anchor over the oldest rows, say so in the chain, remove them."""
    anchor = _mark(connection, "anchor")
    kept = select(rows.c.number).where(rows.c.at >= at_text(before))
    first_kept = connection.execute(kept.order_by(rows.c.number).limit(1)).scalar() or head.number
    last = min(first_kept - 1, anchor.number + _PRUNED_AT_ONCE)
    if last <= anchor.number:
        return 0
    last_hash = connection.execute(select(rows.c.hash).where(rows.c.number == last)).scalar()
    if last_hash is None:
        raise AuditError(
            f"audit row {last} is missing, nothing is pruned; run `ideal audit verify`"
        )
    body = {
        "event": "prune", "before": at_text(before), "number": last, "hash": last_hash,
    }  # fmt: skip
    note = Entry.new("service", "", body, at=datetime.now(UTC))
    _append(connection, [note], keep_duplicates=True)
    _set_mark(connection, "anchor", Mark(last, last_hash))
    return connection.execute(delete(rows).where(rows.c.number <= last)).rowcount


def _units(connection: Connection) -> list[DepotUnits]:
    query = select(units.c.depot, units.c.units, units.c.updated_at).order_by(units.c.depot)
    return [
        DepotUnits(depot, count, datetime.fromisoformat(at))
        for depot, count, at in connection.execute(query)
    ]
