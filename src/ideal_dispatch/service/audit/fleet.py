"""Units one by one: what entries tell of them, and the table of where they are.

What a unit does goes on record. Where it was seen does not: it is in the table alone, and in the
advice that used it.
"""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.schema import fleet_gone, fleet_places, fleet_units
from ideal_dispatch.service.units.unit import AHEAD, Seen, Unit

log = logging.getLogger(__name__)

_WORK = (
    "station", "kind", "status", "since", "call_id", "status_at", "turned_at", "told_at", "source",
)  # fmt: skip
_PLACE = ("lon", "lat", "heading", "speed_kmh", "seen_at", "told_at", "source")
_ALL = (
    sa.select(
        fleet_units,
        *(fleet_places.c[name] for name in _PLACE[:-2]),
        fleet_places.c.told_at.label("place_told_at"),
        fleet_places.c.source.label("place_source"),
    )
    .outerjoin(fleet_places, fleet_places.c.id == fleet_units.c.id)
    .order_by(fleet_units.c.id)
)
_SOME = _ALL.where(fleet_units.c.id.in_(sa.bindparam("ids", expanding=True)))
_SET_WORK = (
    sa.update(fleet_units)
    .where(fleet_units.c.id == sa.bindparam("unit"))
    .values({name: sa.bindparam(f"new_{name}") for name in _WORK})
)


def fleet_body(units: Iterable[Unit], gone: Iterable[str] = ()) -> dict[str, Any]:
    """What units do, for the body of one entry, and which are no longer of the fleet."""
    return {"units": [one.record for one in units], "gone": list(gone)}


def recorded_fleet(entry: Entry) -> tuple[list[Unit], list[str]]:
    """The units that an entry tells of, and those that are gone."""
    if entry.kind != "unit":
        return [], []
    try:
        source = str(entry.body.get("actor", ""))
        found = [Unit.recorded(one, entry.at, source) for one in entry.body["units"]]
        return found, [str(one) for one in entry.body["gone"]]
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        log.warning("audit entry %s changes no unit (%r)", entry.id, error)
        return [], []


def concerned(entries: Iterable[Entry]) -> set[str]:
    """The ids of all units that entries tell of."""
    told = [recorded_fleet(entry) for entry in entries]
    return {name for found, gone in told for name in (*gone, *(one.id for one in found))}


def read_fleet(connection: Connection, ids: Iterable[str] | None = None) -> list[Unit]:
    """All units with where they were seen last, or those of these ids."""
    values = {} if ids is None else {"ids": list(ids)}
    found = connection.execute(_ALL if ids is None else _SOME, values)
    units = []
    for row in found.mappings():
        work = {name: row[name] for name in _WORK}
        seen = None
        if row["seen_at"] is not None:
            seen = Seen(row["lon"], row["lat"], row["seen_at"], row["heading"], row["speed_kmh"])
            if row["place_told_at"] >= work["told_at"]:
                work |= {"told_at": row["place_told_at"], "source": row["place_source"]}
        units.append(Unit(id=row["id"], **work, seen=seen))
    return units


def read_gone(connection: Connection, ids: Iterable[str] | None = None) -> dict[str, datetime]:
    """When units left the fleet, all of them or those of these ids."""
    query = sa.select(fleet_gone.c.id, fleet_gone.c.at)
    if ids is not None:
        query = query.where(fleet_gone.c.id.in_(list(ids)))
    return {found.id: found.at for found in connection.execute(query)}


def keep_gone(
    connection: Connection, before: Mapping[str, datetime], after: Mapping[str, datetime]
) -> None:
    """Write when units left the fleet."""
    for unit_id, at in after.items():
        if before.get(unit_id) != at:
            connection.execute(sa.delete(fleet_gone).where(fleet_gone.c.id == unit_id))
            connection.execute(sa.insert(fleet_gone), {"id": unit_id, "at": at})


def keep_fleet(
    connection: Connection, before: Mapping[str, Unit], after: Mapping[str, Unit]
) -> None:
    """Write what units do now, and remove those that are gone."""
    for unit_id in sorted(before.keys() - after.keys()):
        for table in (fleet_units, fleet_places):
            connection.execute(sa.delete(table).where(table.c.id == unit_id))
    for unit in sorted(after.values(), key=lambda one: one.id):
        work = {name: getattr(unit, name) for name in _WORK}
        if unit.id not in before:
            connection.execute(sa.insert(fleet_units), {"id": unit.id, **work})
        elif unit is not before[unit.id]:
            new = {f"new_{name}": value for name, value in work.items()}
            connection.execute(_SET_WORK, {"unit": unit.id, **new})


def write_places(connection: Connection, units: Iterable[Unit]) -> None:
    """Know where units were seen, unless something newer is known.

    In the order of their ids: two workers that write the same ones wait, and do not lock each
    other out.
    """
    rows = [
        {
            "id": one.id, "lon": one.seen.lon, "lat": one.seen.lat, "heading": one.seen.heading,
            "speed_kmh": one.seen.speed_kmh, "seen_at": one.seen.at, "told_at": one.told_at,
            "source": one.source,
        }
        for one in sorted(units, key=lambda unit: unit.id) if one.seen is not None
    ]  # fmt: skip
    if not rows:
        return
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(fleet_places)
    newer = sa.or_(
        fleet_places.c.seen_at <= insert.excluded.seen_at,
        fleet_places.c.seen_at > clock.now() + AHEAD,  # told before the clock went back
    )
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[fleet_places.c.id],
            set_={name: insert.excluded[name] for name in _PLACE},
            where=newer,
        ),
        rows,
    )
