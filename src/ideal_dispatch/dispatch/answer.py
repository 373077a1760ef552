"""What is said about a call: a decision, what is doubtful about it, or why there is no advice.

Processes that answer calls and solve none load this: it imports no numerical module.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.arrival import Arrival
    from ideal_dispatch.dispatch.candidate import Worth
    from ideal_dispatch.dispatch.decision import Decision
    from ideal_dispatch.dispatch.situation import Situation, Station
    from ideal_dispatch.dispatch.threshold import Threshold
    from ideal_dispatch.forecast.response_time import ResponseModel
    from ideal_dispatch.gap.explanation import RoadShare
    from ideal_dispatch.network import Path, RoadNetwork

_EXPLAINED = 12  # roads by seconds; the others are one row
_OF_AN_ADVICE = (
    "primary", "second", "gain_s", "second_first", "gain_survival", "sooner_unit",
)  # fmt: skip
_REASONS = ("threshold", "cost", "gap", "radius", "other_way", "seconds_from", "shared_m")
_ROAD_LISTS = ("primary_only", "second_only", "roads", "stress")

Advice = Literal["send_second", "primary_only", "no_advice"]

Reason = tuple[str, str]
"""A code for programs and words for people."""

NO_LIVE_TRAFFIC: Reason = ("no_live_traffic", "no live traffic: the model's own times")

PUBLISHED_SPREADS: Reason = (
    "published_spreads",
    "response times vary as published: none were fitted on this agency's records",
)

SEVERITY = (
    # there is no advice
    "forecast_bounded", "internal_error", "record_unavailable", "not_decided", "late",
    "units_unknown", "off_map", "unreachable", "no_unit", "last_unit_promised", "unknown_unit",
    "call_too_old", "call_in_future",
    # the advice may be wrong
    "unusual_context", "unit_promised", "unknown_depot", "primary_path_unknown", "closed_road",
    "location_uncertain", "position_off_map", "position_stale",
    # it is of less than there should be
    "traffic_unavailable", "router_fell_back", "units_stale", "weather_unavailable",
    "weather_stale", "clock_skew", "gap_open",
)  # fmt: skip
"""Codes of reasons that concern one call, the most serious first."""

STANDING = (
    "other_network",
    "published_spreads",
    "no_live_traffic",
    "recorded_traffic",
    "units_assumed",
)
"""Codes of reasons that hold for every call of a centre as it is set up, the most serious first."""

_RANK = {code: rank for rank, code in enumerate(SEVERITY)}


@dataclass(frozen=True, slots=True)
class Remark:
    """A reason as it is shown; one may be for all ``standing`` ones, ``also`` has their codes."""

    code: str
    words: str
    standing: bool = False
    also: tuple[str, ...] = ()


def remarks(reasons: Iterable[Reason]) -> list[Remark]:
    """Reasons as they are shown, each once: the most serious first, then all standing ones in one.

    A code that the table lacks comes after those that concern one call.
    """
    each = dict.fromkeys(reasons)
    shown = [Remark(*one) for one in each if one[0] not in STANDING]
    shown.sort(key=lambda one: rank(one.code))
    standing = [one for code in STANDING for one in each if one[0] == code]
    if standing:
        code, *also = dict.fromkeys(code for code, _ in standing)
        words = " · ".join(words for _, words in standing)
        shown.append(Remark(code, words, standing=True, also=tuple(also)))
    return shown


def rank(code: str) -> int:
    """The place of a code among all, the most serious first."""
    return _RANK.get(code, len(_RANK) + (code in STANDING))


def doubts(decision: "Decision") -> list[Reason]:
    """What makes the numbers of a decision less certain than they look."""
    found: list[Reason] = []
    outlook, gap = decision.outlook, decision.gap
    forecast = decision.about.forecast if outlook is None else outlook.forecast
    if forecast is not None and forecast.unusual:
        words = "; ".join(forecast.unusual)
        found.append(("unusual_context", f"unlike anything in training: {words}"))
    if forecast is not None and forecast.transferred:
        found.append(("other_network", "the model was trained on another network"))
    if gap is not None and gap.status == "open" and not math.isfinite(gap.upper_s):
        found.append(("gap_open", "the search for the gap ran out of time"))
    return found


def bounded(decision: "Decision") -> Reason | None:
    """Why a decision is no advice: a forecast at its physical bound on one of its paths."""
    outlook, forecast = decision.outlook, decision.about.forecast
    if outlook is not None and outlook.centre == "forecast":
        forecast = outlook.forecast
    if forecast is None:
        return None
    paths = [one.path for one in (decision.primary, decision.second) if one is not None]
    roads = sum(int(forecast.bounded[path.edges].sum()) for path in paths)
    if not roads:
        return None
    words = f"on {roads} road segments the forecast sits at the bound of what can be driven"
    return "forecast_bounded", f"{words}; train the model again, on more trips"


def fallbacks(stations: "Iterable[Station]") -> tuple[Reason, ...]:
    """Why quotes are not what was asked for."""
    quotes = (station.quote for station in stations)
    notes = sorted({quote.fell_back for quote in quotes if quote is not None} - {""})
    return tuple(
        NO_LIVE_TRAFFIC if note == NO_LIVE_TRAFFIC[1] else ("router_fell_back", note)
        for note in notes
    )


def chance_words(share: float) -> str:
    """A chance in whole percent for people; near 0 and 1 it says no more than is known."""
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A decision with what people must know beside it: the command line, the API and the desk.

    ``refusal`` says why there is no advice, and is None where there is one; a decision
    may still be there to show what was considered. ``threshold`` is the rule in words, ""
    where there is none; ``asked_threshold`` says that the call named it. ``arrivals`` are those
    of the primary and the second by ``responses``, and ``worth`` is that of the second.
    """

    decision: "Decision | None"
    refusal: Reason | None = None
    reasons: tuple[Reason, ...] = ()
    threshold: str = ""
    asked_threshold: bool = False
    responses: "ResponseModel | None" = None
    arrivals: "tuple[Arrival, Arrival | None] | None" = None
    worth: "Worth | None" = None

    @classmethod
    def of(
        cls,
        decision: "Decision",
        rule: "Threshold | None",
        reasons: Iterable[Reason],
        responses: "ResponseModel",
        *,
        asked_threshold: bool = False,
    ) -> "Answer":
        """The answer that a decision by a rule gives, with what was doubtful before it.

        ``responses`` are those that the policy decided by. Of a policy that computes no arrivals,
        they are computed here.
        """
        from ideal_dispatch.dispatch.candidate import candidate, worth_of
        from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
        from ideal_dispatch.dispatch.threshold import ConstantThreshold

        words, situation, worth = "", decision.about, decision.worth
        if decision.cost is not None:
            words = decision.cost.words
        elif rule is not None:
            primary, primary_s = decision.primary, decision.primary_s
            if primary_s is None:
                primary_s = situation.expected_s(primary.station, primary.path)
            in_words = getattr(rule, "words", ConstantThreshold(decision.threshold_s).words)
            words = in_words(primary_s, situation.free_units)
        arrivals, second = decision.arrivals, decision.second
        if arrivals is None:
            first, curve = candidate(situation, "", decision.primary), getattr(rule, "curve", None)
            if second is None:
                at = situation.arrival(
                    decision.primary.station, first.drive_s, responses, first=True
                )
                arrivals = at, None
            else:
                curve = curve if isinstance(curve, SurvivalCurve) else CURVES[USUAL_CURVE]
                other = candidate(situation, "", second)
                worth = worth_of(situation, first, other, responses=responses, curve=curve)
                arrivals = worth.arrivals
        doubtful = [*reasons, *doubts(decision)]
        if responses.source == type(responses).published().source:
            doubtful.append(PUBLISHED_SPREADS)
        return cls(
            decision, bounded(decision), tuple(doubtful), words, asked_threshold, responses,
            arrivals, worth,
        )  # fmt: skip

    @classmethod
    def none(cls, refusal: Reason, reasons: Iterable[Reason] = ()) -> "Answer":
        """No advice, and why."""
        return cls(None, refusal, tuple(reasons))

    @property
    def advice(self) -> Advice:
        """The answer in a word."""
        if self.refusal is not None or self.decision is None:
            return "no_advice"
        return "send_second" if self.decision.send_second else "primary_only"

    @property
    def remarks(self) -> list[Remark]:
        """All reasons as they are shown: first the refusal, then the most serious."""
        first = [] if self.refusal is None else [self.refusal]
        return remarks(first) + remarks(one for one in self.reasons if one not in first)

    @property
    def units(self) -> tuple[str | None, str | None]:
        """The ids of the units that go first and second, where they are known."""
        decision = self.decision
        if decision is None:
            return None, None
        situation, leaving = decision.about, 0
        primary = situation.sent_unit or None
        if situation.sent is None:
            primary = next(iter(situation.stations[decision.primary.station].ids), None)
            leaving = int(decision.same_depot)  # the primary is among the units there
        if decision.second is None:
            return primary, None
        ids = situation.stations[decision.second.station].ids
        return primary, next(iter(ids[leaving:]), None)

    def to_dict(self, lines: "EdgeLines | None" = None) -> dict[str, Any]:
        """The answer as plain values, for programs; ``lines`` keeps the lines of edges.

        Without advice there are no units: all fields are null or empty but the reasons.
        """
        decision = self.decision
        place = dict.fromkeys(("lon", "lat", "node", "snapped_m"))
        if decision is not None:
            node = decision.about.incident.node
            place |= {**_lon_lat(decision.about, node), "node": node}
        shared = {
            "decision": self.advice,
            "location": place,
            "degraded": [{**asdict(one), "also": list(one.also)} for one in self.remarks],
        }
        if decision is None or self.refusal is not None:
            said = dict.fromkeys(one[1] for one in (self.refusal, *self.reasons) if one is not None)
            return {
                **shared, **dict.fromkeys(_OF_AN_ADVICE), "considered": [],
                "headline": f"No advice: {next(iter(said), '')}",
                "why": {
                    "text": "\n".join(said), **dict.fromkeys(_REASONS),
                    **{name: [] for name in _ROAD_LISTS},
                },
            }  # fmt: skip
        from ideal_dispatch.dispatch.candidate import shared as shared_edges

        assert self.arrivals is not None
        situation, second, worth = decision.about, decision.second, self.worth
        lines = EdgeLines(situation.network) if lines is None else lines
        unit, other_unit = self.units
        first = _unit(situation, decision.primary.station, unit)
        first_at, other_at = (None if one is None else one.to_dict() for one in self.arrivals)
        other = gain_s = None
        if second is not None:
            other = _unit(situation, second.station, other_unit)
        if worth is not None and first_at is not None and other_at is not None:
            lead_s = round(first_at["expected_s"] - other_at["expected_s"], 1)
            gain_s = max(round(worth.gain_s, 1), lead_s)  # as E[(T₁ − T₂)⁺] ≥ E[T₁] − E[T₂]
        return {
            **shared,
            "headline": _headline(decision, first, other),
            "primary": {
                **first, "chosen_by": "router" if situation.sent is None else "cad",
                "arrival": first_at, "route": lines.route(decision.primary.path),
            },
            "second": None if second is None or other is None else {
                **other, "arrival": other_at, "route": lines.route(second.path),
                "follow": second.follow, "overlap": _rounded(decision.overlap, 4),
                "shared_edges": second.path.edges[
                    shared_edges(situation.network, second.path, decision.primary.path)
                ].tolist(),
            },
            "gain_s": gain_s,
            "second_first": None if worth is None else round(worth.second_first, 4),
            "gain_survival": None if worth is None else round(worth.survival_gain, 6),
            "sooner_unit": None if decision.sooner is None else asdict(decision.sooner),
            "considered": self._considered(decision, self.arrivals[0]),
            "why": self._why(decision),
        }  # fmt: skip

    def _considered(self, decision: "Decision", primary: "Arrival") -> list[dict[str, Any]]:
        """Every unit that could go and the primary, the one that arrives soonest first."""
        from ideal_dispatch.dispatch.candidate import drivable_s

        situation, outlook, rows = decision.about, decision.outlook, list[dict[str, Any]]()
        forecast = None  # a second opinion, where a router quoted
        if situation.forecast is None and outlook is not None:
            forecast = outlook.forecast

        def add(start: int, unit: str | None, path: "Path", drive_s: float, at: "Arrival") -> None:
            known_s = None
            if forecast is not None:  # the same drive by the forecast
                known_s = situation.stations[start].ahead_s + path.time_s(forecast.nominal_times)
            rows.append({
                **_unit(situation, start, unit), "quote_s": round(drive_s, 1),
                "forecast_s": _rounded(known_s, 1), "arrival": at.to_dict(),
            })  # fmt: skip

        if situation.sent is not None:
            start, path = situation.sent.station, situation.sent.path
            drive_s = situation.expected_s(start, path)
            add(start, situation.sent_unit or None, path, drive_s, primary)
        for start in situation.available:
            quote = situation.quote(start)
            drive_s = drivable_s(situation.network, quote.path, quote.duration_s)
            at = situation.arrival(start, drive_s, self.responses)
            for unit in situation.stations[start].ids or (None,):
                add(start, unit, quote.path, quote.duration_s, at)
        return sorted(rows, key=lambda row: float(row["arrival"]["expected_s"]))

    def _why(self, decision: "Decision") -> dict[str, Any]:
        """Why, in words and by road: the primary's path beside that of the second."""
        explained, cost, gap = decision.explain(), decision.cost, decision.gap
        compared, other, radius = explained.roads, explained.other_way, None
        if decision.outlook is not None:
            radius = _rounded(decision.outlook.scenarios.radius, 6)
        ranked = [] if compared is None else list(compared.advantage_s)
        shown, rest = ranked[:_EXPLAINED], sum(seconds for _, seconds in ranked[_EXPLAINED:])
        if len(ranked) > _EXPLAINED:
            shown.append(("other roads", rest))
        return {
            "text": "\n".join(filter(None, (f"{decision.reason}.", str(explained)))),
            "threshold": None if not self.threshold else {
                "seconds": _rounded(decision.threshold_s, 2),
                "source": "request" if self.asked_threshold else "configuration",
                "words": self.threshold,
            },
            "cost": None if cost is None else {
                "lives": _rounded(cost.lives, 9), "hold_s": _rounded(cost.hold_s, 1),
                "source": "fixed" if cost.hold_s is None else "fleet",
            },
            "gap": None if gap is None else {
                "lower_s": round(gap.lower_s, 3), "upper_s": _rounded(gap.upper_s, 3),
                "status": gap.status,
            },
            "radius": radius,
            "other_way": None if other is None else {
                "depot": other.depot, "roads": list(other.roads),
            },
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


class EdgeLines:
    """Paths of one network for maps and for people; the lines of its edges are kept.

    A network with closed roads has the lines of the one that they were closed in.
    """

    def __init__(self, network: "RoadNetwork") -> None:
        self._network = network
        self._lines: dict[int, list[list[float]]] = {}

    def route(self, path: "Path") -> dict[str, Any]:
        """Edges, a line to draw, metres, and the main roads.

        The line is empty where the network has no coordinates.
        """
        from ideal_dispatch.dispatch.candidate import longest_roads

        network, points = self._network, list[list[float]]()
        for edge in path.edges.tolist():
            line = self._lines.get(edge)
            if line is None:
                line = self._lines[edge] = network.polyline(edge).round(6).tolist()
            points += line[1:] if points and points[-1] == line[0] else line
        if not points:  # it is there: a line needs two points
            points = [[round(float(of[path.origin]), 6) for of in (network.lon, network.lat)]] * 2
        if math.isnan(points[0][0]):
            points = []
        return {
            "edges": path.edges.tolist(),
            "geojson": {"type": "LineString", "coordinates": points},
            "length_m": round(path.length_m(network), 1),
            "roads": longest_roads(network, path),
        }  # fmt: skip


def _lon_lat(situation: "Situation", node: int) -> dict[str, float | None]:
    network = situation.network
    return {name: _rounded(float(getattr(network, name)[node]), 6) for name in ("lon", "lat")}


def _unit(situation: "Situation", start: int, unit: str | None) -> dict[str, Any]:
    """A unit: its depot, its id where that is known, and where it starts."""
    depot = situation.stations[start].depot
    place = {**_lon_lat(situation, depot.node), "on_road": depot.on_road, "age_s": None}
    return {"depot": depot.home or depot.name, "unit": unit, "kind": depot.kind, "start": place}


def _headline(
    decision: "Decision", first: Mapping[str, Any], other: Mapping[str, Any] | None
) -> str:
    """The advice in a line: a unit by its id where that is known, and where it comes from."""

    def named(unit: Mapping[str, Any], ambulance: str) -> str:
        if unit["unit"] is None:
            return f"{ambulance} from {unit['depot']}"
        if unit["unit"] == unit["depot"]:  # a unit on the road whose depot is not known
            return f"{ambulance} {unit['unit']} on the road"
        where = "on the road, of" if unit["start"]["on_road"] else "from"
        return f"{ambulance} {unit['unit']} {where} {unit['depot']}"

    if other is None or not decision.send_second:
        return f"{named(first, 'The ambulance')} is enough"
    road = ", by another road" if decision.same_depot else ""
    return f"Send {named(other, 'a second ambulance')}{road}"


def _roads(shares: "Iterable[RoadShare]") -> list[dict[str, Any]]:
    return [
        {"name": one.name, "length_m": round(one.length_m, 1), "seconds": round(one.seconds, 1)}
        for one in shares
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    """A number that JSON has, or None."""
    return round(float(value), digits) if value is not None and math.isfinite(value) else None
