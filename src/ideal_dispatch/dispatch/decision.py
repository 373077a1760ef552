"""What a policy answers: who drives where, why, and what it computed on the way."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.dispatch.path_pair import overlap
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.dispatch.threshold import SecondCost, Threshold
from ideal_dispatch.dispatch.trace import Facts
from ideal_dispatch.errors import IdealError, InputError, PolicyError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.plugins import place_of

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.arrival import Arrival
    from ideal_dispatch.dispatch.explanation import Explanation
    from ideal_dispatch.dispatch.scenario_gap import Outlook
    from ideal_dispatch.dispatch.worth import SoonerUnit, Worth
    from ideal_dispatch.gap import OptimisticGap

Pair = tuple[Assignment, Assignment | None]
"""The primary, and the second ambulance that is considered where there is one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The primary, the second ambulance that was considered, and whether it goes.

    ``second`` is set even where it does not go, so that every threshold can be
    judged afterwards; None where there is no sensible second. It goes where
    ``score_s`` exceeds ``threshold_s``. ``facts`` are plain numbers and texts that a
    policy adds to the log.

    The rest is what was computed, where the policy did: when the primary is expected
    and by whom (the router's quote, the policy's correction of it, or the model's
    nominal times), the ``arrivals`` of primary and second, what the second costs where the
    threshold is a cost, the scenario set of the call, the gap over it, the worth of every second
    ambulance ``considered``, and a better primary. Logs are made of these by :func:`log_details`.
    """

    policy: str
    primary: Assignment
    second: Assignment | None
    score_s: float
    threshold_s: float
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    situation: Situation | None = field(default=None, repr=False, compare=False)
    primary_s: float | None = None
    primary_by: Literal["router", "policy", "model"] = "router"
    cost: SecondCost | None = field(default=None, repr=False, compare=False)
    outlook: "Outlook | None" = field(default=None, repr=False, compare=False)
    gap: "OptimisticGap | None" = field(default=None, repr=False, compare=False)
    considered: "tuple[Worth, ...]" = field(default=(), repr=False, compare=False)
    sooner: "SoonerUnit | None" = field(default=None, repr=False, compare=False)
    arrivals: "tuple[Arrival, Arrival | None] | None" = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not math.isfinite(self.score_s):
            raise InputError(f"policy {self.policy}: score {self.score_s} is not finite")
        if math.isnan(self.threshold_s) or self.threshold_s == math.inf:
            raise InputError(
                f"policy {self.policy}: threshold {self.threshold_s}; a number is needed, "
                "or minus infinity to always send a second"
            )
        for name in ("score_s", "threshold_s"):  # numbers of NumPy would not be JSON
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))

    @property
    def send_second(self) -> bool:
        """Whether the second ambulance goes."""
        return self.second is not None and self.score_s > self.threshold_s

    @property
    def worth(self) -> "Worth | None":
        """What the second is worth, where the policy worked it out."""
        own = (one for one in self.considered if one.candidate.assignment is self.second)
        return next(own, None)

    @property
    def same_depot(self) -> bool:
        """Whether both leave from one station."""
        return self.second is not None and self.second.station == self.primary.station

    @property
    def same_path(self) -> bool:
        """Whether both drive the very same edges."""
        return self.second is not None and self.second.path == self.primary.path

    @property
    def overlap(self) -> float | None:
        """The share of the second's metres that the primary drives too; None without a second."""
        if self.second is None:
            return None
        return overlap(self.about.network, self.primary.path, self.second.path)

    @property
    def about(self) -> Situation:
        """The situation that was decided about."""
        if self.situation is None:
            raise InputError(
                f"policy {self.policy}: its decision does not know its situation; "
                "ask the policy through ideal_dispatch.decide"
            )
        return self.situation

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with a row per second ambulance that was considered.

        ``second`` marks the one that the decision is about. It is empty where the
        policy appraises none.
        """
        stations = self.about.stations
        rows = [
            {
                "depot": stations[one.candidate.assignment.station].depot.name,
                "path_from": one.candidate.source,
                "drive_s": one.candidate.drive_s,
                "arrives_s": one.arrivals[1].expected_s,
                "length_m": float(self.about.network.length_m[one.candidate.path.edges].sum()),
                "gain_s": one.gain_s,
                "mean_s": one.mean_s,
                "spread_s": one.spread_s,
                "survival_gain": one.survival_gain,
                "second": one.candidate.assignment == self.second,
            }
            for one in self.considered
        ]
        return frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def explain(self) -> "Explanation":
        """Why, by road, from what was computed: nothing is searched again."""
        from ideal_dispatch.dispatch.explanation import explanation_of

        return explanation_of(self)


@runtime_checkable
class Policy(Protocol):
    """A rule that decides about calls; the same situation and generator, the same decision."""

    @property
    def name(self) -> str:
        """Its name in tables and logs."""
        ...

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        """Who goes."""
        ...


def decided(policy: Policy, situation: Situation, rng: np.random.Generator) -> Decision:
    """The policy's decision, with the situation that it is about.

    A :class:`PolicyError` says where the policy fails or breaks its contract. Other
    errors of this package pass, but for an :class:`InputError`: there is no answer.
    """
    cause: Exception | None = None
    try:
        made = policy.decide(situation, rng)
        wrong = _fault(policy, situation, made)
    except InputError as error:
        cause, wrong = error, str(error).removeprefix(f"policy {policy.name}: ")
    except IdealError:
        raise
    except Exception as error:
        cause, wrong = error, f"{type(error).__name__}: {error}"
    if wrong:
        who = f"policy {policy.name}, incident {situation.incident.name}"
        words = f"{who}: {wrong}{place_of(policy.decide, cause)}"
        raise PolicyError(" ".join(words.split())) from cause
    return made if made.situation is not None else replace(made, situation=situation)


def _fault(policy: Policy, situation: Situation, made: Any) -> str:
    """How a decision breaks the contract of policies; "" where it does not."""
    if not isinstance(made, Decision):
        return f"decide() gives {made!r}; a Decision is needed"
    if made.policy != policy.name:
        return f"it decided in the name of {made.policy}"
    told = [made.primary] if made.second is None else [made.primary, made.second]
    sent = situation.sent
    if sent is not None and told.pop(0) != sent:
        depot = situation.stations[sent.station].depot
        return f"its primary is not the ambulance sent from {depot}"
    for one in told:
        if not isinstance(one, Assignment):
            return f"it sends {one!r}; an Assignment is needed"
        if one.station not in situation.available:
            return f"it sends from station {one.station}, which is not available"
        depot = situation.stations[one.station].depot
        if (one.path.origin, one.path.destination) != (depot.node, situation.incident.node):
            return f"its {one.path} does not lead from {depot} to the incident"
    station = situation.stations[made.primary.station]
    if len(told) > 1 and told[0].station == told[1].station and station.units < 2:
        return f"it sends two ambulances from {station.depot}, where {station.units} is free"
    return ""


def by_score(
    policy: str,
    situation: Situation,
    pair: Pair,
    score_s: float,
    threshold: Threshold,
    what: str,
    *,
    unit: str = " s",
    primary_s: float | None = None,
    worth: "Worth | None" = None,
) -> Decision:
    """The decision by a score and a threshold, with its reason in words.

    ``what`` names the score in the reason, ``unit`` stands after it. ``primary_s``
    is when the primary is expected, by the router where not given. ``worth`` is of the
    second, where it was computed.
    """
    primary, second = pair
    if primary_s is None:
        primary_s = situation.expected_s(primary.station, primary.path)
    with situation.trace.step("threshold") as facts:
        cost: SecondCost | None = None
        if second is not None and hasattr(threshold, "second_cost"):
            cost = threshold.second_cost(situation, pair, primary_s, worth)
        free = situation.free_units
        limit_s = threshold.seconds(primary_s, free) if cost is None else cost.seconds
        facts |= {"primary_s": round(primary_s, 3), "free_units": free}
        facts["threshold_s"] = round(limit_s, 3) if math.isfinite(limit_s) else "always"
    first = situation.stations[primary.station].depot.name
    if second is None:
        reason = f"{first} alone: there is no other unit on another road"
    else:
        other = situation.stations[second.station].depot.name
        who = f"{first}, and a second from {other}" if score_s > limit_s else f"{first} alone"
        side = "above" if score_s > limit_s else "not above"
        why = f"{what} {score_s:.4g}{unit}, {side} the threshold of {limit_s:.4g}{unit}"
        reason = f"{who}: {'a second always goes' if limit_s == -math.inf else why}"
    return Decision(
        policy, primary, second, score_s, limit_s, reason,
        situation=situation, primary_s=primary_s, cost=cost,
    )  # fmt: skip


# --- what logs and JSON keep of a decision: plain values --------------------------------


def log_details(decision: "Decision") -> Facts:
    """The ``details`` of a decision, with the policy's own facts last.

    The order of keys differs by policy as it always did: logs stay the same bytes.
    """
    outlook = {} if decision.outlook is None else outlook_facts(decision.outlook)
    gap = {} if decision.gap is None else gap_facts(decision.gap)
    pair: Facts = {}
    if (overlap := decision.overlap) is not None:
        pair = {"overlap": round(overlap, 4), "same_depot": decision.same_depot}
        pair["same_path"] = decision.same_path
    if decision.primary_s is None or decision.primary_by == "router":
        known = {**pair, **gap, **outlook}
    elif decision.primary_by == "model":
        known = {"nominal_primary_s": round(decision.primary_s, 3), **outlook, **gap, **pair}
    else:
        known = {"primary_s": round(decision.primary_s, 3)}
        if (worth := decision.worth) is not None:
            known |= worth_facts(worth)
            known["expected_survival_gain"] = round(worth.survival_gain, 6)
            known["survival_curve"] = worth.curve.name
        if decision.cost is not None and decision.cost.hold_s is not None:
            known |= {"cost": decision.cost.lives, "hold_s": round(decision.cost.hold_s, 1)}
        known |= {**pair, **outlook, **gap}
    return known | dict(decision.facts)


def worth_facts(worth: "Worth") -> Facts:
    """What a second is worth, as plain values."""
    return {
        "second": worth.candidate.source,
        "second_s": round(worth.candidate.drive_s, 3),
        "expected_gain_s": round(worth.gain_s, 3),
        "spread_s": round(worth.spread_s, 3),
        "times_from": worth.times_from,
        "spread_from": worth.spread_from,
        "mean_s": round(worth.mean_s, 3),
    }


def outlook_facts(outlook: "Outlook") -> Facts:
    """The scenario set, and what is unusual about its forecast."""
    facts: Facts = {"centre": outlook.centre, "radius": round(outlook.scenarios.radius, 6)}
    if outlook.forecast.unusual:
        facts["unusual"] = "; ".join(outlook.forecast.unusual)
    if outlook.forecast.transferred:
        facts["transferred"] = True
    return facts


def gap_facts(gap: "OptimisticGap") -> Facts:
    """The interval of the gap; an upper end of null was not found."""
    return {
        "gap_lower_s": round(gap.lower_s, 3),
        "gap_upper_s": round(gap.upper_s, 3) if math.isfinite(gap.upper_s) else None,
        "gap_status": gap.status,
    }
