"""The ``.network`` file: the arrays of a road network in one archive."""

import os
from typing import Any

import numpy as np

from ideal_dispatch.archive import ArchiveKind
from ideal_dispatch.errors import FileFormatError, IdealError
from ideal_dispatch.network.road_network import RoadNetwork

KIND = ArchiveKind("network", 1, "make one with `ideal network build`")
_ARRAYS = (
    "node_ids", "lon", "lat", "tail", "head", "length_m", "speed_kmh", "lanes",
    "oneway", "road_class", "geometry", "geometry_start",
)  # fmt: skip


def save(network: RoadNetwork, path: str | os.PathLike[str]) -> None:
    """Write ``network`` to one file, or leave what was there untouched."""
    names = sorted(set(network.name))
    manifest = {
        "checksum": network.checksum,
        "names": names,
        "provenance": dict(network.provenance),
    }
    position = {name: i for i, name in enumerate(names)}
    columns: dict[str, Any] = {column: getattr(network, column) for column in _ARRAYS}
    columns["name"] = np.array([position[name] for name in network.name], np.int32)
    KIND.write(path, manifest, columns)


def load(path: str | os.PathLike[str]) -> RoadNetwork:
    """Read a network, or say in one line why the file is none."""
    manifest, arrays = KIND.read(path)
    try:
        names = dict(enumerate(manifest["names"]))
        network = RoadNetwork(
            **{column: arrays[column] for column in _ARRAYS},
            name=tuple(names[i] for i in arrays["name"].tolist()),
            provenance=manifest["provenance"],
        )
        if network.checksum != manifest["checksum"]:
            raise FileFormatError(f"contents do not match the checksum; {KIND.advice}")
    except IdealError as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KIND.damaged(path, error) from None
    return network
