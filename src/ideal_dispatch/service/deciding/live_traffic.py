"""Traffic for calls that happen now: the forecast, a replayed recording, or a routing service."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from ideal_dispatch.context import Context
from ideal_dispatch.dispatch import Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.dispatch.situation import ForecastRouter
from ideal_dispatch.errors import IdealError, TrafficServiceError, UnreachableError
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.routers import ROUTERS, connect_router, load_router
from ideal_dispatch.traffic.source import AvoidsEdges, RouteQuote, TrafficSource

log = logging.getLogger(__name__)

_REPLAYED = ("recorded_traffic", "traffic is a recording of other days, replayed as if it were now")
_THREADS = 64  # of questions to a router; one that hangs is asked no more than these
_ROUTER_AWAY = "the router did not answer the last question; the forecast is used"


@dataclass(frozen=True, slots=True)
class TrafficQuery:
    """A call whose ways are asked for: who could go, on the roads of ``network``.

    ``alternatives`` says whether a depot's other route is wanted also where other depots have one.
    """

    network: RoadNetwork
    incident: Incident
    context: Context
    ready: Readiness
    alternatives: bool = True

    def put_to(self, source: TrafficSource) -> Situation:
        about = self.network, self.incident, self.context, self.ready
        return observe(source, *about, alternatives=self.alternatives)


@dataclass(eq=False)
class LiveTraffic:
    """The situation of a call by the model's own times; subclasses ask elsewhere first.

    ``status`` is "ready", or says why the traffic cannot be used.
    """

    model: Model
    status: str = field(default="ready", init=False)

    def close(self) -> None:
        """Give up connections."""

    def look(self, query: TrafficQuery, wait_s: float | None) -> Situation:
        """The situation of a call, within so many seconds; with None no service is asked."""
        return self.forecast(query)

    def forecast(self, query: TrafficQuery, *why: Reason) -> Situation:
        """The situation by the model's own times; ``why`` these are used in another's place."""
        situation = query.put_to(ForecastRouter(self.model, query.network, query.context))
        return replace(situation, reasons=why or situation.reasons)


@dataclass(eq=False)
class RecordedLive(LiveTraffic):
    """A recording replayed against the service's clock, as if it happened now."""

    recording: RecordedTraffic

    def __post_init__(self) -> None:
        self._router = RecordedRouter(self.recording)

    def look(self, query: TrafficQuery, wait_s: float | None) -> Situation:
        """What the recording's router says, by its own clock and weather."""
        at = self.recording.standing_for(query.incident.at)
        context, weather = self.recording.context(at), query.context.weather
        if any(value.known for value in weather):
            context = self.recording.calendar.context(at, weather)
        moved = replace(query, incident=replace(query.incident, at=at), context=context)
        situation = moved.put_to(self._router.on(query.network))
        return replace(situation, reasons=(_REPLAYED,))


@dataclass(eq=False)
class RouterLive(LiveTraffic):
    """A routing service, asked about all depots at once within the time a call can spare.

    Its answers are used only if there is one for every depot, and none over a closed road: a
    quote and a forecast cannot be compared.
    """

    source: TrafficSource

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "router")

    @classmethod
    def connect(cls, settings: ServiceSettings, network: RoadNetwork, model: Model) -> "RouterLive":
        """By a client of a routing service that asks once and not for long, or by a plug-in."""
        from ideal_dispatch.outside_service import Patience

        table, key, zone = settings.traffic, settings.router_key, settings.city.time_zone
        if table.kind in ROUTERS:
            patience = Patience(attempts=1, timeout_s=table.wait_s, deadline_s=table.wait_s)
            rng = np.random.default_rng()  # pauses between tries, of which there is one
            source: TrafficSource = connect_router(
                table.kind, network, rng, url=table.url, key=key, ranges=table.ranges,
                time_zone=zone, patience=patience,
            )  # fmt: skip
        else:
            with complaints_about(settings.path):
                source = load_router(
                    table.kind, table.options, "traffic.kind", network=network, url=table.url,
                    key=key, wait_s=table.wait_s, time_zone=zone, folder=settings.folder,
                )  # fmt: skip
        return cls(model, source)

    def close(self) -> None:
        """Give up connections; questions that hang are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        getattr(self.source, "close", lambda: None)()

    def look(self, query: TrafficQuery, wait_s: float | None) -> Situation:
        """The router's situation, else the forecast's with the reason."""
        if wait_s is None:
            return self.forecast(query)
        code, status = "traffic_unavailable", _ROUTER_AWAY
        try:
            situation = self._asked(query, wait_s)
            self.status = "ready"
            return situation
        except UnreachableError as error:  # that was an answer
            why, status = str(error), "ready"
            code = "closed_road" if query.network.closed else code
        except IdealError as error:
            why = without_secrets(str(error))
        except Exception as error:  # whatever a plug-in does, calls go on
            log.exception("traffic: unexpected")
            why = f"the router failed ({type(error).__name__}); it was logged"
        self.status = status
        return self.forecast(query, (code, f"{why}; the forecast is used"))

    def _asked(self, query: TrafficQuery, wait_s: float) -> Situation:
        asked = [query.ready.depots[number] for number in query.ready.asked]
        names = {depot.node: depot.name for depot in asked}
        where, at = query.incident.node, query.incident.at
        source, closed = self.source, query.network.closed
        if closed and isinstance(source, AvoidsEdges):
            source = source.avoiding(closed)
        futures = {node: self._pool.submit(source.quote, node, where, at) for node in names}
        wait(futures.values(), wait_s)
        late = [name for node, name in names.items() if not futures[node].done()]
        if late:
            for future in futures.values():
                future.cancel()
            words = f"the router did not answer within {wait_s:.2g} s about {late[0]}"
            raise TrafficServiceError(words)
        for node, future in futures.items() if closed else ():
            error = future.exception()
            if isinstance(error, UnreachableError):  # it may have closed more than we did
                words = f"the router finds no way around closed roads from {names[node]}"
                raise UnreachableError(words)
            if error is None and np.isin(future.result().path.edges, closed).any():
                raise UnreachableError(f"the router's way from {names[node]} is over a closed road")
        return query.put_to(_Answers(futures))


class _Answers(dict[int, "Future[RouteQuote]"]):
    """A router that has answered, by the node where a route begins."""

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self[origin].result()
