"""What a policy answers: who drives where, and why."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.scenario_gap import Outlook
    from ideal_dispatch.dispatch.sooner import SoonerUnit
    from ideal_dispatch.gap import OptimisticGap


@dataclass(frozen=True, slots=True)
class Assignment:
    """One ambulance: the station it leaves and the path it is told.

    It keeps to the first ``follow`` edges of the path and asks the router
    again at every junction after them; 0 means from the start.
    """

    station: int
    path: Path
    follow: int = 0

    @property
    def prefix(self) -> tuple[int, ...]:
        """The edges it keeps to."""
        return tuple(self.path.edges[: self.follow].tolist())

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Two assignments with the same key drive the same way in every world."""
        return self.path.origin, self.prefix


@dataclass(frozen=True, slots=True)
class Decision:
    """The primary, the second ambulance that was considered, and whether it goes.

    ``second`` is set even where it does not go, so that every threshold can be
    judged afterwards; None where there is no sensible second. It goes where
    ``score_s`` exceeds ``threshold_s``. ``details`` holds plain numbers and
    texts for the log. ``outlook`` and ``gap`` are what the policy computed on
    its way, where it did, for whoever explains the decision, and ``sooner`` is
    a better primary, where it knows one; no log has them.
    """

    policy: str
    primary: Assignment
    second: Assignment | None
    score_s: float
    threshold_s: float
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)
    outlook: "Outlook | None" = field(default=None, repr=False, compare=False)
    gap: "OptimisticGap | None" = field(default=None, repr=False, compare=False)
    sooner: "SoonerUnit | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.score_s):
            raise InputError(f"policy {self.policy}: score {self.score_s} is not finite")
        if math.isnan(self.threshold_s) or self.threshold_s == math.inf:
            raise InputError(
                f"policy {self.policy}: threshold {self.threshold_s}; a number is needed, "
                "or minus infinity to always send a second"
            )
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    @property
    def send_second(self) -> bool:
        """Whether the second ambulance goes."""
        return self.second is not None and self.score_s > self.threshold_s


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


def decision(
    policy: str,
    situation: Situation,
    primary: Assignment,
    second: Assignment | None,
    score_s: float,
    threshold: Threshold,
    what: str,
    *,
    unit: str = " s",
    primary_s: float | None = None,
    details: Mapping[str, Any] | None = None,
    outlook: "Outlook | None" = None,
    gap: "OptimisticGap | None" = None,
    sooner: "SoonerUnit | None" = None,
) -> Decision:
    """The decision by a score and a threshold, with its reason in words.

    ``what`` names the score in the reason, ``unit`` stands after it. ``primary_s``
    is when the primary is expected, by the router where not given.
    """
    if primary_s is None:
        primary_s = situation.expected_s(primary.station, primary.path)
    with situation.trace.step("threshold") as facts:
        limit_s = threshold.seconds(primary_s, situation.free_units)
        facts |= {"primary_s": round(primary_s, 3), "free_units": situation.free_units}
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
        policy, primary, second, score_s, limit_s, reason, details or {}, outlook, gap, sooner
    )
