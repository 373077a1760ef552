"""One change of the state: the head is locked, the moment is read, rows change, the log says so.

What two requests must not do together is a property of a row: a unit has one promise or none.
The first row of the log that a transaction writes holds the changed rows as they are after it, so
that the state is the fold of the log (:mod:`ideal_dispatch.service.record.verification`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Table, bindparam

from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.rows import (
    TABLES,
    AdviceRow,
    ClosureRow,
    LogRow,
    Mark,
    StateRow,
    database_now,
    image,
)
from ideal_dispatch.service.units import Unit

_STEPS_BACK_US = 10_000_000  # a clock that was set back a little stands still meanwhile

_UNITS = sa.select(rows.unit).order_by(rows.unit.c.id)
_UNIT = sa.select(rows.unit).where(rows.unit.c.id == bindparam("id"))
_ADVICE = sa.select(rows.advice).where(rows.advice.c.id == bindparam("id"))
_OF_CALL = (
    sa.select(rows.advice)
    .where(rows.advice.c.call_id == bindparam("call_id"))
    .order_by(rows.advice.c.revision)
)
_OPEN_CLOSURES = sa.select(rows.closure).where(rows.closure.c.ended_at.is_(None))
_HEAD = sa.select(rows.head)
_HEARD = (
    sa.update(rows.unit)
    .where(rows.unit.c.id == bindparam("unit_id"))
    .where(rows.unit.c.told_at <= bindparam("heard_us"))
    .values(
        told_at=bindparam("heard_us"),
        status_at=sa.case(
            (
                rows.unit.c.status_at < bindparam("status_us", type_=sa.BigInteger),
                bindparam("status_us", type_=sa.BigInteger),
            ),
            else_=rows.unit.c.status_at,
        ),
    )
)
_SEEN = (
    sa.update(rows.unit)
    .where(rows.unit.c.id == bindparam("unit_id"))
    .where(sa.or_(rows.unit.c.seen_at.is_(None), rows.unit.c.seen_at <= bindparam("seen_us")))
    .values(
        lon=bindparam("lon_now"),
        lat=bindparam("lat_now"),
        heading=bindparam("heading_now"),
        speed_kmh=bindparam("speed_now"),
        seen_at=bindparam("seen_us"),
    )
)

_Found = TypeVar("_Found")


class State:
    """What the database holds now: state rows, and the service's moment."""

    def __init__(self, connection: Connection, clock: ClockTable, *, lock: bool = False) -> None:
        self.connection = connection
        query = _HEAD.with_for_update() if lock else _HEAD
        head = connection.execute(query).one_or_none()
        if head is None:
            raise RecordUnavailableError("the head of the log is missing; restore a backup")
        self._head = head
        self.number: int = head.number
        now = clock.at(database_now(connection), head.stepped_us)
        self.now = max(now, head.at) if head.at - now < _STEPS_BACK_US else now

    def units(self) -> list[Unit]:
        """All units, by id."""
        return [Unit(**row._mapping) for row in self.connection.execute(_UNITS)]

    def unit(self, id: str) -> Unit | None:  # noqa: A002
        row = self.connection.execute(_UNIT, {"id": id}).one_or_none()
        return None if row is None else Unit(**row._mapping)

    def advice(self, id: str) -> AdviceRow | None:  # noqa: A002
        row = self.connection.execute(_ADVICE, {"id": id}).one_or_none()
        return None if row is None else AdviceRow(**row._mapping)

    def of_call(self, call_id: str) -> list[AdviceRow]:
        """All advice on a call, by revision."""
        found = self.connection.execute(_OF_CALL, {"call_id": call_id})
        return [AdviceRow(**row._mapping) for row in found]

    def closures(self) -> list[ClosureRow]:
        """Closures that were not ended and whose time has not passed, the oldest first."""
        found = [ClosureRow(**row._mapping) for row in self.connection.execute(_OPEN_CLOSURES)]
        found.sort(key=lambda one: json.loads(one.shape)["at"])
        return [one for one in found if not one.over(self.now)]


class Transaction(State):
    """A state that may be changed; :meth:`finish` writes what was logged."""

    def __init__(self, connection: Connection, clock: ClockTable) -> None:
        super().__init__(connection, clock, lock=True)
        self._stepped_us: int = self._head.stepped_us
        self._images: dict[str, dict[str, Any]] = {}
        self._logged: list[tuple[str, str, Mapping[str, Any]]] = []

    def put(self, row: StateRow) -> None:
        """Insert a row of the state, or replace the one of its id."""
        table = TABLES[type(row)]
        self.connection.execute(_upsert(table, self.connection.dialect.name), asdict(row))
        self._images.setdefault(table.name, {})[row.id] = image(row)

    def delete(self, row: StateRow) -> None:
        """Remove a row of the state."""
        table = TABLES[type(row)]
        self.connection.execute(sa.delete(table).where(table.c.id == row.id))
        self._images.setdefault(table.name, {})[row.id] = None

    def step(self, step_us: int) -> None:
        """Move a simulated clock on."""
        self._stepped_us += step_us
        self.now += step_us

    def log(self, kind: str, call_id: str, body: Mapping[str, Any]) -> None:
        """Add a row to the log, in the order of the calls of this function."""
        self._logged.append((kind, call_id, body))

    def finish(self) -> None:
        """Write the rows of the log."""
        assert self._logged or not self._images, "a change that no row of the log says"
        if not self._logged:
            return
        written: list[LogRow] = []
        last = Mark(self._head.number, self._head.hash)
        for kind, call_id, body in self._logged:
            first = not written and self._images
            content = {**body, "changes": self._images} if first else body
            written.append(LogRow.after(last, self.now, kind, call_id, content))
            last = written[-1].mark
        self.connection.execute(sa.insert(rows.log), [asdict(row) for row in written])
        self.connection.execute(
            sa.update(rows.head).values(
                number=last.number, hash=last.hash, at=self.now, stepped_us=self._stepped_us
            )
        )


def changing(
    connection: Connection, clock: ClockTable, change: Callable[[Transaction], _Found]
) -> _Found:
    """What the change returns, with the log written."""
    transaction = Transaction(connection, clock)
    found = change(transaction)
    transaction.finish()
    return found


def see_units(connection: Connection, units: Iterable[Unit]) -> None:
    """Keep where units were seen and when they last reported; older reports change nothing.

    In the order of their ids, so that two lists never wait for each other.
    """
    ordered = sorted(units, key=lambda one: one.id)
    seen = [
        {
            "unit_id": one.id, "lon_now": one.lon, "lat_now": one.lat, "heading_now": one.heading,
            "speed_now": one.speed_kmh, "seen_us": one.seen_at,
        }
        for one in ordered if one.seen_at is not None
    ]  # fmt: skip
    heard = [
        {"unit_id": one.id, "heard_us": one.told_at, "status_us": one.status_at} for one in ordered
    ]
    for statement, values in ((_SEEN, seen), (_HEARD, heard)):
        if values:
            connection.execute(statement, values)


@cache
def _upsert(table: Table, dialect: str) -> Any:
    """The statement that inserts a row, or replaces the one of its id."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
    made = insert(table)
    rest = {column.name: made.excluded[column.name] for column in table.c if column.name != "id"}
    return made.on_conflict_do_update(index_elements=["id"], set_=rest)
