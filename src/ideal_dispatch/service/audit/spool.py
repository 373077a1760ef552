"""Local SQLite files for entries that the database cannot take now.

Every worker writes to a file of its own, which stays locked while the worker lives, and takes
over the files of workers that ended. A commit is on the disk when it returns. Each file takes
space in advance, so the spool goes on for a while when the disk is full. The spool is no chain:
an entry is protected from edits once it is a row in the database.
"""

import json
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.database import create_private, open_sqlite
from ideal_dispatch.service.audit.record import Entry, StoreError, canonical
from ideal_dispatch.service.clock import at_text

RESERVE_BYTES = 4 << 20
"""Taken in advance for entries, and once more for the journal of their commits."""

_PAGE_BYTES = 4096
_PATIENCE_S = 2.0  # for another worker that looks whether a new file belongs to anybody
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
  number INTEGER PRIMARY KEY, checksum INTEGER, id TEXT, kind TEXT, call_id TEXT, key TEXT,
  at TEXT, body TEXT
);
CREATE INDEX IF NOT EXISTS entries_id ON entries (id);
CREATE INDEX IF NOT EXISTS entries_call ON entries (call_id);
"""

log = logging.getLogger(__name__)


class Spool:
    """Entries that wait for the database, in files of ``folder``; for many threads.

    A folder belongs to one database: the next worker writes all of it there. Methods that touch
    the disk raise a :class:`StoreError` where it fails; ``len`` and :meth:`knows` do not touch it.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, reserve_bytes: int = RESERVE_BYTES
    ) -> None:
        self.folder = Path(folder).absolute()
        self._reserve_bytes = reserve_bytes
        self._writing = threading.Lock()  # for whoever writes or changes the next two
        self._files: tuple[_File, ...] = ()  # those of workers that ended come first
        self._own: _File | None = None
        self._unreadable: set[Path] = set()
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._renew(self._new_file())
        except OSError as error:
            raise InputError(f"audit spool {self.folder}: {error.strerror}") from None
        except sqlite3.Error as error:  # the database may take all that comes
            log.warning("audit spool %s: %s", self.folder, error)
        if old := list(self.folder.glob("*.spool")):
            log.error(
                "audit spool %s: %d files of version 0.1 wait; run that version once while the "
                "database is up", self.folder, len(old),
            )  # fmt: skip
        self.tidy()

    def __len__(self) -> int:
        return sum(file.waiting for file in self._files)

    def knows(self, call_id: str) -> bool:
        """Whether entries of a call wait."""
        return any(call_id in file.calls for file in self._files)

    def write(self, entries: Sequence[Entry]) -> None:
        """Put entries on the disk for good; after an error they may not be there."""
        with self._writing:
            if self._own is not None:
                try:
                    return self._own.write(entries)
                except (OSError, sqlite3.Error) as error:
                    log.warning("audit spool %s: %s; trying a new file", self._own.path, error)
            try:
                self._renew(self._new_file()).write(entries)
            except (OSError, sqlite3.Error) as error:
                raise StoreError(f"audit spool {self.folder}: {error}") from None

    def replay(self, limit: int, take: Callable[[list[Entry]], object]) -> None:
        """Hand entries that wait to ``take``, oldest first, and let them go once it returns.

        For one thread at a time. After a crash some are handed over again. A file with a damaged
        entry stays in the folder: that entry is left out.
        """
        file = next((one for one in self._files if one.waiting), None)
        if file is not None:
            numbers, entries = file.oldest(limit)
            if entries:
                take(entries)
            file.forget(numbers, entries)
            self._remove_done()

    def of_call(self, call_id: str) -> list[Entry]:
        """The entries of a call that wait, oldest first."""
        return self._select(1, "call_id = ? ORDER BY number", call_id)

    def get(self, id: str) -> Entry | None:  # noqa: A002
        """An entry that waits, by its id."""
        return next(iter(self._select(1, "id = ? LIMIT 1", id)), None)

    def find(self, kind: str, call_id: str, key: str) -> Entry | None:
        """The first entry that waits with this kind, call and key."""
        if not self.knows(call_id):
            return None
        same = (one for one in self.of_call(call_id) if (one.kind, one.key) == (kind, key))
        return next(same, None)

    def recent(self, kind: str, limit: int) -> list[Entry]:
        """The last entries of a kind that wait, newest first."""
        return self._select(-1, "kind = ? ORDER BY number DESC LIMIT ?", kind, limit)[:limit]

    def tidy(self) -> int:
        """Take over the files of workers that ended; how many entries they hold.

        A file of one's own that was used and is empty again gives way to a fresh one, or one is
        made where there was no space. Nobody who writes meanwhile waits for this.
        """
        adopted, own = [], self._own
        known = {file.path for file in self._files} | self._unreadable
        for path in sorted(set(self.folder.glob("*.sqlite")) - known):
            try:
                adopted.append(_File(path))
            except sqlite3.Error as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # its worker lives
                    log.error("audit spool %s: %s; it stays there", path, error)
                    self._unreadable.add(path)
        with self._writing:
            self._files = (*adopted, *self._files)
        if count := sum(file.waiting for file in adopted):
            log.warning("audit spool %s: %d entries of workers that ended", self.folder, count)
        if own is None or (own.used and not own.waiting):
            try:
                fresh = self._new_file()
                with self._writing:
                    self._renew(fresh)
            except (OSError, sqlite3.Error) as error:
                log.warning("audit spool %s: %s", self.folder, error)
        self._remove_done()
        return count

    def close(self) -> None:
        """Give up the files; those without entries are removed, the others wait for a successor."""
        with self._writing:
            for file in self._files:
                file.close(remove=not file.waiting)
            self._files, self._own = (), None

    def _new_file(self) -> "_File":
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}.sqlite"
        create_private(path)
        try:
            file = _File(path, _PATIENCE_S)
        except sqlite3.Error:
            _unlink(path)
            raise
        file.reserve(self._reserve_bytes)
        return file

    def _renew(self, file: "_File") -> "_File":
        """Write to a new file from now on; the one before stays until its entries are rows."""
        self._own, self._files = file, (*self._files, file)
        return file

    def _remove_done(self) -> None:
        with self._writing:
            done = [file for file in self._files if file is not self._own and not file.waiting]
            self._files = tuple(file for file in self._files if file not in done)
        for file in done:
            file.close(remove=True)
            if file.damaged:
                self._unreadable.add(file.path)

    def _select(self, step: int, words: str, *values: Any) -> list[Entry]:
        """Entries that wait by a condition, from the first file to the last or backwards."""
        try:
            return [entry for file in self._files[::step] for entry in file.select(words, values)]
        except sqlite3.Error as error:
            raise StoreError(f"audit spool {self.folder}: {error}") from None


class _File:
    """One file, open and locked by this process. Its entries have consecutive numbers.

    ``sqlite3.SQLITE_BUSY`` says that another process has it. A ``damaged`` one is never removed.
    """

    def __init__(self, path: Path, timeout_s: float = 0.0) -> None:
        self.path = path
        self.calls: Counter[str] = Counter()  # entries that wait, by call
        self.used = self.damaged = False
        self._lock = threading.Lock()  # of the connection
        self._done: int  # the number of the last entry that is a row in the database
        self._last: int  # the number of the last entry
        self._connection = open_sqlite(path, timeout_s, exclusive=True)
        try:
            self._connection.executescript(_TABLES)
            ends = "SELECT coalesce(min(number), 1) - 1, coalesce(max(number), 0) FROM entries"
            self._done, self._last = self._connection.execute(ends).fetchone()
        except sqlite3.Error:
            self._connection.close()
            raise
        try:
            by_call = "SELECT call_id, count(*) FROM entries GROUP BY call_id"
            self.calls.update(dict(self._connection.execute(by_call).fetchall()))
        except sqlite3.Error as error:  # some entries can be read nevertheless
            self._note_damage(error)

    @property
    def waiting(self) -> int:
        """How many entries wait."""
        return self._last - self._done

    def reserve(self, count: int) -> None:
        """Let file and journal grow by so many bytes now, where the disk has space."""
        execute = self._connection.execute
        execute(f"PRAGMA wal_autocheckpoint = {max(1, 3 * count // _PAGE_BYTES // 4)}")
        try:
            execute("CREATE TABLE reserve (space BLOB)")
            execute("INSERT INTO reserve VALUES (zeroblob(?))", (count,))
            execute("PRAGMA wal_checkpoint").fetchall()
            execute("DROP TABLE reserve")
            execute("PRAGMA wal_checkpoint").fetchall()
        except sqlite3.Error as error:
            log.warning("audit spool %s: %s; no space is set aside", self.path, error)

    def write(self, entries: Sequence[Entry]) -> None:
        """Commit entries, if the file is still where others look for it."""
        rows = [
            (one.id, one.kind, one.call_id, one.key, at_text(one.at), one.text) for one in entries
        ]
        with self._lock:
            os.stat(self.path)
            numbered = [
                (number, _checksum(row), *row) for number, row in enumerate(rows, self._last + 1)
            ]
            with self._connection:  # commits, or takes all back
                self._connection.execute("BEGIN IMMEDIATE")
                insert = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                self._connection.executemany(insert, numbered)
            self._last += len(rows)
            self.calls.update(one.call_id for one in entries)
            self.used = True

    def oldest(self, limit: int) -> tuple[range, list[Entry]]:
        """The first entries that wait and their numbers; each is read by itself."""
        numbers = range(self._done + 1, min(self._done + limit, self._last) + 1)
        entries: list[Entry] = []
        for number in numbers:
            try:
                entries += map(_entry, self._read("number = ?", (number,)))
            except (sqlite3.Error, ValueError) as error:
                self._note_damage(error)
        return numbers, entries

    def forget(self, numbers: range, entries: Sequence[Entry]) -> None:
        """Let entries go; where the disk does not, it is only known here that they are rows."""
        with self._lock:
            self._done = numbers[-1]
            for one in entries:
                self.calls[one.call_id] -= 1
                if not self.calls[one.call_id]:
                    del self.calls[one.call_id]
            try:
                self._connection.execute("DELETE FROM entries WHERE number <= ?", (self._done,))
            except sqlite3.Error as error:
                log.warning("audit spool %s: %s; entries may be replayed again", self.path, error)

    def select(self, words: str, values: Sequence[Any]) -> list[Entry]:
        """Whole entries that wait, by a condition."""
        found = []
        for row in self._read(words, values):
            try:
                found.append(_entry(row))
            except ValueError as error:  # it is noted when it is its turn
                log.error("audit spool %s: %s", self.path, error)
        return found

    def close(self, *, remove: bool) -> None:
        """Unlock the file, and ``remove`` it unless it is damaged."""
        remove = remove and not self.damaged
        if remove:  # before others can have it
            _unlink(self.path)
        with self._lock:
            self._connection.close()
        if remove:
            _unlink(self.path)

    def _read(self, words: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        columns = "number, checksum, id, kind, call_id, key, at, body"
        query = f"SELECT {columns} FROM entries WHERE number > ? AND {words}"
        with self._lock:
            return self._connection.execute(query, (self._done, *values)).fetchall()

    def _note_damage(self, error: Exception) -> None:
        self.damaged = True
        log.error("audit spool %s: %s; the file stays there", self.path, error)


def _entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row, or a :class:`ValueError` where it is not what was written."""
    number, checksum, *fields = row
    if checksum != _checksum(fields):
        raise ValueError(f"entry {number} is damaged")
    identifier, kind, call_id, key, at, body = fields
    return Entry(kind, call_id, json.loads(body), datetime.fromisoformat(at), key, identifier)


def _checksum(fields: Sequence[str | None]) -> int:
    return zlib.crc32(canonical(fields).encode("ascii"))


def _unlink(path: Path) -> None:
    """Remove a file and its journal."""
    for one in (path, path.with_name(f"{path.name}-wal")):
        one.unlink(missing_ok=True)
