"""Work on many machines: joblib's tasks sent to a dask scheduler."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from ideal_dispatch.errors import InputError, MissingExtraError

_CONNECT_S = 10


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
