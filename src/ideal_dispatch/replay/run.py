"""A replay of many incidents, in parallel, that goes on where it was interrupted.

Workers return the lines of a chunk of incidents and the caller's process writes
them, each chunk to a file of its own: workers need no folder and may be on other
machines, and a file is either whole or not there. At the end the chunks become
one log.
"""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from ideal_dispatch.cluster import spread
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import locked
from ideal_dispatch.files import atomic_write, write_file
from ideal_dispatch.replay.incidents import check_incidents
from ideal_dispatch.replay.log import DROPPED
from ideal_dispatch.replay.run_folder import Manifest, settings
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

LOG = "incidents.jsonl"
INCIDENTS_PER_CHUNK = 32

Report = Callable[[int, int], None]
"""Told how many incidents are done, and of how many."""

Chunk = tuple[int, Sequence[Incident]]


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

    The same call goes on with an interrupted replay, and the files are the same
    to the byte for any number of ``workers`` (None: one per core) and for a
    ``cluster``, the address of a dask scheduler. An incident that cannot be
    replayed, as when a drive leaves the recorded time, is left out under every
    policy, and the manifest says why. A second process on the same folder is refused.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers {workers}: at least one is needed")
    if not isinstance(replay.traffic, ReplayedTraffic):
        raise InputError("live traffic has no past to replay; drive in it with run_live")
    check_incidents(incidents, replay.traffic.recording, replay.depots)
    place = Path(folder)
    with locked(place):
        manifest = _finished(place, replay, incidents, workers, cluster, report)
    if not manifest.replayed:
        raise InputError(
            f"{place}: none of {len(incidents)} incidents could be replayed; "
            f"the first: {manifest.dropped[0]['reason']}"
        )
    return place


def _finished(
    place: Path,
    replay: Replay,
    incidents: Sequence[Incident],
    workers: int | None,
    cluster: str | None,
    report: Report | None,
) -> Manifest:
    """Begin or go on, to the end."""
    manifest = Manifest.open(place, settings(replay, incidents))
    folder = place / "chunks"
    if manifest.replayed is None:
        folder.mkdir(exist_ok=True)
        starts = range(0, len(incidents), INCIDENTS_PER_CHUNK)
        chunks = [incidents[start : start + INCIDENTS_PER_CHUNK] for start in starts]
        files = [folder / f"{number:06d}.jsonl" for number in range(len(chunks))]
        missing = [number for number, file in enumerate(files) if not file.exists()]
        done = len(incidents) - sum(len(chunks[number]) for number in missing)
        tasks = [(number, chunks[number]) for number in missing]
        if cluster is not None or workers != 1:
            _check_sendable(replay)
        for number, text in spread(_lines, replay, tasks, workers=workers, cluster=cluster):
            write_file(files[number], text)
            done += len(chunks[number])
            if report is not None:
                report(done, len(incidents))
        manifest.finish(*merged(files, place / LOG))
    shutil.rmtree(folder, ignore_errors=True)
    return manifest


def merged(files: Sequence[Path], log: Path) -> tuple[int, list[dict[str, str]]]:
    """Write the log of all chunks; returns how many incidents it has, and those left out."""
    kept, dropped = 0, []
    with atomic_write(log) as whole:
        for file in files:
            for line in file.read_bytes().splitlines(keepends=True):
                if line.startswith(DROPPED):
                    dropped.append(json.loads(line)["dropped"])
                else:
                    kept += 1
                    whole.write(line)
    return kept, dropped


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


def _lines(replay: Replay, chunk: Chunk) -> tuple[int, bytes]:
    """Number and lines of a chunk."""
    number, incidents = chunk
    return number, replay.lines(incidents)
