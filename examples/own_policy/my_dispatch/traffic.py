"""A traffic source: what a router would say about a way."""

import math
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ideal_dispatch import RoadNetwork, RouteQuote


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """A router without live traffic: free-flow times, longer in the rush hours.

    ``network`` and ``time_zone`` are handed over by whoever makes it, the two
    factors come from the table of options.
    """

    network: RoadNetwork
    time_zone: str
    rush_factor: float = 1.5
    other_factor: float = 1.2

    def router_times(self, at: datetime) -> NDArray[np.float64]:
        """Seconds of every road; may be left out where a router does not tell them."""
        hour = at.astimezone(ZoneInfo(self.time_zone)).hour
        rush = 7 <= hour < 10 or 16 <= hour < 20
        return self.network.free_flow_times_s * (self.rush_factor if rush else self.other_factor)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest way between two nodes, as this router sees it at the moment ``at``."""
        times = self.router_times(at)
        path = self.network.shortest_path(times, origin, destination)
        return RouteQuote(
            path=path,
            duration_s=path.time_s(times),
            next_segment_s=float(times[path.edges[0]]) if len(path) else 0.0,
            optimistic_s=math.nan,  # this router gives no range
            pessimistic_s=math.nan,
            asked_at=at,
            data_age_s=math.nan,
        )
