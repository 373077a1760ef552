"""A replay of many incidents, in parallel, that goes on where it was interrupted.

Workers return the lines of a chunk of incidents and the caller's process writes
them, each chunk to a file of its own: workers need no folder and may be on other
machines, and a file is either whole or not there. At the end the chunks become
one log.
"""

import hashlib
import json
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ideal_dispatch.cluster import on_cluster
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.files import atomic_write, write_file
from ideal_dispatch.replay.incidents import check_incidents
from ideal_dispatch.replay.log import DROPPED
from ideal_dispatch.replay.run_folder import Manifest, locked, settings
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
        for number, text in _replayed(replay, tasks, workers, cluster):
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


def _replayed(
    replay: Replay, missing: Sequence[Chunk], workers: int | None, cluster: str | None
) -> Iterator[tuple[int, bytes]]:
    """Number and lines of every chunk, in whatever order they are ready."""
    if not missing:
        return
    if cluster is None and (workers == 1 or len(missing) == 1):
        for number, incidents in missing:
            yield number, replay.lines(incidents)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # one array: joblib shares it by memory map, dask sends it once to each machine
    packed = np.frombuffer(_packed(replay), np.uint8)
    name = hashlib.blake2b(packed.tobytes(), digest_size=16).hexdigest()
    tasks = (delayed(_lines)(name, packed, *chunk) for chunk in missing)
    with _backend(cluster):
        jobs = workers if workers and cluster is None else -1
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(tasks)
        except BrokenProcessPool:
            raise IdealError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "the same call goes on with what is done"
            ) from None


def _packed(replay: Replay) -> bytes:
    """For other processes; a class that cannot be sent there is named."""
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
    return pickle.dumps(replay, pickle.HIGHEST_PROTOCOL)


@contextmanager
def _backend(cluster: str | None) -> Iterator[None]:
    from joblib import parallel_config

    if cluster is None:
        with parallel_config(backend="loky", inner_max_num_threads=1), warnings.catch_warnings():
            # loky replaces a worker between two jobs when it has grown, as ours do once
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
            yield
        return
    with on_cluster(cluster):
        yield


_replays: dict[str, Replay] = {}  # of a worker: the last one, with what its traffic worked out


def _lines(
    name: str, packed: npt.NDArray[np.uint8], number: int, incidents: Sequence[Incident]
) -> tuple[int, bytes]:
    if name not in _replays:
        _replays.clear()
        _replays[name] = pickle.loads(packed.data)
    return number, _replays[name].lines(incidents)
