"""Counts of units and promises in the database, kept in the transaction of their entries."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select

from ideal_dispatch.service.audit.promises import Promise, Promises, claims
from ideal_dispatch.service.audit.record import Entry, OutdatedUnits, PromisedUnits, at_text
from ideal_dispatch.service.audit.tables import promises, units
from ideal_dispatch.service.audit.units import DepotUnits, outdated, told_units

_COLUMNS = [field.name for field in fields(Promise)]
_MOMENTS = ("asked_at", "at", "expires_at")

_ALL = select(*(promises.c[name] for name in _COLUMNS)).order_by(
    promises.c.call_id, promises.c.place
)
_TOLD_AT = select(units.c.updated_at).where(units.c.depot == promises.c.depot).scalar_subquery()
_OF_SOME = _ALL.where(
    or_(
        promises.c.call_id.in_(bindparam("calls", expanding=True)),
        and_(  # less what cannot hold: most calls of the last hours sent a unit
            promises.c.depot.in_(bindparam("depots", expanding=True)),
            promises.c.ends_at > bindparam("now"),
            promises.c.kind != bindparam("but"),
            or_(
                promises.c.expires_at > bindparam("now"),
                promises.c.at > _TOLD_AT,
                and_(promises.c.kind == "accepted", _TOLD_AT.is_(None)),
            ),
        ),
    )
)
_INSERT = insert(promises)
_DELETE = delete(promises).where(promises.c.call_id.in_(bindparam("calls", expanding=True)))
_DELETE_ENDED = delete(promises).where(promises.c.ends_at < bindparam("now"))


class UnitTables:
    """What the tables say about the entries of one transaction, and will say after it.

    Nothing is asked where the entries are about no units. Calls that are ``new`` have no promises.
    """

    def __init__(
        self, connection: Connection, entries: Sequence[Entry], new: Collection[str]
    ) -> None:
        self._connection, self._now = connection, datetime.now(UTC)
        taking = [takes for entry in entries if entry.promising and (takes := claims(entry))]
        depots = {depot for takes in taking for depot in takes["advised"]}
        calls = {
            entry.call_id for entry in entries
            if entry.call_id not in new and (claims(entry) or entry.kind == "response")
        }  # fmt: skip
        found = []
        if calls or depots:
            now = at_text(self._now)
            but = "sent" if all(takes["listed"] for takes in taking) else ""  # no list holds those
            found = _promises(connection, _OF_SOME, calls=calls, depots=depots, now=now, but=but)
        self._promises, self._stored = Promises(found), {one.call_id for one in found}
        counts = depots or any(entry.kind == "units" for entry in entries)
        self._told = {one.depot: one for one in read_units(connection)} if counts else {}
        self._changed_calls: dict[str, None] = {}
        self._changed_depots: dict[str, None] = {}

    def refusal(self, entry: Entry) -> PromisedUnits | OutdatedUnits | None:
        """Why an entry cannot come on record: its units are gone, or its counts are old."""
        if entry.promising:
            short = self._promises.short(entry, self._told, self._now)
            return PromisedUnits(entry, short) if short else None
        return outdated(entry, self._told, self._now)

    def take(self, entry: Entry) -> None:
        """Know what an entry says that comes on record."""
        if self._promises.take(entry):
            self._changed_calls[entry.call_id] = None
        for told in told_units(entry):
            if told.replaces(self._told.get(told.depot), self._now):
                self._told[told.depot] = told
                self._changed_depots[told.depot] = None

    def keep(self, *, clean: bool) -> None:
        """Write what changed; remove promises that ended, too, if ``clean``."""
        if before := self._stored.intersection(self._changed_calls):
            self._connection.execute(_DELETE, {"calls": before})
        rows = [
            row for call_id in self._changed_calls for row in _rows(self._promises.of(call_id))
        ]  # fmt: skip
        if rows:
            self._connection.execute(_INSERT, rows)
        if clean:
            self._connection.execute(_DELETE_ENDED, {"now": at_text(self._now)})
        for depot in self._changed_depots:
            at = at_text(self._told[depot].updated_at)
            values = {"depot": depot, "units": self._told[depot].units, "updated_at": at}
            self._connection.execute(delete(units).where(units.c.depot == depot))
            self._connection.execute(insert(units).values(values))


def read_units(connection: Connection) -> list[DepotUnits]:
    """What is known about every depot, by name."""
    query = select(units.c.depot, units.c.units, units.c.updated_at).order_by(units.c.depot)
    return [
        DepotUnits(depot, count, datetime.fromisoformat(at))
        for depot, count, at in connection.execute(query)
    ]


def read_promises(connection: Connection) -> list[Promise]:
    """All promises, also some that ended."""
    return _promises(connection, _ALL)


def _promises(connection: Connection, query: Any, **values: Any) -> list[Promise]:
    found = []
    for row in connection.execute(query, values):
        one = dict(zip(_COLUMNS, row, strict=True))
        moments = {name: datetime.fromisoformat(one[name]) for name in _MOMENTS}
        found.append(Promise(**one | moments))
    return found


def _rows(made: Iterable[Promise]) -> list[dict[str, Any]]:
    return [
        {name: getattr(one, name) for name in _COLUMNS}
        | {name: at_text(getattr(one, name)) for name in (*_MOMENTS, "ends_at")}
        | {"place": place}
        for place, one in enumerate(made)
    ]
