"""The parts of an advice as the API gives them: plain values, made of a decision."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ideal_dispatch.dispatch import Assignment, Decision, Situation
from ideal_dispatch.dispatch.explanation import Explanation
from ideal_dispatch.dispatch.path_pair import longest_roads, overlap, shared
from ideal_dispatch.gap.explanation import RoadShare
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.service.solver.answer import finite

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


def explanation_part(decision: Decision, explained: Explanation) -> dict[str, Any]:
    """Why, in words and by road: the primary's way beside that of the second that is advised."""
    ways = explained.roads
    ranked = [] if ways is None else list(ways.advantage_s)
    shown, rest = ranked[:_EXPLAINED], sum(seconds for _, seconds in ranked[_EXPLAINED:])
    if len(ranked) > _EXPLAINED:
        shown.append(("other roads", rest))
    return {
        "text": "\n".join(filter(None, (f"{decision.reason}.", str(explained)))),
        "other_way": None if explained.other_way is None else asdict(explained.other_way),
        "seconds_from": explained.times_from,
        "shared_m": None if ways is None else round(ways.shared_m, 1),
        "primary_only": [] if ways is None else _roads(ways.primary_only),
        "second_only": [] if ways is None else _roads(ways.second_only),
        "roads": [{"name": name, "seconds": round(seconds, 1)} for name, seconds in shown],
        "stress": [
            {
                "name": road.name,
                "slowdown": round(road.slowdown, 3),
                "correlation": round(road.correlation, 3),
            }
            for road in explained.stressed
        ],
    }


def _roads(shares: Iterable[RoadShare]) -> list[dict[str, Any]]:
    return [
        {"name": road.name, "length_m": round(road.length_m, 1), "seconds": round(road.seconds, 1)}
        for road in shares
    ]


def gap_part(known: Mapping[str, Any]) -> dict[str, Any] | None:
    """The interval of the gap, where one was searched."""
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
