"""The forecast in a router's place, where no traffic is known."""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.dispatch.answer import NO_LIVE_TRAFFIC
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.source import RouteQuote


@dataclass(frozen=True, eq=False)
class ForecastRouter:
    """Quotes by the model's nominal times of one context; every quote says that it fell back."""

    model: Model
    network: RoadNetwork
    context: Context

    @cached_property
    def forecast(self) -> Forecast:
        """What all quotes are made from."""
        return self.model.forecast(self.context, self.network)

    @cached_property
    def _times_s(self) -> FloatArray:
        return self.forecast.nominal_times

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path of the forecast, without any range."""
        require_zone(at)
        times = self._times_s
        path = self.network.shortest_path(times, origin, destination)
        return RouteQuote(
            path=path,
            duration_s=path.time_s(times),
            next_segment_s=float(times[path.edges[0]]) if len(path) else 0.0,
            optimistic_s=math.nan,
            pessimistic_s=math.nan,
            asked_at=at,
            data_age_s=math.nan,
            fell_back=NO_LIVE_TRAFFIC[1],
        )
