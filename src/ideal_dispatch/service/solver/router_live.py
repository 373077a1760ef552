"""A live routing service, asked about each call."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Lock

import numpy as np

from ideal_dispatch.dispatch import Situation
from ideal_dispatch.dispatch.reasons import fallbacks
from ideal_dispatch.dispatch.situation import Station
from ideal_dispatch.errors import IdealError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.live_traffic import ForecastTraffic
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

    def look(self, case: Case, wait_s: float) -> Situation:
        """The router's situation, else the forecast's with the reason."""
        try:
            situation = self._asked(case, wait_s)
            self.status = "ready"
            return situation
        except IdealError as error:
            if not isinstance(error, UnreachableError):  # that was an answer
                self.status = _ROUTER_AWAY
            words = f"{without_secrets(str(error))}; the forecast is used"
            situation = self._otherwise.look(case, wait_s)
            return replace(situation, reasons=(("traffic_unavailable", words),))

    def _asked(self, case: Case, wait_s: float) -> Situation:
        from ideal_dispatch.errors import TrafficServiceError

        with self._lock:
            self._overdue = {one for one in self._overdue if not one.done()}
            overdue = len(self._overdue)
        if overdue > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        futures = {
            number: self._pool.submit(self._quote, case.depots[number].node, case)
            for number, units in enumerate(case.wanted)
            if units > 0
        }
        wait(futures.values(), wait_s)
        late = [number for number, future in futures.items() if not future.done()]
        if late:
            running = {future for future in futures.values() if not future.cancel()}
            with self._lock:
                self._overdue |= running
            raise TrafficServiceError(
                f"the router did not answer within {wait_s:.2g} s about {case.depots[late[0]].name}"
            )
        quotes = {number: future.result() for number, future in futures.items()}
        stations = tuple(
            Station(depot, units, quotes.get(number))
            for number, (depot, units) in enumerate(zip(case.depots, case.wanted, strict=True))
        )
        context = self._otherwise.context(case)
        situation = Situation(
            self._otherwise.network, case.incident, context, stations, reasons=fallbacks(stations)
        )
        return case.completed(situation)

    def _quote(self, origin: int, case: Case) -> RouteQuote | None:
        try:
            return self.source.quote(origin, case.incident.node, case.incident.at)
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
