"""The seam between the audit and its database."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ideal_dispatch.service.audit.promises import Promise
from ideal_dispatch.service.audit.record import (
    DuplicateEntry,
    Entry,
    Mark,
    OutdatedUnits,
    OvertakenEntry,
    PromisedUnits,
    Row,
    StoredRow,
)
from ideal_dispatch.service.audit.units import DepotUnits

Outcome = Row | DuplicateEntry | OvertakenEntry | PromisedUnits | OutdatedUnits
"""The row of an entry, or why it got none."""


@dataclass(frozen=True, slots=True)
class Chain:
    """All rows at one moment: ``anchor`` is the last pruned row, ``head`` the last written."""

    anchor: Mark
    head: Mark
    rows: Iterator[StoredRow]


class AuditStore(Protocol):
    """Where rows live. Every method may raise a :class:`StoreError` of one line."""

    def append(self, entries: Sequence[Entry]) -> list[Row]:
        """Durable rows for all entries, or none of them and a :class:`DuplicateEntry`."""
        ...

    def append_each(
        self, entries: Sequence[Entry], *, keep_duplicates: bool = False
    ) -> list[Outcome]:
        """For every entry its durable row, or why it got none.

        An entry that is on record already (the same id and contents) gets that
        row. With ``keep_duplicates`` all get a row, which says so where another
        entry had the key first; none is overtaken, outdated or short of units then.
        Counts of units and promises in an entry are known from then on.
        """
        ...

    def find(self, kind: str, call_id: str, key: str) -> Row | None:
        """The row that had this key first."""
        ...

    def get(self, id: str) -> Row | None:  # noqa: A002
        """The row of an entry."""
        ...

    def recent(self, kind: str, limit: int) -> list[Row]:
        """The last rows of a kind, newest first."""
        ...

    def of_call(self, call_id: str, limit: int, kind: str | None = None) -> list[Row]:
        """The last rows of a call, or of a kind of them, oldest first."""
        ...

    def rows(self, after_number: int, limit: int) -> list[Row]:
        """Rows in their order, after the one of that number."""
        ...

    def stored_rows(self, after_number: int, limit: int) -> list[StoredRow]:
        """The same unparsed, for who needs few of them."""
        ...

    def chain(self) -> AbstractContextManager[Chain]:
        """The whole chain as it is at one moment, unparsed, for verification and export."""
        ...

    def prune(self, before: datetime) -> int:
        """Remove the oldest rows, up to the first that is not older; how many went."""
        ...

    def read_units(self) -> list[DepotUnits]:
        """What is known about every depot, by name."""
        ...

    def read_promises(self) -> list[Promise]:
        """Units promised to calls; some may have ended."""
        ...

    def close(self) -> None:
        """Give up the connections."""
        ...
