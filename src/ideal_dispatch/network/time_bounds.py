"""How fast and how slowly a road can plausibly be driven: bounds that no travel time leaves."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import RoadNetwork
from ideal_dispatch.ranges import Range, check_fields

_FASTEST_KMH = {
    "motorway": 180.0, "motorway_link": 130.0, "trunk": 160.0, "trunk_link": 120.0,
    "primary": 140.0, "primary_link": 120.0, "secondary": 130.0, "secondary_link": 110.0,
    "tertiary": 120.0, "tertiary_link": 110.0, "unclassified": 140.0, "residential": 110.0,
    "living_street": 80.0, "service": 90.0,
}  # fmt: skip

_ROUNDING = 1e-5  # relative: weights of models are single precision
_Speed = Annotated[float, Range(0, 10_000, above=True)]  # km/h; more is absurd


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The least and the greatest plausible seconds of a road, for an emergency vehicle.

    Least: at ``fastest_kmh`` of its class (in the order of ``ROAD_CLASSES``;
    "unclassified" may be any road), or at ``over_limit_kmh`` above its speed
    limit, or at ``over_limit`` times the limit, whichever is faster. Greatest: a
    jam, at ``crawl_kmh`` and with ``wait_s`` at its end. Every scenario keeps to
    these two. An expected time keeps further inside, by the factor ``margin`` on
    both sides, so that scenarios around it have room.
    """

    fastest_kmh: tuple[_Speed, ...] = tuple(_FASTEST_KMH[name] for name in ROAD_CLASSES)
    over_limit_kmh: _Speed = 60.0
    over_limit: Annotated[float, Range(1, 10)] = 2.0
    crawl_kmh: _Speed = 3.0
    wait_s: Annotated[float, Range(0, 86_400)] = 180.0
    margin: Annotated[float, Range(1, 10, above=True)] = 1.5

    def __post_init__(self) -> None:
        if len(self.fastest_kmh) != len(ROAD_CLASSES):
            raise InputError(f"time bounds: fastest_kmh needs {len(ROAD_CLASSES)} speeds")
        check_fields(self, "time bounds: ")
        if not self.crawl_kmh * self.margin**2 < min(self.fastest_kmh):
            raise InputError("time bounds: crawl_kmh must lie well below every fastest_kmh")

    def on(self, network: RoadNetwork, path: Path | None = None) -> "EdgeBounds":
        """The bounds of every edge of a network, or of a path's alone."""
        edges = slice(None) if path is None else path.edges
        metres = 3.6 * network.length_m[edges]
        limit_kmh = metres / network.free_flow_times_s[edges]
        by_class = np.array(self.fastest_kmh)[network.road_class[edges]]
        by_limit = np.maximum(limit_kmh + self.over_limit_kmh, limit_kmh * self.over_limit)
        least_s = metres / np.maximum(by_class, by_limit)
        return EdgeBounds(least_s, metres / self.crawl_kmh + self.wait_s, self.margin)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a manifest, speeds by class."""
        by_class = dict(zip(ROAD_CLASSES, self.fastest_kmh, strict=True))
        return asdict(self) | {"fastest_kmh": by_class}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TimeBounds":
        """What :meth:`as_dict` wrote."""
        by_class = tuple(float(values["fastest_kmh"][name]) for name in ROAD_CLASSES)
        return cls(**{**values, "fastest_kmh": by_class})


@dataclass(frozen=True, slots=True, eq=False)
class EdgeBounds:
    """The least and the greatest seconds of every edge in any scenario; see :class:`TimeBounds`."""

    least_s: FloatArray
    greatest_s: FloatArray
    margin: float

    @property
    def expected_s(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest seconds that an edge may be expected to take."""
        return self.margin * self.least_s, self.greatest_s / self.margin

    def held(self, times_s: FloatArray) -> FloatArray:
        """Expected times, none beyond its bounds."""
        return np.clip(times_s, *self.expected_s)

    def reached(self, times_s: FloatArray) -> BoolArray:
        """Which expected times sit at a bound."""
        least, greatest = self.expected_s
        reached: BoolArray = (times_s <= least * (1 + _ROUNDING)) | (
            times_s >= greatest * (1 - _ROUNDING)
        )
        return reached

    def greatest_radius(self, times_s: FloatArray) -> float:
        """The largest ρ at which no scenario around expected times leaves its bounds.

        A scenario multiplies a time by a factor from m_ρ to M_ρ, the roots of
        x − log x − 1 = ρ ([IDEAL] compactness of the ball), and attains both: the
        edge with the least room decides.
        """
        factors = float((self.least_s / times_s).max()), float((self.greatest_s / times_s).min())
        return min(x - math.log(x) - 1.0 for x in factors)
