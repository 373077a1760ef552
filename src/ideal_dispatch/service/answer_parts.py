"""The parts of an advice as the API gives them: plain values, made of a decision."""

import math
from collections.abc import Mapping
from typing import Any

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch import Assignment, Decision, Situation
from ideal_dispatch.dispatch.way import longest_roads, overlap, shared
from ideal_dispatch.gap.explanation import Explanation
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.service.answer import finite

_EXPLAINED = 12


def headline(kind: str, primary: str, second: str) -> str:
    """The advice in a line."""
    if kind == "primary_only":
        return f"The ambulance from {primary} is enough"
    road = ", by another road" if second == primary else ""
    return f"Send a second ambulance from {second}{road}"


class Routes:
    """Paths of one network for maps and for people; what is known of an edge is kept."""

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._lines: dict[int, list[list[float]]] = {}

    def route(self, path: Path, expected_s: float | None) -> dict[str, Any]:
        """Edges, a line to draw, metres, when it is expected to end, and its main roads."""
        points = self._points(path)
        return {
            "edges": path.edges.tolist(),
            "geojson": {
                "type": "LineString", "coordinates": points if len(points) > 1 else points * 2,
            },
            "length_m": round(path.length_m(self._network), 1),
            "quoted_s": None if expected_s is None else round(expected_s, 1),
            "roads": longest_roads(self._network, path),
        }  # fmt: skip

    def _points(self, path: Path) -> list[list[float]]:
        if not len(path):
            node = path.origin
            return [
                [round(float(each[node]), 6) for each in (self._network.lon, self._network.lat)]
            ]
        points: list[list[float]] = []
        for edge in path.edges.tolist():
            line = self._lines.get(edge)
            if line is None:
                line = self._lines[edge] = self._network.polyline(edge).round(6).tolist()
            points += line[1:] if points and points[-1] == line[0] else line
        return points


def second_part(
    situation: Situation, first: Assignment, second: Assignment, route: Mapping[str, Any]
) -> dict[str, Any]:
    """Who could go second on a route, and what that has in common with the first's."""
    station = situation.stations[second.station]
    return {
        "depot": station.depot.name,
        "units": station.units,
        "route": route,
        "overlap": round(overlap(situation.network, first.path, second.path), 4),
        "shared_edges": second.path.edges[
            shared(situation.network, second.path, first.path)
        ].tolist(),
        "follow": second.follow,
    }


def road_seconds(
    network: RoadNetwork, first: Path, second: Path, times_s: FloatArray
) -> list[dict[str, Any]]:
    """Seconds that the second avoids or takes on, road by road, the largest first."""
    totals: dict[str, float] = {}
    for sign, path, other in ((1.0, first, second), (-1.0, second, first)):
        alone = path.edges[~shared(network, path, other)]
        for edge, seconds in zip(alone.tolist(), times_s[alone].tolist(), strict=True):
            name = network.name[edge] or "unnamed road"
            totals[name] = totals.get(name, 0.0) + sign * seconds
    ranked = sorted(totals.items(), key=lambda item: (-abs(item[1]), item[0]))
    shown, rest = ranked[:_EXPLAINED], sum(seconds for _, seconds in ranked[_EXPLAINED:])
    if len(ranked) > _EXPLAINED:
        shown.append(("other roads", rest))
    return [{"name": name, "seconds": round(seconds, 1)} for name, seconds in shown]


def stress(explanation: Explanation | None) -> list[dict[str, Any]]:
    """The roads that slow down together in the scenario of the gap."""
    if explanation is None:
        return []
    return [
        {
            "name": road.name,
            "slowdown": round(road.slowdown, 3),
            "correlation": round(correlation, 3),
        }
        for road, correlation in explanation.stressed
        if road.slowdown > 1.01
    ]


def gap_part(decision: Decision) -> dict[str, Any] | None:
    """The interval of the gap, where one was searched."""
    known = decision.details
    if "gap_lower_s" not in known:
        return None
    return {
        "lower_s": known["gap_lower_s"],
        "upper_s": known["gap_upper_s"],
        "status": known["gap_status"],
    }


def threshold_part(decision: Decision, source: str, words: str) -> dict[str, Any]:
    """The threshold and where it comes from."""
    limit_s = None if decision.threshold_s == -math.inf else round(decision.threshold_s, 2)
    return {"seconds": finite(limit_s), "source": source, "words": words}
