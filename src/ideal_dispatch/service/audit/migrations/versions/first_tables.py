"""Rows, the marks at both ends of their chain, and units."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_FIRST = sa.text("duplicate_of IS NULL")
_FIRST_HASH = "0" * 64

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


def upgrade() -> None:
    """From nothing to the first tables; rows can only be added, and pruned behind the anchor."""
    op.create_table(
        "audit",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("duplicate_of", sa.Text),
        sa.Column("previous_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_index("audit_id", "audit", ["id"])
    op.create_index(
        "audit_key", "audit", ["call_id", "key", "kind"],
        unique=True, sqlite_where=_FIRST, postgresql_where=_FIRST,
    )  # fmt: skip
    op.create_index("audit_call", "audit", ["call_id", "number"])
    op.create_index("audit_kind", "audit", ["kind", "number"])
    marks = op.create_table(
        "audit_marks",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    ends = ("anchor", "head")
    op.bulk_insert(marks, [{"name": name, "number": 0, "hash": _FIRST_HASH} for name in ends])
    op.create_table(
        "units",
        sa.Column("depot", sa.Text, primary_key=True),
        sa.Column("units", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
    )
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in _SQLITE_GUARDS if sqlite else _POSTGRESQL_GUARDS:
        op.execute(statement)
