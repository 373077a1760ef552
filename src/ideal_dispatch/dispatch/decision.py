"""What a policy answers: who drives where, why, and what it computed on the way."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.dispatch.candidate import (
    Outlook,
    gap_facts,
    longest_roads,
    on_path,
    overlap,
)
from ideal_dispatch.dispatch.situation import Assignment, Facts, Situation
from ideal_dispatch.dispatch.threshold import SecondCost, Threshold
from ideal_dispatch.errors import IdealError, InputError, PolicyError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.explanation import (
    RoadComparison,
    Stress,
    none_sooner,
    slow_together,
    stressed,
    told,
)
from ideal_dispatch.plugins import place_of

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.arrival import Arrival
    from ideal_dispatch.dispatch.candidate import SoonerUnit, Worth

Pair = tuple[Assignment, Assignment | None]
"""The primary, and the second ambulance that is considered where there is one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The primary, the second ambulance that was considered, and whether it goes.

    ``second`` is set even where it does not go, so that every threshold can be
    judged afterwards; None where there is no sensible second. It goes where
    ``score_s`` exceeds ``threshold_s``. ``facts`` are plain numbers and texts that a
    policy adds to the log.

    The rest is what was computed, where the policy did: when the primary is expected, the
    ``arrivals`` of primary and second, what the second costs where the threshold is a cost, the
    scenario set of the call, the gap over it, the worth of every second ambulance
    ``considered``, and a better primary.
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
    cost: SecondCost | None = field(default=None, repr=False, compare=False)
    outlook: Outlook | None = field(default=None, repr=False, compare=False)
    gap: OptimisticGap | None = field(default=None, repr=False, compare=False)
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
        about = self.about
        rows = [
            {
                "depot": about.stations[one.candidate.assignment.station].depot.name,
                "path_from": one.candidate.source,
                "drive_s": one.candidate.drive_s,
                "arrives_s": one.arrivals[1].expected_s,
                "length_m": one.candidate.path.length_m(about.network),
                "gain_s": one.gain_s,
                "mean_s": one.mean_s,
                "spread_s": one.spread_s,
                "survival_gain": one.survival_gain,
                "second": one.candidate.assignment == self.second,
            }
            for one in self.considered
        ]
        return frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def log_facts(self) -> Facts:
        """The ``details`` of the log: what was computed, as plain values, and ``facts`` last."""
        known: Facts = {}
        if self.primary_s is not None:
            known["primary_s"] = round(self.primary_s, 3)
        if (worth := self.worth) is not None:
            known |= worth.facts
        if self.cost is not None and self.cost.hold_s is not None:
            known |= {"cost": self.cost.lives, "hold_s": round(self.cost.hold_s, 1)}
        if self.second is not None and (share := self.overlap) is not None:
            known |= {"overlap": round(share, 4), "same_depot": self.same_depot}
            known["same_path"] = self.second.path == self.primary.path
        known |= {} if self.outlook is None else self.outlook.facts
        known |= {} if self.gap is None else gap_facts(self.gap)
        return known | dict(self.facts)

    def explain(self) -> "Explanation":
        """Why, by road, from what was computed: nothing is searched again."""
        situation, gap, outlook = self.about, self.gap, self.outlook
        network, stations, paths = situation.network, situation.stations, [self.primary.path]
        compared: RoadComparison | None = None
        times_from: TimesFrom | None = None
        with situation.trace.step("explanation"):
            if (second := self.second) is not None:
                paths.append(second.path)
                times_from, times_s = "free_flow", network.free_flow_times_s
                if situation.router_times_s is not None:
                    times_from, times_s = "router", situation.router_times_s
                elif outlook is not None:
                    times_from, times_s = "forecast", outlook.scenarios.nominal_times
                elif situation.forecast is not None:
                    times_from, times_s = "forecast", situation.forecast.nominal_times
                starts = (
                    stations[self.primary.station].depot, stations[second.station].depot,
                )  # fmt: skip
                compared = RoadComparison.of(network, paths[0], paths[1], times_s, starts)
            if gap is None or outlook is None:
                return Explanation(compared, times_from)
            other: OtherWay | None = None
            if not none_sooner(gap) and gap.secondary not in paths:
                station = on_path(situation, self.primary.station, gap.secondary, 0).station
                roads = longest_roads(network, gap.secondary)
                if second is not None and roads == longest_roads(network, second.path):
                    roads = longest_roads(network, gap.secondary, apart_from=second.path)
                other = OtherWay(stations[station].depot.name, tuple(roads))
            slow = stressed(gap, network, outlook.scenarios, paths)
            gain_s = None if self.worth is None else self.worth.gain_s
            return Explanation(compared, times_from, gap, other, slow, gain_s)


# --- a decision by road -----------------------------------------------------------------

TimesFrom = Literal["router", "forecast", "free_flow"]

_WHOSE: dict[TimesFrom, str] = {
    "router": "Seconds by road are in the traffic of now.",
    "forecast": "Seconds by road are by the forecast.",
    "free_flow": "Seconds by road are on empty roads.",
}


@dataclass(frozen=True, slots=True)
class OtherWay:
    """The gap's path where the second takes another one: its depot and its longest roads.

    Where these would be the second's own, they are the longest that the second does not drive.
    """

    depot: str
    roads: tuple[str, ...]

    def __str__(self) -> str:
        by = f", by {', '.join(self.roads)}" if self.roads else ""
        return f"from {self.depot}{by}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The paths of primary and second by road, and what the gap says.

    ``roads`` is None where there is no second. ``times_from`` says whose seconds by
    road these are; those of a forecast need not add up to the quotes. ``other_way`` is the
    gap's path, if it is neither the primary's nor the second's and the gap is above zero.
    ``stressed`` are roads of primary and second in the scenario of the gap. ``gain_s`` is the
    expected gain, where one was computed.
    """

    roads: RoadComparison | None
    times_from: TimesFrom | None = None
    gap: OptimisticGap | None = None
    other_way: OtherWay | None = None
    stressed: tuple[Stress, ...] = ()
    gain_s: float | None = None

    def __str__(self) -> str:
        lines = [] if self.gap is None else [told(self.gap)]
        if self.gap is not None and none_sooner(self.gap) and self.gain_s is not None:
            lines.append(f"The expected gain of {self.gain_s:.1f} s counts chance beyond that set.")
        if self.other_way is not None:
            lines.append(f"The optimistic gap belongs to another way: {self.other_way}.")
        if self.roads is not None:
            lines.append(str(self.roads))
        if self.times_from is not None:
            lines.append(_WHOSE[self.times_from])
        return "\n".join([*lines, *slow_together(self.stressed)])


# --- policies ---------------------------------------------------------------------------


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
    going = [made.primary] if made.second is None else [made.primary, made.second]
    sent = situation.sent
    if sent is not None and going.pop(0) != sent:
        depot = situation.stations[sent.station].depot
        return f"its primary is not the ambulance sent from {depot}"
    for one in going:
        if not isinstance(one, Assignment):
            return f"it sends {one!r}; an Assignment is needed"
        if one.station not in situation.available:
            return f"it sends from station {one.station}, which is not available"
        depot = situation.stations[one.station].depot
        if (one.path.origin, one.path.destination) != (depot.node, situation.incident.node):
            return f"its {one.path} does not lead from {depot} to the incident"
    station = situation.stations[made.primary.station]
    if len(going) > 1 and going[0].station == going[1].station and station.units < 2:
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
    **computed: Any,
) -> Decision:
    """The decision by a score and a threshold, with its reason in words.

    ``what`` names the score in the reason, ``unit`` stands after it. ``primary_s``
    is when the primary is expected, by the router where not given. ``worth`` is of the
    second, where it was ``computed``, as are other fields of the decision.
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
        goes = score_s > limit_s
        who = f"{first}, and a second from {other}" if goes else f"{first} alone"
        side = "above" if goes else "not above"
        why = f"{what} {score_s:.4g}{unit}, {side} the threshold of {limit_s:.4g}{unit}"
        reason = f"{who}: {'a second always goes' if limit_s == -math.inf else why}"
    return Decision(
        policy, primary, second, score_s, limit_s, reason,
        situation=situation, primary_s=primary_s, cost=cost, **computed,
    )  # fmt: skip
