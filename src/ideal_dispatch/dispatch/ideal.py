"""IDEAL in our own form; as printed it is in :mod:`ideal_dispatch.dispatch.paper_ideal`."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ideal_dispatch.dispatch.decision import Assignment, Decision, decision
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.paper_ideal import PaperIdeal
from ideal_dispatch.dispatch.scenario_gap import (
    Centre,
    Outlook,
    gap_details,
    outlook,
    situation_gap,
)
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.sooner import LEAST_SOONER_S, sooner_unit
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.dispatch.threshold import AT_ZERO, ClinicalThreshold, Threshold
from ideal_dispatch.dispatch.way import Way, pair_details, quoted, routed, sent_way
from ideal_dispatch.dispatch.worth import USUAL_SECONDS, Second, Worth, ways, worth
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.optimistic_gap import Method

__all__ = ["DecideBy", "Ideal", "PaperIdeal"]

DecideBy = Literal["gain", "gap", "both"]

_KINDS: tuple[Second, ...] = get_args(Second)
_SCORES = {"gain": "expected gain", "gap": "gap", "both": "lesser of expected gain and gap"}


@dataclass(frozen=True, slots=True)
class Ideal:
    """Our form of IDEAL, the default.

    The primary is the ambulance that was already sent; without one it has the
    shortest quote, corrected by ``drift`` and by the reversion of ``gain`` where
    they are given. The second is, of the kinds in ``seconds``,
    the way with the largest expected gain E[(T₁ − T₂)⁺]: another depot's route,
    the primary depot's other route, or, with a model, the path of the certified gap;
    the latter two only if at most ``overlap_limit`` of their metres are on the primary's way,
    and the second keeps to all of them that differs from it. Where no other depot
    has a unit, all kinds are considered.

    The expected gain takes its mean from the corrected quotes, or without
    ``drift`` from the quotes, and its spread from ``gain``. Without ``gain``
    the spread is the forecast's, and without both so is the mean: the details
    say so under ``times_from`` and ``spread_from``.

    ``decide_by`` says what must exceed the threshold: the expected "gain", the
    certified "gap", or "both". The gap is searched within ``time_limit_s``
    around the ``centre``. It is left out where neither the decision nor a kind
    of second needs it and ``report_gap`` is false. A search that ran out of
    time is reported as "open", and how far it came depends on the machine: for
    a log that is the same byte for byte, use method "multistart" or no limit.

    Where a unit of another depot is expected more than ``sooner_s`` sooner than
    the ambulance that was sent, and surely enough, the decision names it as ``sooner``.
    """

    model: Model | None = None
    gain: GainModel | None = None
    drift: DriftModel | None = None
    threshold: Threshold = AT_ZERO
    decide_by: DecideBy = "gain"
    seconds: tuple[Second, ...] = USUAL_SECONDS
    overlap_limit: float = 0.5
    centre: Centre = "router"
    method: Method = "certified"
    time_limit_s: float | None = 0.5
    report_gap: bool = True
    sooner_s: float = LEAST_SOONER_S
    name: str = "ideal"

    def __post_init__(self) -> None:
        if self.decide_by not in _SCORES:
            raise InputError(f"decide_by {self.decide_by!r}: choose gain, gap or both")
        if not 0.0 <= self.overlap_limit <= 1.0:
            raise InputError(f"overlap_limit {self.overlap_limit}: a share of 0 to 1 is needed")
        if not self.sooner_s >= 0.0:
            raise InputError(f"sooner_s {self.sooner_s}: zero seconds or more are needed")
        if not self.seconds or set(self.seconds) - set(_KINDS):
            raise InputError(f"seconds {list(self.seconds)}: choose of {', '.join(_KINDS)}")
        alone = self.decide_by == "gain" and set(self.seconds) != {"gap-path"}
        if self.model is None and (self.gain is None or not alone):
            raise InputError(
                f"policy {self.name} needs a trained model; without one it can decide only by a "
                "fitted gain, between seconds of other-depot and alternative"
            )

    @property
    def _needs_gap(self) -> bool:
        return self.decide_by != "gain" or "gap-path" in self.seconds

    @property
    def curve(self) -> SurvivalCurve:
        """The curve by which survival is reported: the threshold's, where it has one."""
        if isinstance(self.threshold, ClinicalThreshold):
            return self.threshold.curve
        return CURVES[USUAL_CURVE]

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        edge_drift_s = None
        if self.drift is not None:
            edge_drift_s = self.drift.edge_drift_s(situation.context, situation.network)
        routes = [
            quoted(
                situation.network,
                "other depot",
                routed(situation, number),
                situation.quote(number),
                edge_drift_s,
            )
            for number in situation.available
        ]
        if situation.sent is None:
            first = min(routes, key=self._expected_s)
            seen, gap = self._look(situation, first.assignment, rng)
        else:
            seen, gap = self._look(situation, situation.sent, rng)
            nominal = None if seen is None else seen.scenarios.nominal_times
            first = sent_way(situation, situation.sent, edge_drift_s, nominal)
        elsewhere = any(way.assignment.station != first.assignment.station for way in routes)
        kinds = self.seconds if elsewhere else _KINDS
        found = ways(
            situation, first, routes, None if gap is None else gap.secondary, seen, edge_drift_s,
            kinds, self.overlap_limit,
        )  # fmt: skip

        def valued(way: Way) -> Worth:
            return worth(
                situation, first, way, seen,
                model=self.model, gain=self.gain, corrected=edge_drift_s is not None,
            )  # fmt: skip

        with situation.trace.step("expected gain") as facts:
            worths = list(map(valued, found))
            best = max(worths, key=lambda one: one.gain_s, default=None)
            known = best.details if best else {}
            facts |= {"ways_considered": len(worths), **known}
        sooner = None
        if situation.sent is not None:
            others = worths if "other-depot" in kinds else map(valued, routes)
            sooner = sooner_unit(situation, first.assignment.station, others, self.sooner_s)
        gain_s, gap_s = best.gain_s if best else 0.0, gap.lower_s if gap else 0.0
        score_s = {"gain": gain_s, "gap": gap_s, "both": min(gain_s, gap_s)}[self.decide_by]
        return decision(
            self.name, situation, first.assignment, best.way.assignment if best else None, score_s,
            self.threshold, _SCORES[self.decide_by], primary_s=first.expected_s,
            details={"primary_s": round(first.expected_s, 3)}
            | known
            | (self._pair_details(situation, first, best) if best else {})
            | (seen.details if seen else {})
            | (gap_details(gap) if gap else {}),
            outlook=seen, gap=gap, sooner=sooner,
        )  # fmt: skip

    def _expected_s(self, way: Way) -> float:
        """When a way is expected: its corrected quote, moved by the fitted reversion."""
        moved_s = 0.0 if self.gain is None else self.gain.correction_s(way.above_s, way.below_s)
        return way.expected_s + moved_s

    def _look(
        self, situation: Situation, primary: Assignment, rng: np.random.Generator
    ) -> tuple[Outlook | None, OptimisticGap | None]:
        """The scenario set of the call and the gap over it, where there is a need for them."""
        wanted = self._needs_gap or self.report_gap
        if self.model is None or not (wanted or self.gain is None):
            return None, None
        seen = outlook(situation, self.model, path=primary.path, centre=self.centre)
        if not wanted:
            return seen, None
        gap = situation_gap(
            situation, seen.scenarios, primary, rng,
            method=self.method, time_limit_s=self.time_limit_s,
        )  # fmt: skip
        return seen, gap

    def _pair_details(self, situation: Situation, first: Way, best: Worth) -> dict[str, Any]:
        saved = self.curve.slope_per_s(first.expected_s) * best.gain_s
        return {
            "expected_survival_gain": round(saved, 6),
            "survival_curve": self.curve.name,
            **pair_details(situation, first.assignment, best.way.assignment),
        }
