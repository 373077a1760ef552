"""The policies: what a depot and a router alone allow, IDEAL as printed, and IDEAL in our form."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.dispatch.arrival import Arrival
from ideal_dispatch.dispatch.candidate import (
    ALL_KINDS,
    LEAST_SOONER_S,
    Candidate,
    Centre,
    SecondKind,
    Worth,
    candidate,
    follows,
    on_path,
    outlook_of,
    primary_of,
    routed,
    second_candidates,
    situation_gap,
    sooner_unit,
    worth_of,
)
from ideal_dispatch.dispatch.decision import Decision, Pair, Policy, by_score, decided
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.dispatch.threshold import ALWAYS, AT_ZERO, ConstantThreshold, Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.gap.optimistic_gap import Method

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
            slow_s = candidate(situation, "sent", first).drive_s
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


PREFIX = 5
"""Segments of the second path that are kept to before the router is asked again."""


@dataclass(frozen=True, slots=True)
class PaperIdeal:
    """The policy of [IDEAL] sections 2.2 and 6.1.2.

    The primary z₁ is the router's shortest route, or the ambulance that was
    already sent. Algorithm 2 (DCA) gives the gap over the model's scenario set of
    the context and the second path z₂, of which the first ``prefix`` segments are
    kept to; it may start at the primary's own depot and even be the primary's
    path. The threshold is taken at the model's nominal time of z₁.

    Unlike the paper, more than two depots are asked at once and not in pairs. The
    exact gap is the same; Algorithm 2 may find a smaller one. A depot counts only
    while it has a unit. Another ``method`` shows what a better gap is worth;
    "certified" proves it, or stops after ``time_limit_s`` with the best it has.
    ``form`` says in words which network and radius the model has.
    """

    role: ClassVar[str] = "paper"
    model_form: ClassVar[tuple[str, str]] = ("paper", "paper")
    model: Model
    threshold: Threshold = AT_ZERO
    prefix: int = PREFIX
    method: Method = "dca"
    time_limit_s: float | None = None
    form: str = ""
    name: str = "paper"

    def __post_init__(self) -> None:
        if whole_number(self.prefix, "prefix") < 0:
            raise InputError(f"prefix {self.prefix}: zero segments or more")

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary = primary_of(situation)
        outlook = outlook_of(situation, self.model)
        gap = situation_gap(situation, outlook, primary, rng, self.method, self.time_limit_s)
        second, score_s = None, 0.0
        if gap is not None:
            second = on_path(situation, primary.station, gap.secondary, self.prefix)
            score_s = gap.lower_s
        return by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "gap",
            primary_s=primary.path.time_s(outlook.scenarios.nominal_times), outlook=outlook,
            gap=gap,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ideal:
    """Our form of IDEAL, the default.

    The primary is the ambulance that was already sent. Without one it is the one that
    arrives first, by its quote and by ``responses``.

    The second is the candidate with the largest expected gain E[(T₁ − T₂)⁺]; where the
    threshold knows what each unit costs, the one that saves most lives beyond its cost. ``seconds``
    names the kinds of candidates: another depot's route, the primary depot's other route
    and, with a model, the path of the certified gap. The last two count only if at most
    ``overlap_limit`` of their metres are on the primary's path, and the second keeps to
    every part that differs from it. Where no other depot has a unit, all kinds count.

    ``responses`` says how much times vary: it makes arrivals of quotes, a turnout and a drive
    whose mean is the quote. Without them, published spreads are taken.

    The gap is searched within ``time_limit_s`` around the ``centre``. It is left out where no
    kind of second needs it and ``report_gap`` is false. A search that ran out of time is
    reported as "open", and how far it came depends on the machine: for a log that is the same
    byte for byte, use method "multistart" or no limit.

    Where a unit of another depot arrives more than ``sooner_s`` sooner than
    the ambulance that was sent, and probably enough, the decision names it as ``sooner``.
    """

    role: ClassVar[str] = "ideal"
    model: Model | None = None
    responses: ResponseModel | None = None
    threshold: Threshold = AT_ZERO
    seconds: tuple[SecondKind, ...] = ALL_KINDS
    overlap_limit: float = 0.5
    centre: Centre = "router"
    method: Method = "certified"
    time_limit_s: float | None = 0.5
    report_gap: bool = True
    sooner_s: float = LEAST_SOONER_S
    name: str = "ideal"

    def __post_init__(self) -> None:
        if not 0.0 <= self.overlap_limit <= 1.0:
            raise InputError(f"overlap_limit {self.overlap_limit}: a share of 0 to 1 is needed")
        if not self.sooner_s >= 0.0:
            raise InputError(f"sooner_s {self.sooner_s}: zero seconds or more are needed")
        if not self.seconds or set(self.seconds) - set(ALL_KINDS):
            raise InputError(f"seconds {list(self.seconds)}: choose of {', '.join(ALL_KINDS)}")
        if self.model is None and set(self.seconds) == {"gap-path"}:
            raise InputError(f"policy {self.name} needs a trained model for seconds of gap-path")

    @property
    def curve(self) -> SurvivalCurve:
        """The curve by which survival is reported: the threshold's, where it has one."""
        own = getattr(self.threshold, "curve", None)
        return own if isinstance(own, SurvivalCurve) else CURVES[USUAL_CURVE]

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        responses = self.responses or situation.responses or ResponseModel.published()
        sent, outlook, gap = situation.sent, None, None
        routes = [
            candidate(situation, "other depot", routed(situation, number))
            for number in situation.available
        ]

        def arrives_s(one: Candidate) -> float:
            station = one.assignment.station
            return situation.arrival(station, one.drive_s, responses).expected_s

        chosen = min(routes, key=arrives_s).assignment if sent is None else sent
        if self.model is not None and (self.report_gap or "gap-path" in self.seconds):
            outlook = outlook_of(situation, self.model, path=chosen.path, centre=self.centre)
            how = self.method, self.time_limit_s
            gap = situation_gap(situation, outlook, chosen, rng, *how)
        nominal = None if outlook is None else outlook.scenarios.nominal_times
        first = candidate(situation, "sent", chosen, nominal)
        others = [one for one in routes if one.assignment.station != chosen.station]
        usable = any(not follows(situation, chosen, one.assignment) for one in others)
        seconds = second_candidates(
            situation, first, routes, None if gap is None else gap.secondary, outlook,
            self.seconds if usable else ALL_KINDS, self.overlap_limit,
        )  # fmt: skip

        price = getattr(self.threshold, "second_cost", None)

        def merit(one: Worth) -> tuple[float, float]:
            """Lives beyond its cost, where that is known; its gain."""
            if price is None:
                return 0.0, one.gain_s
            cost = price(situation, (chosen, one.candidate.assignment), one.primary_s, one)
            return float(cost.per_s * one.gain_s - cost.lives), one.gain_s

        with situation.trace.step("expected gain") as facts:
            considered = tuple(
                worth_of(situation, first, one, responses=responses, curve=self.curve)
                for one in seconds
            )
            best = max(considered, key=merit, default=None)
            facts |= {"ways_considered": len(considered)} | (best.facts if best else {})
        arrivals: tuple[Arrival, Arrival | None]
        if best is None:
            second, score_s = None, 0.0
            alone = situation.arrival(chosen.station, first.drive_s, responses, first=True)
            arrivals, primary_s = (alone, None), situation.sent_ago_s + alone.expected_s
        else:
            second, score_s = best.candidate.assignment, best.gain_s
            arrivals, primary_s = best.arrivals, best.primary_s
        sooner = None
        if sent is not None:  # a unit beside the primary is no second, but may be sooner
            sooner = sooner_unit(situation, first, others, responses, self.sooner_s)
        return by_score(
            self.name, situation, (chosen, second), score_s, self.threshold, "expected gain",
            primary_s=primary_s, worth=best, outlook=outlook, gap=gap, considered=considered,
            sooner=sooner, arrivals=arrivals,
        )  # fmt: skip


def decide(
    situation: Situation,
    *,
    model: Model | None = None,
    responses: ResponseModel | None = None,
    threshold: Threshold | float | None = None,
    policy: Policy | str | None = None,
    rng: np.random.Generator | None = None,
) -> Decision:
    """Who goes to a call, and whether a second ambulance does.

    By ``policy`` as it is, or by the policy of that kind (ours by default; docs/plugins.md
    has how to name your own) with ``model``, ``responses`` and a ``threshold``: a rule, or
    a number of seconds. By default it is the seconds that save one life in a
    thousand calls by the usual survival curve. ``rng`` is for policies that draw.
    """
    if policy is None or isinstance(policy, str):
        from ideal_dispatch.dispatch.policy_tables import FittedParts, advising_policy

        table: dict[str, Any] = {"kind": "ideal" if policy is None else policy}
        if threshold is not None:
            table["threshold"] = threshold
        policy = advising_policy(table, FittedParts(model, responses), "decide")
    elif model is not None or responses is not None or threshold is not None:
        raise InputError(
            "decide: a policy has its own model, responses and threshold; give it alone"
        )
    elif not isinstance(policy, Policy):
        raise InputError(f"decide: policy {policy!r}: give a kind, or an object with decide()")
    if getattr(policy, "model", None) is not None:
        with situation.trace.step("compiled kernels"):
            _warm_up()  # else loading kernels would use up the time of the search
    with situation.trace.step("decision") as facts:
        made = decided(policy, situation, np.random.default_rng(0) if rng is None else rng)
        facts |= {"score_s": round(made.score_s, 3), "send_second": made.send_second}
    return made


@cache
def _warm_up() -> None:
    from ideal_dispatch.gap.warm_up import warm_up

    warm_up()
