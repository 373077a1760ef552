"""Traffic of now: what a live router says, and nothing else."""

from collections.abc import Callable
from datetime import datetime

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.outside_service import RequestBudget
from ideal_dispatch.traffic.replayed_traffic import CheckedSource
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource


class PresentTraffic:
    """What calls are driven in as they happen: the quotes of a live router.

    ``driver`` is the router that is asked on the way, ``source`` itself where not told.
    A router that does not count its requests in ``budget`` has each question counted
    there. The weather is not known.
    """

    alternative: Callable[[Path, datetime], RouteQuote | None]
    router_times: Callable[[datetime], FloatArray]

    def __init__(
        self,
        network: RoadNetwork,
        calendar: Calendar,
        source: TrafficSource,
        budget: RequestBudget,
        driver: TrafficSource | None = None,
    ) -> None:
        self.network, self.calendar, self.source = network, calendar, source
        self._router, self.driver = (
            CheckedSource(one, network, None if getattr(one, "budget", None) is budget else budget)
            for one in (source, driver or source)
        )
        for name in ("alternative", "router_times"):
            if hasattr(self._router, name):
                setattr(self, name, getattr(self._router, name))

    def context(self, at: datetime) -> Context:
        """The calendar of that moment."""
        return self.calendar.context(at)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The router's best route and what it promises."""
        return self._router.quote(origin, destination, at)
