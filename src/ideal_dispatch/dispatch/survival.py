"""Survival of a cardiac arrest outside hospital, by the time until help arrives.

The published curves take the times of cardiopulmonary resuscitation (CPR), of
defibrillation, of advanced life support and of the ambulance's arrival, in
minutes from the collapse. A dispatcher knows one time: the drive. What is
assumed about the others is a field of :class:`SurvivalCurve`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import non_negative
from ideal_dispatch.errors import InputError

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """P(survival) as a function of the drive, with what is assumed about the rest.

    The score u = ``constant`` + Σ coefficient × minutes gives 1 − u for a
    "linear" curve, kept within 0 … 1, and 1 / (1 + exp u) for a "logistic" one.

    Assumed: the patient collapses when the call comes in; the ambulance leaves
    ``before_drive_s`` later; its crew defibrillates ``defibrillation_after_s``
    and gives advanced life support ``advanced_after_s`` after arriving. CPR
    begins when it arrives, or at ``bystander_cpr_s`` after the collapse where a
    bystander gives it and is sooner.
    """

    name: str
    form: Literal["linear", "logistic"]
    constant: float
    cpr_per_min: float = 0.0
    arrival_per_min: float = 0.0
    defibrillation_per_min: float = 0.0
    advanced_per_min: float = 0.0
    before_drive_s: float = 0.0
    bystander_cpr_s: float | None = None
    defibrillation_after_s: float = 0.0
    advanced_after_s: float = 0.0

    def __post_init__(self) -> None:
        if self.form not in ("linear", "logistic"):
            raise InputError(f"curve {self.name}: form {self.form!r}; choose linear or logistic")
        for name in ("cpr_per_min", "arrival_per_min", "defibrillation_per_min",
                     "advanced_per_min", "before_drive_s", "defibrillation_after_s",
                     "advanced_after_s"):  # fmt: skip
            non_negative(getattr(self, name), f"curve {self.name}: {name}")
        if self.bystander_cpr_s is not None:
            non_negative(self.bystander_cpr_s, f"curve {self.name}: bystander_cpr_s")
        if not np.isfinite(self.constant):
            raise InputError(f"curve {self.name}: constant {self.constant} is not finite")
        if not self._arrival_per_min > 0.0:
            raise InputError(
                f"curve {self.name}: the ambulance's arrival changes nothing; a coefficient of "
                "arrival, defibrillation or advanced care above zero is needed"
            )

    def probability(self, arrival_s: Any) -> Any:
        """The chance of survival if the drive takes so many seconds."""
        score = self._score(arrival_s)
        if self.form == "linear":
            return np.clip(1.0 - score, 0.0, 1.0)
        return _logistic(score)

    def slope_per_s(self, arrival_s: Any) -> Any:
        """How much risk each further second adds ([IDEAL] λ), above zero.

        A linear curve's is that of its line, also where the line has left 0 … 1.
        """
        given = np.asarray(arrival_s, np.float64)
        bystander_s = np.inf if self.bystander_cpr_s is None else self.bystander_cpr_s
        brings_cpr = given + self.before_drive_s < bystander_s
        slope = (self._arrival_per_min + self.cpr_per_min * brings_cpr) / _MINUTE_S
        if self.form == "logistic":
            alive = _logistic(self._score(given))
            slope = slope * alive * (1.0 - alive)
        return slope

    @property
    def _arrival_per_min(self) -> float:
        """What all but CPR adds to the score per minute of driving."""
        return self.arrival_per_min + self.defibrillation_per_min + self.advanced_per_min

    def _score(self, drive_s: Any) -> Any:
        arrival = np.asarray(drive_s, np.float64) + self.before_drive_s
        if not (arrival >= 0.0).all():
            raise InputError(f"curve {self.name}: a drive takes zero seconds or more")
        cpr = arrival if self.bystander_cpr_s is None else np.minimum(arrival, self.bystander_cpr_s)
        seconds = (
            self.cpr_per_min * cpr
            + self.arrival_per_min * arrival
            + self.defibrillation_per_min * (arrival + self.defibrillation_after_s)
            + self.advanced_per_min * (arrival + self.advanced_after_s)
        )
        return self.constant + seconds / _MINUTE_S


def _logistic(score: Any) -> Any:
    return np.exp(-np.logaddexp(0.0, score))


_WAALEWIJN_EMS, _WAALEWIJN_CPR = 0.14, 0.30

CURVES: Mapping[str, SurvivalCurve] = MappingProxyType(
    {
        curve.name: curve
        for curve in (
            SurvivalCurve(
                "larsen-1993", "linear", 1.0 - 0.67,
                cpr_per_min=0.023, defibrillation_per_min=0.011, advanced_per_min=0.021,
            ),
            SurvivalCurve(
                "valenzuela-1997", "logistic", -0.260,
                cpr_per_min=0.106, defibrillation_per_min=0.139,
            ),
            SurvivalCurve(  # printed as 0.30 · CPR + 0.14 · (ambulance − CPR)
                "waalewijn-2001", "logistic", 0.04,
                cpr_per_min=_WAALEWIJN_CPR - _WAALEWIJN_EMS, arrival_per_min=_WAALEWIJN_EMS,
            ),
            SurvivalCurve("de-maio-2003", "logistic", 0.679, arrival_per_min=0.262),
        )
    }
)  # fmt: skip
"""The published curves by name, with no time before the drive and no bystander."""

USUAL_CURVE = "waalewijn-2001"


def survival_curve(name: str, **assumptions: Any) -> SurvivalCurve:
    """A published curve under other assumptions than its own."""
    if name not in CURVES:
        raise InputError(f"survival curve {name!r}: choose one of {', '.join(CURVES)}")
    return replace(CURVES[name], **assumptions)
