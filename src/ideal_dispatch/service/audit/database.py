"""Audit rows in SQLite or PostgreSQL, one chain whatever the number of workers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select

from ideal_dispatch.service.audit import schema, statements, unit_tables
from ideal_dispatch.service.audit.connection import Database
from ideal_dispatch.service.audit.promises import Promise
from ideal_dispatch.service.audit.record import (
    AuditError,
    Entry,
    Mark,
    NoTablesError,
    Row,
    StoredRow,
    StoreError,
    at_text,
)
from ideal_dispatch.service.audit.store import AuditStore, Chain, Outcome
from ideal_dispatch.service.audit.tables import VERSION, rows
from ideal_dispatch.service.audit.units import DepotUnits

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
            for outcome in statements.append(connection, entries, keep_duplicates=False):
                if not isinstance(outcome, Row):
                    raise outcome  # and the transaction is taken back
                stored.append(outcome)
        return stored

    def append_each(
        self, entries: Sequence[Entry], *, keep_duplicates: bool = False
    ) -> list[Outcome]:
        if not entries:
            return []
        with self._writing() as connection:
            return statements.append(connection, entries, keep_duplicates=keep_duplicates)

    def find(self, kind: str, call_id: str, key: str) -> Row | None:
        slot = (rows.c.call_id == call_id, rows.c.key == key, rows.c.kind == kind)
        return self._one(statements.first_of(*slot))

    def get(self, id: str) -> Row | None:  # noqa: A002
        return self._one(rows.c.id == id)

    def recent(self, kind: str, limit: int) -> list[Row]:
        return self._rows(
            statements.rows_where(rows.c.kind == kind, newest_first=True).limit(limit)
        )

    def of_call(self, call_id: str, limit: int, kind: str | None = None) -> list[Row]:
        if kind is None:
            newest = self._rows(statements.OF_CALL, call_id=call_id, most=limit)
        else:
            newest = self._rows(statements.OF_CALL_AND_KIND, call_id=call_id, kind=kind, most=limit)
        return newest[::-1]

    def rows(self, after_number: int, limit: int) -> list[Row]:
        return [row.row() for row in self.stored_rows(after_number, limit)]

    def stored_rows(self, after_number: int, limit: int) -> list[StoredRow]:
        return self._stored(statements.rows_where(rows.c.number > after_number).limit(limit))

    @contextmanager
    def chain(self) -> Iterator[Chain]:
        self._check()
        with self._database.reading(snapshot=True) as connection:
            yield Chain(
                statements.read_mark(connection, "anchor"),
                statements.read_mark(connection, "head"),
                _all(connection),
            )

    def prune(self, before: datetime) -> int:
        gone = 0
        while True:
            with self._writing() as connection:
                head = statements.read_mark(connection, "head", locked=True)
                went = _prune(connection, head, before)
            gone += went
            if went < _PRUNED_AT_ONCE:
                return gone

    def read_units(self) -> list[DepotUnits]:
        self._check()
        with self._database.reading() as connection:
            return unit_tables.read_units(connection)

    def read_promises(self) -> list[Promise]:
        self._check()
        with self._database.reading() as connection:
            return unit_tables.read_promises(connection)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check()
        with self._database.writing() as connection:
            yield connection

    def _one(self, condition: ColumnElement[bool]) -> Row | None:
        found = self._rows(statements.rows_where(condition).limit(1))
        return found[0] if found else None

    def _rows(self, query: Any, **values: Any) -> list[Row]:
        return [row.row() for row in self._stored(query, **values)]

    def _stored(self, query: Any, **values: Any) -> list[StoredRow]:
        self._check()
        with self._database.reading() as connection:
            return statements.read(connection, query, **values)

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


def _all(connection: Connection) -> Iterator[StoredRow]:
    """All rows in their order, a page at a time; duplicate numbers cannot be."""
    after = -(2**63)
    while True:
        page = statements.read(
            connection, statements.rows_where(rows.c.number > after).limit(_PAGE)
        )
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].number


def _prune(connection: Connection, head: Mark, before: datetime) -> int:
    """Move the anchor over the oldest rows, say so in the chain, remove them."""
    anchor = statements.read_mark(connection, "anchor")
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
    statements.append(connection, [note], keep_duplicates=True)
    statements.set_mark(connection, "anchor", Mark(last, last_hash))
    return connection.execute(delete(rows).where(rows.c.number <= last)).rowcount
