"""The audit as an outbox: which rows each webhook was told, and who tells them.

The rows are those of the chain. The table has one number for each webhook: that of the last row
that was told.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ideal_dispatch.service.audit import leases
from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.record import Row
from ideal_dispatch.service.audit.schema import marks, rows, webhooks

_HEAD = sa.select(marks.c.number).where(marks.c.name == "head")
_NUMBER = sa.select(webhooks.c.number).where(webhooks.c.name == sa.bindparam("webhook"))
_MOVE = (
    sa.update(webhooks)
    .where(webhooks.c.name == sa.bindparam("webhook"), webhooks.c.number == sa.bindparam("old"))
    .values(number=sa.bindparam("new"))
)
_WANTED = sa.select(rows).where(
    rows.c.number > sa.bindparam("number"),
    rows.c.kind.in_(sa.bindparam("kinds", expanding=True)),
    rows.c.duplicate_of.is_(None),
)
_MOST_COUNTED = 10_000


class Outbox:
    """One webhook's view of the audit, by connections of its own: advice never waits for them.

    ``kinds`` are the rows that it wants; duplicates are never told. Every method may raise a
    :class:`StoreError` of one line.
    """

    def __init__(self, url: str, name: str, kinds: Sequence[str]) -> None:
        self._database, self._name, self._kinds = Database(url), name, list(kinds)

    def lease(self, holder: str, for_s: float) -> bool:
        """Whether ``holder`` alone tells this webhook for so long; 0 s give it back."""
        with self._database.writing() as connection:
            return leases.take(connection, f"webhook {self._name}", holder, for_s)

    def number(self) -> int:
        """Of the last row that was told; a new webhook begins at the chain's end."""
        with self._database.reading() as connection:
            known: int | None = connection.execute(_NUMBER, {"webhook": self._name}).scalar()
        if known is not None:
            return known
        with self._database.writing() as connection:
            dialect = sqlite if self._database.is_sqlite else postgresql
            head = connection.execute(_HEAD).scalar_one()
            new = dialect.insert(webhooks).values(name=self._name, number=head)
            connection.execute(new.on_conflict_do_nothing())
            begun: int = connection.execute(_NUMBER, {"webhook": self._name}).scalar_one()
        return begun

    def move(self, old: int, new: int) -> bool:
        """Note that all rows as far as ``new`` were told; False where another moved it."""
        with self._database.writing() as connection:
            values = {"webhook": self._name, "old": old, "new": new}
            return connection.execute(_MOVE, values).rowcount == 1

    def rows(self, after_number: int, limit: int) -> tuple[list[Row], int]:
        """The next rows that are wanted, and how far the chain has been looked through."""
        with self._database.reading() as connection:
            head: int = connection.execute(_HEAD).scalar_one()
            query = _WANTED.order_by(rows.c.number).limit(limit)
            values = {"number": after_number, "kinds": self._kinds}
            found = [Row(*one) for one in connection.execute(query, values)]
        last = found[-1].number if found else after_number
        return found, last if len(found) == limit else max(last, head)

    def behind(self, after_number: int) -> int:
        """How many rows wait; of very many, some."""
        counted = _WANTED.with_only_columns(rows.c.number).limit(_MOST_COUNTED).subquery()
        with self._database.reading() as connection:
            values = {"number": after_number, "kinds": self._kinds}
            found = connection.execute(sa.select(sa.func.count()).select_from(counted), values)
            number: int = found.scalar_one()
        return number

    def close(self) -> None:
        self._database.close()
