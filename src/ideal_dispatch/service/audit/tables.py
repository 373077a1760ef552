"""The audit's tables, as the newest migration leaves them."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

from ideal_dispatch.service.audit.record import at_text


class Moment(TypeDecorator[datetime]):
    """A moment as text in UTC; texts sort as moments do."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Any) -> str | None:
        return None if value is None else at_text(value)

    def process_result_value(self, value: str | None, _: Any) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


metadata = MetaData()

VERSION = "0002"
"""The newest migration."""

_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # its rowid

rows = Table(
    "audit",
    metadata,
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

_FIRST = text("duplicate_of IS NULL")
Index("audit_id", rows.c.id)  # appends take turns and look first
Index(
    "audit_key", rows.c.call_id, rows.c.key, rows.c.kind,
    unique=True, sqlite_where=_FIRST, postgresql_where=_FIRST,
)  # fmt: skip
Index("audit_call", rows.c.call_id, rows.c.number)
Index("audit_kind", rows.c.kind, rows.c.number)

marks = Table(
    "audit_marks",
    metadata,
    Column("name", Text, primary_key=True),  # head or anchor
    Column("number", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)

units = Table(
    "units",
    metadata,
    Column("depot", Text, primary_key=True),
    Column("units", Integer, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

promises = Table(
    "promises",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("place", Integer, primary_key=True),  # among those of the call
    Column("depot", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("advice", Text, nullable=False),
    Column("asked_at", Moment, nullable=False),
    Column("at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("ends_at", Moment, nullable=False),
)
Index("promises_depot", promises.c.depot)
