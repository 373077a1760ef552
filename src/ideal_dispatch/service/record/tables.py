"""The tables: state rows, and the log of everything that changed them."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Connection, Float, Index, Integer, Table, Text

from ideal_dispatch.errors import InputError

VERSION = 1

FIRST_HASH = "0" * 64
"""What the first row of the log names as the hash before it."""

_LOCK = 0x1DEA2  # of PostgreSQL's advisory locks: one worker makes the tables

_metadata = sa.MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # its rowid

unit = Table(  # no index on promised_to: PostgreSQL could not update rows in place
    "unit",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("depot", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("status_at", BigInteger, nullable=False),
    Column("told_at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("anonymous", Boolean, nullable=False),
    Column("call_id", Text),
    Column("promised_to", Text),
    Column("promise", Text),
    Column("promised_until", BigInteger),
    Column("lon", Float),
    Column("lat", Float),
    Column("heading", Float),
    Column("speed_kmh", Float),
    Column("seen_at", BigInteger),
)

advice = Table(
    "advice",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("answer", Text, nullable=False),  # as JSON, without what the other columns say
    Column("asked_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reply", Text),  # as JSON
    Column("primary_unit", Text),  # of a running dispatch
    Column("second_unit", Text),
    Column("view", Text),  # the running dispatch, as JSON
    Column("ended_at", BigInteger),
    Column("due_at", BigInteger),  # when a worker looks at it again
)
Index("advice_call", advice.c.call_id)
Index("advice_asked", advice.c.asked_at)
_RUNNING = sa.text("due_at IS NOT NULL")
Index("advice_due", advice.c.due_at, sqlite_where=_RUNNING, postgresql_where=_RUNNING)

closure = Table(
    "closure",
    _metadata,
    Column("id", Text, primary_key=True),
    Column("shape", Text, nullable=False),  # as JSON: what was drawn, its edges, who, why
    Column("since", BigInteger),
    Column("until", BigInteger),
    Column("ended_at", BigInteger),
)

log = Table(
    "log",
    _metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
Index("log_at", log.c.at)

head = Table(  # one row: every writer locks it first
    "head",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("number", BigInteger, nullable=False),  # of the last row of the log
    Column("hash", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("anchor", BigInteger, nullable=False),  # the last row that was pruned
    Column("anchor_hash", Text, nullable=False),
    Column("stepped_us", BigInteger, nullable=False),  # how far a simulated clock was stepped
)

# rows of the log can only be added, and pruned behind the anchor
_SQLITE_GUARDS = (
    """
    CREATE TRIGGER log_no_update BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'rows of the log are append-only'); END
    """,
    """
    CREATE TRIGGER log_no_delete BEFORE DELETE ON log
    WHEN OLD.number > (SELECT anchor FROM head)
    BEGIN SELECT RAISE(ABORT, 'rows of the log are append-only'); END
    """,
)
_POSTGRESQL_GUARDS = (
    """
    CREATE FUNCTION log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'DELETE' THEN
        IF OLD.number <= (SELECT anchor FROM head) THEN
          RETURN OLD;
        END IF;
      END IF;
      RAISE EXCEPTION 'rows of the log are append-only';
    END $$
    """,
    """
    CREATE TRIGGER log_no_change BEFORE UPDATE OR DELETE ON log
    FOR EACH ROW EXECUTE FUNCTION log_append_only()
    """,
    """
    CREATE TRIGGER log_no_truncate BEFORE TRUNCATE ON log
    FOR EACH STATEMENT EXECUTE FUNCTION log_append_only()
    """,
)


def check_version(connection: Connection, name: str) -> bool:
    """Whether the tables are here; those of another version are refused."""
    found = set(sa.inspect(connection).get_table_names())
    if head.name in found:
        version = connection.execute(sa.select(head.c.version)).scalar()
        if version == VERSION:
            return True
        raise InputError(
            f"database {name}: its tables have version {version}, this program needs {VERSION}; "
            "give an empty database"
        )
    if {"audit", "alembic_version"} <= found:
        raise InputError(
            f"database {name}: it holds an audit of ideal-dispatch 0.2; give an empty database, "
            "and verify or export the old one with `python tools/audit_0_2.py`"
        )
    if clash := sorted(found & {table.name for table in _metadata.sorted_tables}):
        raise InputError(f"database {name}: a table {clash[0]!r} exists; give an empty database")
    return False


def create(connection: Connection, name: str) -> None:
    """Make the tables in the connection's transaction, unless another worker was quicker."""
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding not in ("UTF8", "SQL_ASCII"):  # others refuse letters
            raise InputError(
                f"database {name}: its encoding is {encoding}; create it with ENCODING 'UTF8'"
            )
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    if check_version(connection, name):
        return
    _metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(head), {
        "id": 1, "version": VERSION, "number": 0, "hash": FIRST_HASH, "at": 0, "anchor": 0,
        "anchor_hash": FIRST_HASH, "stepped_us": 0,
    })  # fmt: skip
    for statement in _SQLITE_GUARDS if sqlite else _POSTGRESQL_GUARDS:
        connection.exec_driver_sql(statement)


def database_now(connection: Connection) -> int:
    """Microseconds since 1970 by the database's clock, at this very moment."""
    if connection.dialect.name == "sqlite":
        query = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000"
    else:  # now() would be the transaction's start
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    found: Any = connection.exec_driver_sql(query).scalar_one()
    return int(found)
