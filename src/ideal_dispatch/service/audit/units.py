"""Counts of free units as entries tell them; they and promises change with the entries."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.fleet import (
    concerned,
    keep_fleet,
    keep_gone,
    read_fleet,
    read_gone,
    recorded_fleet,
)
from ideal_dispatch.service.audit.promises import Promise, Promises, claims
from ideal_dispatch.service.audit.record import Entry, OutdatedUnits, PromisedUnits
from ideal_dispatch.service.audit.schema import columns, fleet_units, promises, units
from ideal_dispatch.service.clock import moment_text, to_millisecond
from ideal_dispatch.service.units.unit import AHEAD, Unit, newer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DepotUnits:
    """How many units of a depot are free, and since when that is known."""

    depot: str
    units: int
    updated_at: datetime

    def __post_init__(self) -> None:
        if self.units < 0:
            raise InputError(f"depot {self.depot}: {self.units} units; 0 or more are needed")
        if self.updated_at.tzinfo is None:
            raise InputError(f"depot {self.depot}: updated_at {self.updated_at} has no zone")

    def replaces(self, known: "DepotUnits | None", now: datetime) -> bool:
        """Whether it is newer than the count that is known, or as new.

        A known one that is ahead of the clock ``now`` was told before the clock went back.
        """
        return newer(self.updated_at, None if known is None else known.updated_at, now)


def units_body(told: Sequence[DepotUnits]) -> dict[str, Any]:
    """The counts for the body of one entry; ``as_of`` has the moments before the newest one."""
    newest = max(one.updated_at for one in told)
    body: dict[str, Any] = {
        "units": {one.depot: one.units for one in told},
        "updated_at": moment_text(newest),
    }
    as_of = {one.depot: moment_text(one.updated_at) for one in told if one.updated_at < newest}
    return {**body, "as_of": as_of} if as_of else body


def told_units(entry: Entry) -> list[DepotUnits]:
    """The counts that an entry tells; one that tells none must not block those behind it."""
    if entry.kind != "units":
        return []
    try:
        newest, as_of = entry.body["updated_at"], entry.body.get("as_of", {})
        return [
            DepotUnits(depot, count, datetime.fromisoformat(as_of.get(depot, newest)))
            for depot, count in entry.body["units"].items()
        ]
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        log.warning("audit entry %s changes no counts of units (%r)", entry.id, error)
        return []


class UnitState:
    """Counts by depot, units one by one, and promises by call, as entries left them.

    ``gone`` says when units left the fleet: of entries that come late, those before that count for
    nothing.
    """

    def __init__(
        self,
        told: Iterable[DepotUnits] = (),
        promised: Iterable[Promise] = (),
        fleet: Iterable[Unit] = (),
        gone: Mapping[str, datetime] | None = None,
    ) -> None:
        self.told = {one.depot: one for one in told}
        self.fleet = {one.id: one for one in fleet}
        self.gone = dict(gone or {})
        self.promises = Promises(promised)

    @property
    def counts(self) -> dict[str, DepotUnits]:
        """Free units of every start: of depots as told, and of each unit one or none."""
        single = {
            one.id: DepotUnits(one.id, int(one.free), one.turned_at) for one in self.fleet.values()
        }
        return {**self.told, **single}

    def take(self, entry: Entry) -> None:
        """Know what an entry tells or promises, unless something newer is known."""
        self.promises.take(entry)
        for told in told_units(entry):
            self.put(told)
        found, gone = recorded_fleet(entry)
        self.merge_fleet(found)
        for unit_id in gone:
            self.remove(unit_id, to_millisecond(entry.at))

    def merge_fleet(self, units: Iterable[Unit]) -> None:
        """Know what is told of units, unless something newer is known."""
        now = clock.now()
        for unit in units:
            if not self._left(unit, now):
                self.fleet[unit.id] = unit.merged(self.fleet.get(unit.id), now)
                if self.gone.get(unit.id, unit.since) > unit.since:  # the clock went back since
                    self.gone[unit.id] = unit.since

    def remove(self, unit_id: str, at: datetime) -> None:
        """Know that a unit left the fleet, unless what it does began later."""
        now, known = clock.now(), self.gone_at(unit_id)
        at = now if at > now + AHEAD else at  # of a clock that is ahead, or was
        self.gone[unit_id] = at if known is None else max(at, known)
        unit = self.fleet.get(unit_id)
        if unit is not None and self._left(unit, now):
            del self.fleet[unit_id]

    def gone_at(self, unit_id: str) -> datetime | None:
        """When a unit left the fleet; None where it did not, or the clock went back since."""
        at = self.gone.get(unit_id)
        return at if at is not None and at <= clock.now() + AHEAD else None

    def _left(self, unit: Unit, now: datetime) -> bool:
        """Whether a unit left the fleet since it began what it does."""
        at = self.gone_at(unit.id)
        return at is not None and (unit.since < at or unit.since > now + AHEAD)

    def put(self, told: DepotUnits) -> None:
        """Know one count, unless a newer one is known."""
        if told.replaces(self.told.get(told.depot), clock.now()):
            self.told[told.depot] = told

    def merge(self, others: "UnitState") -> None:
        """Know what others know, unless it is older."""
        for told in others.told.values():
            self.put(told)
        for unit_id, at in others.gone.items():
            self.remove(unit_id, at)
        self.merge_fleet(others.fleet.values())
        self.promises.merge(others.promises)

    def refusal(self, entry: Entry) -> PromisedUnits | OutdatedUnits | None:
        """Why an entry cannot come on record: its units are gone, or its counts are old."""
        now = clock.now()
        if short := self.promises.short(entry, self.counts, now):
            return PromisedUnits(entry, short)
        for told in told_units(entry):
            newer = self.told.get(told.depot)
            if newer is not None and not told.replaces(newer, now):
                return OutdatedUnits(
                    f"{told.depot}: {newer.units} units are known as of "
                    f"{moment_text(newer.updated_at)}, this count is as of "
                    f"{moment_text(told.updated_at)}; nothing was changed: send the newest count, "
                    "or leave out updated_at to mean now"
                )
        return None


_ALL = sa.select(*(promises.c[field.name] for field in fields(Promise))).order_by(
    promises.c.call_id, promises.c.place
)
_TURNED_AT = sa.select(fleet_units.c.turned_at).where(fleet_units.c.id == promises.c.start)
_COUNTED_AT = sa.select(units.c.updated_at).where(units.c.depot == promises.c.start)
_TOLD_AT = sa.func.coalesce(_TURNED_AT.scalar_subquery(), _COUNTED_AT.scalar_subquery())
_OF_SOME = _ALL.where(
    sa.or_(
        promises.c.call_id.in_(sa.bindparam("calls", expanding=True)),
        sa.and_(  # less what cannot hold: most calls of the last hours sent a unit
            promises.c.start.in_(sa.bindparam("depots", expanding=True)),
            promises.c.ends_at > sa.bindparam("now"),
            promises.c.kind != sa.bindparam("but"),
            sa.or_(
                promises.c.expires_at > sa.bindparam("now"),
                promises.c.at > _TOLD_AT,
                sa.and_(promises.c.kind == "accepted", _TOLD_AT.is_(None)),
            ),
        ),
    )
)
_UNITS = sa.select(units.c.depot, units.c.units, units.c.updated_at).order_by(units.c.depot)
_INSERT = sa.insert(promises)
_DELETE = sa.delete(promises).where(promises.c.call_id.in_(sa.bindparam("calls", expanding=True)))
_DELETE_ENDED = sa.delete(promises).where(promises.c.ends_at < sa.bindparam("now"))


class UnitTables:
    """What the tables say about the entries of one transaction, and will say after it.

    Nothing is asked where the entries are about no units.
    """

    def __init__(self, connection: Connection, entries: Sequence[Entry]) -> None:
        self._connection, self._now = connection, clock.now()
        taking = [takes for entry in entries if entry.promising and (takes := claims(entry))]
        depots = {depot for takes in taking for depot in takes["advised"]}
        calls = {
            entry.call_id for entry in entries if claims(entry) or entry.kind == "response"
        }  # fmt: skip
        found: list[Promise] = []
        if calls or depots:
            but = "sent" if all(takes["listed"] for takes in taking) else ""  # no list holds those
            values = {"calls": calls, "depots": depots, "now": self._now, "but": but}
            found = [Promise(*one) for one in connection.execute(_OF_SOME, values)]
        told: list[DepotUnits] = []
        if depots or any(entry.kind == "units" for entry in entries):
            told = _read_told(connection)
        ids = depots | concerned(entries)
        fleet = read_fleet(connection, ids) if ids else []
        gone = read_gone(connection, ids) if ids else {}
        self.before = UnitState(told, found, fleet, gone)
        self.state = UnitState(told, found, fleet, gone)

    def keep(self, *, clean: bool) -> None:
        """Write what changed; remove promises that ended, too, if ``clean``."""
        before, after = self.before.promises, self.state.promises
        known = dict.fromkeys(one.call_id for one in (*before, *after))
        calls = [call_id for call_id in known if after.of(call_id) != before.of(call_id)]
        if gone := [call_id for call_id in calls if before.of(call_id)]:
            self._connection.execute(_DELETE, {"calls": gone})
        made = [
            {**columns(one), "ends_at": one.ends_at, "place": place}
            for call_id in calls
            for place, one in enumerate(after.of(call_id))
        ]
        if made:
            self._connection.execute(_INSERT, made)
        if clean:
            self._connection.execute(_DELETE_ENDED, {"now": self._now})
        for depot, told in self.state.told.items():
            if told is not self.before.told.get(depot):
                self._connection.execute(sa.delete(units).where(units.c.depot == depot))
                self._connection.execute(sa.insert(units), columns(told))
        keep_fleet(self._connection, self.before.fleet, self.state.fleet)
        keep_gone(self._connection, self.before.gone, self.state.gone)


def read_units(connection: Connection) -> UnitState:
    """All that the tables hold."""
    promised = [Promise(*found) for found in connection.execute(_ALL)]
    fleet, gone = read_fleet(connection), read_gone(connection)
    return UnitState(_read_told(connection), promised, fleet, gone)


def _read_told(connection: Connection) -> list[DepotUnits]:
    return [DepotUnits(*found) for found in connection.execute(_UNITS)]
