"""What a dispatch centre could do with depots and a router alone ([IDEAL] section 6.1.2)."""

import math
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.dispatch.decision import Assignment, Decision, decision
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import ALWAYS, AT_ZERO, Threshold
from ideal_dispatch.dispatch.way import pair_details, primary_of, routed, sent_way
from ideal_dispatch.errors import InputError


@dataclass(frozen=True, slots=True)
class RegionPolicy:
    """One ambulance from the depot of the agency's territory.

    Where that depot has no free unit, the one with the shortest quote goes.
    """

    name: str = "region"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        region = situation.region
        if situation.sent is not None:
            depot = situation.stations[situation.sent.station].depot.name
            return Decision(self.name, situation.sent, None, 0.0, 0.0, f"{depot}: already sent")
        if region is None:
            raise InputError(
                f"incident {situation.incident.name}: its territory is not known; "
                f"policy {self.name} needs one"
            )
        free = region in situation.available
        station = region if free else situation.fastest
        depot = situation.stations[station].depot.name
        why = "its territory" if free else "the depot of the territory has no free unit"
        return Decision(self.name, routed(situation, station), None, 0.0, 0.0, f"{depot}: {why}")


@dataclass(frozen=True, slots=True)
class RouterPolicy:
    """One ambulance from the depot with the shortest quote.

    The next shortest is considered as the second, at a score of zero that never
    exceeds its threshold of zero.
    """

    name: str = "router"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        why = "the shortest quote" if situation.sent is None else "already sent"
        reason = f"{situation.stations[primary.station].depot.name}: {why}"
        details = pair_details(situation, primary, second)
        return Decision(self.name, primary, second, 0.0, 0.0, reason, details)


@dataclass(frozen=True, slots=True)
class RouterDual:
    """Always the two depots with the shortest quotes."""

    name: str = "router-dual"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        return decision(
            self.name, situation, primary, second, 0.0, ALWAYS, "score",
            details=pair_details(situation, primary, second),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class IntervalPolicy:
    """A second from another depot where the router's ranges overlap far enough.

    The score is the primary's pessimistic minus the other's optimistic time; of
    several other depots the one with the least optimistic time counts. A router
    without ranges is taken at its word: both are its durations.
    """

    name: str = "interval"
    threshold: Threshold = AT_ZERO

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        first = primary_of(situation)
        primary = first.station
        if situation.sent is None:
            quote = situation.quote(primary)
            slow_s = _known(quote.pessimistic_s, quote.duration_s)
        else:
            way = sent_way(situation, first)
            slow_s = way.expected_s + _known(way.above_s, 0.0)
        quick_s = {
            number: _known(situation.quote(number).optimistic_s, situation.quote(number).duration_s)
            for number in situation.others(primary)
        }
        other = min(quick_s, key=lambda number: quick_s[number], default=None)
        second = None if other is None else routed(situation, other)
        score_s = 0.0 if other is None else slow_s - quick_s[other]
        return decision(
            self.name, situation, first, second, score_s, self.threshold, "overlap of ranges",
            details=pair_details(situation, first, second),
        )  # fmt: skip


def router_pair(situation: Situation) -> tuple[Assignment, Assignment | None]:
    """The primary by :func:`primary_of`, and the router's shortest from any other depot."""
    primary = primary_of(situation)
    others = situation.others(primary.station)
    return primary, routed(situation, others[0]) if others else None


def _known(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise
