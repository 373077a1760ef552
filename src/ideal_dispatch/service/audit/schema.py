"""The tables of the audit, and how a database gets them or is brought to their newest version."""

from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Index, Integer, Table, Text

from ideal_dispatch.service.audit.record import FIRST_HASH, AuditError
from ideal_dispatch.service.clock import at_text

VERSION = "0003"
"""Of the tables. 0001 had no promises, 0002 no units by themselves, closures, leases, webhooks."""

_LOCK = 0x1DEA1  # of PostgreSQL's advisory locks: one migration at a time


class _Moment(sa.TypeDecorator[datetime]):
    """A moment as text in UTC; texts sort as moments do."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Any) -> str | None:
        return None if value is None else at_text(value)

    def process_result_value(self, value: str | None, _: Any) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


_metadata = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(Integer, "sqlite")  # its rowid

rows = Table(  # columns in the order of a Row's fields
    "audit",
    _metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("key", Text),
    Column("at", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("duplicate_of", Text),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
_FIRST = sa.text("duplicate_of IS NULL")
Index("audit_id", rows.c.id)  # appends take turns and look first
Index(
    "audit_key", rows.c.call_id, rows.c.key, rows.c.kind,
    unique=True, sqlite_where=_FIRST, postgresql_where=_FIRST,
)  # fmt: skip
Index("audit_call", rows.c.call_id, rows.c.number)
Index("audit_kind", rows.c.kind, rows.c.number)

marks = Table(
    "audit_marks",
    _metadata,
    Column("name", Text, primary_key=True),  # head or anchor
    Column("number", sa.BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)

units = Table(
    "units",
    _metadata,
    Column("depot", Text, primary_key=True),
    Column("units", Integer, nullable=False),
    Column("updated_at", _Moment, nullable=False),
)

promises = Table(
    "promises",
    _metadata,
    Column("call_id", Text, primary_key=True),
    Column("place", Integer, primary_key=True),  # among those of the call
    Column("depot", Text, key="start", nullable=False),  # a depot, or a unit by its id
    Column("kind", Text, nullable=False),
    Column("advice", Text, nullable=False),
    Column("asked_at", _Moment, nullable=False),
    Column("at", _Moment, nullable=False),
    Column("expires_at", _Moment, nullable=False),
    Column("ends_at", _Moment, nullable=False),
)
Index("promises_depot", promises.c.start)

fleet_units = Table(
    "fleet_units",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("station", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("since", _Moment, nullable=False),
    Column("kind", Text, nullable=False),
    Column("call_id", Text),
    Column("status_at", _Moment, nullable=False),
    Column("turned_at", _Moment, nullable=False),
    Column("told_at", _Moment, nullable=False),
    Column("source", Text, nullable=False),
)

fleet_places = Table(  # apart, so that no row on record waits for a position
    "fleet_places",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("lon", sa.Float, nullable=False),
    Column("lat", sa.Float, nullable=False),
    Column("heading", sa.Float),
    Column("speed_kmh", sa.Float),
    Column("seen_at", _Moment, nullable=False),
    Column("told_at", _Moment, nullable=False),
    Column("source", Text, nullable=False),
)

fleet_gone = Table(  # so that no older news of a unit brings it back
    "fleet_gone",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("at", _Moment, nullable=False),
)

closures = Table(
    "closures",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("until", _Moment),
    Column("closure", Text, nullable=False),  # as JSON, as it is told
)

leases = Table(  # who does what one worker alone does
    "leases",
    _metadata,
    Column("task", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", _Moment, nullable=False),
)

webhooks = Table(
    "webhooks",
    _metadata,
    Column("name", Text, primary_key=True),
    Column("number", sa.BigInteger, nullable=False),  # of the last row that was told
)

_version = Table(  # of a tool that earlier versions used; installations have this name
    "alembic_version", _metadata, Column("version_num", sa.String(32), primary_key=True)
)


def columns(row: Any) -> dict[str, Any]:
    """The fields of a dataclass, for the columns of its table."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


# rows can only be added, and pruned behind the anchor
_SQLITE_GUARDS = (
    """
    CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END
    """,
    """
    CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
    WHEN OLD.number > (SELECT number FROM audit_marks WHERE name = 'anchor')
    BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END
    """,
)
_POSTGRESQL_GUARDS = (
    """
    CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'DELETE' THEN
        IF OLD.number <= (SELECT number FROM audit_marks WHERE name = 'anchor') THEN
          RETURN OLD;
        END IF;
      END IF;
      RAISE EXCEPTION 'audit rows are append-only';
    END $$
    """,
    """
    CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_append_only()
    """,
    """
    CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()
    """,
)


def read_version(connection: Connection) -> str | None:
    """The version of the tables here, None where there are none; a newer one is refused."""
    if not sa.inspect(connection).has_table(_version.name):
        return None
    found = connection.execute(sa.select(_version.c.version_num)).scalar()
    if found is not None and found > VERSION:
        raise AuditError(
            f"audit database: its tables are of version {found}, this program knows {VERSION}; "
            "upgrade ideal-dispatch"
        )
    return found


def migrate(connection: Connection) -> None:
    """Make the tables that are missing, in the connection's transaction: wholly or not at all."""
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding not in ("UTF8", "SQL_ASCII"):  # others refuse letters: entries would be stuck
            raise AuditError(
                f"audit database: its encoding is {encoding}; create it with ENCODING 'UTF8'"
            )
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    found = read_version(connection)
    new = [fleet_units, fleet_places, fleet_gone, closures, leases, webhooks]
    missing = {
        None: [rows, marks, units, promises, *new],
        "0001": [promises, *new],
        "0002": new,
        VERSION: [],
    }
    if found not in missing:
        raise AuditError(f"audit database: its tables are of version {found}, which is not ours")
    _version.create(connection, checkfirst=True)
    _metadata.create_all(connection, missing[found], checkfirst=False)  # not into others' tables
    if found is not None:
        connection.execute(sa.update(_version).values(version_num=VERSION))
        return
    connection.execute(sa.insert(_version).values(version_num=VERSION))
    ends = [{"name": name, "number": 0, "hash": FIRST_HASH} for name in ("anchor", "head")]
    connection.execute(sa.insert(marks), ends)
    for statement in _SQLITE_GUARDS if sqlite else _POSTGRESQL_GUARDS:
        connection.exec_driver_sql(statement)
