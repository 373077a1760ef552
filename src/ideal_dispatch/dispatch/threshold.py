"""How many seconds a second ambulance must be worth ([IDEAL] thr, appendix B)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ideal_dispatch.arrays import non_negative, whole_number
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.candidate import Worth
    from ideal_dispatch.dispatch.decision import Pair
    from ideal_dispatch.dispatch.situation import Situation

USUAL_COST = 0.001
"""What a second ambulance must bring unless told otherwise: one life in a thousand calls.

The others lose less while one unit is away for 15 minutes in a fleet that is busy half of its
time, and more at 70 %; docs/dispatch.md has how to find one's own.
"""

LONGEST_S = 86_400.0
"""No threshold is longer: where a curve is all but flat, nothing is worth a second ambulance."""


@runtime_checkable
class Threshold(Protocol):
    """A rule for the seconds that justify a second ambulance.

    It may also have ``words(primary_s, free_units)``, the same for people, and
    ``second_cost(situation, pair, primary_s, worth)``: the :class:`SecondCost` of one call,
    whose seconds then are the threshold. ``worth`` is None where the policy computes none.
    """

    def seconds(self, primary_s: float, free_units: int) -> float:
        """The threshold if the primary is expected after ``primary_s``.

        ``free_units`` are all that are free when the call comes in, the
        primary included. Minus infinity means that a second always goes.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConstantThreshold:
    """The same threshold for every call; minus infinity always sends a second."""

    limit_s: float

    def __post_init__(self) -> None:
        if math.isnan(self.limit_s) or self.limit_s == math.inf:
            raise InputError(
                f"threshold {self.limit_s}: a number of seconds is needed, "
                "or minus infinity to always send a second"
            )

    def seconds(self, primary_s: float, free_units: int) -> float:
        return self.limit_s

    def words(self, primary_s: float, free_units: int) -> str:
        if self.limit_s == -math.inf:
            return "a second ambulance always goes"
        return f"a second ambulance must be worth more than {self.limit_s:.0f} s, as for every call"


@dataclass(frozen=True, slots=True)
class SecondCost:
    """What the second ambulance of one call costs the others, in lives.

    ``per_s`` are the lives that one second of time saves in this call. ``hold_s`` is for how
    long the unit is expected to be away, None where the cost does not depend on it.
    """

    lives: float
    per_s: float
    words: str
    hold_s: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds that are worth the cost: the threshold."""
        return seconds_worth(self.lives, self.per_s)


def seconds_worth(lives: float, per_s: float) -> float:
    """The seconds that save so many lives, where each second saves ``per_s``."""
    return lives / per_s if lives < per_s * LONGEST_S else LONGEST_S


ALWAYS = ConstantThreshold(-math.inf)
"""A second ambulance always goes: the "dual" form of a policy."""

AT_ZERO = ConstantThreshold(0.0)
"""A second ambulance goes where its score is above zero."""


@dataclass(frozen=True, slots=True)
class CapacityCost:
    """What sending a second ambulance costs, as a risk of death elsewhere ([IDEAL] C).

    ``base`` is the cost with at least ``full_units`` free: 0.001 says that a
    second must save one life in a thousand calls. With fewer it grows as
    (full_units / free)^steepness; without ``full_units`` it is the same always.
    """

    base: float
    full_units: int | None = None
    steepness: float = 1.0

    def __post_init__(self) -> None:
        non_negative(self.base, "cost")
        non_negative(self.steepness, "steepness")
        if self.full_units is not None and whole_number(self.full_units, "full_units") < 1:
            raise InputError(f"full_units {self.full_units}: at least one is needed")

    def risk(self, free_units: int) -> float:
        """The cost with so many units free."""
        if self.full_units is None or free_units >= self.full_units:
            return self.base
        return float(self.base * (self.full_units / max(free_units, 1)) ** self.steepness)


@dataclass(frozen=True, slots=True)
class ClinicalThreshold:
    """Cost over slope, C / λ(t): what the second must save to be worth its cost.

    A gain of δ seconds exceeds it just where λ·δ > C ([IDEAL] appendix B).
    With a logistic curve the slope falls with the primary's time and the
    threshold grows: the farther the patient, the fewer second ambulances.
    """

    curve: SurvivalCurve
    cost: CapacityCost

    def seconds(self, primary_s: float, free_units: int) -> float:
        slope_per_s = float(self.curve.slope_per_s(primary_s))
        return seconds_worth(self.cost.risk(free_units), slope_per_s)

    def words(self, primary_s: float, free_units: int) -> str:
        limit_s = self.seconds(primary_s, free_units)
        risk, slope = self.cost.risk(free_units), float(self.curve.slope_per_s(primary_s))
        return (
            f"a second ambulance must be worth more than {limit_s:.0f} s: with "
            f"{free_units} units free it costs {_points(100 * risk)} of survival, and after "
            f"{primary_s / 60:.1f} min a minute is worth {_points(6000 * slope)} by "
            f"{self.curve.name}"
        )

    def second_cost(
        self, situation: "Situation", pair: "Pair", primary_s: float, worth: "Worth | None"
    ) -> SecondCost:
        """The fixed cost; it is the same for every second unit and every absence."""
        free_units = situation.free_units
        slope_per_s = float(self.curve.slope_per_s(primary_s))
        words = self.words(primary_s, free_units)
        return SecondCost(self.cost.risk(free_units), slope_per_s, words)


def _points(percent: float) -> str:
    number = f"{percent:.2g}"
    return f"{number} {'point' if number == '1' else 'points'}"
