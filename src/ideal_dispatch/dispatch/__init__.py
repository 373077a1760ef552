"""From what is known at a call to who drives: situations, policies, thresholds."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.decision import Assignment, Decision, Policy
    from ideal_dispatch.dispatch.situation import Incident, Situation, Station, observe

__all__ = ["Assignment", "Decision", "Incident", "Policy", "Situation", "Station", "observe"]

# who answers calls and solves none wants the reasons alone
__getattr__ = on_first_use(
    __name__,
    dict.fromkeys(("Assignment", "Decision", "Policy"), "decision")
    | dict.fromkeys(("Incident", "Situation", "Station", "observe"), "situation"),
)
