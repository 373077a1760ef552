"""Policies that only the evidence compares with: plug-ins of experiment files.

``kind = "workshop.policies:QuoteDifference"`` in an experiment file, and so on.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.candidate import (
    ALL_KINDS,
    SecondKind,
    alternative,
    on_path,
    outlook_of,
    overlap,
    primary_of,
    situation_gap,
    unshared_s,
)
from ideal_dispatch.dispatch.decision import Decision, by_score
from ideal_dispatch.dispatch.policies import PREFIX, Ideal, router_pair
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.gap.optimistic_gap import Method
from ideal_dispatch.traffic.source import RouteQuote

ROUTER_FEATURES = (
    "first_s", "second_s", "difference_s", "first_below_s", "first_above_s", "second_below_s",
    "second_above_s", "first_m", "second_m", "overlap", "unshared_s", "hour",
)  # fmt: skip
"""What a learned trigger may know of the quotes: columns of :func:`router_features`."""


@dataclass(frozen=True, slots=True)
class QuoteDifference:
    """A second from the depot with the next shortest quote, where the quotes are close.

    The score is minus the difference of the two quotes. Its facts for the log are
    the features that a learned trigger is fitted on.
    """

    role: ClassVar[str] = "control"
    name: str = "quote-difference"
    threshold: Threshold = AT_ZERO

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        score_s, facts = 0.0, {}
        if second is not None:
            first_quote, other = situation.quote(primary.station), situation.quote(second.station)
            score_s = first_quote.duration_s - other.duration_s
            values = router_features(situation, first_quote, other)
            facts["router_features"] = [round(value, 3) for value in values.tolist()]
        made = by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "difference of quotes"
        )
        return replace(made, facts=facts)


@dataclass(frozen=True, slots=True)
class RouterAlternative:
    """A second from the primary's own depot, on the router's other route.

    It keeps to all of that route that differs from the primary's. The score is
    minus what the router says it takes longer.
    """

    role: ClassVar[str] = "control"
    name: str = "router-alternative"
    threshold: Threshold = AT_ZERO

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, score_s = primary_of(situation), 0.0
        second = alternative(situation, primary.station)
        other = situation.stations[primary.station].alternative
        if second is not None and other is not None:
            score_s = situation.expected_s(primary.station, primary.path) - other.duration_s
        return by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "difference of quotes"
        )


@dataclass(frozen=True, slots=True)
class GapOtherDepot:
    """Our gap decides whether, the router from where: the next shortest quote's depot."""

    role: ClassVar[str] = "control"
    model: Model
    threshold: Threshold = AT_ZERO
    method: Method = "certified"
    time_limit_s: float | None = 0.5
    name: str = "gap-other-depot"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, second = router_pair(situation)
        outlook = gap = None
        if second is not None:
            outlook = outlook_of(situation, self.model, path=primary.path, centre="router")
            gap = situation_gap(situation, outlook, primary, rng, self.method, self.time_limit_s)
        score_s = 0.0 if gap is None else gap.lower_s
        made = by_score(self.name, situation, (primary, second), score_s, self.threshold, "gap")
        return replace(made, outlook=outlook, gap=gap)


@dataclass(frozen=True, slots=True)
class NominalGap:
    """The paper's policy with a radius of zero: the forecast's fastest path, and its lead."""

    role: ClassVar[str] = "control"
    model_form: ClassVar[tuple[str, str]] = ("practical", "calibrated")
    model: Model
    threshold: Threshold = AT_ZERO
    time_limit_s: float | None = None
    name: str = "nominal-gap"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary, outlook = primary_of(situation), outlook_of(situation, self.model)
        outlook = replace(outlook, scenarios=replace(outlook.scenarios, radius=0.0))
        gap = situation_gap(situation, outlook, primary, rng, "certified", self.time_limit_s)
        second, score_s = None, 0.0
        if gap is not None:
            second = on_path(situation, primary.station, gap.secondary, PREFIX)
            score_s = gap.lower_s
        made = by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "gap",
            primary_s=primary.path.time_s(outlook.scenarios.nominal_times),
        )  # fmt: skip
        return replace(made, outlook=outlook, gap=gap)


@dataclass(frozen=True, slots=True)
class GapScored:
    """Our form, but its gap decides: alone ("gap"), or the lesser of gap and gain ("both")."""

    role: ClassVar[str] = "control"
    model: Model
    responses: ResponseModel | None = None
    threshold: Threshold = AT_ZERO
    by: Literal["gap", "both"] = "gap"
    seconds: tuple[SecondKind, ...] = ALL_KINDS
    method: Method = "certified"
    time_limit_s: float | None = 0.5
    name: str = "gap-scored"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        ours = Ideal(
            self.model, self.responses, self.threshold, self.seconds, method=self.method,
            time_limit_s=self.time_limit_s, name=self.name,
        ).decide(situation, rng)  # fmt: skip
        gap_s = 0.0 if ours.gap is None else ours.gap.lower_s
        score_s = gap_s if self.by == "gap" else min(gap_s, ours.score_s)
        made = by_score(
            self.name, situation, (ours.primary, ours.second), score_s, self.threshold,
            "gap" if self.by == "gap" else "lesser of expected gain and gap",
            primary_s=ours.primary_s, worth=ours.worth,
        )  # fmt: skip
        return replace(ours, score_s=score_s, reason=made.reason)


def router_features(situation: Situation, first: RouteQuote, second: RouteQuote) -> FloatArray:
    """One row of :data:`ROUTER_FEATURES`; a range that is not known has no width."""
    network, at = situation.network, situation.context.at
    ranges = [
        0.0 if math.isnan(bound) else sign * (bound - quote.duration_s)
        for quote in (first, second)
        for sign, bound in ((-1.0, quote.optimistic_s), (1.0, quote.pessimistic_s))
    ]
    one, other, one_s, other_s = first.path, second.path, first.duration_s, second.duration_s
    metres = [one.length_m(network), other.length_m(network)]
    pair = [overlap(network, one, other), unshared_s(network, one, one_s, other, other_s)]
    hour = at.hour + at.minute / 60
    return np.array([one_s, other_s, other_s - one_s, *ranges, *metres, *pair, hour])
