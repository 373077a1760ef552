"""One change of the state: the head is locked, the moment is read, rows change, the log says so.

What two requests must not do together is a property of a row: a unit has one promise or none.
The first row of the log that a transaction writes holds the changed rows as they are after it, so
that the state is the fold of the log (:mod:`ideal_dispatch.service.record.verification`).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.record import tables
from ideal_dispatch.service.record.chain import LogRow, Mark, canonical
from ideal_dispatch.service.units import Unit

AdviceState = Literal["open", "accepted", "overridden", "running", "ended", "superseded"]

_STEPS_BACK_US = 10_000_000  # a clock that was set back a little stands still meanwhile

POSITION = ("lon", "lat", "heading", "speed_kmh", "seen_at")
"""Columns of a unit that change many times a minute, and are in no row of the log."""

_UNLOGGED = {*POSITION, "told_at", "status_at"}
_NOT_IN_IMAGE = {"answer", "view", "due_at"}  # the first two are in the log as themselves


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """One row of the table of advice; moments are microseconds. See the columns there."""

    id: str
    call_id: str
    revision: int
    key: str
    digest: str
    answer: str
    asked_at: int
    expires_at: int
    state: AdviceState = "open"
    reply: str | None = None
    primary_unit: str | None = None
    second_unit: str | None = None
    view: str | None = None
    ended_at: int | None = None
    due_at: int | None = None


@dataclass(frozen=True, slots=True)
class ClosureRow:
    """One row of the table of closures; ``shape`` is JSON."""

    id: str
    shape: str
    since: int | None
    until: int | None
    ended_at: int | None = None

    def active(self, now: int) -> bool:
        """Whether the road is closed now."""
        return not self.over(now) and (self.since is None or self.since <= now)

    def over(self, now: int) -> bool:
        """Whether it was ended, or its time has passed."""
        return any(at is not None and at <= now for at in (self.ended_at, self.until))


_UNITS = sa.select(tables.unit).order_by(tables.unit.c.id)
_UNIT = sa.select(tables.unit).where(tables.unit.c.id == sa.bindparam("id"))
_ADVICE = sa.select(tables.advice).where(tables.advice.c.id == sa.bindparam("id"))
_OF_CALL = (
    sa.select(tables.advice)
    .where(tables.advice.c.call_id == sa.bindparam("call_id"))
    .order_by(tables.advice.c.revision)
)
_HEAD = sa.select(tables.head)
_HEAD_LOCKED = _HEAD.with_for_update()
_SET_HEAD = sa.update(tables.head)
_LOG = sa.insert(tables.log)

_Found = TypeVar("_Found")


class State:
    """What the database holds now: state rows, and the service's moment."""

    def __init__(self, connection: Connection, clock: ClockTable, head: Any = None) -> None:
        self.connection = connection
        found = head or connection.execute(_HEAD).one_or_none()
        if found is None:
            raise RecordUnavailableError("the head of the log is missing; restore a backup")
        self._head = found
        self.number: int = found.number
        now = clock.at(tables.database_now(connection), found.stepped_us)
        self.now = max(now, found.at) if found.at - now < _STEPS_BACK_US else now

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
        table = tables.closure
        query = sa.select(table).where(table.c.ended_at.is_(None))
        found = [ClosureRow(**row._mapping) for row in self.connection.execute(query)]
        found.sort(key=lambda one: json.loads(one.shape)["at"])
        return [one for one in found if not one.over(self.now)]


class Transaction(State):
    """A state that may be changed; :meth:`finish` writes what was logged."""

    def __init__(self, connection: Connection, clock: ClockTable) -> None:
        super().__init__(connection, clock, connection.execute(_HEAD_LOCKED).one_or_none())
        self._stepped_us: int = self._head.stepped_us
        self._images: dict[str, dict[str, Any]] = {}
        self._logged: list[tuple[str, str, Mapping[str, Any]]] = []

    def put_unit(self, unit: Unit) -> None:
        """Make a unit, or change the one of this id."""
        _put(self.connection, tables.unit, unit)
        self._images.setdefault("unit", {})[unit.id] = unit_image(unit)

    def delete_unit(self, id: str) -> None:  # noqa: A002
        self.connection.execute(sa.delete(tables.unit).where(tables.unit.c.id == id))
        self._images.setdefault("unit", {})[id] = None

    def put_advice(self, row: AdviceRow) -> None:
        """Make an advice, or change the one of this id."""
        _put(self.connection, tables.advice, row)
        self._images.setdefault("advice", {})[row.id] = advice_image(row)

    def delete_advice(self, id: str) -> None:  # noqa: A002
        """Let go of an advice whose time of keeping is over."""
        self.connection.execute(sa.delete(tables.advice).where(tables.advice.c.id == id))
        self._images.setdefault("advice", {})[id] = None

    def delete_closure(self, id: str) -> None:  # noqa: A002
        """Let go of a closure whose time of keeping is over."""
        self.connection.execute(sa.delete(tables.closure).where(tables.closure.c.id == id))
        self._images.setdefault("closure", {})[id] = None

    def put_closure(self, row: ClosureRow) -> None:
        """Make a closure, or change the one of this id."""
        _put(self.connection, tables.closure, row)
        self._images.setdefault("closure", {})[row.id] = closure_image(row)

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
        rows: list[LogRow] = []
        last = Mark(self._head.number, self._head.hash)
        for kind, call_id, body in self._logged:
            content = body if rows or not self._images else {**body, "changes": self._images}
            rows.append(LogRow.after(last, self.now, kind, call_id, canonical(content)))
            last = rows[-1].mark
        self.connection.execute(_LOG, [row.plain() for row in rows])
        self.connection.execute(_SET_HEAD, {
            "number": last.number, "hash": last.hash, "at": self.now,
            "stepped_us": self._stepped_us,
        })  # fmt: skip


def changing(
    connection: Connection, clock: ClockTable, change: Callable[[Transaction], _Found]
) -> _Found:
    """What the change returns, with the log written."""
    transaction = Transaction(connection, clock)
    found = change(transaction)
    transaction.finish()
    return found


def see_units(connection: Connection, units: Iterable[Unit]) -> None:
    """Keep where units were seen and when they were heard of; older news change nothing.

    In the order of their ids, so that two lists never wait for each other.
    """
    table = tables.unit
    rows = sorted(units, key=lambda one: one.id)
    confirmed = sa.bindparam("status_us", type_=sa.BigInteger)
    heard = (
        sa.update(table)
        .where(table.c.id == sa.bindparam("unit_id"))
        .where(table.c.told_at <= sa.bindparam("heard_at"))
        .values(
            told_at=sa.bindparam("heard_at"),
            status_at=sa.case((table.c.status_at < confirmed, confirmed), else_=table.c.status_at),
        )
    )
    seen = (
        sa.update(table)
        .where(table.c.id == sa.bindparam("unit_id"))
        .where(sa.or_(table.c.seen_at.is_(None), table.c.seen_at <= sa.bindparam("seen_us")))
        .values(
            lon=sa.bindparam("lon_"), lat=sa.bindparam("lat_"), heading=sa.bindparam("heading_"),
            speed_kmh=sa.bindparam("speed_"), seen_at=sa.bindparam("seen_us"),
        )
    )  # fmt: skip
    moved = [one for one in rows if one.seen_at is not None]
    if moved:
        connection.execute(seen, [
            {
                "unit_id": one.id, "lon_": one.lon, "lat_": one.lat, "heading_": one.heading,
                "speed_": one.speed_kmh, "seen_us": one.seen_at,
            }
            for one in moved
        ])  # fmt: skip
    if rows:
        connection.execute(heard, [
            {"unit_id": one.id, "heard_at": one.told_at, "status_us": one.status_at}
            for one in rows
        ])  # fmt: skip


def unit_image(unit: Unit) -> dict[str, Any]:
    """A unit as the log keeps it."""
    return {name: value for name, value in asdict(unit).items() if name not in _UNLOGGED}


def advice_image(row: AdviceRow) -> dict[str, Any]:
    """An advice as the log keeps it, beside its answer and the view of its dispatch."""
    return {name: value for name, value in asdict(row).items() if name not in _NOT_IN_IMAGE}


def closure_image(row: ClosureRow) -> dict[str, Any]:
    """A closure as the log keeps it."""
    return asdict(row)


def released(unit: Unit) -> Unit:
    """The unit without its promise."""
    return replace(unit, promised_to=None, promise=None, promised_until=None)


def _put(connection: Connection, table: sa.Table, row: Unit | AdviceRow | ClosureRow) -> None:
    """Insert a row, or replace the one of its id."""
    statement = _PUTS.get((table.name, connection.dialect.name))
    if statement is None:
        if connection.dialect.name == "sqlite":
            from sqlalchemy.dialects.sqlite import insert
        else:
            from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
        made = insert(table)
        rest = {name: made.excluded[name] for name in table.c.keys() if name != "id"}  # noqa: SIM118
        statement = made.on_conflict_do_update(index_elements=["id"], set_=rest)
        _PUTS[table.name, connection.dialect.name] = statement
    names: Sequence[str] = [field.name for field in fields(row)]
    connection.execute(statement, {name: getattr(row, name) for name in names})


_PUTS: dict[tuple[str, str], Any] = {}
