"""What the service asks of its solver, wherever that runs; all values are plain and can be sent."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ideal_dispatch.errors import IdealError

if TYPE_CHECKING:
    from ideal_dispatch.service.solver.call import Call
    from ideal_dispatch.service.solver.known import KnownUnits, KnownWeather


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


class Solving(Protocol):
    """A solver. All but :meth:`advise` may take a while; it may be asked from many threads."""

    warm: threading.Event
    """Set while it can advise."""

    @property
    def facts(self) -> CityFacts:
        """The city; waits until it is loaded, or raises what is wrong with the settings."""
        ...

    @property
    def traffic(self) -> str:
        """Whether live traffic can be used: "ready", "starting", or in words why not."""
        ...

    @property
    def working(self) -> int:
        """How many calls can be advised on at the same time."""
        ...

    @property
    def restarts(self) -> int:
        """How often it was lost."""
        ...

    def start(self) -> None:
        """Begin to prepare for calls."""
        ...

    def advise(
        self,
        call: "Call",
        units: "KnownUnits",
        weather: "KnownWeather",
        until: float,
    ) -> dict[str, Any]:
        """The advice, with the checksums of what made it as ``versions``.

        ``until`` is the moment of :func:`time.monotonic` at which it is due.
        """
        ...

    def road_map(self) -> RoadMap:
        """The roads, for a map without internet."""
        ...

    def model_card(self) -> str:
        """What the model is, learned from, and good for, in Markdown."""
        ...

    def invented_call(self, number: int) -> dict[str, Any]:
        """The body of a call that a CAD might send."""
        ...

    def close(self) -> None:
        """End it; what runs is given up."""
        ...
