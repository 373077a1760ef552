"""The rows of the record and their tables: units, advice and closures, and the log of changes.

Moments are microseconds since 1970 by the service's clock. The hash of each row of the log covers
its contents and the hash of the row before.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Connection, Float, Index, Integer, Table, Text

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.errors import RecordUnavailableError
from ideal_dispatch.service.units import Unit

VERSION = 1
"""Of the tables."""

FIRST_HASH = "0" * 64
"""What the first row of the log names as the hash before it."""

AdviceState = Literal["open", "accepted", "overridden", "running", "ended", "superseded"]

_LOCK = 0x1DEA2  # of PostgreSQL's advisory locks: one worker makes the tables
_UNLOGGED = {  # they change too often
    "lon", "lat", "heading", "speed_kmh", "seen_at", "told_at", "status_at", "due_at",
}  # fmt: skip
_HASHED = ("answer", "view")  # what they say is in the log beside the image


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """An advice: ``answer`` is JSON without what the other columns say, and so is the ``reply``.

    That of a running dispatch has in ``view`` its units, and what is expected of them, as JSON; a
    worker looks at it again at ``due_at``.
    """

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
    view: str | None = None
    ended_at: int | None = None
    due_at: int | None = None

    def public(self) -> dict[str, Any]:
        return {
            **json.loads(self.answer),
            "id": self.id, "call_id": self.call_id, "revision": self.revision,
            "state": self.state, "asked_at": moment_text(self.asked_at),
            "expires_at": moment_text(self.expires_at),
            "reply": None if self.reply is None else json.loads(self.reply),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClosureRow:
    """Closed roads: ``shape`` is JSON of what was drawn, its edges, who closed it and why."""

    id: str
    shape: str
    made_at: int
    since: int | None
    until: int | None
    ended_at: int | None = None

    def active(self, now: int) -> bool:
        """Whether the road is closed now."""
        return not self.over(now) and (self.since is None or self.since <= now)

    def over(self, now: int) -> bool:
        """Whether it was ended, or its time has passed."""
        return any(at is not None and at <= now for at in (self.ended_at, self.until))


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the log: the row of that number has that hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row of the log as the database holds it: nothing in it is checked yet."""

    number: int
    at: int
    kind: str
    call_id: str
    body: str
    previous_hash: str
    hash: str

    @classmethod
    def after(cls, last: Mark, at: int, kind: str, call_id: str, body: Any) -> "LogRow":
        row = cls(last.number + 1, at, kind, call_id, canonical(body), last.hash, "")
        return replace(row, hash=row.expected_hash)

    @property
    def expected_hash(self) -> str:
        """The hash that these contents give."""
        return digest(
            (self.number, self.at, self.kind, self.call_id, self.body, self.previous_hash)
        )

    @property
    def mark(self) -> Mark:
        return Mark(self.number, self.hash)

    @property
    def content(self) -> dict[str, Any]:
        """The body as values, or one line where it is damaged."""
        with suppress(ValueError, TypeError, RecursionError):
            found = json.loads(self.body)
            if isinstance(found, dict):
                return found
        raise RecordUnavailableError(
            f"row {self.number} of the log is no JSON object; run `ideal audit verify`"
        )


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The one row that every writer locks first: the end of the log, and what was pruned."""

    id: int
    version: int
    number: int
    hash: str
    at: int
    anchor: int
    anchor_hash: str
    stepped_us: int


StateRow = Unit | AdviceRow | ClosureRow


def columns(row: StateRow | LogRow | HeadRow) -> dict[str, Any]:
    """The values of a row by column. Unlike ``asdict``, it copies none of them."""
    return {name: getattr(row, name) for name in row.__slots__}


def image(row: StateRow) -> dict[str, Any]:
    """A row of the state as the log keeps it."""
    kept = {name: value for name, value in columns(row).items() if name not in _UNLOGGED}
    return kept | {name: digest(kept[name]) for name in _HASHED if name in kept}


def canonical(value: Any) -> str:
    """JSON with sorted keys and without blanks, in ASCII: the same value, the same text."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this cannot be written as JSON ({error})") from None


def digest(value: Any) -> str:
    """A hash; the same value, the same hash."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


# --- the tables -------------------------------------------------------------------------

_metadata = sa.MetaData()
_TYPES: dict[type, Any] = {
    int: BigInteger().with_variant(Integer(), "sqlite"),  # whose keys are rowids then
    str: Text(), bool: Boolean(), float: Float(),
}  # fmt: skip


def _table(name: str, row: type) -> Table:
    """The table of rows of a dataclass, whose first field is the key."""
    hints, made = get_type_hints(row), list[Column[Any]]()
    for field in fields(row):
        kinds = get_args(hints[field.name]) or (hints[field.name],)
        kind = next((_TYPES[one] for one in kinds if one in _TYPES), Text())  # literals are texts
        made.append(Column(
            field.name, kind, primary_key=not made, nullable=type(None) in kinds,
            autoincrement=False,
        ))  # fmt: skip
    return Table(name, _metadata, *made)


unit = _table("unit", Unit)  # no index on promised_to: PostgreSQL could not update rows in place
advice = _table("advice", AdviceRow)
closure = _table("closure", ClosureRow)
log = _table("log", LogRow)
head = _table("head", HeadRow)

TABLES: dict[type, Table] = {Unit: unit, AdviceRow: advice, ClosureRow: closure}

_RUNNING = sa.text("due_at IS NOT NULL")
Index("advice_due", advice.c.due_at, sqlite_where=_RUNNING, postgresql_where=_RUNNING)
Index("advice_call", advice.c.call_id)
Index("advice_asked", advice.c.asked_at)

# rows of the log can only be added, and pruned behind the anchor
_GUARDS = {
    "sqlite": (
        """
        CREATE TRIGGER log_no_update BEFORE UPDATE ON log
        BEGIN SELECT RAISE(ABORT, 'rows of the log are append-only'); END
        """,
        """
        CREATE TRIGGER log_no_delete BEFORE DELETE ON log
        WHEN OLD.number > (SELECT anchor FROM head)
        BEGIN SELECT RAISE(ABORT, 'rows of the log are append-only'); END
        """,
    ),
    "postgresql": (
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
    ),
}


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
    if clash := sorted(found & _metadata.tables.keys()):
        raise InputError(f"database {name}: a table {clash[0]!r} exists; give an empty database")
    return False


def create(connection: Connection, name: str) -> None:
    """Make the tables in the connection's transaction, unless another worker was quicker."""
    if connection.dialect.name == "postgresql":
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding not in ("UTF8", "SQL_ASCII"):  # others refuse letters
            raise InputError(
                f"database {name}: its encoding is {encoding}; create it with ENCODING 'UTF8'"
            )
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    if check_version(connection, name):
        return
    _metadata.create_all(connection, checkfirst=False)
    first = HeadRow(1, VERSION, 0, FIRST_HASH, 0, 0, FIRST_HASH, 0)
    connection.execute(sa.insert(head), columns(first))
    for statement in _GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def database_now(connection: Connection) -> int:
    """Microseconds since 1970 by the database's clock, at this very moment."""
    if connection.dialect.name == "sqlite":
        query = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000"
    else:  # now() would be the transaction's start
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    found: Any = connection.exec_driver_sql(query).scalar_one()
    return int(found)
