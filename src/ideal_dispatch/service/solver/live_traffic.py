"""Traffic for calls that happen now: what every source of it does, and the forecast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ideal_dispatch.context import Calendar, Context, Weather
from ideal_dispatch.dispatch import Assignment, Incident, Situation, observe
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.dispatch.reasons import NO_LIVE_TRAFFIC, Reason
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.traffic.source import TrafficSource

PREPARE_S = 5.0
"""How often sources of traffic are prepared for what comes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call to look at: where, from where, who is free, and who was sent already.

    ``station`` is the depot of an ambulance that was sent, ``path`` its way
    where that is known; else the router's is assumed. ``alternatives`` says
    whether a depot's other route is wanted also where other depots have one.
    The ambulance that was sent left ``sent_ago_s`` before.
    """

    incident: Incident
    depots: Sequence[Depot]
    units: Sequence[int]
    weather: Weather
    station: int | None
    path: Path | None
    wait_s: float
    alternatives: bool = True
    sent_ago_s: float = 0.0

    def observed(
        self, source: TrafficSource, network: RoadNetwork, incident: Incident, context: Context
    ) -> Situation:
        """What the source says about it; the incident may be of a replayed moment."""
        situation = observe(
            source, network, incident, context, self.depots,
            units=self.wanted, alternatives=self.alternatives,
        )  # fmt: skip
        return self.completed(situation)

    @property
    def wanted(self) -> list[int]:
        """Units by which a router knows the depots to be asked about."""
        return [max(n, 1) if i == self.station else n for i, n in enumerate(self.units)]

    def completed(self, situation: Situation) -> Situation:
        """The situation with the ambulance that was sent, and no longer among the units."""
        if self.station is None:
            return situation
        stations = tuple(
            replace(one, units=units)
            for one, units in zip(situation.stations, self.units, strict=True)
        )
        quote, path = stations[self.station].quote, self.path
        if path is None and quote is None:
            raise UnreachableError(
                f"no way leads from {self.depots[self.station].name} to the incident; "
                "check one-way roads there"
            )
        if path is None:
            assert quote is not None
            path = quote.path
        sent = Assignment(self.station, path)
        return replace(situation, stations=stations, sent=sent, sent_ago_s=self.sent_ago_s)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The situation, how old its traffic is, and why it is not what was wanted."""

    situation: Situation
    age_s: float | None
    reasons: tuple[Reason, ...] = ()


class LiveTraffic(Protocol):
    """Where the situation of a call comes from."""

    @property
    def status(self) -> str:
        """Whether it can be used: "ready", "starting", or in words why not."""
        ...

    def prepare(self) -> None:
        """Whatever takes long, before the first call and again now and then."""
        ...

    def look(self, asked: Asked) -> Seen:
        """The situation of a call, within the time it gives."""
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

    def context(self, asked: Asked) -> Context:
        return self.calendar.context(asked.incident.at, asked.weather)

    def look(self, asked: Asked) -> Seen:
        """Quotes by the forecast of this moment."""
        context = self.context(asked)
        router = ForecastRouter(self.model, self.network, context)
        situation = asked.observed(router, self.network, asked.incident, context)
        return Seen(situation, None, (NO_LIVE_TRAFFIC,))


def oldest_quote_s(situation: Situation) -> float | None:
    """How old the data behind the oldest quote are, None where no quote says."""
    ages = [station.quote.data_age_s for station in situation.stations if station.quote]
    known = [age for age in ages if not math.isnan(age)]
    return max(known) if known else None
