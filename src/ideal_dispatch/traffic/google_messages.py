"""Messages of the Google Routes API: requests as it wants them, answers as it gives them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.http_client import one_line
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic import polyline
from ideal_dispatch.traffic.foreign_route import finite

ROUTES, MATRIX = "directions/v2:computeRoutes", "distanceMatrix/v2:computeRouteMatrix"

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
MATRIX_FIELDS = "originIndex,destinationIndex,status,condition,duration,fallbackInfo"

MATRIX_LIMIT = 100
"""Elements of one traffic-aware matrix."""

_DURATION = re.compile(r"\d{1,9}(\.\d{1,9})?s")


class TrafficModel(StrEnum):
    """Whose guess: Google's best may lie outside the other two."""

    BEST_GUESS = "BEST_GUESS"
    OPTIMISTIC = "OPTIMISTIC"
    PESSIMISTIC = "PESSIMISTIC"


@dataclass(frozen=True, slots=True, eq=False)
class GoogleRoute:
    """The first route of an answer.

    ``step_m`` and ``step_static_s`` are of the first leg's steps, NaN where
    absent; ``traffic_ratio`` is that leg's time with traffic over its time
    without, NaN where one is absent.
    """

    points: FloatArray
    duration_s: float
    step_m: FloatArray
    step_static_s: FloatArray
    traffic_ratio: float
    fell_back: str


# --- requests -----------------------------------------------------------------------


def place(network: RoadNetwork, node: int) -> dict[str, Any]:
    """A waypoint at a node of ours."""
    lat, lon = round(float(network.lat[node]), 7), round(float(network.lon[node]), 7)
    return {"location": {"latLng": {"latitude": lat, "longitude": lon}}}


def _common(model: TrafficModel, departure: datetime | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "travelMode": "DRIVE",
        "routingPreference": "TRAFFIC_AWARE_OPTIMAL",
        "trafficModel": model.value,
    }
    if departure is not None:
        body["departureTime"] = departure.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return body


def route_request(
    waypoints: Sequence[dict[str, Any]], model: TrafficModel, departure: datetime | None
) -> dict[str, Any]:
    """Body of computeRoutes; waypoints between the ends are stopovers and end a leg."""
    body = {"origin": waypoints[0], "destination": waypoints[-1], **_common(model, departure)}
    body |= {"polylineQuality": "HIGH_QUALITY", "polylineEncoding": "ENCODED_POLYLINE"}
    if len(waypoints) > 2:
        body["intermediates"] = list(waypoints[1:-1])
    return body


def matrix_request(
    origins: Sequence[dict[str, Any]],
    destinations: Sequence[dict[str, Any]],
    model: TrafficModel,
    departure: datetime | None,
) -> dict[str, Any]:
    """Body of computeRouteMatrix."""
    return {
        "origins": [{"waypoint": one} for one in origins],
        "destinations": [{"waypoint": one} for one in destinations],
        **_common(model, departure),
    }


# --- answers: a ValueError says what is wrong with one ---------------------------------


def duration_s(text: Any, what: str = "duration") -> float:
    """Seconds of a duration such as "712s" or "0.5s".

    >>> duration_s("712.25s")
    712.25
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"{what} is {one_line(repr(text), 40)}, not such as '712s'")
    return float(text[:-1])


def read_route(answer: Any) -> GoogleRoute | None:
    """The first route with its steps, or None where there is no route."""
    route = _first_route(answer)
    if route is None:
        return None
    leg = _first_leg(route)
    steps = leg.get("steps", [])
    if not isinstance(steps, list):
        raise ValueError("steps are no list")
    try:
        points = polyline.decode(str(_object(route.get("polyline"), "polyline")["encodedPolyline"]))
    except KeyError:
        raise ValueError("the route has no polyline") from None
    except InputError as error:
        raise ValueError(str(error)) from None
    static_s = _optional_s(leg.get("staticDuration"))
    with_traffic_s = _optional_s(leg.get("duration"))
    return GoogleRoute(
        points=points,
        duration_s=duration_s(route.get("duration")),
        step_m=np.array([_optional_m(_object(s, "step").get("distanceMeters")) for s in steps]),
        step_static_s=np.array([_optional_s(s.get("staticDuration")) for s in steps]),
        traffic_ratio=with_traffic_s / static_s if static_s > 0 else math.nan,
        fell_back=read_fallback(answer),
    )


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


def read_matrix(answer: Any, rows: int, columns: int) -> tuple[FloatArray, str]:
    """Seconds from each origin to each destination, infinite without a way, and fallbacks."""
    if not isinstance(answer, list):
        raise ValueError("a matrix comes as a list")
    times = np.full((rows, columns), np.nan)
    note = ""
    for element in answer:
        entry = _object(element, "element")
        row, column = entry.get("originIndex", 0), entry.get("destinationIndex", 0)
        if not (_index(row, rows) and _index(column, columns)):
            raise ValueError(f"element {row}, {column} is outside {rows} × {columns}")
        status = _object(entry.get("status", {}), "status")
        if status.get("code", 0) != 0:
            raise ValueError(f"element {row}, {column}: {one_line(str(status.get('message')))}")
        no_way = entry.get("condition") == "ROUTE_NOT_FOUND"
        times[row, column] = np.inf if no_way else duration_s(entry.get("duration"))
        note = note or read_fallback(entry)
    missing = int(np.isnan(times).sum())
    if missing:
        raise ValueError(f"{missing} of {times.size} elements are missing")
    return times, note


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
        raise ValueError("routes are no list")
    return _object(routes[0], "route") if routes else None


def _first_leg(route: dict[str, Any]) -> dict[str, Any]:
    legs = route.get("legs")
    if not isinstance(legs, list) or not legs:
        raise ValueError("the route has no legs")
    return _object(legs[0], "leg")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    return value


def _index(value: Any, size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < size


def _optional_s(text: Any) -> float:
    return math.nan if text is None else duration_s(text, "staticDuration")


def _optional_m(value: Any) -> float:
    return math.nan if value is None else finite(value, "distanceMeters")
