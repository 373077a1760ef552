"""Messages of the Google Routes API: requests as it wants them, answers as it gives them."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.http_client import one_line
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic import polyline
from ideal_dispatch.traffic.foreign_route import ForeignRoute, finite

ROUTES = "directions/v2:computeRoutes"

ROUTE_FIELDS = ",".join(
    [
        "routes.duration",
        "routes.polyline.encodedPolyline",
        "routes.legs.duration",
        "routes.legs.staticDuration",
        "routes.legs.steps.distanceMeters",
        "routes.legs.steps.staticDuration",
        "fallbackInfo",
    ]
)
DURATION_FIELDS = "routes.duration,fallbackInfo"
LEG_FIELDS = "routes.legs.duration,fallbackInfo"

_DURATION = re.compile(r"\d{1,9}(\.\d{1,9})?s")


class TrafficModel(StrEnum):
    """Whose guess: Google's best may lie outside the other two."""

    BEST_GUESS = "BEST_GUESS"
    OPTIMISTIC = "OPTIMISTIC"
    PESSIMISTIC = "PESSIMISTIC"


# --- requests -----------------------------------------------------------------------


def place(network: RoadNetwork, node: int) -> dict[str, Any]:
    """A waypoint at a node of ours."""
    lat, lon = round(float(network.lat[node]), 7), round(float(network.lon[node]), 7)
    return {"location": {"latLng": {"latitude": lat, "longitude": lon}}}


def route_request(
    waypoints: Sequence[dict[str, Any]], model: TrafficModel, departure: datetime | None
) -> dict[str, Any]:
    """Body of computeRoutes; waypoints between the ends are stopovers and end a leg."""
    body: dict[str, Any] = {
        "origin": waypoints[0],
        "destination": waypoints[-1],
        "travelMode": "DRIVE",
        "routingPreference": "TRAFFIC_AWARE_OPTIMAL",
        "trafficModel": model.value,
        "polylineQuality": "HIGH_QUALITY",
        "polylineEncoding": "ENCODED_POLYLINE",
    }
    if departure is not None:
        body["departureTime"] = departure.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if len(waypoints) > 2:
        body["intermediates"] = list(waypoints[1:-1])
    return body


# --- answers: a ValueError says what is wrong with one ---------------------------------


def duration_s(text: Any, what: str = "duration") -> float:
    """Seconds of a duration such as "712s" or "0.5s".

    >>> duration_s("712.25s")
    712.25
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"{what} is {one_line(repr(text), 40)}, not such as '712s'")
    return float(text[:-1])


def read_route(answer: Any) -> tuple[ForeignRoute, str] | None:
    """The first route and a note on a fallback, or None where there is no route.

    Its parts are the first leg's steps. Google gives their times without traffic
    only: they are multiplied by the leg's time with traffic over that without.
    """
    route = _first_route(answer)
    if route is None:
        return None
    leg = _first_leg(route)
    steps = leg.get("steps", [])
    if not isinstance(steps, list):
        raise ValueError("steps are not a list")
    try:
        points = polyline.decode(str(_object(route.get("polyline"), "polyline")["encodedPolyline"]))
    except KeyError:
        raise ValueError("the route has no polyline") from None
    except InputError as error:
        raise ValueError(str(error)) from None
    static_s = _optional_s(leg.get("staticDuration"))
    with_traffic_s = _optional_s(leg.get("duration"))
    ratio = with_traffic_s / static_s if static_s > 0 else math.nan
    found = ForeignRoute(
        points=points,
        duration_s=duration_s(route.get("duration")),
        part_m=np.array([_optional_m(_object(s, "step").get("distanceMeters")) for s in steps]),
        part_s=ratio * np.array([_optional_s(s.get("staticDuration")) for s in steps], float),
    )
    return found, read_fallback(answer)


def read_duration(answer: Any) -> tuple[float, str] | None:
    """Duration of the first route and a note on a fallback, or None without a route."""
    route = _first_route(answer)
    if route is None:
        return None
    return duration_s(route.get("duration")), read_fallback(answer)


def read_first_leg(answer: Any) -> tuple[float, str] | None:
    """Duration of the first leg and a note on a fallback, or None without a route."""
    route = _first_route(answer)
    if route is None:
        return None
    return duration_s(_first_leg(route).get("duration"), "leg duration"), read_fallback(answer)


def read_fallback(answer: Any) -> str:
    """Words on a fallback: then the time is not what was asked for."""
    info = answer.get("fallbackInfo")
    if not info:
        return ""
    info = info if isinstance(info, dict) else {}
    mode, reason = (one_line(str(info.get(k, "not said")), 60) for k in ("routingMode", "reason"))
    return f"Google fell back to {mode} ({reason})"


def _first_route(answer: Any) -> dict[str, Any] | None:
    routes = _object(answer, "answer").get("routes", [])
    if not isinstance(routes, list):
        raise ValueError("routes are not a list")
    return _object(routes[0], "route") if routes else None


def _first_leg(route: dict[str, Any]) -> dict[str, Any]:
    legs = route.get("legs")
    if not isinstance(legs, list) or not legs:
        raise ValueError("the route has no legs")
    return _object(legs[0], "leg")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return value


def _optional_s(text: Any) -> float:
    return math.nan if text is None else duration_s(text, "staticDuration")


def _optional_m(value: Any) -> float:
    return math.nan if value is None else finite(value, "distanceMeters")
