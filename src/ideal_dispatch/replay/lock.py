"""One process at a time in a folder of results."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ideal_dispatch.errors import InputError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, made where it is not there, or say who holds it.

    The system lets go of a process that ends in whatever way: a file that one
    left behind holds nobody off.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    descriptor = _held(path)
    try:
        os.ftruncate(descriptor, 0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}, {since}".encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # before it is let go, so that nobody loses a new one
        os.close(descriptor)


def _held(path: Path) -> int:
    """A descriptor of the file, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(descriptor, 200).decode(errors="replace") or "which, it does not say yet"
            os.close(descriptor)
            raise InputError(
                f"{path.parent}: another process is at work there ({who}); wait for it, or name "
                "another folder"
            ) from None
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
        os.close(descriptor)  # its holder removed it between our two steps
