"""One change of the state: the head is locked, the moment is read, rows change, the log says so.

What two requests must not do together is a property of a row: a unit has one promise or none.
The first row of the log that a transaction writes holds the changed rows as they are after it, so
that the state is the fold of the log (:mod:`ideal_dispatch.service.record.audit`).
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.rows import (
    TABLES,
    AdviceRow,
    ClosureRow,
    HeadRow,
    LogRow,
    Mark,
    StateRow,
    columns,
    image,
)
from ideal_dispatch.service.units import AHEAD_US, Unit

_STEPS_BACK_US = 10_000_000  # a clock that was set back a little stands still meanwhile

_SEEN = ("lon", "lat", "heading", "speed_kmh", "seen_at")
_KNOWN_IS_NEWER = "seen_at <= :ahead AND seen_at > coalesce(:seen_at, 0)"
_POSITION = ", ".join(
    f"{name} = CASE WHEN {_KNOWN_IS_NEWER} THEN {name} ELSE :{name} END" for name in _SEEN
)
_SEE = sa.text(f"""
    UPDATE unit SET {_POSITION},
      told_at = CASE WHEN told_at > :told_at THEN told_at ELSE :told_at END,
      status_at = CASE WHEN status_at > :status_at OR status <> :status
        THEN status_at ELSE :status_at END
    WHERE id = :id
""")

_Row = TypeVar("_Row", bound=StateRow)


class State:
    """What the database holds now: state rows, and the service's moment."""

    def __init__(self, connection: Connection, clock: ClockTable, *, lock: bool = False) -> None:
        self.connection, self.clock = connection, clock
        query = sa.select(rows.head)
        head = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if head is None:
            raise RecordUnavailableError("the head of the log is missing; restore a backup")
        self.head = HeadRow(*head)
        now = clock.at(rows.database_now(connection), self.head.stepped_us)
        self.now = max(now, self.head.at) if self.head.at - now < _STEPS_BACK_US else now

    def rows_of(self, kind: type[_Row], query: sa.Select[Any]) -> list[_Row]:
        """The rows of one kind that a query of their whole table finds."""
        return [kind(*row) for row in self.connection.execute(query)]

    def units(self) -> list[Unit]:
        """All units, by id."""
        return self.rows_of(Unit, sa.select(rows.unit).order_by(rows.unit.c.id))

    def unit(self, id: str) -> Unit | None:  # noqa: A002
        query = sa.select(rows.unit).where(rows.unit.c.id == id)
        return next(iter(self.rows_of(Unit, query)), None)

    def advice(self, id: str) -> AdviceRow | None:  # noqa: A002
        query = sa.select(rows.advice).where(rows.advice.c.id == id)
        return next(iter(self.rows_of(AdviceRow, query)), None)

    def of_call(self, call_id: str) -> list[AdviceRow]:
        """All advice on a call, by revision."""
        query = sa.select(rows.advice).where(rows.advice.c.call_id == call_id)
        return self.rows_of(AdviceRow, query.order_by(rows.advice.c.revision))

    def closures(self, *, active: bool = False) -> list[ClosureRow]:
        """Closures that were not ended and whose time has not passed, the oldest first.

        Those that are ``active`` have begun.
        """
        query = sa.select(rows.closure).where(rows.closure.c.ended_at.is_(None))
        found = self.rows_of(ClosureRow, query.order_by(rows.closure.c.made_at))
        if active:
            return [row for row in found if row.active(self.now)]
        return [row for row in found if not row.over(self.now)]


class Transaction(State):
    """A state that may be changed; :meth:`finish` writes what changed and what was logged.

    Until then only :meth:`unit` knows what was put.
    """

    def __init__(self, connection: Connection, clock: ClockTable) -> None:
        super().__init__(connection, clock, lock=True)
        self._stepped_us = self.head.stepped_us
        self._changes: dict[type[StateRow], dict[str, Any]] = {}
        self._logged: list[tuple[str, str, Mapping[str, Any]]] = []

    def unit(self, id: str) -> Unit | None:  # noqa: A002
        """A unit as this transaction leaves it."""
        changed: dict[str, Unit | None] = self._changes.get(Unit, {})
        return changed[id] if id in changed else super().unit(id)

    def put(self, row: StateRow) -> None:
        """Insert a row of the state, or replace the one of its id."""
        self._changes.setdefault(type(row), {})[row.id] = row

    def delete(self, row: StateRow) -> None:
        """Remove a row of the state."""
        self._changes.setdefault(type(row), {})[row.id] = None

    def step(self, step_us: int) -> None:
        """Move a simulated clock on."""
        self._stepped_us += step_us
        self.now += step_us

    def log(self, kind: str, call_id: str, body: Mapping[str, Any]) -> None:
        """Add a row to the log, in the order of the calls of this function."""
        self._logged.append((kind, call_id, body))

    def finish(self) -> None:
        """Write the rows of the state, in the order of their ids, and those of the log."""
        assert self._logged or not self._changes, "a change that no row of the log says"
        if not self._logged:
            return
        for row_type, changed in self._changes.items():
            table = TABLES[row_type]
            delete = sa.delete(table).where(table.c.id == sa.bindparam("gone"))
            upsert = _upsert(table, self.connection.dialect.name)
            for id_, row in sorted(changed.items()):
                if row is None:
                    self.connection.execute(delete, {"gone": id_})
                else:
                    self.connection.execute(upsert, columns(row))
        images = {
            TABLES[row_type].name: {
                id_: None if row is None else image(row) for id_, row in changed.items()
            }
            for row_type, changed in self._changes.items()
        }
        written: list[LogRow] = []
        last = Mark(self.head.number, self.head.hash)
        for kind, call_id, body in self._logged:
            content = {**body, "changes": images} if images and not written else body
            written.append(LogRow.after(last, self.now, kind, call_id, content))
            last = written[-1].mark
        self.connection.execute(sa.insert(rows.log), [columns(row) for row in written])
        self.connection.execute(
            sa.update(rows.head).values(
                number=last.number, hash=last.hash, at=self.now, stepped_us=self._stepped_us
            )
        )


def see_units(state: State, units: Iterable[Unit]) -> None:
    """Keep where units were seen and when they last reported; older reports change nothing.

    In the order of their ids, so that neither two lists nor a list and a transaction ever wait
    for each other.
    """
    ahead = {"ahead": state.now + AHEAD_US}
    seen = [columns(one) | ahead for one in sorted(units, key=lambda one: one.id)]
    if seen:
        state.connection.execute(_SEE, seen)


@cache
def _upsert(table: Table, dialect: str) -> Any:
    """The statement that inserts a row, or replaces the one of its id.

    What :func:`see_units` wrote after the row was read stays, for it locks no head.
    """
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
    made = insert(table)
    new, old = made.excluded, table.c
    values: dict[str, Any] = {one.name: new[one.name] for one in old if one.name != "id"}
    if table is rows.unit:
        late = new.seen_at.is_(None) | (new.seen_at < old.seen_at)
        values |= {name: sa.case((late, old[name]), else_=new[name]) for name in _SEEN}
        confirmed = (old.status_at > new.status_at) & (old.status == new.status)
        values["told_at"] = sa.case((old.told_at > new.told_at, old.told_at), else_=new.told_at)
        values["status_at"] = sa.case((confirmed, old.status_at), else_=new.status_at)
    return made.on_conflict_do_update(index_elements=["id"], set_=values)
