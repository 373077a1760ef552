"""The audit's database: connections bounded in time, durable commits, the version of its tables.

No message tells a password.
"""

import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, exc, make_url

from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.files import check_target
from ideal_dispatch.http_client import one_line
from ideal_dispatch.service.audit import schema
from ideal_dispatch.service.audit.record import NoTablesError, StoreError

if TYPE_CHECKING:
    import psycopg

_PATIENCE_S = 600.0  # of a migration
_ADVICE = "write it as sqlite:///audit.db or postgresql://user@host/database"


class Database:
    """A database by its URL, for the audit's transactions.

    No statement, lock or connection is waited for much longer than
    ``timeout_s``. Nothing is connected before the first transaction, which looks
    at the version of the tables unless it is not to be ``checked``.
    """

    def __init__(self, url: str, *, timeout_s: float = 2.0, create: bool = True) -> None:
        self.url = parse_url(url)
        self.name = self.url.render_as_string(hide_password=True)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._engine = (_sqlite if self.is_sqlite else _postgresql)(self.url, timeout_s)
        self._create, self._ready, self._checking = create, False, threading.Lock()

    @contextmanager
    def writing(self, *, checked: bool = True) -> Iterator[Connection]:
        """A transaction that commits at its end; one at a time on SQLite."""
        if checked:
            self._check()
        with self._complaints(), self._engine.connect() as connection, connection.begin():
            if self.is_sqlite:  # the driver's own would lock too late
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def reading(self, *, snapshot: bool = False, checked: bool = True) -> Iterator[Connection]:
        """A connection to read by; all statements see one moment if a ``snapshot`` is asked for."""
        if checked:
            self._check()
        with self._complaints(), self._engine.connect() as connection:
            if snapshot and not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                if snapshot and self.is_sqlite:  # a single question needs none
                    connection.exec_driver_sql("BEGIN")
                elif snapshot:  # whoever reads it all may be slow
                    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield connection

    @contextmanager
    def listening(self, channel: str) -> Iterator["psycopg.Connection[Any]"]:
        """A connection of PostgreSQL apart from all others, which hears a channel."""
        with self._complaints(), self._engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(f"LISTEN {channel}")
            driver: psycopg.Connection[Any] | None = connection.connection.driver_connection
            assert driver is not None
            connection.detach()  # nobody else is to hear it
            with closing(driver):
                yield driver

    def _check(self) -> None:
        """Make the tables where there are none and ``create`` says so; refuse other versions."""
        if self._ready:
            return
        with self._checking:
            with self.reading(checked=False) as connection:
                found = schema.read_version(connection)
            if found is None and self._create:
                with self.writing(checked=False) as connection:
                    schema.migrate(connection)
            elif found != schema.VERSION:
                has = "it has no tables" if found is None else f"its tables are of version {found}"
                raise (NoTablesError if found is None else StoreError)(
                    f"audit database {self.name}: {has}, version {schema.VERSION} is needed; "
                    "run `ideal audit migrate`"
                )
            self._ready = True

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            reason = error.orig if isinstance(error, exc.DBAPIError) else error
            raise StoreError(f"audit database {self.name}: {one_line(str(reason))}") from None


def parse_url(url: str) -> URL:
    """A URL of SQLite or PostgreSQL, or one line that says what is wrong with it."""
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        raise InputError(f"audit database: not a URL; {_ADVICE}") from None
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername != "sqlite":
        raise InputError(f"audit database: {parsed.drivername} is not supported; {_ADVICE}")
    if parsed.database in (None, "", ":memory:") or parsed.host:
        raise InputError(f"audit database: SQLite needs a file; {_ADVICE}")
    if parsed.query:
        raise InputError(f"audit database: SQLite takes no parameters; {_ADVICE}")
    return parsed


def _sqlite(url: URL, timeout_s: float) -> Engine:
    path = Path(url.database or "")
    check_target(path)

    def connect() -> sqlite3.Connection:
        if not path.exists():
            try:
                create_private(path)
            except FileExistsError:  # another worker was quicker
                pass
            except OSError as error:
                raise StoreError(f"audit database {url}: {error.strerror}") from None
        return open_sqlite(path, timeout_s)

    return create_engine(url, creator=connect)  # listening to events would slow every statement


def create_private(path: Path) -> None:
    """Make an empty database for its owner alone: it will hold addresses of patients.

    It gets its name once its journal is a write-ahead log. Two connections that
    change the journal at once would lock each other out, however patient they are.
    """
    folder = path.absolute().parent
    draft, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)  # mode 0o600
    os.close(draft)
    try:
        with closing(sqlite3.connect(name)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        os.link(name, path)
    finally:
        os.unlink(name)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # its name is on the disk, too
    finally:
        os.close(descriptor)


def open_sqlite(path: Path, timeout_s: float, *, exclusive: bool = False) -> sqlite3.Connection:
    """A connection to a file whose commits are on the disk when they return.

    An ``exclusive`` one keeps all others away until it is closed or its process ends.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    try:
        if exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _postgresql(url: URL, timeout_s: float) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("PostgreSQL", "service") from None
    milliseconds = max(1, round(1000 * timeout_s))
    limits = {
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": 2 * milliseconds,  # a frozen worker frees the chain
        "synchronous_commit": "on",
    }
    options = " ".join(f"-c {name}={value}" for name, value in limits.items())
    theirs = url.query.get("options", "")
    theirs = theirs if isinstance(theirs, str) else " ".join(theirs)
    return create_engine(
        url.difference_update_query(["options"]),
        pool_pre_ping=True,  # the server may have been started anew meanwhile
        pool_size=4,
        max_overflow=2,
        pool_timeout=timeout_s,
        connect_args={
            "connect_timeout": max(2, round(timeout_s)),  # libpq knows nothing shorter
            "tcp_user_timeout": milliseconds,
            "keepalives_idle": 5,  # a peer that is gone without a word is found out
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "options": f"{theirs} {options}".strip(),
            "client_encoding": "utf8",
            "application_name": "ideal-dispatch audit",
        },
    )


def migrate(url: str) -> str:
    """Bring the tables to the newest version, whoever else tries at once; that version."""
    with (
        closing(Database(url, timeout_s=_PATIENCE_S)) as database,
        database.writing(checked=False) as connection,
    ):
        schema.migrate(connection)
    return schema.VERSION
