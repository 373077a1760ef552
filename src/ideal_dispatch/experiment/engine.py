"""A run: a folder with a manifest, and cells of work that are each done once.

The manifest says all that the results depend on. A cell has a file, which is either whole or
missing. Workers return the contents of files and the caller's process writes them, so workers
need no folder and may be on other machines. The same call continues an interrupted run. Its files
are the same to the byte for any number of workers, except the manifest's ``starts``.
"""

import fcntl
import hashlib
import json
import math
import os
import platform
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.archive import FileKind
from ideal_dispatch.cluster import spread
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.ranges import COUNT

MANIFEST, STARTS, LOCK = "manifest.json", "starts", ".lock"

Watch = Callable[[str, float], None]
"""Called with the step in progress and the share of it that is done."""

Files = Mapping[str, bytes]
"""Contents of files by their names in the run's folder."""


def unwatched(step: str, share: float) -> None:
    """The watch of a caller who wants none."""


@dataclass(slots=True)
class Run:
    """A run whose folder this process holds."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    @contextmanager
    def opened(
        cls, folder: str | os.PathLike[str], kind: FileKind, settings: Mapping[str, Any]
    ) -> Iterator["Run"]:
        """Begin a run in an empty folder, or take up the run with the same ``settings``.

        A folder that has other files, holds another run, or in which another process works is
        refused. A run that fails before it has a file leaves no folder.
        """
        place = Path(folder)
        wanted = {"format": kind.format, **json.loads(json.dumps(settings)), "versions": versions()}
        with locked(place):
            path, manifest = place / MANIFEST, wanted
            leftovers = set(place.rglob(".*.part"))  # of a process that was killed as it wrote
            begun = path.exists()
            if begun:
                manifest = read_manifest(place, kind)
                differ = [key for key, value in wanted.items() if manifest.get(key) != value]
                if differ:
                    raise InputError(
                        f"{place}: holds another {kind.what} (not the same {', '.join(differ)}); "
                        "name another folder"
                    )
            elif set(place.iterdir()) - {place / LOCK, *leftovers}:
                raise InputError(f"{place}: holds other files and no {kind.what}; name a new one")
            for leftover in leftovers:
                leftover.unlink()
            run = cls(place, manifest)
            try:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                run.note(**{STARTS: [*manifest.get(STARTS, ()), now]})
                yield run
            except BaseException:
                if not begun and set(place.iterdir()) <= {place / LOCK, path}:
                    path.unlink(missing_ok=True)
                raise

    def note(self, **facts: Any) -> None:
        """Write facts into the manifest."""
        self.manifest |= facts
        text = json.dumps(self.manifest, ensure_ascii=False, allow_nan=False, indent=1)
        write_file(self.folder / MANIFEST, text + "\n")

    def cells(
        self,
        work: Callable[[Any, Any], Files],
        shared: Any,
        tasks: Mapping[str, Any],
        *,
        workers: int | None = 1,
        cluster: str | None = None,
    ) -> Iterator[str]:
        """The names of the cells in the order in which they are done; first those done before.

        ``tasks`` has the task of each cell by the name of its file, which ``work(shared, task)``
        returns last, after other files of the cell. ``work`` is a function of a module. With
        ``workers`` None there is a process per core; ``cluster`` is the address of a dask
        scheduler.
        """
        if workers is not None:
            COUNT.check(workers, "workers")
        missing = {name: one for name, one in tasks.items() if not (self.folder / name).exists()}
        yield from (name for name in tasks if name not in missing)
        done = spread(_named, (work, shared), [*missing.items()], workers=workers, cluster=cluster)
        with closing(done):  # type: ignore[type-var]
            for name, files in done:
                for file, content in files.items():
                    path = self.folder / file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_file(path, content)
                yield name


def _named(
    shared: tuple[Callable[[Any, Any], Files], Any], cell: tuple[str, Any]
) -> tuple[str, Files]:
    work, told = shared
    name, task = cell
    return name, work(told, task)


def read_manifest(folder: str | os.PathLike[str], kind: FileKind) -> dict[str, Any]:
    """The manifest of a run of this kind."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise InputError(f"{os.fspath(folder)}: no {kind.what} there, {MANIFEST} is missing")
    with kind.complaints(path):
        return kind.checked(json.loads(path.read_bytes()))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, created if missing and removed if left empty, or report who holds it.

    The operating system releases the lock of a process that ends in any way.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    path = folder / LOCK
    new = not folder.exists()
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise InputError(
                f"{folder}: another process is at work there ({holder}); wait for it, or name "
                "another folder"
            ) from None
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)  # its holder removed it between our two steps
    try:
        os.ftruncate(descriptor, 0)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}, {since}".encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release, so that no new holder loses its file
        os.close(descriptor)
        if new:
            with suppress(OSError):
                folder.rmdir()


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    packages = {name: version(name) for name in ("ideal-dispatch", "numpy", "numba")}
    return {"python": platform.python_version(), **packages}


def described(value: Any) -> Any:
    """A policy or a part of one in plain JSON: its own ``describe()``, or its fields.

    Arrays become digests and numbers that are not finite become texts, so that
    another description is another policy.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): described(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [described(one) for one in value]
    if isinstance(value, np.ndarray):
        return digest(np.ascontiguousarray(value).tobytes())
    own = getattr(value, "describe", None)
    if callable(own):
        return described(own())
    kind = {"type": type(value).__name__}
    if hasattr(value, "checksum"):
        return kind | {"checksum": str(value.checksum)}
    if is_dataclass(value):
        return kind | {field.name: described(getattr(value, field.name)) for field in fields(value)}
    return kind


def digest(content: bytes) -> str:
    """The checksum of some bytes, for a manifest."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
