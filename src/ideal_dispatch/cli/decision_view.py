"""A decision as people read it, and as programs do."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ideal_dispatch.cities import City
from ideal_dispatch.dispatch import Assignment, Decision, Policy, Situation
from ideal_dispatch.dispatch.explanation import explain
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.paper_ideal import NominalGap, PaperIdeal
from ideal_dispatch.dispatch.reasons import Reason, Remark, bounded, doubts, fallbacks, remarks
from ideal_dispatch.dispatch.way import longest_roads
from ideal_dispatch.network import Path
from ideal_dispatch.traffic.source import RouteQuote

_TITLES = {
    "send_second": ("Send a second ambulance", "red"),
    "primary_only": ("One ambulance", "green"),
    "no_advice": ("No advice: the forecast is not to be trusted", "yellow"),
}
"""Title and colour of an advice."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A decision with what it was made from, what the gap says by road, and what is doubtful.

    Where the forecast is ``untrusted`` it is no advice, and nobody is told to go.
    """

    situation: Situation
    decision: Decision
    threshold: str
    explanation: str
    untrusted: Reason | None
    remarks: list[Remark]
    city: City | None

    @classmethod
    def of(
        cls,
        policy: Policy,
        situation: Situation,
        rng: np.random.Generator,
        city: City | None,
    ) -> "Answer":
        """Decide, and explain what the decision was made from."""
        if isinstance(policy, Ideal | PaperIdeal | NominalGap):
            from ideal_dispatch.gap.warm_up import warm_up

            with situation.trace.step("compiled kernels"):
                warm_up()  # else loading kernels would use up the time of the search
        with situation.trace.step("decision") as facts:
            decision = policy.decide(situation, rng)
            facts |= {"score_s": round(decision.score_s, 3), "send_second": decision.send_second}
        with situation.trace.step("explanation"):
            explanation = str(explain(situation, decision))
        rule = getattr(policy, "threshold", None)
        words = ""
        if rule is not None:
            quote_s = situation.quote(decision.primary.station).duration_s
            known = decision.details
            primary_s = known.get("primary_s", known.get("nominal_primary_s", quote_s))
            words = rule.words(primary_s, situation.free_units)
        untrusted = bounded(situation, decision)
        first = [] if untrusted is None else [untrusted]
        said = remarks([*first, *doubts(situation, decision), *fallbacks(situation)])
        return cls(situation, decision, words, explanation, untrusted, said, city)

    @property
    def advice(self) -> str:
        """The decision in a word, as the service says it."""
        if self.untrusted is not None:
            return "no_advice"
        return "send_second" if self.decision.send_second else "primary_only"

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self.decision.reason if self.untrusted is None else self.untrusted[1]

    # --- for programs -----------------------------------------------------------

    def print_json(self) -> None:
        """Print one JSON object; a threshold of null means that a second always goes."""
        print(json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False, indent=1))

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        situation, made = self.situation, self.decision
        incident, limit_s, steps = situation.incident, made.threshold_s, situation.trace.steps
        sooner = None if self.untrusted else made.sooner
        return {
            "incident": {
                "node": incident.node,
                "lon": _plain(float(situation.network.lon[incident.node])),
                "lat": _plain(float(situation.network.lat[incident.node])),
                "at": situation.context.at.isoformat(),
            },
            "stations": [
                {
                    "depot": station.depot.name,
                    "node": station.depot.node,
                    "units": station.units,
                    "quote": _quote(station.quote),
                }
                for station in situation.stations
            ],
            "decision": {
                "policy": made.policy,
                "advice": self.advice,
                "send_second": None if self.untrusted else made.send_second,
                "primary": self._assignment(made.primary),
                "second": None if made.second is None else self._assignment(made.second),
                "sooner_unit": None if sooner is None else asdict(sooner),
                "score_s": made.score_s,
                "threshold_s": None if limit_s == -math.inf else limit_s,
                "threshold": self.threshold,
                "reason": self.reason,
                "details": dict(made.details),
            },
            "explanation": self.explanation,
            "remarks": [asdict(remark) for remark in self.remarks],
        } | ({"trace": [step.as_dict() for step in steps]} if steps else {})

    def _assignment(self, one: Assignment) -> dict[str, Any]:
        return {
            "depot": self.situation.stations[one.station].depot.name,
            "edges": one.path.edges.tolist(),
            "follow": one.follow,
        }

    # --- for people -------------------------------------------------------------

    def print(self) -> None:
        """Print the decision in a frame, then what it rests on."""
        from rich.panel import Panel
        from rich.text import Text

        from ideal_dispatch.cli.terminal import out, print_facts, warn
        from ideal_dispatch.cli.trace_view import print_trace

        made, situation = self.decision, self.situation
        title, colour = _TITLES[self.advice]
        width = min(out.width, 80)
        orders = Text("\n".join(self._ways() if self.untrusted else self._orders()))
        out.print(Panel(orders, title=title, title_align="left", width=width, border_style=colour))
        for remark in self.remarks:
            warn(remark.words)
        out.print()
        print_facts(self._heading(), self._stations(), justify="left")
        print_facts(f"Why, by policy {made.policy}", self._reasons(), justify="left")
        if self.explanation:
            out.print("What a second ambulance could gain, and by which roads", style="bold")
            out.print(self.explanation, markup=False, width=width)
        if situation.trace.steps:
            print_trace(situation.trace)

    def _ways(self) -> list[str]:
        """What was considered; nobody is told to go."""
        made = self.decision
        return [
            f"Considered: from {self._depot(one)}, by {self._roads(one.path)}."
            for one in (made.primary, made.second)
            if one is not None
        ]

    def _orders(self) -> list[str]:
        """Who goes, and by which roads."""
        made = self.decision
        lines = [f"{self._depot(made.primary)} goes, by {self._roads(made.primary.path)}."]
        if made.sooner is not None:
            percent = min(99, int(100 * made.sooner.probability))
            lines.append(
                f"{made.sooner.depot} is expected {made.sooner.seconds:.0f} s sooner than "
                f"{self._depot(made.primary)}, {percent} % sure."
            )
        if made.second is None:
            return [*lines, "There is no other unit on another road."]
        other = self._depot(made.second)
        if made.second.station == made.primary.station:
            other = f"Another unit of {other}"
        also = f"{other} goes too" if made.send_second else f"{other} stays; it would go"
        lines.append(f"{also}, by {self._roads(made.second.path)}.")
        if made.second.follow:
            lines.append(f"It keeps to the first {made.second.follow} segments of that way.")
        return lines

    def _heading(self) -> str:
        incident, city = self.situation.incident, self.city
        where = f"node {incident.node}"
        if city is not None:
            where = f"{city.districts[city.district[incident.node]]}, {where}"
        return f"The call: {where}, {self.situation.context.at:%a %d %b %Y %H:%M}"

    def _stations(self) -> dict[str, str]:
        rows = {}
        for station in self.situation.stations:
            free = f"{station.units} free"
            quote = station.quote
            if quote is None:
                rows[station.depot.name] = f"{free}, no route" if station.units else "no free unit"
                continue
            told = _minutes(quote.duration_s)
            if not math.isnan(quote.optimistic_s + quote.pessimistic_s):
                told += f" ({_minutes(quote.optimistic_s)} to {_minutes(quote.pessimistic_s)})"
            length = quote.path.length_m(self.situation.network) / 1000
            rows[station.depot.name] = f"{told}, {length:.1f} km, {free}"
        return rows

    def _reasons(self) -> dict[str, str]:
        made = self.decision
        known, rows = made.details, {"decision": self.reason}
        if self.threshold:
            rows["threshold"] = self.threshold
        if "expected_gain_s" in known:
            rows["expected gain"] = (
                f"{known['expected_gain_s']:.1f} s; times from {known['times_from']}, "
                f"spread from {known['spread_from']}"
            )
            lives = 100 * known["expected_survival_gain"]
            rows["in survival"] = f"{lives:.2g} points by {known['survival_curve']}"
        if "gap_lower_s" in known:
            upper = known["gap_upper_s"]
            most = "" if upper is None else f", at most {upper:.1f} s"
            rows["optimistic gap"] = f"{known['gap_lower_s']:.1f} s{most}, {known['gap_status']}"
        if "overlap" in known:
            depot = "the same depot" if known["same_depot"] else "another depot"
            rows["second's way"] = f"{100 * known['overlap']:.0f} % shared, from {depot}"
        return rows

    def _depot(self, one: Assignment) -> str:
        return self.situation.stations[one.station].depot.name

    def _roads(self, path: Path) -> str:
        named = ", ".join(longest_roads(self.situation.network, path))
        return named or ("unnamed roads" if len(path) else "no road: it is there")


def _quote(quote: RouteQuote | None) -> dict[str, Any] | None:
    if quote is None:
        return None
    return {
        "duration_s": quote.duration_s,
        "optimistic_s": _plain(quote.optimistic_s),
        "pessimistic_s": _plain(quote.pessimistic_s),
        "edges": quote.path.edges.tolist(),
        "fell_back": quote.fell_back,
    }


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02d} s"
