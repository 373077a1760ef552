"""The audit in SQLite or PostgreSQL: one chain, whatever the number of workers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from ideal_dispatch.service.audit import chain, units
from ideal_dispatch.service.audit.chain import Chain, Outcome, rows_where
from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.promises import Promise
from ideal_dispatch.service.audit.record import Entry, Row
from ideal_dispatch.service.audit.schema import rows
from ideal_dispatch.service.audit.units import DepotUnits


def open_store(url: str, *, timeout_s: float = 2.0, create: bool = True) -> "AuditStore":
    """The audit at a URL: ``sqlite:///audit.db`` or ``postgresql://user@host/database``.

    The database is connected at the first use, not now: a service starts
    although its database is down. With ``create`` an empty database gets its
    tables then; older tables need ``ideal audit migrate``.
    """
    return AuditStore(Database(url, timeout_s=timeout_s, create=create))


class AuditStore:
    """Rows and units in a database; for many threads.

    Writers take turns, in all processes: the chain's head is locked for each append (SQLite locks
    the whole file). Every method may raise a :class:`StoreError` of one line.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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
            return chain.append(connection, entries, keep_duplicates=keep_duplicates)

    def find(self, kind: str, call_id: str, key: str) -> Row | None:
        """The row that had this key first."""
        slot = (rows.c.call_id == call_id, rows.c.key == key, rows.c.kind == kind)
        return next(iter(self._rows(rows_where(chain.first_of(*slot)).limit(1))), None)

    def get(self, id: str) -> Row | None:  # noqa: A002
        """The row of an entry."""
        return next(iter(self._rows(rows_where(rows.c.id == id).limit(1))), None)

    def recent(self, kind: str, limit: int) -> list[Row]:
        """The last rows of a kind, newest first."""
        return self._rows(rows_where(rows.c.kind == kind, newest_first=True).limit(limit))

    def of_call(self, call_id: str, limit: int, kind: str | None = None) -> list[Row]:
        """The last rows of a call, or of a kind of them, oldest first."""
        if kind is None:
            return self._rows(chain.OF_CALL, call_id=call_id, most=limit)[::-1]
        return self._rows(chain.OF_CALL_AND_KIND, call_id=call_id, kind=kind, most=limit)[::-1]

    def rows(self, after_number: int, limit: int) -> list[Row]:
        """Rows in their order, after the one of that number, not checked: few may be needed."""
        with self._database.reading() as connection:
            return chain.read(connection, rows_where(rows.c.number > after_number).limit(limit))

    def last_number(self) -> int:
        """The number of the last row, 0 where there is none."""
        with self._database.reading() as connection:
            return chain.read_mark(connection, "head").number

    @contextmanager
    def chain(self) -> Iterator[Chain]:
        """The whole chain as it is at one moment, not checked, for verification and export."""
        with self._database.reading(snapshot=True) as connection:
            yield chain.read_chain(connection)

    def prune(self, before: datetime) -> int:
        """Remove the oldest rows, up to the first that is not older; how many went."""
        gone, more = 0, True
        while more:
            with self._database.writing() as connection:
                went, more = chain.prune(connection, before)
            gone += went
        return gone

    def read_units(self) -> list[DepotUnits]:
        """What is known about every depot, by name."""
        with self._database.reading() as connection:
            return units.read_units(connection)

    def read_promises(self) -> list[Promise]:
        """Units promised to calls; some may have ended."""
        with self._database.reading() as connection:
            return units.read_promises(connection)

    def close(self) -> None:
        """Give up the connections."""
        self._database.close()

    def _rows(self, query: Any, **values: Any) -> list[Row]:
        """Rows for use: each is checked here, in the thread that waits for the database."""
        with self._database.reading() as connection:
            found = chain.read(connection, query, **values)
        for row in found:
            _ = row.entry
        return found
