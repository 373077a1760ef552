"""Live routers: by the name that a file gives them, and what routing services share.

A routing service is asked over HTTP; its route becomes a path of our network.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ideal_dispatch.arrays import FloatArray, whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import (
    InputError,
    TrafficError,
    TrafficServiceError,
    UnreachableError,
)
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.outside_service import (
    HttpAnswer,
    NoAnswerError,
    OutsideService,
    RequestBudget,
    one_line,
    parsed,
    reason,
    refusal,
)
from ideal_dispatch.plugins import TRAFFIC_SOURCES, find_plugin, load_plugin, parameters
from ideal_dispatch.traffic.foreign_route import LEAST_SHARE, laid_on
from ideal_dispatch.traffic.source import TrafficSource

if TYPE_CHECKING:
    from ideal_dispatch.traffic.google_routes import GoogleRoutes
    from ideal_dispatch.traffic.valhalla import Valhalla

NOW_WITHIN_S = 120.0
"""A moment so near the present counts as now."""

ROUTERS = ("google", "valhalla")
"""Live routers of ours."""


def connect_router(
    kind: str,
    network: RoadNetwork,
    rng: np.random.Generator,
    *,
    url: str = "",
    key: str = "",
    ranges: bool = True,
    segment: str = "static_ratio",
    time_zone: str | None = None,
    **how: Any,
) -> "GoogleRoutes | Valhalla":
    """A client of one of :data:`ROUTERS`; ``how`` is as in :class:`RoutingService`.

    ``segment`` and ``ranges`` are Google's alone: see :class:`GoogleParams`.
    """
    if kind == "google":
        from ideal_dispatch.traffic.google_routes import URL, GoogleParams, GoogleRoutes

        params = GoogleParams(segment, ranges)  # type: ignore[arg-type]  # refuses other words
        return GoogleRoutes.connect(network, key, rng, params, url=url or URL, **how)
    from ideal_dispatch.traffic.valhalla import Valhalla, ValhallaParams

    return Valhalla(network, ValhallaParams(time_zone=time_zone), url=url, rng=rng, **how)


def load_router(kind: str, options: Mapping[str, Any], where: str, **offered: Any) -> TrafficSource:
    """A live router of others, registered or ``"module:Name"``; ``where`` names its key."""
    if parameters(find_plugin(TRAFFIC_SOURCES, kind, (), where)).get("recorded"):
        raise InputError(f"{where} {kind!r} needs `recorded`, which only a replay has")
    return load_plugin(
        TRAFFIC_SOURCES, kind, options, where,
        TrafficSource,  # type: ignore[type-abstract]
        **offered,
    )  # fmt: skip


def read_key(file: FilePath) -> str:
    """The key of a router that stands alone in a file."""
    check_source(file)
    return file.read_text(encoding="utf-8", errors="replace").strip()


class ForeignRoute(NamedTuple):
    """What another engine answered: where, how long, and its parts in order.

    ``part_m`` and ``part_s`` hold metres and seconds of each part (step,
    manoeuvre), NaN where the engine gave none.
    """

    points: FloatArray
    duration_s: float
    part_m: FloatArray
    part_s: FloatArray


class RefusedError(TrafficError):
    """A service understood a request and refuses it; ``body`` is the JSON it sent."""

    def __init__(self, text: str, body: Any) -> None:
        super().__init__(text)
        self.body = body


class RoutingService:
    """A routing service at an ``url`` that quotes on our own network.

    ``headers`` may hold a key: they are in no message and no representation, not even where the
    server repeats them. ``options`` are those of an ``OutsideService``. ``usual`` makes the
    parameters of a source that is given none.
    """

    service: ClassVar[str]
    usual: ClassVar[type[Any]]
    params: Any

    def __init__(
        self,
        network: RoadNetwork,
        params: Any = None,
        *,
        url: str,
        headers: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = utc_now,
        **options: Any,
    ) -> None:
        self.network, self.params, self.url = network, params or self.usual(), url.rstrip("/")
        self._headers, self._now = {"Content-Type": "application/json", **(headers or {})}, now
        secrets = (headers or {}).values()
        self._client = OutsideService(self.service, secrets=secrets, **options)

    @property
    def budget(self) -> RequestBudget:
        """How many requests were sent, and may be."""
        return self._client.budget

    def close(self) -> None:
        """Close open connections."""
        self._client.close()

    def describe(self) -> dict[str, Any]:
        """The source of quotes, for the manifest of a run; without the key."""
        rules = {"least_share": LEAST_SHARE, "now_within_s": NOW_WITHIN_S}
        return {"engine": self.service, **rules, **asdict(self.params)}

    def _ask(self, endpoint: str, body: Mapping[str, Any], deadline: float, **headers: str) -> Any:
        """The JSON of a good answer.

        :class:`RefusedError` where the service refuses, :class:`TrafficServiceError`
        where no useful answer came until ``deadline``.
        """

        def read(answer: HttpAnswer) -> tuple[int, Any]:
            good = answer.status == 200
            return answer.status, parsed(answer) if good else refusal(answer)

        try:
            status, content = self._client.ask(
                read, "POST", f"{self.url}/{endpoint}", deadline=deadline,
                headers=self._headers | headers, content=json.dumps(body, allow_nan=False).encode(),
            )  # fmt: skip
        except NoAnswerError as error:
            raise TrafficServiceError(f"{self.service}: {error}") from None
        if status != 200:
            raise RefusedError(
                f"{self.service}: refused with HTTP {status}{reason(content)}; "
                "check the request, the key and the address",
                content,
            )
        return content

    def _check(self, origin: int, destination: int, at: datetime) -> None:
        """Refuse what no service can answer: a time without zone, an unknown node."""
        require_zone(at)
        network = self.network
        for node, what in ((origin, "origin"), (destination, "destination")):
            if not 0 <= whole_number(node, what) < network.num_nodes:
                raise InputError(f"{what} {node} is not a node (0 … {network.num_nodes - 1})")
            if not (np.isfinite(network.lon[node]) and np.isfinite(network.lat[node])):
                raise InputError(f"{what} {node} has no coordinates; a router needs them")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of reading into one: the answer has another form than documented."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            said = one_line(f"{type(error).__name__}: {error}")
            raise TrafficServiceError(f"{self.service}: cannot read the answer: {said}") from None

    def _laid(self, route: ForeignRoute, origin: int, destination: int) -> Path:
        """Our path of a route, which can be driven in the route's time."""
        path = laid_on(self.network, route.points, origin, destination)
        bounds = TimeBounds().on(self.network, path)
        least_s, greatest_s = float(bounds.least_s.sum()), float(bounds.greatest_s.sum())
        if not least_s <= route.duration_s <= greatest_s:
            length_km = path.length_m(self.network) / 1000
            raise TrafficError(
                f"route from node {origin} to node {destination}: {length_km:.1f} km in "
                f"{route.duration_s:.0f} s cannot be driven; it takes {least_s:.0f} s to "
                f"{greatest_s:.0f} s"
            )
        return path

    def _no_way(self, origin: int, destination: int, code: str = "") -> UnreachableError:
        return UnreachableError(
            f"{self.service} finds no way from node {origin} to node {destination}{code}; "
            "check that both lie on roads open to cars"
        )


def first_edge_s(network: RoadNetwork, path: Path, route: ForeignRoute) -> tuple[float, str]:
    """Predicted seconds of the path's first edge, and a note where parts were missing.

    Time runs evenly within a part. Where a part on the edge has no length or no
    time, the mean pace of the whole route is used.
    """
    if len(path) <= 1:
        return (route.duration_s if len(path) else 0.0), ""
    share = float(network.length_m[path.edges[0]]) / path.length_m(network)
    known = np.cumprod(np.isfinite(route.part_m) & np.isfinite(route.part_s)).astype(bool)
    gone_m = np.cumsum(route.part_m[known])
    if known.all() and known.size:
        wanted_m = share * gone_m[-1]
    else:
        wanted_m = float(network.length_m[path.edges[0]])
    if not gone_m.size or not gone_m[-1] > 0 or gone_m[-1] < wanted_m:
        note = "no times of its parts; the route's mean pace is used for the next segment"
        return share * route.duration_s, note
    gone_s = np.cumsum(route.part_s[known])
    return float(np.interp(wanted_m, [0.0, *gone_m], [0.0, *gone_s])), ""


def number_or_nan(values: Mapping[str, Any], name: str) -> float:
    """A number of a JSON object, NaN where it has none of the name."""
    return np.nan if values.get(name) is None else number(values[name])


def number(value: Any) -> float:
    """A number of a JSON answer: finite, and zero or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < np.inf:
        raise ValueError(f"{one_line(repr(value), 40)} is no number of zero or more")
    return float(value)


def joined(notes: Sequence[str]) -> str:
    """Distinct notes in one line, in order."""
    return "; ".join(dict.fromkeys(note for note in notes if note))
