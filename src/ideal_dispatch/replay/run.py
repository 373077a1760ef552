"""A replay of many incidents on the engine: a cell is a chunk of incidents, the result one log."""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ideal_dispatch.archive import FileKind
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import Files, Run, described, digest
from ideal_dispatch.files import atomic_write
from ideal_dispatch.replay.incidents import check_incidents
from ideal_dispatch.replay.log import DROPPED, LOG
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

KIND = FileKind("ideal-dispatch replay 2", 1, "replay", "repeat the replay")
CHUNKS, INCIDENTS_PER_CHUNK = "chunks", 32

Report = Callable[[int, int], None]
"""Called with the number of incidents that are done, and of all."""


def run_replay(
    replay: Replay,
    incidents: Sequence[Incident],
    folder: str | os.PathLike[str],
    *,
    workers: int | None = 1,
    cluster: str | None = None,
    report: Report | None = None,
) -> Path:
    """Replay all incidents into ``folder``, and return it.

    The same call continues an interrupted replay, and the files are the same
    to the byte for any number of ``workers`` (None: one per core) and for a
    ``cluster``, the address of a dask scheduler. An incident that cannot be
    replayed, as when a drive leaves the recorded time, is left out under every
    policy, and the manifest says why. A second process on the same folder is refused.
    """
    if not isinstance(replay.traffic, ReplayedTraffic):
        raise InputError("live traffic has no past to replay; drive in it with run_live")
    check_incidents(incidents, replay.traffic.recording, replay.depots)
    if cluster is not None or workers != 1:
        _check_sendable(replay)
    place, whole = Path(folder), len(incidents)
    with Run.opened(place, KIND, settings(replay, incidents)) as run:
        if run.manifest.get("replayed") is None:
            chunks = {}
            for start in range(0, whole, INCIDENTS_PER_CHUNK):
                name = f"{CHUNKS}/{start // INCIDENTS_PER_CHUNK:06d}.jsonl"
                chunks[name] = name, incidents[start : start + INCIDENTS_PER_CHUNK]
            done = 0
            for name in run.cells(_chunk, replay, chunks, workers=workers, cluster=cluster):
                done += len(chunks[name][1])
                if report is not None:
                    report(done, whole)
            finish(run, [place / name for name in chunks])
        shutil.rmtree(place / CHUNKS, ignore_errors=True)
        if not run.manifest["replayed"]:
            raise InputError(
                f"{place}: none of {whole} incidents could be replayed; the first: "
                f"{run.manifest['dropped'][0]['reason']}"
            )
    return place


def finish(run: Run, files: Iterable[Path], *, complete: bool = True) -> tuple[int, list[Any]]:
    """Write the log of all chunks: how many incidents it has, and those left out with reasons.

    The manifest says so, with ``replayed`` null where the run is not ``complete``.
    """
    kept, dropped = 0, []
    with atomic_write(run.folder / LOG) as whole:
        for file in files:
            for line in file.read_bytes().splitlines(keepends=True):
                if line.startswith(DROPPED):
                    dropped.append(json.loads(line)["dropped"])
                else:
                    kept += 1
                    whole.write(line)
    run.note(replayed=kept if complete else None, dropped=dropped)
    return kept, dropped


def settings(replay: Replay, incidents: Sequence[Incident]) -> dict[str, Any]:
    """All that the log of a replay depends on."""
    calls, traffic = "", replay.traffic
    for call in incidents:
        units = "".join(f"\t{unit.name}\t{unit.node}\t{unit.kind}" for unit in call.on_road)
        calls += f"{call.name}\t{call.node}\t{call.at.isoformat()}{units}\n"
    on_road = sum(len(one.on_road) for one in incidents)
    if isinstance(traffic, ReplayedTraffic):
        source = {} if traffic.source is None else {"source": described(traffic.source)}
        about = {"recording": traffic.recording.checksum, "router": asdict(traffic.params)} | source
    else:
        about = {"live": described(traffic.source)}
    return {
        "network": traffic.network.checksum,
        **about,
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
        "world": str(replay.world),
    }


def _check_sendable(replay: Replay) -> None:
    """Name a class that cannot be sent to other processes."""
    parts: dict[str, object] = {f"policy {policy.name}": policy for policy in replay.policies}
    parts |= {f"traffic source {type(replay.traffic.source).__name__}": replay.traffic.source}
    try:
        for what in parts:
            pickle.dumps(parts[what], pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # of any type: the class may do it in its own way
        raise InputError(
            f"{what} cannot be sent to other processes ({type(error).__name__}: {error}); "
            "make it so that it can be pickled, or replay with one worker"
        ) from None


def _chunk(replay: Replay, cell: tuple[str, Sequence[Incident]]) -> Files:
    name, incidents = cell
    return {name: b"".join(replay.line(incident).encode() + b"\n" for incident in incidents)}
