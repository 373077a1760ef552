"""IDEAL in our own form, and a decision by it in one call.

As printed it is in :mod:`ideal_dispatch.dispatch.paper_ideal`.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from ideal_dispatch.dispatch.arrival import Arrival, arrival_of
from ideal_dispatch.dispatch.candidate import (
    ALL_KINDS,
    Candidate,
    SecondKind,
    follows,
    quoted,
    routed,
    second_candidates,
    sent_candidate,
)
from ideal_dispatch.dispatch.decision import Decision, Policy, by_score, decided, worth_facts
from ideal_dispatch.dispatch.scenario_gap import Centre, Outlook, outlook_of, situation_gap
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.dispatch.worth import (
    LEAST_SOONER_S,
    Worth,
    sooner_unit,
    worth_of,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.optimistic_gap import Method


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
        responses = ResponseModel.published() if self.responses is None else self.responses
        network, routes = situation.network, []
        for number in situation.available:
            route, quote = routed(situation, number), situation.quote(number)
            routes.append(quoted(network, "other depot", route, quote))
        if situation.sent is None:
            first = min(
                routes,
                key=lambda one: (
                    arrival_of(situation, one.assignment.station, one.drive_s, responses).expected_s
                ),
            )
            outlook, gap = self._look(situation, first.assignment, rng)
        else:
            outlook, gap = self._look(situation, situation.sent, rng)
            nominal = None if outlook is None else outlook.scenarios.nominal_times
            first = sent_candidate(situation, situation.sent, nominal)
        others = [one for one in routes if one.assignment.station != first.assignment.station]
        usable = any(not follows(situation, first.assignment, one.assignment) for one in others)
        kinds = self.seconds if usable else ALL_KINDS
        seconds = second_candidates(
            situation, first, routes, None if gap is None else gap.secondary, outlook, kinds,
            self.overlap_limit,
        )  # fmt: skip
        worth = partial(worth_of, situation, first, responses=responses, curve=self.curve)
        with situation.trace.step("expected gain") as facts:
            considered = tuple(map(worth, seconds))
            best = max(considered, key=partial(self._merit, situation, first), default=None)
            facts |= {"ways_considered": len(considered)} | (worth_facts(best) if best else {})
        sooner, station = None, first.assignment.station
        if situation.sent is not None:  # a unit beside the primary is no second, but may be sooner
            known = {id(one.candidate): one for one in considered}
            others_worth = (known.get(id(one)) or worth(one) for one in others)
            sooner = sooner_unit(situation, station, others_worth, self.sooner_s)
        arrivals: tuple[Arrival, Arrival | None]
        if best is None:
            alone = arrival_of(situation, station, first.drive_s, responses, first=True)
            arrivals, primary_s = (alone, None), situation.sent_ago_s + alone.expected_s
        else:
            arrivals, primary_s = best.arrivals, best.primary_s
        second, score_s = (best.candidate.assignment, best.gain_s) if best else (None, 0.0)
        made = by_score(
            self.name, situation, (first.assignment, second), score_s, self.threshold,
            "expected gain", primary_s=primary_s, worth=best,
        )  # fmt: skip
        return replace(
            made, primary_by="policy", outlook=outlook, gap=gap, considered=considered,
            sooner=sooner, arrivals=arrivals,
        )  # fmt: skip

    def _merit(self, situation: Situation, first: Candidate, one: Worth) -> tuple[float, float]:
        """What the second is chosen by: lives beyond its cost, where that is known; its gain."""
        price = getattr(self.threshold, "second_cost", None)
        if price is None:
            return 0.0, one.gain_s
        cost = price(situation, (first.assignment, one.candidate.assignment), one.primary_s, one)
        return float(cost.per_s * one.gain_s - cost.lives), one.gain_s

    def _look(
        self, situation: Situation, primary: Assignment, rng: np.random.Generator
    ) -> tuple[Outlook | None, OptimisticGap | None]:
        """The scenario set of the call and the gap over it, where there is a need for them."""
        wanted = self.report_gap or "gap-path" in self.seconds
        if self.model is None or not wanted:
            return None, None
        outlook = outlook_of(situation, self.model, path=primary.path, centre=self.centre)
        how = self.method, self.time_limit_s
        return outlook, situation_gap(situation, outlook, primary, rng, *how)


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

    By ``policy`` as it is, or by the policy of that kind (ours unless told; docs/plugins.md
    has how to name your own) with ``model``, ``responses`` and a ``threshold``: a rule, or
    a number of seconds. Unless told, it is the seconds that save one life in a
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
