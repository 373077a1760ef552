"""Local files, synced at every write, for what the database cannot take now.

Every process writes files of its own in the spool folder, under a lock that
ends with it, and takes over those of dead processes. Space is taken in advance:
the spool goes on for a while when the disk is full. A line torn by a crash is
set aside in a ``.torn`` file. The spool is no chain: an entry is protected from
edits once it is a row.
"""

import fcntl
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.spool_file import (
    SpoolFile,
    decode,
    encode,
    read_lines,
    set_aside,
    sync_folder,
)

FILE_BYTES = 8 << 20

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, slots=True)
class _Line:
    """Where an entry waits, and by what it is looked for."""

    id: str
    kind: str
    call_id: str
    key: str | None
    path: Path
    offset: int
    length: int


class Spool:
    """Entries that wait for the database, oldest first, in files of ``folder``.

    A folder belongs to one database: the next process replays all of it there.
    :meth:`write` returns when its entries are on the disk; :meth:`oldest` and
    :meth:`forget` take them off again. May be used from many threads.
    """

    def __init__(self, folder: str | os.PathLike[str], *, file_bytes: int = FILE_BYTES) -> None:
        self.folder = Path(folder).absolute()
        self._file_bytes = file_bytes
        self._writing = threading.Lock()  # held by whoever changes anything, disk included
        self._index = threading.Lock()  # of the next three, never held while a disk is waited for
        self._lines: deque[_Line] = deque()
        self._calls: dict[str, list[_Line]] = {}
        self._ids: dict[str, _Line] = {}
        self._left: dict[Path, int] = {}  # entries that wait, by file
        self._locks: dict[str, int] = {}  # descriptors, by the family of files
        self._family = f"{time.time_ns():020d}-{os.getpid()}"
        self._files_made = 0
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._take(self._family)
            self._file = self._new_file()
        except OSError as error:
            raise InputError(f"audit spool {self.folder}: {error.strerror}") from None
        self.adopt()

    def __len__(self) -> int:
        return len(self._lines)

    def write(self, entries: Sequence[Entry]) -> None:
        """Put entries on the disk for good; after an :class:`OSError` they may not be there."""
        lines = [encode(entry) for entry in entries]
        with self._writing:
            offset = self._put(b"".join(lines))
            for entry, line in zip(entries, lines, strict=True):
                self._add(entry, self._file.path, offset, len(line))
                offset += len(line)

    def oldest(self, limit: int) -> list[Entry]:
        """The entries that have waited longest; damaged ones are set aside."""
        found: list[Entry] = []
        with self._writing:
            while len(found) < min(limit, len(self._lines)):
                line = self._lines[len(found)]
                try:
                    found.append(_read(line))
                except ValueError as error:
                    set_aside(
                        line.path, line.path.read_bytes()[line.offset :][: line.length], error
                    )
                    self._drop(line)
        return found

    def forget(self, count: int) -> None:
        """Let the oldest entries go: they are rows now. Files without any left are removed."""
        with self._writing:
            for line in list(islice(self._lines, count)):
                self._drop(line)
            if self._file.size and not self._left[self._file.path]:
                try:
                    file = self._new_file()
                except OSError as error:  # the old one serves as well
                    log.warning("audit spool %s: %s", self.folder, error.strerror)
                    return
                self._file, file = file, self._file
                file.close()
                self._remove(file.path)

    def knows(self, call_id: str) -> bool:
        """Whether entries of a call wait; no disk is asked."""
        return call_id in self._calls

    def of_call(self, call_id: str) -> list[Entry]:
        """The entries of a call that wait, oldest first."""
        with self._index:
            lines = list(self._calls.get(call_id, ()))
        return _read_waiting(lines)

    def get(self, id: str) -> Entry | None:  # noqa: A002
        """An entry that waits, by its id."""
        line = self._ids.get(id)
        return None if line is None else next(iter(_read_waiting([line])), None)

    def find(self, kind: str, call_id: str, key: str) -> Entry | None:
        """The first entry that waits with this kind, call and key."""
        with self._index:
            lines = list(self._calls.get(call_id, ()))
        same = [line for line in lines if (line.kind, line.key) == (kind, key)]
        return next(iter(_read_waiting(same)), None)

    def recent(self, kind: str, limit: int) -> list[Entry]:
        """The last entries of a kind that wait, newest first."""
        with self._index:
            lines = (line for line in reversed(self._lines) if line.kind == kind)
            last = list(islice(lines, limit))
        return _read_waiting(last)

    def adopt(self) -> int:
        """Take over the files of processes that are dead; how many entries they held.

        Whoever writes meanwhile does not wait: there may be much to read.
        """
        families = {_family(path) for path in self.folder.glob("*.spool")}
        adopted = sum(map(self._adopt_family, sorted(families)))
        if adopted:
            log.warning("audit spool %s: %d entries of a dead process", self.folder, adopted)
        return adopted

    def close(self) -> None:
        """Give up the files; those without entries are removed, the others wait for a successor."""
        with self._writing:
            self._file.close()
            family, self._family = self._family, ""
            if not self._left[self._file.path]:
                self._remove(self._file.path)
            self._release_if_done(family)
            for descriptor in self._locks.values():
                os.close(descriptor)
            self._locks.clear()

    def _take(self, family: str) -> bool:
        """Lock a family of files, unless its process lives."""
        descriptor = os.open(self._lock_path(family), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._locks[family] = descriptor
        return True

    def _lock_path(self, family: str) -> Path:
        return self.folder / f"{family}.lock"

    def _new_file(self) -> SpoolFile:
        self._files_made += 1
        path = self.folder / f"{self._family}-{self._files_made:06d}.spool"
        file = SpoolFile(path, self._file_bytes)
        self._left[path] = 0
        return file

    def _put(self, data: bytes) -> int:
        """Write to the current file, or to a new one where that is full or fails."""
        if not self._file.size or self._file.size + len(data) <= self._file_bytes:
            try:
                return self._file.put(data)
            except OSError as error:
                log.warning("audit spool %s: %s; trying anew", self._file.path, error.strerror)
        file = self._new_file()
        try:
            offset = file.put(data)
        except OSError:
            file.remove()
            del self._left[file.path]
            raise
        self._file, file = file, self._file
        file.close()
        if not self._left[file.path]:
            self._remove(file.path)
        return offset

    def _add(self, entry: Entry, path: Path, offset: int, length: int) -> None:
        line = _Line(entry.id, entry.kind, entry.call_id, entry.key, path, offset, length)
        with self._index:
            self._lines.append(line)
            self._calls.setdefault(entry.call_id, []).append(line)
            self._ids[entry.id] = line
        self._left[path] += 1

    def _drop(self, line: _Line) -> None:
        with self._index:
            self._lines.remove(line)  # one of the first: found at once
            siblings = self._calls[line.call_id]
            siblings.remove(line)
            if not siblings:
                del self._calls[line.call_id]
            if self._ids[line.id] is line:
                del self._ids[line.id]
        self._left[line.path] -= 1
        if not self._left[line.path] and line.path != self._file.path:
            self._remove(line.path)

    def _adopt_family(self, family: str) -> int:
        with self._writing:
            if family in self._locks or not self._take(family):
                return 0  # its process lives
            paths = sorted(self.folder.glob(f"{family}-*.spool"))
            self._left |= dict.fromkeys(paths, 0)  # all of them: the lock goes with the last
        adopted = sum(map(self._adopt_file, paths))
        with self._writing:
            self._release_if_done(family)
        return adopted

    def _adopt_file(self, path: Path) -> int:
        found: list[tuple[Entry, int, int]] = []
        try:
            for offset, line in read_lines(path):
                try:
                    found.append((decode(line), offset, len(line)))
                except ValueError as error:
                    set_aside(path, line, error)
        except OSError as error:  # what is in the other files need not wait as well
            log.error("audit spool %s: %s; left to the next process", path, error.strerror)
            return 0
        with self._writing:
            for entry, offset, length in found:
                self._add(entry, path, offset, length)
            if not found:
                self._remove(path)
        return len(found)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        del self._left[path]
        self._release_if_done(_family(path))

    def _release_if_done(self, family: str) -> None:
        """Unlock a dead process's family when no file of it is left."""
        if family == self._family or any(_family(path) == family for path in self._left):
            return
        descriptor = self._locks.pop(family, None)
        if descriptor is not None:
            self._lock_path(family).unlink(missing_ok=True)
            os.close(descriptor)
            sync_folder(self.folder)


def _family(path: Path) -> str:
    return path.name.rpartition("-")[0]


def _read(line: _Line) -> Entry:
    with open(line.path, "rb") as file:
        file.seek(line.offset)
        return decode(file.read(line.length))


def _read_waiting(lines: Sequence[_Line]) -> list[Entry]:
    """The entries that still wait; no lock is held, so their file may be gone meanwhile."""
    found = []
    for line in lines:
        try:
            found.append(_read(line))
        except FileNotFoundError:
            continue  # it became a row
        except ValueError as error:  # set aside when it is its turn
            log.error("audit spool %s: a line is not whole (%s)", line.path, error)
    return found
