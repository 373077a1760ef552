"""What is said about a call: a decision, what is doubtful about it, or why there is no advice.

Processes that answer calls and solve none load this: it imports no numerical module.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.decision import Decision
    from ideal_dispatch.dispatch.situation import Station
    from ideal_dispatch.dispatch.threshold import Threshold

Advice = Literal["send_second", "primary_only", "no_advice"]

Reason = tuple[str, str]
"""A code for programs and words for people."""

NO_LIVE_TRAFFIC: Reason = ("no_live_traffic", "no live traffic: the model's own times")

SEVERITY = (
    # there is no advice
    "forecast_bounded", "internal_error", "not_decided", "solver_lost", "late", "off_map",
    "unreachable", "no_unit", "unknown_unit", "call_too_old", "call_in_future",
    # the advice may be wrong
    "unusual_context", "last_unit_promised", "promises_unknown", "unknown_depot",
    "primary_path_unknown", "closed_road", "location_uncertain", "position_off_map",
    "position_stale",
    # it is of less than there should be
    "traffic_unavailable", "router_fell_back", "units_stale", "weather_unavailable",
    "weather_stale", "clock_skew", "gap_open",
)  # fmt: skip
"""Codes of reasons that concern one call, the most serious first."""

STANDING = (
    "other_network",
    "no_live_traffic",
    "recorded_traffic",
    "depots_ignored",
    "units_unknown",
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


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A decision with what people must know beside it; the API and the command line show it.

    ``refusal`` says why there is no advice, and is None where there is one; a decision
    may still be there to show what was considered. ``threshold`` is the rule in words.
    """

    decision: "Decision | None"
    refusal: Reason | None = None
    reasons: tuple[Reason, ...] = ()
    threshold: str = ""

    @classmethod
    def of(
        cls, decision: "Decision", rule: "Threshold | None", reasons: Iterable[Reason] = ()
    ) -> "Answer":
        """The answer that a decision by a rule gives, with what was doubtful before it."""
        from ideal_dispatch.dispatch.threshold import ConstantThreshold

        words, situation = "", decision.about
        if decision.cost is not None:
            words = decision.cost.words
        elif rule is not None:
            primary, primary_s = decision.primary, decision.primary_s
            if primary_s is None:
                primary_s = situation.expected_s(primary.station, primary.path)
            told = getattr(rule, "words", ConstantThreshold(decision.threshold_s).words)
            words = told(primary_s, situation.free_units)
        return cls(decision, bounded(decision), (*reasons, *doubts(decision)), words)

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
