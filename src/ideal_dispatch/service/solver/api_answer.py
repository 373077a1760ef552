"""The answer to a call as the API gives it: plain values, made in this place.

Processes that answer calls and solve none load this: it imports no numerical module.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ideal_dispatch.dispatch.answer import Answer, Reason
from ideal_dispatch.service.solver.messages import Call, KnownUnit

if TYPE_CHECKING:
    from ideal_dispatch.dispatch import Decision, Situation
    from ideal_dispatch.gap.explanation import RoadShare
    from ideal_dispatch.network import Path, RoadNetwork
    from ideal_dispatch.service.solver.case import Case
    from ideal_dispatch.service.solver.live_traffic import LiveTraffic

_EXPLAINED = 12  # roads by seconds; the others are one row


def no_advice(call: Call, reasons: Sequence[Reason]) -> dict[str, Any]:
    """All fields of an advice, with nothing in them but why; the first reason is the cause."""
    return _empty(call, Answer.none(reasons[0], reasons[1:]))


def api_answer(
    call: Call, case: "Case", answer: Answer, routes: "RouteFields", traffic: "LiveTraffic"
) -> dict[str, Any]:
    """All fields of an advice, or of one that there is not."""
    empty, decision = _empty(call, answer), answer.decision
    if decision is None or answer.refusal is not None:
        return empty
    from ideal_dispatch.service.solver.case import oldest_s

    situation, second, worth, gap = decision.about, decision.second, decision.worth, decision.gap
    assert case.starts is not None  # a case that was read has them
    starts, place = case.starts, call.location
    leaves, other = decision.primary.station, dict[str, Any]()
    first = _who(situation, leaves, starts.primary(leaves))
    if second is not None:
        other = _who(situation, second.station, starts.second(second.station, leaves))
    primary_s, second_s = decision.primary_s, None if worth is None else worth.candidate.expected_s
    if primary_s is None:
        primary_s = situation.expected_s(decision.primary.station, decision.primary.path)
    if second_s is None and second is not None:
        second_s = situation.expected_s(second.station, second.path)
    primary_s, second_s = _rounded(primary_s, 3), _rounded(second_s, 3)
    return empty | {
        "headline": _headline(decision, first, other),
        "location": {
            "lon": place.lon, "lat": place.lat, "node": situation.incident.node,
            "snapped_m": round(case.snapped_m, 1),
        },
        "primary": {
            **first,
            "unit": first["unit"] or (None if call.primary is None else call.primary.unit),
            "route": routes.route(decision.primary.path, primary_s),
            "chosen_by": "router" if call.primary is None else "cad",
            "traffic": traffic.beside_forecast(situation, leaves),
        },
        "second": None if second is None else {
            **_second(decision, other, routes.route(second.path, second_s)),
            "traffic": traffic.beside_forecast(situation, second.station),
        },
        "considered": [
            {**_who(situation, n, unit), "quoted_s": round(situation.quote(n).duration_s, 1)}
            for n in situation.available if situation.stations[n].depot.on_road
            for unit in starts.units[n]
        ],
        "sooner_unit": None if decision.sooner is None else asdict(decision.sooner),
        "gain_s": None if worth is None else _rounded(worth.gain_s, 3),
        "gain_survival": None if worth is None else _rounded(worth.survival_gain, 6),
        "gap": None if gap is None else {
            "lower_s": round(gap.lower_s, 3), "upper_s": _rounded(gap.upper_s, 3),
            "status": gap.status,
        },
        "threshold": {
            "seconds": _rounded(decision.threshold_s, 2),
            "source": "configuration" if call.threshold_s is None else "request",
            "words": answer.threshold,
        },
        "cost": None if (cost := decision.cost) is None else {
            "lives": _rounded(cost.lives, 9), "hold_s": _rounded(cost.hold_s, 1),
            "source": "fixed" if cost.hold_s is None else "fleet",
        },
        "radius": (
            None if decision.outlook is None else _rounded(decision.outlook.scenarios.radius, 6)
        ),
        "nominal": {"primary_s": primary_s, "second_s": second_s},
        "explanation": _explanation(decision),
        "data_ages": {
            "traffic_s": situation.traffic_age_s,
            # by the situation's own clock, which may be a recording's
            "weather_s": oldest_s(situation.context.weather, situation.context.at)
            if case.weather_s is None else case.weather_s,
            "units_s": case.units_s,
        },
    }  # fmt: skip


class RouteFields:
    """Paths of one network for maps and for people; the lines of edges are kept."""

    def __init__(self, network: "RoadNetwork") -> None:
        self._network = network
        self._lines: dict[int, list[list[float]]] = {}

    def route(self, path: "Path", expected_s: float | None) -> dict[str, Any]:
        """Edges, a line to draw, metres, when it is expected to end, and its main roads."""
        from ideal_dispatch.dispatch.path_pair import longest_roads

        points = self._points(path)
        return {
            "edges": path.edges.tolist(),
            "geojson": {
                "type": "LineString", "coordinates": points if len(points) > 1 else points * 2,
            },
            "length_m": round(path.length_m(self._network), 1),
            "quoted_s": _rounded(expected_s, 1),
            "roads": longest_roads(self._network, path),
        }  # fmt: skip

    def _points(self, path: "Path") -> list[list[float]]:
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


def _empty(call: Call, answer: Answer) -> dict[str, Any]:
    """All fields, with the advice and the reasons alone."""
    why = answer.reasons if answer.refusal is None else (answer.refusal, *answer.reasons)
    return {
        "decision": answer.advice,
        "headline": "" if answer.refusal is None else f"No advice: {answer.refusal[1]}",
        "location": {
            "lon": call.location.lon, "lat": call.location.lat, "node": None, "snapped_m": None,
        },
        **dict.fromkeys((
            "primary", "second", "sooner_unit", "gain_s", "gain_survival", "gap", "threshold",
            "cost", "radius",
        )),
        "considered": [],
        "nominal": {"primary_s": None, "second_s": None},
        "explanation": {
            "text": "\n".join(dict.fromkeys(words for _, words in why)), "other_way": None,
            "seconds_from": None, "shared_m": None,
            "primary_only": [], "second_only": [], "roads": [], "stress": [],
        },
        "degraded": [asdict(one) for one in answer.remarks],
        "closures": [one.id for one in call.closures],
        "data_ages": {"traffic_s": None, "weather_s": None, "units_s": None},
    }  # fmt: skip


def _who(situation: "Situation", start: int, unit: KnownUnit | None) -> dict[str, Any]:
    """The depot of an ambulance, its unit where that is known, and where it starts."""
    from ideal_dispatch.service.solver.starts import start_fields

    depot = situation.stations[start].depot
    return {
        "depot": depot.home or depot.name,
        "unit": None if unit is None else unit.id,
        "start": start_fields(situation.network, depot, unit),
    }


def _headline(decision: "Decision", first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The advice in a line."""
    if decision.second is None or not decision.send_second:
        return f"{_named(first, 'The ambulance')} is enough"
    road = ", by another road" if decision.same_depot else ""
    return f"Send {_named(second, 'a second ambulance')}{road}"


def _named(who: Mapping[str, Any], ambulance: str) -> str:
    """An ambulance in words: its unit where that is known, and where it comes from."""
    if who["unit"] is None:
        return f"{ambulance} from {who['depot']}"
    where = f"on the road, of {who['depot']}" if who["start"]["on_road"] else f"from {who['depot']}"
    return f"{ambulance} {who['unit']} {where}"


def _second(decision: "Decision", who: Mapping[str, Any], route: dict[str, Any]) -> dict[str, Any]:
    """Who could go second on a route, and what that has in common with the first's."""
    from ideal_dispatch.dispatch.path_pair import shared

    assert decision.second is not None
    network, path = decision.about.network, decision.second.path
    station = decision.about.stations[decision.second.station]
    return {
        **who,
        "units": station.units,
        "route": route,
        "overlap": _rounded(decision.overlap, 4),
        "shared_edges": path.edges[shared(network, path, decision.primary.path)].tolist(),
        "follow": decision.second.follow,
    }


def _explanation(decision: "Decision") -> dict[str, Any]:
    """Why, in words and by road: the primary's path beside that of the second that is advised."""
    explained = decision.explain()
    compared = explained.roads
    ranked = [] if compared is None else list(compared.advantage_s)
    shown, rest = ranked[:_EXPLAINED], sum(seconds for _, seconds in ranked[_EXPLAINED:])
    if len(ranked) > _EXPLAINED:
        shown.append(("other roads", rest))
    return {
        "text": "\n".join(filter(None, (f"{decision.reason}.", str(explained)))),
        "other_way": None if explained.other_way is None else asdict(explained.other_way),
        "seconds_from": explained.times_from,
        "shared_m": None if compared is None else round(compared.shared_m, 1),
        "primary_only": [] if compared is None else _roads(compared.primary_only),
        "second_only": [] if compared is None else _roads(compared.second_only),
        "roads": [{"name": name, "seconds": round(seconds, 1)} for name, seconds in shown],
        "stress": [
            {
                "name": one.name, "slowdown": round(one.slowdown, 3),
                "correlation": round(one.correlation, 3),
            }
            for one in explained.stressed
        ],
    }  # fmt: skip


def _roads(shares: "Iterable[RoadShare]") -> list[dict[str, Any]]:
    return [
        {"name": one.name, "length_m": round(one.length_m, 1), "seconds": round(one.seconds, 1)}
        for one in shares
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    """A number that JSON has, or None."""
    return round(value, digits) if value is not None and math.isfinite(value) else None
