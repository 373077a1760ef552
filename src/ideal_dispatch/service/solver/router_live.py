"""A live routing service, asked about each call."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

import numpy as np

from ideal_dispatch.dispatch import Situation
from ideal_dispatch.dispatch.reasons import fallbacks
from ideal_dispatch.dispatch.situation import Station
from ideal_dispatch.errors import IdealError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.solver.live_traffic import Asked, ForecastTraffic, Seen, oldest_quote_s
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

_THREADS = 64  # of questions to a router
_MOST_OVERDUE = 48  # that still run although nobody waits for them
_ROUTER_AWAY = "the router did not answer the last call; the forecast is used"


class RouterLive:
    """A routing service, asked about all depots at once within the time a call can spare.

    Where it does not answer for every depot in time, none of its answers is
    used: a quote and a forecast cannot be compared. ``status`` tells how the
    last call went.
    """

    def __init__(
        self, source: TrafficSource, otherwise: ForecastTraffic, close: Callable[[], None]
    ) -> None:
        self.source, self._otherwise, self._close = source, otherwise, close
        self._pool = ThreadPoolExecutor(_THREADS, "router")
        self._overdue: set[Future[RouteQuote | None]] = set()
        self._lock = Lock()
        self.status = "ready"

    def prepare(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Give up connections; questions that hang are left behind."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._close()

    def look(self, asked: Asked) -> Seen:
        """The router's situation, else the forecast's with the reason."""
        try:
            seen = self._asked(asked)
            self.status = "ready"
            return seen
        except IdealError as error:
            if not isinstance(error, UnreachableError):  # that was an answer
                self.status = _ROUTER_AWAY
            seen = self._otherwise.look(asked)
            words = f"{without_secrets(str(error))}; the forecast is used"
            reason = ("traffic_unavailable", words)
            return Seen(seen.situation, None, (reason,))

    def _asked(self, asked: Asked) -> Seen:
        from ideal_dispatch.errors import TrafficServiceError

        with self._lock:
            self._overdue = {one for one in self._overdue if not one.done()}
            overdue = len(self._overdue)
        if overdue > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        futures = {
            number: self._pool.submit(self._quote, asked.depots[number].node, asked)
            for number, units in enumerate(asked.wanted)
            if units > 0
        }
        wait(futures.values(), asked.wait_s)
        late = [number for number, future in futures.items() if not future.done()]
        if late:
            running = {future for future in futures.values() if not future.cancel()}
            with self._lock:
                self._overdue |= running
            raise TrafficServiceError(
                f"the router did not answer within {asked.wait_s:.2g} s about "
                f"{asked.depots[late[0]].name}"
            )
        quotes = {number: future.result() for number, future in futures.items()}
        stations = tuple(
            Station(depot, units, quotes.get(number))
            for number, (depot, units) in enumerate(zip(asked.depots, asked.wanted, strict=True))
        )
        context = self._otherwise.context(asked)
        situation = Situation(self._otherwise.network, asked.incident, context, stations)
        reasons = tuple(fallbacks(situation))
        return Seen(asked.completed(situation), oldest_quote_s(situation), reasons)

    def _quote(self, origin: int, asked: Asked) -> RouteQuote | None:
        try:
            return self.source.quote(origin, asked.incident.node, asked.incident.at)
        except UnreachableError:
            return None


def live_router(
    kind: str, network: RoadNetwork, url: str, key: str, wait_s: float, zone: str, ranges: bool
) -> tuple[TrafficSource, Callable[[], None]]:
    """A client of a routing service that asks once and not for long."""
    from ideal_dispatch.traffic.service_client import Patience

    patience = Patience(attempts=1, timeout_s=wait_s, deadline_s=wait_s)
    rng = np.random.default_rng()  # pauses between tries, of which there is one
    if kind == "google":
        from ideal_dispatch.traffic.google_routes import URL, GoogleParams, GoogleRoutes

        google = GoogleRoutes.connect(
            network, key, rng, GoogleParams(ranges=ranges), url=url or URL, patience=patience
        )
        return google, google.close
    from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams

    valhalla = Valhalla.connect(
        network, url, rng, ValhallaParams(time_zone=zone), patience=patience
    )
    return valhalla, valhalla.close
