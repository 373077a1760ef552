"""What the service asks of its solver, wherever that runs; all values are plain and can be sent."""

from collections.abc import Mapping
from dataclasses import dataclass

from ideal_dispatch.errors import IdealError


class SolverLostError(IdealError):
    """The solver ended or hangs; it is started again."""


@dataclass(frozen=True, slots=True)
class CityFacts:
    """The city that advice is given for.

    ``depots`` are places (lon, lat) by name, ``bounds`` west, south, east and
    north, ``middle`` the mean of all junctions; ``checksums`` are of the
    contents of all that decides, by part.
    """

    name: str
    depots: Mapping[str, tuple[float, float]]
    bounds: tuple[float, float, float, float]
    middle: tuple[float, float]
    time_zone: str
    checksums: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoadMap:
    """The roads as GeoJSON, plain and packed; ``checksum`` is the network's."""

    checksum: str
    plain: bytes
    packed: bytes
