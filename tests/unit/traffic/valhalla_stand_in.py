"""Valhalla on loopback: keeps its contract on a network of ours, and can be spoiled."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import UnreachableError
from tests.polylines import encode_polyline
from tests.stand_in import Answer, Asked

Body = dict[str, Any]
REASONS = {
    120: "Insufficient number of locations provided",
    125: "No costing method found",
    160: "Date and time required for origin for date_type of depart at",
    162: "Date and time is invalid.  Format is YYYY-MM-DDTHH:MM",
    442: "No path could be found for input",
}


@dataclass
class ValhallaTown:
    """A network with speeds; ``spoil`` changes answers, ``first`` are said before all else."""

    network: RoadNetwork
    times_s: np.ndarray[Any, Any]
    spoil: Callable[[Any], None] = lambda answer: None
    first: list[Answer] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        if self.first:
            return self.first.pop(0)
        if asked.path != "/route":
            return error(106, 404, "Try any of: '/route' '/locate'")
        request = json.loads(asked.body)
        code = _refused(request)
        if code:
            return error(code)
        nodes = [
            self.network.snap(place["lon"], place["lat"]).node for place in request["locations"]
        ]
        try:
            path = self.network.shortest_path(self.times_s, *nodes)
        except UnreachableError:
            return error(442)
        maneuvers = []
        for start in range(0, len(path), 4):
            edges = path.edges[start : start + 4]
            maneuvers.append(
                {
                    "type": 8,
                    "time": round(float(self.times_s[edges].sum()), 3),
                    "length": round(float(self.network.length_m[edges].sum()) / 1000, 3),
                    "begin_shape_index": start,
                    "end_shape_index": start + len(edges),
                }
            )
        maneuvers.append({"type": 4, "time": 0.0, "length": 0.0})
        summary = {
            "time": round(path.time_s(self.times_s), 3),
            "length": round(path.length_m(self.network) / 1000, 3),
        }
        shape = encode_polyline(path.coordinates(self.network), 6)
        said = {
            "trip": {
                "locations": request["locations"],
                "legs": [{"maneuvers": maneuvers, "summary": summary, "shape": shape}],
                "summary": summary,
                "status_message": "Found route between points",
                "status": 0,
                "units": request.get("units", "kilometers"),
                "language": "en-US",
            }
        }
        self.spoil(said)
        return Answer(json.dumps(said))


def _refused(request: Body) -> int | None:
    when = request.get("date_time", {})
    if len(request.get("locations", [])) < 2:
        return 120
    if request.get("costing") not in {"auto", "taxi", "bus"}:
        return 125
    if when.get("type") == 1 and "value" not in when:
        return 160
    if "value" in when and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", when["value"]):
        return 162
    return None


def error(code: int, status: int = 400, text: str = "") -> Answer:
    said = {
        "error_code": code,
        "error": text or REASONS[code],
        "status_code": status,
        "status": "Bad Request",
    }
    return Answer(json.dumps(said), status)
