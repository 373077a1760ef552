"""Work on many processors: joblib's tasks in processes of this machine, or on a dask cluster."""

import hashlib
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import IdealError, InputError, MissingExtraError

_CONNECT_S = 10

_Shared = TypeVar("_Shared")
_Done = TypeVar("_Done")


def spread(
    work: Callable[[_Shared, Any], _Done],
    shared: _Shared,
    tasks: Sequence[Any],
    *,
    workers: int | None = 1,
    cluster: str | None = None,
) -> Iterator[_Done]:
    """What ``work(shared, task)`` gives for every task, in whatever order they are ready.

    ``work`` is a function of a module. ``shared`` is sent once to each process and kept
    there. ``workers`` are processes (None: one per core); ``cluster`` is the address of a
    dask scheduler.
    """
    if cluster is None and (workers == 1 or len(tasks) == 1):
        for task in tasks:
            yield work(shared, task)
        return
    if not tasks:
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # one array: joblib shares it by memory map, dask sends it once to each machine
    packed = np.frombuffer(pickle.dumps(shared, pickle.HIGHEST_PROTOCOL), np.uint8)
    name = hashlib.blake2b(packed.tobytes(), digest_size=16).hexdigest()
    with _backend(cluster):
        jobs = workers if workers and cluster is None else -1
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(delayed(_unpacked)(work, name, packed, task) for task in tasks)
        except (BrokenProcessPool, CancelledError):  # dask may forget what a dead worker had
            raise IdealError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "the same call goes on with what is done"
            ) from None


_kept: dict[str, Any] = {}  # of a worker: the last shared object, with what it worked out


def _unpacked(
    work: Callable[[Any, Any], _Done], name: str, packed: npt.NDArray[np.uint8], task: Any
) -> _Done:
    if name not in _kept:
        _kept.clear()
        _kept[name] = pickle.loads(packed.data)
    return work(_kept[name], task)


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


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Inside, joblib's parallel work goes to the dask scheduler at ``address``."""
    from joblib import parallel_config

    try:
        connect = import_module("distributed").Client
    except ImportError:
        raise MissingExtraError("a dask cluster", "cluster") from None
    try:
        client = connect(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:
        raise InputError(f"cluster {address}: no dask scheduler answers ({error})") from None
    with client, parallel_config(backend="dask"):
        yield
