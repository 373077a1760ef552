"""The folder of a replay: one process at a time in it, and its manifest, what was replayed how."""

import fcntl
import hashlib
import json
import math
import os
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.archive import FileKind
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.traffic.present_traffic import PresentTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

NAME = "run.json"
KIND = FileKind("ideal-dispatch replay 1", 1, "replay's manifest", "name another folder")
LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, made where it is not there, or say who holds it.

    The system lets go of a process that ends in whatever way: a file that one
    left behind holds nobody off.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
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


@dataclass(slots=True)
class Manifest:
    """The file of a run; ``settings`` is all that its log depends on.

    ``replayed`` is None until the log is complete, then the number of its
    incidents; ``dropped`` has name and reason of those that are not in it.
    """

    folder: Path
    settings: Mapping[str, Any]
    replayed: int | None = None
    dropped: Sequence[Mapping[str, str]] = ()

    @classmethod
    def open(cls, folder: Path, settings: Mapping[str, Any]) -> "Manifest":
        """Begin a run in a folder that is empty, or take up the one that is there."""
        made = cls(folder, json.loads(json.dumps(settings)))
        if found := taken_up(folder, NAME, KIND, made.settings, "replay"):
            made.replayed, made.dropped = found["replayed"], found["dropped"]
        else:
            made._write()
        return made

    def finish(self, replayed: int, dropped: Sequence[Mapping[str, str]]) -> None:
        """Say that the log is complete, and what it lacks."""
        self.replayed, self.dropped = replayed, dropped
        self._write()

    def _write(self) -> None:
        whole = {**self.settings, "replayed": self.replayed, "dropped": list(self.dropped)}
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)
        write_file(self.folder / NAME, text + "\n")


def taken_up(
    folder: Path, name: str, kind: FileKind, settings: Mapping[str, Any], what: str
) -> dict[str, Any] | None:
    """What the manifest of a folder says, None where the folder is empty.

    A folder with other files, or with other ``settings``, is refused. What a process that
    was killed had half written is removed.
    """
    leftovers = set(folder.rglob(".*.part"))
    found = None
    if (folder / name).exists():
        with kind.complaints(folder / name):
            found = kind.checked(json.loads((folder / name).read_bytes()))
        differ = [key for key, value in settings.items() if found.get(key) != value]
        if differ:
            raise InputError(
                f"{folder}: holds another {what} (not the same {', '.join(differ)}); "
                "name another folder"
            )
    elif set(folder.iterdir()) - {folder / LOCK, *leftovers}:
        raise InputError(f"{folder}: holds other files and no {what}; name a new folder")
    for leftover in leftovers:
        leftover.unlink()
    return found


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What the manifest of a run says."""
    path = Path(folder) / NAME
    if not path.exists():
        raise InputError(f"{folder}: no replay there, {NAME} is missing")
    with KIND.complaints(path):
        return KIND.checked(json.loads(path.read_bytes()))


def settings(replay: Replay, incidents: Sequence[Incident]) -> dict[str, Any]:
    """All that the log of a replay depends on."""
    calls = "".join(map(_call_text, incidents))
    on_road = sum(len(one.on_road) for one in incidents)
    return {
        "format": KIND.format,
        "network": replay.traffic.network.checksum,
        **_of_traffic(replay.traffic),
        "depots": [
            {"name": depot.name, "node": depot.node, "units": count}
            for depot, count in zip(replay.depots, replay.units or (), strict=True)
        ],
        "region": None if replay.region is None else described(replay.region),
        "incidents": {"count": len(incidents), "checksum": digest(calls.encode())}
        | ({"units_on_road": on_road} if on_road else {}),
        "policies": {policy.name: described(policy) for policy in replay.policies},
        "roles": {policy.name: str(getattr(policy, "role", "")) for policy in replay.policies},
        "seed": replay.seed,
        "worlds": list(replay.worlds),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    packages = {name: version(name) for name in ("ideal-dispatch", "numpy", "numba")}
    return {"python": platform.python_version(), **packages}


def _call_text(call: Incident) -> str:
    units = "".join(f"\t{unit.name}\t{unit.node}\t{unit.kind}" for unit in call.on_road)
    return f"{call.name}\t{call.node}\t{call.at.isoformat()}{units}\n"


def _of_traffic(traffic: ReplayedTraffic | PresentTraffic) -> dict[str, Any]:
    if isinstance(traffic, PresentTraffic):
        return {"live": described(traffic.source)}
    own = {} if traffic.source is None else {"source": described(traffic.source)}
    router = asdict(traffic.params)
    return {"recording": traffic.recording.checksum, "router": router, **own}


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
    if hasattr(value, "checksum"):
        return {"type": type(value).__name__, "checksum": str(value.checksum)}
    if is_dataclass(value):
        parts = {field.name: described(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, **parts}
    return {"type": type(value).__name__}


def digest(content: bytes) -> str:
    """The checksum of some bytes, for a manifest."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
