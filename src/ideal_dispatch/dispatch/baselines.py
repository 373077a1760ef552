"""What a dispatch centre could do with depots and a router alone ([IDEAL] section 6.1.2)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ideal_dispatch.dispatch.candidate import primary_of, routed, sent_candidate
from ideal_dispatch.dispatch.decision import Decision, Pair, by_score
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import ALWAYS, AT_ZERO, ConstantThreshold, Threshold
from ideal_dispatch.errors import InputError

_HALF = ConstantThreshold(0.5)


@dataclass(frozen=True, slots=True)
class RegionPolicy:
    """One ambulance from the depot of the agency's territory.

    Where that depot has no free unit, the one with the shortest quote goes.
    """

    role: ClassVar[str] = "region"
    name: str = "region"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        region, primary, why = situation.region, situation.sent, "already sent"
        if primary is None:
            if region is None:
                raise InputError(
                    "the territory of the call is not known; give the city territories"
                )
            free = region in situation.available
            why = "its territory" if free else "the depot of the territory has no free unit"
            primary = routed(situation, region if free else situation.fastest)
        reason = f"{situation.stations[primary.station].depot.name}: {why}"
        return Decision(self.name, primary, None, 0.0, 0.0, reason, situation=situation)


@dataclass(frozen=True, slots=True)
class RouterPolicy:
    """One ambulance from the depot with the shortest quote.

    The next shortest is considered as the second, at a score of zero that never
    exceeds its threshold of zero.
    """

    role: ClassVar[str] = "router"
    name: str = "router"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        why = "the shortest quote" if situation.sent is None else "already sent"
        reason = f"{situation.stations[primary.station].depot.name}: {why}"
        return Decision(self.name, primary, second, 0.0, 0.0, reason, situation=situation)


@dataclass(frozen=True, slots=True)
class RouterDual:
    """Always the two depots with the shortest quotes."""

    role: ClassVar[str] = "router-dual"
    name: str = "router-dual"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        return by_score(self.name, situation, router_pair(situation), 0.0, ALWAYS, "score")


@dataclass(frozen=True, slots=True)
class IntervalPolicy:
    """A second from another depot where the router's ranges overlap far enough.

    The score is the primary's pessimistic minus the other's optimistic time; of
    several other depots the one with the least optimistic time counts. A router
    without ranges is taken at its word: both are its durations.
    """

    role: ClassVar[str] = "interval"
    name: str = "interval"
    threshold: Threshold = AT_ZERO

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        first = primary_of(situation)
        primary = first.station
        if situation.sent is None:
            quote = situation.quote(primary)
            slow_s = _known(quote.pessimistic_s, quote.duration_s)
        else:
            slow_s = sent_candidate(situation, first).drive_s
            own = situation.stations[primary].quote
            if own is not None:  # its range, scaled to the way that the unit was sent
                wider_s = own.pessimistic_s - own.duration_s
                slow_s *= 1.0 + _known(wider_s / max(own.duration_s, 1.0), 0.0)
        quick_s = {
            number: _known(situation.quote(number).optimistic_s, situation.quote(number).duration_s)
            for number in situation.others(primary)
        }
        other = min(quick_s, key=lambda number: quick_s[number], default=None)
        second = None if other is None else routed(situation, other)
        score_s = 0.0 if other is None else slow_s - quick_s[other]
        return by_score(
            self.name, situation, (first, second), score_s, self.threshold, "overlap of ranges"
        )


@dataclass(frozen=True, slots=True)
class RandomTrigger:
    """A second from the depot with the next shortest quote, by chance.

    The score is uniform in 0 … 1: a threshold of 0.75 sends one in four.
    """

    role: ClassVar[str] = "control"
    name: str = "random"
    threshold: Threshold = _HALF

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        return by_score(
            self.name, situation, router_pair(situation), float(rng.random()), self.threshold,
            "drawn", unit="",
        )  # fmt: skip


def router_pair(situation: Situation) -> Pair:
    """The primary by :func:`primary_of`, and the router's shortest from any other depot."""
    primary = primary_of(situation)
    others = situation.others(primary.station)
    return primary, routed(situation, others[0]) if others else None


def _known(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise
