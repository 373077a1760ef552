"""The version of the audit's tables, and bringing them to the newest."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect

from ideal_dispatch.service.audit.connection import Database
from ideal_dispatch.service.audit.record import AuditError
from ideal_dispatch.service.audit.tables import VERSION

_LOCK = 0x1DEA1  # of PostgreSQL's advisory locks: one migration at a time
_PATIENCE_S = 600.0


def migrate(url: str) -> str:
    """Bring the tables to the newest version, whoever else tries at once; that version."""
    database = Database(url, timeout_s=_PATIENCE_S)
    try:
        with database.writing() as connection:
            upgrade(connection)
    finally:
        database.close()
    return VERSION


def version(connection: Connection) -> str | None:
    """The version of the tables here, None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def upgrade(connection: Connection) -> None:
    """Migrate in the transaction of ``connection``: wholly or not at all."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    if connection.dialect.name == "postgresql":
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if encoding not in ("UTF8", "SQL_ASCII"):  # others refuse letters: entries would be stuck
            raise AuditError(
                f"audit database: its encoding is {encoding}; create it with ENCODING 'UTF8'"
            )
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    found = version(connection)
    if found is not None and found > VERSION:
        raise newer(found)
    scripts = ScriptDirectory(str(Path(__file__).parent / "migrations"))

    def steps(revision: Any, _: object) -> Any:
        return scripts._upgrade_revs(VERSION, revision)

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        environment.run_migrations()


def newer(found: str) -> AuditError:
    """The error for tables that this version does not know."""
    return AuditError(
        f"audit database: its tables are of version {found}, this program knows {VERSION}; "
        "upgrade ideal-dispatch"
    )
