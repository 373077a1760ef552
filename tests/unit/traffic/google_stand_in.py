"""Google Routes on loopback: keeps its contract on a network of ours, and can be spoiled."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from ideal_dispatch import Path, RoadNetwork
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.outside_service import Patience
from ideal_dispatch.traffic.google_routes import GoogleParams, GoogleRoutes
from tests.polylines import encode_polyline
from tests.stand_in import Answer, Asked, Server, serve

KEY = "AIza-test-key-of-nobody"
NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
QUICK = Patience(timeout_s=60.0, deadline_s=120.0, pause_s=0.0)
PLAIN = GoogleParams(ranges=False)
MODELS = {"BEST_GUESS": 1.0, "OPTIMISTIC": 1.05, "PESSIMISTIC": 1.3}
"""Factors of the traffic models: the best guess is outside the other two, as may be."""

Body = dict[str, Any]


@dataclass
class GoogleTown:
    """A network with traffic; ``spoil`` changes answers, ``first`` are said before all else."""

    network: RoadNetwork
    times_s: np.ndarray[Any, Any]
    spoil: Callable[[Any, Body], None] = lambda answer, request: None
    first: list[Answer] = field(default_factory=list)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def answer(self, asked: Asked) -> Answer:
        if self.first:
            return self.first.pop(0)
        if asked.headers.get("x-goog-api-key") != KEY:
            return error(403, "PERMISSION_DENIED", "The caller does not have permission")
        mask = asked.headers.get("x-goog-fieldmask", "")
        if not mask:
            return error(400, "INVALID_ARGUMENT", "FieldMask is a required parameter.")
        request = json.loads(asked.body)
        refused = self._refused(request)
        if refused:
            return error(400, "INVALID_ARGUMENT", refused)
        said: Any
        if asked.path == "/directions/v2:computeRoutes":
            said = self._routes(request)
        else:
            return Answer("<html>404</html>", 404)
        self.spoil(said, request)
        fields = [name.split(".") for name in mask.split(",")]
        return Answer(json.dumps(masked(said, fields)))

    def _refused(self, request: Body) -> str:
        if "trafficModel" in request and (
            request.get("routingPreference") != "TRAFFIC_AWARE_OPTIMAL"
            or request.get("travelMode", "DRIVE") != "DRIVE"
        ):
            return "trafficModel needs TRAFFIC_AWARE_OPTIMAL and DRIVE."
        departure = request.get("departureTime")
        if departure and datetime.fromisoformat(departure) <= self.now():
            return "Timestamp must be set to a future time."
        if len(request.get("intermediates", [])) > 25:
            return "Too many intermediates."
        if len(request.get("origins", "1")) * len(request.get("destinations", "1")) > 100:
            return "Too many elements."
        return "" if request.get("origin") or request.get("origins") else "Origin is missing."

    def _node(self, waypoint: Body) -> int:
        spot = waypoint["location"]["latLng"]
        return self.network.snap(spot["longitude"], spot["latitude"]).node

    def _seconds(self, request: Body) -> Any:
        return self.times_s * MODELS[request.get("trafficModel", "BEST_GUESS")]

    def _routes(self, request: Body) -> Body:
        stops = [request["origin"], *request.get("intermediates", []), request["destination"]]
        nodes = [self._node(stop) for stop in stops]
        seconds = self._seconds(request)
        try:
            paths = [self.network.shortest_path(seconds, a, b) for a, b in pairwise(nodes)]
        except UnreachableError:
            return {}  # proto JSON leaves out empty lists
        legs = [self._leg(path, seconds) for path in paths]
        whole = self.network.path(np.concatenate([path.edges for path in paths]))
        return {
            "routes": [
                {
                    **self._common(whole, seconds),
                    "polyline": {
                        "encodedPolyline": encode_polyline(whole.coordinates(self.network))
                    },
                    "legs": legs,
                }
            ]
        }

    def _common(self, path: Path, seconds: Any) -> Body:
        return {
            "distanceMeters": round(path.length_m(self.network)),
            "duration": text(path.time_s(seconds)),
            "staticDuration": text(path.time_s(self.network.free_flow_times_s)),
        }

    def _leg(self, path: Path, seconds: Any) -> Body:
        steps = []
        for start in range(0, len(path), 3):
            edges = path.edges[start : start + 3]
            steps.append(
                {
                    "distanceMeters": round(float(self.network.length_m[edges].sum())),
                    "staticDuration": text(float(self.network.free_flow_times_s[edges].sum())),
                }
            )
        return {**self._common(path, seconds), "steps": steps}


def text(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def error(code: int, status: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    said = {"error": {"code": code, "message": message, "status": status}}
    return Answer(json.dumps(said), code, headers or {})


def masked(value: Any, fields: Sequence[Sequence[str]]) -> Any:
    """Only what was asked for, as the service does."""
    if isinstance(value, list):
        return [masked(one, fields) for one in value]
    if not isinstance(value, dict) or any(not rest for rest in fields):
        return value
    kept = {}
    for name, inner in value.items():
        below = [rest[1:] for rest in fields if rest[0] == name]
        if below:
            kept[name] = masked(inner, below)
    return kept


def town(network: RoadNetwork, **options: Any) -> GoogleTown:
    seconds = network.free_flow_times_s * np.random.default_rng(3).uniform(1.0, 3.0)
    noise = np.random.default_rng(4).uniform(0.8, 1.5, network.num_edges)
    return GoogleTown(network, seconds * noise, now=lambda: NOW, **options)


@contextmanager
def connected(
    place: GoogleTown, params: GoogleParams | None = None, key: str = KEY, **options: Any
) -> Iterator[tuple[GoogleRoutes, Server]]:
    options = {"patience": QUICK, "now": lambda: NOW, **options}
    with serve(place.answer) as server:
        rng = np.random.default_rng(0)
        source = GoogleRoutes.connect(place.network, key, rng, params, url=server.url, **options)
        yield source, server
        source.close()
