"""The folder of a replay: its manifest, what was replayed how."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ideal_dispatch.archive import FileKind
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import LOCK, described, digest, versions
from ideal_dispatch.files import write_file
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.traffic.present_traffic import PresentTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

NAME = "run.json"
KIND = FileKind("ideal-dispatch replay 1", 1, "replay's manifest", "name another folder")


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


def _call_text(call: Incident) -> str:
    units = "".join(f"\t{unit.name}\t{unit.node}\t{unit.kind}" for unit in call.on_road)
    return f"{call.name}\t{call.node}\t{call.at.isoformat()}{units}\n"


def _of_traffic(traffic: ReplayedTraffic | PresentTraffic) -> dict[str, Any]:
    if isinstance(traffic, PresentTraffic):
        return {"live": described(traffic.source)}
    own = {} if traffic.source is None else {"source": described(traffic.source)}
    router = asdict(traffic.params)
    return {"recording": traffic.recording.checksum, "router": router, **own}
