"""The ``.network`` file: a zip of NumPy arrays with a JSON manifest.

Same network, same bytes: members have fixed times and a fixed order.
"""

import json
import os
from typing import Any, BinaryIO

import numpy as np

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network.road_network import RoadNetwork

FORMAT = "ideal-dispatch network"
VERSION = 1
_ZIP = b"PK\x03\x04"
_ADVICE = "make one with `ideal network build`"
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
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True)
    content = text.encode("utf-8", "surrogatepass")  # as json.loads decodes
    with atomic_write(path) as file:
        np.savez_compressed(file, manifest=np.frombuffer(content, np.uint8), **columns)


def load(path: str | os.PathLike[str]) -> RoadNetwork:
    """Read a network, or say in one line why the file is none."""
    where = os.fspath(path)
    try:
        with open(where, "rb") as file:
            return _read(file)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{where}: is a folder, not a .network file") from None
    except PermissionError:
        raise InputError(f"{where}: may not be read; check its permissions") from None
    except IdealError as error:
        raise FileFormatError(f"{where}: {error}") from None
    except Exception as error:  # zipfile, zlib, NumPy and JSON raise a dozen kinds on bad bytes
        raise FileFormatError(
            f"{where}: truncated or damaged network file ({type(error).__name__}); {_ADVICE}"
        ) from None


def _read(file: BinaryIO) -> RoadNetwork:
    start = file.read(len(_ZIP))
    if start != _ZIP:
        what = "not a network file" if start else "the file is empty"
        raise FileFormatError(f"{what}; {_ADVICE}")
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        if "manifest" not in archive.files:
            raise FileFormatError(f"not a network file; {_ADVICE}")
        manifest = json.loads(archive["manifest"].tobytes())
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise FileFormatError(f"not a network file; {_ADVICE}")
        if manifest["version"] > VERSION:
            raise FileFormatError(
                f"written in format {manifest['version']}, this version reads up to {VERSION}; "
                "upgrade ideal-dispatch"
            )
        names = dict(enumerate(manifest["names"]))
        network = RoadNetwork(
            **{column: archive[column] for column in _ARRAYS},
            name=tuple(names[i] for i in archive["name"].tolist()),
            provenance=manifest["provenance"],
        )
    if network.checksum != manifest["checksum"]:
        raise FileFormatError(f"contents do not match the checksum; {_ADVICE}")
    return network
