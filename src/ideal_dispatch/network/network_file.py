"""The ``.network`` file: a zip of NumPy arrays with a JSON manifest.

Same network, same bytes: members have fixed times and a fixed order.
"""

import json
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network.road_network import RoadNetwork

FORMAT = "ideal-dispatch network"
VERSION = 1
_ARRAYS = (
    "node_ids", "lon", "lat", "tail", "head", "length_m", "speed_kmh", "lanes",
    "oneway", "road_class", "geometry", "geometry_start",
)  # fmt: skip


def save(network: RoadNetwork, path: str | os.PathLike[str]) -> None:
    """Write ``network`` to one file, or leave what was there untouched."""
    names = sorted(set(network.name))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "checksum": network.checksum,
        "names": names,
        "provenance": dict(network.provenance),
    }
    position = {name: i for i, name in enumerate(names)}
    columns: dict[str, Any] = {column: getattr(network, column) for column in _ARRAYS}
    columns["name"] = np.array([position[name] for name in network.name], np.int32)
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode()
    with atomic_write(path) as file:
        np.savez_compressed(file, manifest=np.frombuffer(text, np.uint8), **columns)


def load(path: str | os.PathLike[str]) -> RoadNetwork:
    """Read a network, or say in one line why the file is none."""
    where = os.fspath(path)
    try:
        return _read(where)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{where}: is a folder, not a .network file") from None
    except IdealError as error:
        raise FileFormatError(f"{where}: {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError) as error:
        raise FileFormatError(
            f"{where}: {_reason(where, error)}; make one with `ideal network build`"
        ) from None


def _reason(where: str, error: Exception) -> str:
    if not os.path.getsize(where):
        return "the file is empty"
    with open(where, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            return f"truncated or damaged network file ({type(error).__name__})"
    return "not a network file"


def _read(where: str) -> RoadNetwork:
    with open(where, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if not isinstance(archive, np.lib.npyio.NpzFile) or "manifest" not in archive.files:
            raise FileFormatError("not a network file; make one with `ideal network build`")
        manifest = json.loads(archive["manifest"].tobytes())
        if manifest.get("format") != FORMAT:
            raise FileFormatError("not a network file; make one with `ideal network build`")
        if manifest["version"] > VERSION:
            raise FileFormatError(
                f"written in format {manifest['version']}, this version reads up to {VERSION}; "
                "upgrade ideal-dispatch"
            )
        names = manifest["names"]
        columns = {column: archive[column] for column in _ARRAYS}
        network = RoadNetwork(
            **columns,
            name=tuple(names[i] for i in archive["name"].tolist()),
            provenance=manifest["provenance"],
        )
    if network.checksum != manifest["checksum"]:
        raise FileFormatError("contents do not match the checksum; build the network again")
    return network
