"""Google Routes: live quotes of a commercial router with traffic.

It answers for now or later, never for the past.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import numpy as np

from ideal_dispatch.errors import InputError, TrafficError, UnreachableError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.outside_service import one_line
from ideal_dispatch.ranges import Checked
from ideal_dispatch.traffic.foreign_route import decode_polyline
from ideal_dispatch.traffic.routers import (
    NOW_WITHIN_S,
    ForeignRoute,
    RoutingService,
    first_edge_s,
    joined,
    number_or_nan,
)
from ideal_dispatch.traffic.source import RouteQuote

URL = "https://routes.googleapis.com"

_ENDPOINT = "directions/v2:computeRoutes"
_BEST_GUESS = "BEST_GUESS"  # which may lie outside the optimistic and the pessimistic time
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?s")

_DURATION = "routes.duration,fallbackInfo"
_LEG_DURATION = "routes.legs.duration,fallbackInfo"
_WHOLE = (
    "routes.duration,routes.polyline.encodedPolyline,routes.legs.duration,"
    "routes.legs.staticDuration,routes.legs.steps.distanceMeters,"
    "routes.legs.steps.staticDuration,fallbackInfo"
)
"""The fields of an answer that are asked for."""


_Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GoogleParams(Checked):
    """What a quote asks of Google.

    ``segment`` says how the time of the next segment is made, for Google gives none
    with traffic. "static_ratio": times of the steps without traffic, by the leg's
    ratio of time with traffic to time without; no further request. "stopover": a
    second route that stops at the segment's end, and the time of its first leg.
    "own_query": the segment as a separate route. ``ranges`` asks for the
    optimistic and the pessimistic time too, each a request.
    """

    segment: Literal["static_ratio", "stopover", "own_query"] = "static_ratio"
    ranges: bool = True


class GoogleRoutes(RoutingService):
    """Quotes from Google Routes, on our own network.

    The paths of optimistic and pessimistic time may be other paths. When one of
    the further requests fails, the quote says so in ``fell_back`` and goes
    without. When the first fails, there is no quote. Google does not say how
    old its data is: ``data_age_s`` is NaN.
    """

    service = "Google Routes"
    usual = GoogleParams
    params: GoogleParams

    @classmethod
    def connect(
        cls,
        network: RoadNetwork,
        api_key: str,
        rng: np.random.Generator,
        params: GoogleParams | None = None,
        *,
        url: str = URL,
        **options: Any,
    ) -> "GoogleRoutes":
        """A live source; ``options`` are those of :class:`RoutingService`."""
        if not api_key.strip() or not api_key.isascii() or not api_key.isprintable():
            raise InputError("Google Routes: the API key is empty or has odd characters")
        key = {"X-Goog-Api-Key": api_key.strip()}
        return cls(network, params, url=url, headers=key, rng=rng, **options)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest route with traffic, its times by the three traffic models."""
        self._check(origin, destination, at)
        if origin == destination:
            stay = self.network.path([], origin)
            return RouteQuote(stay, 0.0, 0.0, 0.0, 0.0, at, np.nan)
        ends, notes = (origin, destination), list[str]()
        ask = partial(self._first_route, at=at, deadline=self._client.deadline(), notes=notes)
        answer = ask(ends, _WHOLE)
        with self._reading():
            route = _route(answer)
        path = self._laid(route, origin, destination)

        def extra_s(
            lost: str, nodes: Sequence[int], fields: str = _DURATION, model: str = _BEST_GUESS
        ) -> float:
            """A further time, or NaN and a note of what is ``lost`` where it cannot be had."""
            try:
                answer = ask(nodes, fields, model)
                with self._reading():
                    of = answer if fields == _DURATION else answer["legs"][0]
                    return _seconds(of["duration"])
            except (TrafficError, UnreachableError) as error:  # a used-up budget ends the run
                notes.append(f"{lost} ({error})")
                return np.nan

        segment_s, note = first_edge_s(self.network, path, route)
        way = self.params.segment
        if way == "static_ratio" or len(path) <= 1:
            notes.append(note)
        else:
            end = int(self.network.head[path.edges[0]])
            lost = f"no {way} time of the next segment, static_ratio used"
            if way == "stopover":
                own_s = extra_s(lost, [origin, end, destination], _LEG_DURATION)
            else:
                own_s = extra_s(lost, [origin, end])
            segment_s = segment_s if np.isnan(own_s) else own_s
        low_s, high_s = (
            extra_s(f"no {model.lower()} time", ends, model=model) if self.params.ranges else np.nan
            for model in ("OPTIMISTIC", "PESSIMISTIC")
        )
        words = joined(notes)
        return RouteQuote(path, route.duration_s, segment_s, low_s, high_s, at, np.nan, words)

    def _first_route(
        self, nodes: Sequence[int], fields: str, model: str = _BEST_GUESS, *,
        at: datetime, deadline: float, notes: list[str],
    ) -> _Object:  # fmt: skip
        """The first route of an answer; nodes between the ends are stopovers."""
        places = [self._place(node) for node in nodes]
        body: _Object = {
            "origin": places[0],
            "destination": places[-1],
            "travelMode": "DRIVE",
            "routingPreference": "TRAFFIC_AWARE_OPTIMAL",
            "trafficModel": model,
            "polylineQuality": "HIGH_QUALITY",
            "polylineEncoding": "ENCODED_POLYLINE",
        } | self._departure(at)
        if len(places) > 2:
            body["intermediates"] = places[1:-1]
        answer = self._ask(_ENDPOINT, body, deadline, **{"X-Goog-FieldMask": fields})
        with self._reading():
            if not answer.get("routes"):
                raise self._no_way(nodes[0], nodes[-1])
            if info := answer.get("fallbackInfo"):  # then the time is not what was asked for
                mode, why = (one_line(str(info.get(k)), 60) for k in ("routingMode", "reason"))
                notes.append(f"Google fell back to {mode} ({why})")
            route: _Object = answer["routes"][0]
            return route

    def _place(self, node: int) -> _Object:
        lat, lon = (round(float(of[node]), 7) for of in (self.network.lat, self.network.lon))
        return {"location": {"latLng": {"latitude": lat, "longitude": lon}}}

    def _departure(self, at: datetime) -> _Object:
        """Nothing for now: a now that is past on arrival is refused."""
        now, near = self._now(), timedelta(seconds=NOW_WITHIN_S)
        if at < now - near:
            raise InputError(
                f"{self.service} cannot be asked about {at.isoformat()}, which is past"
            )
        if at <= now + near:
            return {}
        return {"departureTime": at.astimezone(UTC).isoformat().replace("+00:00", "Z")}


def _route(route: _Object) -> ForeignRoute:
    """Its parts are the first leg's steps.

    Google gives their times without traffic only: they are multiplied by the
    leg's time with traffic over that without.
    """
    leg = route["legs"][0]
    steps = leg.get("steps", [])
    static_s, with_traffic_s = (_seconds_or_nan(leg, k) for k in ("staticDuration", "duration"))
    ratio = with_traffic_s / static_s if static_s > 0 else np.nan
    return ForeignRoute(
        points=decode_polyline(route["polyline"]["encodedPolyline"]),
        duration_s=_seconds(route["duration"]),
        part_m=np.array([number_or_nan(step, "distanceMeters") for step in steps], float),
        part_s=ratio * np.array([_seconds_or_nan(step, "staticDuration") for step in steps], float),
    )


def _seconds_or_nan(values: _Object, name: str) -> float:
    return _seconds(values[name]) if name in values else np.nan


def _seconds(text: Any) -> float:
    """Of a duration such as "712s" or "0.5s"."""
    if not _SECONDS.fullmatch(text):
        raise ValueError(f"duration {one_line(repr(text), 40)}, not such as '712s'")
    return float(text[:-1])
