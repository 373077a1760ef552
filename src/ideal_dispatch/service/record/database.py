"""A database, SQLite or PostgreSQL, and the transactions that change the state in it.

A change locks the head, reads the moment, changes rows, and the log says so. What two requests
must not do together is a property of a row: a unit has one promise or none. The first row of the
log that a transaction writes holds the changed rows: the state is the fold of the log.
"""

import fcntl
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, exc, make_url

from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.files import check_target
from ideal_dispatch.outside_service import one_line
from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.errors import NoRecordError, RecordUnavailableError
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.record.rows import (
    TABLES,
    AdviceRow,
    ClosureRow,
    HeadRow,
    LogRow,
    Mark,
    StateRow,
    columns,
    image,
)
from ideal_dispatch.service.units import AHEAD_US, Unit

_ADVICE = "write it as sqlite:///record.db or postgresql://user@host/database"
_LOOK_S = 0.001  # between two tries to get the lock of a SQLite file
_AWAY = ("25", "53", "57", "58", "XX")  # of PostgreSQL's codes: read-only, full, ended, broken
_IDLE_MS = 1000  # a frozen worker frees the log's head
_TIME_OF_DAY = ClockTable()
_STEPS_BACK_US = 10_000_000  # a clock that was set back a little stands still meanwhile

_SEEN = ("lon", "lat", "heading", "speed_kmh", "seen_at")
_KNOWN_IS_NEWER = "seen_at <= :ahead AND seen_at > coalesce(:seen_at, 0)"
_POSITION = ", ".join(
    f"{name} = CASE WHEN {_KNOWN_IS_NEWER} THEN {name} ELSE :{name} END" for name in _SEEN
)
_SEE = sa.text(f"""
    UPDATE unit SET {_POSITION},
      told_at = CASE WHEN told_at > :told_at THEN told_at ELSE :told_at END,
      status_at = CASE WHEN status_at > :status_at OR status <> :status
        THEN status_at ELSE :status_at END
    WHERE id = :id
""")

_Row = TypeVar("_Row", bound=StateRow)
_Found = TypeVar("_Found")


class State:
    """What the database holds now: state rows, and the service's moment."""

    def __init__(self, connection: Connection, clock: ClockTable, *, lock: bool = False) -> None:
        self.connection, self.clock = connection, clock
        query = sa.select(rows.head)
        head = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if head is None:
            raise RecordUnavailableError("the head of the log is missing; restore a backup")
        self.head = HeadRow(*head)
        now = clock.at(rows.database_now(connection), self.head.stepped_us)
        self.now = max(now, self.head.at) if self.head.at - now < _STEPS_BACK_US else now

    def rows_of(self, kind: type[_Row], query: sa.Select[Any]) -> list[_Row]:
        """The rows of one kind that a query of their whole table finds."""
        return [kind(*row) for row in self.connection.execute(query)]

    def units(self) -> list[Unit]:
        return self.rows_of(Unit, sa.select(rows.unit).order_by(rows.unit.c.id))

    def advice(self, id: str) -> AdviceRow | None:  # noqa: A002
        query = sa.select(rows.advice).where(rows.advice.c.id == id)
        return next(iter(self.rows_of(AdviceRow, query)), None)

    def of_call(self, call_id: str) -> list[AdviceRow]:
        """All advice on a call, by revision."""
        query = sa.select(rows.advice).where(rows.advice.c.call_id == call_id)
        return self.rows_of(AdviceRow, query.order_by(rows.advice.c.revision))

    def closures(self, *, active: bool = False) -> list[ClosureRow]:
        """Closures that were not ended and whose time has not passed, the oldest first.

        Those that are ``active`` have begun.
        """
        query = sa.select(rows.closure).where(rows.closure.c.ended_at.is_(None))
        found = self.rows_of(ClosureRow, query.order_by(rows.closure.c.made_at))
        if active:
            return [row for row in found if row.active(self.now)]
        return [row for row in found if not row.over(self.now)]


class Transaction(State):
    """A state that may be changed; :meth:`finish` writes what changed and what was logged.

    Until then only :meth:`unit` knows what was put.
    """

    def __init__(self, connection: Connection, clock: ClockTable) -> None:
        super().__init__(connection, clock, lock=True)
        self._stepped_us = self.head.stepped_us
        self._changes: dict[type[StateRow], dict[str, Any]] = {}
        self._logged: list[tuple[str, str, Mapping[str, Any]]] = []

    def unit(self, id: str) -> Unit | None:  # noqa: A002
        """A unit as this transaction leaves it."""
        changed: dict[str, Unit | None] = self._changes.get(Unit, {})
        if id in changed:
            return changed[id]
        query = sa.select(rows.unit).where(rows.unit.c.id == id)
        return next(iter(self.rows_of(Unit, query)), None)

    def put(self, row: StateRow) -> None:
        """Insert a row of the state, or replace the one of its id."""
        self._changes.setdefault(type(row), {})[row.id] = row

    def delete(self, row: StateRow) -> None:
        self._changes.setdefault(type(row), {})[row.id] = None

    def step(self, step_us: int) -> None:
        self._stepped_us += step_us
        self.now += step_us

    def log(self, kind: str, call_id: str, body: Mapping[str, Any]) -> None:
        """Add a row to the log, in the order of the calls of this function."""
        self._logged.append((kind, call_id, body))

    def finish(self) -> None:
        """Write the rows of the state, in the order of their ids, and those of the log."""
        assert self._logged or not self._changes, "a change that no row of the log says"
        if not self._logged:
            return
        for row_type, changed in self._changes.items():
            table = TABLES[row_type]
            delete = sa.delete(table).where(table.c.id == sa.bindparam("gone"))
            upsert = _upsert(table, self.connection.dialect.name)
            for id_, row in sorted(changed.items()):
                if row is None:
                    self.connection.execute(delete, {"gone": id_})
                else:
                    self.connection.execute(upsert, columns(row))
        images = {
            TABLES[row_type].name: {
                id_: None if row is None else image(row) for id_, row in changed.items()
            }
            for row_type, changed in self._changes.items()
        }
        written: list[LogRow] = []
        last = Mark(self.head.number, self.head.hash)
        for kind, call_id, body in self._logged:
            content = {**body, "changes": images} if images and not written else body
            written.append(LogRow.after(last, self.now, kind, call_id, content))
            last = written[-1].mark
        self.connection.execute(sa.insert(rows.log), [columns(row) for row in written])
        self.connection.execute(
            sa.update(rows.head).values(
                number=last.number, hash=last.hash, at=self.now, stepped_us=self._stepped_us
            )
        )


def see_units(state: State, units: Iterable[Unit]) -> None:
    """Keep where units were seen and when they last reported; older reports change nothing.

    The order of their ids prevents deadlocks.
    """
    ahead = {"ahead": state.now + AHEAD_US}
    seen = [columns(one) | ahead for one in sorted(units, key=lambda one: one.id)]
    if seen:
        state.connection.execute(_SEE, seen)


@cache
def _upsert(table: Table, dialect: str) -> Any:
    """The statement that inserts a row, or replaces the one of its id.

    What :func:`see_units` wrote after the row was read stays, for it locks no head.
    """
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
    made = insert(table)
    new, old = made.excluded, table.c
    values: dict[str, Any] = {one.name: new[one.name] for one in old if one.name != "id"}
    if table is rows.unit:
        late = new.seen_at.is_(None) | (new.seen_at < old.seen_at)
        values |= {name: sa.case((late, old[name]), else_=new[name]) for name in _SEEN}
        confirmed = (old.status_at > new.status_at) & (old.status == new.status)
        values["told_at"] = sa.case((old.told_at > new.told_at, old.told_at), else_=new.told_at)
        values["status_at"] = sa.case((confirmed, old.status_at), else_=new.status_at)
    return made.on_conflict_do_update(index_elements=["id"], set_=values)


class Job:
    """Work that must be done by ``due`` (of :func:`time.monotonic`) and can be given up.

    Its ``phase`` is "waiting", "database" or "deciding". :meth:`give_up` may be called by any
    thread: a statement that waits for a frozen server fails, and nothing is committed any more.
    """

    def __init__(self, due: float) -> None:
        self.due, self.phase, self.given_up = due, "waiting", False
        self._raw: Any = None
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float:
        return self.due - time.monotonic()

    def give_up(self) -> None:
        """Let nothing come of it any more."""
        with self._lock:
            self.given_up = True
            number = getattr(getattr(self._raw, "pgconn", None), "socket", -1)
            if number >= 0:
                with suppress(OSError), socket.socket(fileno=os.dup(number)) as connected:
                    connected.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise where it is too late to go on."""
        if self.given_up or self.left_s <= 0.0:
            raise RecordUnavailableError("the database does not answer in time")

    @contextmanager
    def doing(self, phase: str) -> Iterator[None]:
        """Be in a phase for a while."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before

    @contextmanager
    def using(self, connection: Connection) -> Iterator[None]:
        """Statements of this connection are part of it."""
        with self._lock:
            self._raw = connection.connection.driver_connection
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._raw = None


class Database:
    """A database by its URL, and the service's clock. A missing one is made if ``create`` says so.

    Nothing is connected before the first work. ``timeout_s`` bounds a statement at the server.
    """

    def __init__(
        self,
        url: str,
        clock: ClockTable = _TIME_OF_DAY,
        *,
        timeout_s: float = 2.0,
        create: bool = True,
    ) -> None:
        self.url = parse_url(url)
        self.name = self.url.render_as_string(hide_password=True)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._path = Path(self.url.database or "")
        if self.is_sqlite:
            check_target(self._path)
        make_engine = _sqlite if self.is_sqlite else _postgresql
        self._engine = make_engine(self.url, timeout_s)
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self.clock, self._create, self._ready = clock, create, False
        self._writer = threading.Lock()

    def read(self, look: Callable[[State], _Found], job: Job) -> _Found:
        """What a look at the state finds; each of its statements sees the newest rows."""

        def run() -> _Found:
            with self._reader.connect() as connection, job.using(connection):
                return look(State(connection, self.clock))

        return self._run(run, job)

    def change(self, change: Callable[[Transaction], _Found], job: Job) -> _Found:
        """What a change returns, once it is committed and logged; it may be run twice."""

        def run() -> _Found:
            with self._turn(job), self._writing(job) as connection:
                transaction = Transaction(connection, self.clock)
                found = change(transaction)
                transaction.finish()
                return found

        return self._run(run, job)

    def touch(self, work: Callable[[State], _Found], job: Job) -> _Found:
        """What work returns that changes only what is not logged, such as positions."""

        def run() -> _Found:
            with self._turn(job), self._writing(job, durable=False) as connection:
                return work(State(connection, self.clock))

        return self._run(run, job)

    @contextmanager
    def snapshot(self, job: Job) -> Iterator[Connection]:
        """A connection whose statements all see one moment, for a long reading."""
        with self._complaints():
            self._prepare(job)
            with self._engine.connect() as connection:
                begin = "BEGIN"
                if not self.is_sqlite:
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                    begin = "SET LOCAL idle_in_transaction_session_timeout = 0"
                with connection.begin():
                    connection.exec_driver_sql(begin)
                    yield connection

    def close(self) -> None:
        self._engine.dispose()

    def _run(self, work: Callable[[], _Found], job: Job) -> _Found:
        """The work, run once more where the connection was lost: the server was restarted."""
        with job.doing("database"), self._complaints():
            try:
                self._prepare(job)
                return work()
            except exc.DBAPIError as error:
                if not error.connection_invalidated or job.given_up or job.left_s <= 0.0:
                    raise
            self._prepare(job)
            return work()

    def _prepare(self, job: Job) -> None:
        """Make the tables where there are none; other versions are refused."""
        if self._ready:
            return
        if self.is_sqlite and not self._create and not self._path.exists():
            raise NoRecordError(f"{self._path}: no such file")
        with self._turn(job):
            if self.is_sqlite and not self._path.exists():
                os.close(_private_file(self._path))
            with self._reader.connect() as connection, job.using(connection):
                there = rows.check_version(connection, self.name)
            if not there and not self._create:
                raise NoRecordError(f"database {self.name}: there is no record in it")
            if not there:
                with self._writing(job) as connection:
                    rows.create(connection, self.name)
        self._ready = True

    @contextmanager
    def _writing(self, job: Job, durable: bool = True) -> Iterator[Connection]:
        """A transaction, which is committed unless it is too late then."""
        with self._engine.connect() as connection, job.using(connection), connection.begin():
            if self.is_sqlite:
                synchronous = "FULL" if durable else "NORMAL"
                connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            elif not durable:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            yield connection
            job.check()

    @contextmanager
    def _turn(self, job: Job) -> Iterator[None]:
        """The turn of one writer of a SQLite file among all threads, and then all processes.

        SQLite's own waiting grows to 0.1 s between tries. Two connections that change the journal
        at once would lock each other out.
        """
        if not self.is_sqlite:
            yield
            return
        if not self._writer.acquire(timeout=max(job.left_s, 0.0)):
            raise RecordUnavailableError("the database is locked by other work")
        queue = self._path.with_name(f"{self._path.name}-queue")
        try:
            with open(_private_file(queue), "rb") as file:
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        job.check()
                        time.sleep(_LOOK_S)
                yield
        finally:
            self._writer.release()

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """One line for a database that is away, locked, full or damaged."""
        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, exc.DBAPIError) else error
            kinds = exc.OperationalError | exc.InterfaceError | exc.TimeoutError | sqlite3.Error
            away = isinstance(error, kinds)
            away |= str(getattr(cause, "sqlstate", "") or "")[:2] in _AWAY
            away |= type(cause) is sqlite3.DatabaseError
            if not away or getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR:
                raise
            raise RecordUnavailableError(f"database {self.name}: {one_line(str(cause))}") from error


def parse_url(url: str) -> URL:
    """A URL of SQLite or PostgreSQL, or one line that says what is wrong with it."""
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        raise InputError(f"database: not a URL; {_ADVICE}") from None
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername != "sqlite":
        raise InputError(f"database: {parsed.drivername} is not supported; {_ADVICE}")
    if parsed.database in (None, "", ":memory:") or parsed.host or parsed.query:
        raise InputError(f"database: SQLite needs a file and takes no parameters; {_ADVICE}")
    return parsed


def _private_file(path: Path) -> int:
    """A file for its owner alone, made where there is none: it may hold addresses of patients."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RecordUnavailableError(f"{path}: {error.strerror}") from None


def _sqlite(url: URL, timeout_s: float) -> Engine:
    address = f"{Path(url.database or '').absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, timeout=timeout_s, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    return create_engine(url, creator=connect, pool_size=6, pool_timeout=timeout_s)


def _postgresql(url: URL, timeout_s: float) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("PostgreSQL", "service") from None
    milliseconds = max(1, round(1000 * timeout_s))
    limits = {
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": min(milliseconds, _IDLE_MS),
        "synchronous_commit": "on",
    }
    options = " ".join(f"-c {name}={value}" for name, value in limits.items())
    theirs = url.query.get("options", "")
    theirs = theirs if isinstance(theirs, str) else " ".join(theirs)
    engine = create_engine(
        url.difference_update_query(["options"]),
        pool_size=6,
        max_overflow=4,
        pool_timeout=timeout_s,
        connect_args={
            "connect_timeout": max(2, round(timeout_s)),  # libpq knows nothing shorter
            "tcp_user_timeout": milliseconds,
            "keepalives_idle": 5,  # a peer that is gone without a word is found out
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "options": f"{theirs} {options}".strip(),
            "client_encoding": "utf8",
            "application_name": "ideal-dispatch",
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.prepare_threshold = 2  # the same few statements, again and again

    return engine
