"""A live routing service, asked about each call."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime
from threading import Lock

import numpy as np

from ideal_dispatch.dispatch import Situation
from ideal_dispatch.errors import IdealError, InputError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.plugins import TRAFFIC_SOURCES, find_plugin, load_plugin, parameters
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.live_traffic import ForecastTraffic
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

log = logging.getLogger(__name__)

_THREADS = 64  # of questions to a router
_MOST_OVERDUE = 48  # that still run although nobody waits for them
_KIND = "traffic.kind"
_ROUTER_AWAY = "the router did not answer the last question; the forecast is used"


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
        self._overdue: set[Future[RouteQuote]] = set()
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
            why = without_secrets(str(error))
        except Exception as error:  # whatever a source of one's own does, calls go on
            log.exception("traffic: unexpected")
            self.status = _ROUTER_AWAY
            why = f"the router failed ({type(error).__name__}); it was logged"
        words = f"{why}; the forecast is used"
        situation = self._otherwise.look(case, wait_s)
        return replace(situation, reasons=(("traffic_unavailable", words),))

    def _asked(self, case: Case, wait_s: float) -> Situation:
        from ideal_dispatch.errors import TrafficServiceError

        with self._lock:
            self._overdue = {one for one in self._overdue if not one.done()}
            overdue = len(self._overdue)
        if overdue > _MOST_OVERDUE:
            raise TrafficServiceError("the router has not answered many questions; not asked again")
        names = {depot.node: depot.name for depot in case.asked}
        where, at = case.incident.node, case.incident.at
        futures = {node: self._pool.submit(self.source.quote, node, where, at) for node in names}
        wait(futures.values(), wait_s)
        late = [name for node, name in names.items() if not futures[node].done()]
        if late:
            running = {future for future in futures.values() if not future.cancel()}
            with self._lock:
                self._overdue |= running
            raise TrafficServiceError(
                f"the router did not answer within {wait_s:.2g} s about {late[0]}"
            )
        context = self._otherwise.context(case)
        return case.observed(_Answers(futures), self._otherwise.network, case.incident, context)


class _Answers:
    """A router that has answered, by the node where a route begins."""

    def __init__(self, quotes: Mapping[int, Future[RouteQuote]]) -> None:
        self._quotes = quotes

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self._quotes[origin].result()


def live_router(
    settings: ServiceSettings, network: RoadNetwork, time_zone: str
) -> tuple[TrafficSource, Callable[[], None]]:
    """A client of a routing service that asks once and not for long, or a source of one's own."""
    from ideal_dispatch.traffic.service_client import Patience

    table, key = settings.traffic, settings.router_key
    patience = Patience(attempts=1, timeout_s=table.wait_s, deadline_s=table.wait_s)
    rng = np.random.default_rng()  # pauses between tries, of which there is one
    if table.kind == "google":
        from ideal_dispatch.traffic.google_routes import URL, GoogleParams, GoogleRoutes

        google = GoogleRoutes.connect(
            network, key, rng, GoogleParams(ranges=table.ranges), url=table.url or URL,
            patience=patience,
        )  # fmt: skip
        return google, google.close
    if table.kind != "valhalla":
        with complaints_about(settings.path):
            if parameters(find_plugin(TRAFFIC_SOURCES, table.kind, (), _KIND)).get("recorded"):
                raise InputError(
                    f"{_KIND} {table.kind!r} needs `recorded`, which only a replay has"
                )
            own = load_plugin(
                TRAFFIC_SOURCES, table.kind, table.options, _KIND,
                TrafficSource,  # type: ignore[type-abstract]
                network=network, url=table.url,
                key=key, wait_s=table.wait_s, time_zone=time_zone, folder=settings.folder,
            )  # fmt: skip
        return own, getattr(own, "close", lambda: None)
    from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams

    valhalla = Valhalla.connect(
        network, table.url, rng, ValhallaParams(time_zone=time_zone), patience=patience
    )
    return valhalla, valhalla.close
