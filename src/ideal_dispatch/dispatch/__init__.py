"""From what is known at a call to who drives: situations, policies, thresholds."""

from ideal_dispatch.dispatch.decision import Assignment, Decision, Policy
from ideal_dispatch.dispatch.situation import Incident, Situation, Station, observe

__all__ = ["Assignment", "Decision", "Incident", "Policy", "Situation", "Station", "observe"]
