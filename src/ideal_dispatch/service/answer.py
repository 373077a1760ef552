"""An advice as the API gives it: plain values, made of a decision or of the lack of one."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch import Assignment, Decision, Situation
from ideal_dispatch.gap.explanation import Explanation
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.service.schemas import RecommendationRequest
from ideal_dispatch.service.settings import finite

Reason = tuple[str, str]
"""A code for programs and words for people."""

_ROADS = 3
_EXPLAINED = 12
_HEADLINES = {
    "send_second": "Send a second ambulance from {second}",
    "primary_only": "The ambulance from {primary} is enough",
    "no_advice": "No advice",
}


def no_advice(request: RecommendationRequest, reasons: Sequence[Reason]) -> dict[str, Any]:
    """All fields of an advice, with nothing in them but why."""
    place = request.location
    return {
        "decision": "no_advice",
        "headline": f"No advice: {reasons[0][1]}" if reasons else "No advice",
        "location": {"lon": place.lon, "lat": place.lat, "node": None, "snapped_m": None},
        "primary": None,
        "second": None,
        "gain_s": None,
        "gain_survival": None,
        "gap": None,
        "threshold": None,
        "radius": None,
        "nominal": {"primary_s": None, "second_s": None},
        "explanation": {
            "text": "\n".join(words for _, words in reasons), "roads": [], "stress": [],
        },
        "degraded": degraded(reasons),
        "data_ages": {"traffic_s": None, "weather_s": None, "units_s": None},
    }  # fmt: skip


def degraded(reasons: Sequence[Reason]) -> list[dict[str, str]]:
    """Reasons in their order, each once."""
    return [{"code": code, "words": words} for code, words in dict.fromkeys(reasons)]


def headline(kind: str, primary: str, second: str) -> str:
    """The advice in a line."""
    return _HEADLINES[kind].format(primary=primary, second=second)


def route(network: RoadNetwork, path: Path, expected_s: float | None) -> dict[str, Any]:
    """A path for maps and for people."""
    points = path.coordinates(network).round(6).tolist()
    return {
        "edges": path.edges.tolist(),
        "geojson": {"type": "LineString", "coordinates": points if len(points) > 1 else points * 2},
        "length_m": round(path.length_m(network), 1),
        "quoted_s": None if expected_s is None else round(expected_s, 1),
        "roads": longest_roads(network, path),
    }


def longest_roads(network: RoadNetwork, path: Path) -> list[str]:
    """The longest named roads of a path, in driving order."""
    metres: dict[str, float] = {}
    for edge in path.edges.tolist():
        if network.name[edge]:
            name = network.name[edge]
            metres[name] = metres.get(name, 0.0) + float(network.length_m[edge])
    longest = sorted(metres, key=lambda name: -metres[name])[:_ROADS]
    return [name for name in metres if name in longest]


def second_part(
    situation: Situation, first: Assignment, second: Assignment, expected_s: float | None
) -> dict[str, Any]:
    """Who could go second, and what its way has in common with the first's."""
    from ideal_dispatch.dispatch.way import overlap

    shared = second.path.edges[np.isin(second.path.edges, first.path.edges)]
    station = situation.stations[second.station]
    return {
        "depot": station.depot.name,
        "units": station.units,
        "route": route(situation.network, second.path, expected_s),
        "overlap": round(overlap(situation.network, first.path, second.path), 4),
        "shared_edges": shared.tolist(),
        "follow": second.follow,
    }


def road_seconds(
    network: RoadNetwork, first: Path, second: Path, times_s: FloatArray
) -> list[dict[str, Any]]:
    """Seconds that the second avoids or takes on, road by road, the largest first."""
    totals: dict[str, float] = {}
    for sign, path, other in ((1.0, first, second), (-1.0, second, first)):
        alone = path.edges[~np.isin(path.edges, other.edges)]
        for edge in alone.tolist():
            name = network.name[edge] or "unnamed road"
            totals[name] = totals.get(name, 0.0) + sign * float(times_s[edge])
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
