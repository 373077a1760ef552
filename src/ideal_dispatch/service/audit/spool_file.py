"""Files of the spool: lines of a checksum and an entry, and how damage shows."""

import errno
import json
import logging
import os
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ideal_dispatch.service.audit.record import Entry, at_text, canonical

log = logging.getLogger(__name__)


class SpoolFile:
    """A new file that grows by synced writes into space taken in advance.

    The unused space reads as zeros. Where the disk has none left the file
    starts without.
    """

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.path, self.size = path, 0
        self._descriptor = os.open(path, flags, 0o600)
        try:
            os.posix_fallocate(self._descriptor, 0, reserve_bytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self.remove()
                raise
            os.ftruncate(self._descriptor, 0)
            log.warning("audit spool %s: no space to set aside for an outage", path)
        os.fsync(self._descriptor)
        sync_folder(path.parent)

    def put(self, data: bytes) -> int:
        """Append and sync; the offset. After an :class:`OSError` the place is used again."""
        if not os.fstat(self._descriptor).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "somebody removed it", str(self.path))
        offset = self.size
        rest = memoryview(data)
        while rest:
            rest = rest[os.pwrite(self._descriptor, rest, self.size + len(data) - len(rest)) :]
        os.fdatasync(self._descriptor)
        self.size += len(data)
        return offset

    def close(self) -> None:
        os.close(self._descriptor)

    def remove(self) -> None:
        """Close it and take it off the disk."""
        self.close()
        self.path.unlink(missing_ok=True)


def encode(entry: Entry) -> bytes:
    """An entry as a line."""
    fields = [entry.id, entry.kind, entry.call_id, entry.key, at_text(entry.at), entry.text]
    content = canonical(fields).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(content), content)


def decode(line: bytes) -> Entry:
    """The entry of a line, or a :class:`ValueError` where it is not whole."""
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        raise ValueError("checksum does not fit")
    identifier, kind, call_id, key, at, body = json.loads(content)
    return Entry(identifier, kind, call_id, key, datetime.fromisoformat(at), json.loads(body))


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Every line that was begun and where it begins; unused space is left out."""
    offset = 0
    for line in path.read_bytes().rstrip(b"\0").splitlines(keepends=True):
        blank = len(line) - len(line.lstrip(b"\0"))
        if line[blank:].strip():
            yield offset + blank, line[blank:]
        offset += len(line)


def set_aside(path: Path, line: bytes, reason: object) -> None:
    """Keep a line that is no entry beside its file, for a person to look at."""
    aside = path.with_suffix(".torn")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line.rstrip(b"\n") + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)
    log.error("audit spool %s: a line is not whole (%s); kept in %s", path, reason, aside.name)


def sync_folder(folder: Path) -> None:
    """Make names of new files durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
