"""Counts of units and promises in the database, kept in the transaction of their entries."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select

from ideal_dispatch.service.audit.promises import Promise, Promises, claims
from ideal_dispatch.service.audit.record import Entry, OutdatedUnits, PromisedUnits
from ideal_dispatch.service.audit.tables import promises, units
from ideal_dispatch.service.audit.units import DepotUnits, outdated, told_units

_ALL = select(*(promises.c[field.name] for field in fields(Promise))).order_by(
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
_UNITS = select(units.c.depot, units.c.units, units.c.updated_at).order_by(units.c.depot)
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
        found: list[Promise] = []
        if calls or depots:
            but = "sent" if all(takes["listed"] for takes in taking) else ""  # no list holds those
            values = {"calls": calls, "depots": depots, "now": self._now, "but": but}
            found = [Promise(*one) for one in connection.execute(_OF_SOME, values)]
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
        made = [
            {**asdict(one), "ends_at": one.ends_at, "place": place}
            for call_id in self._changed_calls
            for place, one in enumerate(self._promises.of(call_id))
        ]
        if made:
            self._connection.execute(_INSERT, made)
        if clean:
            self._connection.execute(_DELETE_ENDED, {"now": self._now})
        for depot in self._changed_depots:
            self._connection.execute(delete(units).where(units.c.depot == depot))
            self._connection.execute(insert(units), asdict(self._told[depot]))


def read_units(connection: Connection) -> list[DepotUnits]:
    """What is known about every depot, by name."""
    return [DepotUnits(*found) for found in connection.execute(_UNITS)]


def read_promises(connection: Connection) -> list[Promise]:
    """All promises, also some that ended."""
    return [Promise(*found) for found in connection.execute(_ALL)]
