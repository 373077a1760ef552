"""Traffic for calls that happen now: what every source of it does, and the forecast."""

from typing import Protocol

from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.dispatch import Situation
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.solver.case import Case

PREPARE_S = 5.0
"""How often sources of traffic are prepared for what comes."""


class LiveTraffic(Protocol):
    """Where the situation of a call comes from."""

    @property
    def status(self) -> str:
        """Whether it can be used: "ready", "starting", or in words why not."""
        ...

    def prepare(self) -> None:
        """Whatever takes long, before the first call and again now and then."""
        ...

    def look(self, case: Case, wait_s: float) -> Situation:
        """The situation of a call, within so many seconds."""
        ...

    def close(self) -> None:
        """Give up connections."""
        ...


class ForecastTraffic:
    """The model's own times: no live traffic at all."""

    status = "ready"

    def __init__(self, network: RoadNetwork, calendar: Calendar, model: Model) -> None:
        self.network, self.calendar, self.model = network, calendar, model

    def prepare(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing is open."""

    def context(self, case: Case) -> Context:
        return self.calendar.context(case.incident.at, case.weather)

    def look(self, case: Case, wait_s: float) -> Situation:
        """Quotes by the forecast of this moment."""
        context = self.context(case)
        router = ForecastRouter(self.model, self.network, context)
        return case.observed(router, self.network, case.incident, context)
