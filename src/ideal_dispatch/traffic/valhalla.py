"""Valhalla: quotes from the free routing engine, which a centre can run itself.

It knows traffic as far as its operator feeds it speeds, live or by hour of the
week, and plain speeds of the map elsewhere.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import shapely

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.outside_service import one_line
from ideal_dispatch.traffic.foreign_route import decode_polyline
from ideal_dispatch.traffic.routers import (
    NOW_WITHIN_S,
    ForeignRoute,
    RefusedError,
    RoutingService,
    first_edge_s,
    joined,
    number,
    number_or_nan,
)
from ideal_dispatch.traffic.source import RouteQuote

SPEED_TYPES = ("freeflow", "constrained", "predicted", "current")
"""Speed sources that Valhalla can use, where it has them."""

MOST_EXCLUDED = 50
"""Locations to keep off that a server takes as it comes (``max_exclude_locations``)."""

_NO_WAY = frozenset({170, 441, 442})  # unconnected regions, unreachable, no path found


@dataclass(frozen=True, slots=True)
class ValhallaParams:
    """What a quote asks of Valhalla.

    ``time_zone`` (IANA) is the city's: Valhalla takes other moments than now
    in local time.
    """

    costing: str = "auto"
    speed_types: tuple[str, ...] = SPEED_TYPES
    time_zone: str | None = None

    def __post_init__(self) -> None:
        wrong = sorted(set(self.speed_types) - set(SPEED_TYPES))
        if wrong or not self.speed_types:
            raise InputError(
                f"speed types {', '.join(wrong) or 'none'}: give some of {', '.join(SPEED_TYPES)}"
            )
        if self.time_zone is not None:
            zone(self.time_zone)


class Valhalla(RoutingService):
    """Quotes from a Valhalla server, on our own network.

    It gives no optimistic and pessimistic times and no age of its data: NaN.
    """

    service = "Valhalla"
    usual = ValhallaParams
    params: ValhallaParams
    _excluded: FloatArray = np.empty((0, 2))

    def describe(self) -> dict[str, Any]:
        """As for every routing service, with the server."""
        return super().describe() | {"server": urlsplit(self.url).netloc.rpartition("@")[2]}

    def avoiding(self, edges: Sequence[int]) -> "Valhalla":
        """The same router, which avoids the roads at the middles of these edges.

        It closes both directions of a road. Of more than :data:`MOST_EXCLUDED` roads it
        avoids those nearest to the trip.
        """
        made = copy(self)
        lines = [shapely.LineString(self.network.polyline(edge)) for edge in edges]
        middles = shapely.line_interpolate_point(lines, 0.5, normalized=True)
        made._excluded = np.unique(shapely.get_coordinates(middles).round(6), axis=0)
        return made

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The best route by the server's speeds; the next segment from its manoeuvres."""
        self._check(origin, destination, at)
        if origin == destination:
            stay = self.network.path([], origin)
            return RouteQuote(stay, 0.0, 0.0, np.nan, np.nan, at, np.nan)
        request = self._request(origin, destination, at)
        try:
            answer = self._ask("route", request, self._client.deadline())
        except RefusedError as error:
            body = error.body if isinstance(error.body, dict) else {}
            if body.get("error_code") in _NO_WAY:
                code = f" (error {body['error_code']})"
                raise self._no_way(origin, destination, code) from None
            raise
        with self._reading():
            route, note = _read_trip(answer)
        path = self._laid(route, origin, destination)
        segment_s, segment_note = first_edge_s(self.network, path, route)
        notes = joined([note, segment_note])
        return RouteQuote(path, route.duration_s, segment_s, np.nan, np.nan, at, np.nan, notes)

    def _request(self, origin: int, destination: int, at: datetime) -> dict[str, Any]:
        costing = self.params.costing
        excluded = self._nearest_excluded(origin, destination)
        closed = {"exclude_locations": excluded} if excluded else {}
        return {
            "locations": [
                {
                    "lat": round(float(self.network.lat[node]), 7),
                    "lon": round(float(self.network.lon[node]), 7),
                    "type": "break",
                }
                for node in (origin, destination)
            ],
            "costing": costing,
            "costing_options": {costing: {"speed_types": list(self.params.speed_types)}},
            "date_time": self._date_time(at),
            "units": "kilometers",
            "directions_type": "maneuvers",
            **closed,
        }

    def _nearest_excluded(self, origin: int, destination: int) -> list[dict[str, float]]:
        """Places to keep off, those that make the way through them the least longer."""
        network = self.network
        ends = [(network.lon[node], network.lat[node]) for node in (origin, destination)]
        scale = np.array([np.cos(np.radians(ends[0][1])), 1.0])
        detour = sum(np.hypot(*((self._excluded - end) * scale).T) for end in ends)
        nearest = np.argsort(detour, kind="stable")[:MOST_EXCLUDED]
        return [{"lat": lat, "lon": lon} for lon, lat in self._excluded[nearest].tolist()]

    def _date_time(self, at: datetime) -> dict[str, Any]:
        away = abs(at - self._now())
        if away <= timedelta(seconds=NOW_WITHIN_S):
            return {"type": 0}
        if self.params.time_zone is None:
            raise InputError(
                f"{self.service} cannot be asked about {at.isoformat()}, which is not now, without "
                "the city's time zone; give time_zone"
            )
        local = at.astimezone(zone(self.params.time_zone))
        return {"type": 1, "value": local.strftime("%Y-%m-%dT%H:%M")}


def _read_trip(answer: Any) -> tuple[ForeignRoute, str]:
    """Route and warnings of an answer."""
    trip = answer["trip"]
    (leg,) = trip["legs"]
    if trip.get("units", "kilometers") != "kilometers":
        raise ValueError(f"units {one_line(str(trip['units']), 20)}, not kilometers")
    maneuvers = leg.get("maneuvers", [])
    route = ForeignRoute(
        points=decode_polyline(leg["shape"], 6),
        duration_s=number(trip["summary"]["time"]),
        part_m=np.array([1000 * number_or_nan(one, "length") for one in maneuvers]),
        part_s=np.array([number_or_nan(one, "time") for one in maneuvers]),
    )
    warnings = trip.get("warnings", answer.get("warnings", []))
    words = warnings if isinstance(warnings, list) else [warnings]
    texts = [one_line(str(w.get("text", w) if isinstance(w, dict) else w)) for w in words]
    return route, joined([f"{Valhalla.service} warns: {text}" for text in texts])
