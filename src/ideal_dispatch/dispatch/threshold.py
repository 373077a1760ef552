"""How many seconds a second ambulance must be worth ([IDEAL] thr, appendix B)."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ideal_dispatch.arrays import non_negative, whole_number
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import InputError

USUAL_COST = 0.01
"""What a second ambulance must bring unless told otherwise: one life in a hundred calls."""

LONGEST_S = 86_400.0
"""No threshold is longer: where a curve is all but flat, nothing is worth a second ambulance."""


@runtime_checkable
class Threshold(Protocol):
    """A rule for the seconds that justify a second ambulance.

    It may also have ``words(primary_s, free_units)``, the same for people.
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


ALWAYS = ConstantThreshold(-math.inf)
"""A second ambulance always goes: the "dual" form of a policy."""

AT_ZERO = ConstantThreshold(0.0)
"""A second ambulance goes where its score is above zero."""


@dataclass(frozen=True, slots=True)
class CapacityCost:
    """What sending a second ambulance costs, as a risk of death elsewhere ([IDEAL] C).

    ``base`` is the cost with at least ``full_units`` free: 0.01 says that a
    second must save one life in a hundred calls. With fewer it grows as
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
        risk, slope = self.cost.risk(free_units), float(self.curve.slope_per_s(primary_s))
        return risk / slope if risk < slope * LONGEST_S else LONGEST_S

    def words(self, primary_s: float, free_units: int) -> str:
        limit_s = self.seconds(primary_s, free_units)
        risk, slope = self.cost.risk(free_units), float(self.curve.slope_per_s(primary_s))
        return (
            f"a second ambulance must be worth more than {limit_s:.0f} s: with "
            f"{free_units} units free it costs {_points(100 * risk)} of survival, and after "
            f"{primary_s / 60:.1f} min a minute is worth {_points(6000 * slope)} by "
            f"{self.curve.name}"
        )


def _points(percent: float) -> str:
    number = f"{percent:.2g}"
    return f"{number} {'point' if number == '1' else 'points'}"
