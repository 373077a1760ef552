"""Traffic simulated by SUMO (the ``sumo`` extra); plans can be made without it."""

from ideal_dispatch.traffic.sumo.day_plan import Closure, DayPlan
from ideal_dispatch.traffic.sumo.emergency import DrivenTime, emergency_drives
from ideal_dispatch.traffic.sumo.engine import SumoError, is_installed, sumo_version
from ideal_dispatch.traffic.sumo.planning import plan_days
from ideal_dispatch.traffic.sumo.plausibility import is_plausible
from ideal_dispatch.traffic.sumo.simulation import DayTimes, HourCount, simulate_day

__all__ = [
    "Closure",
    "DayPlan",
    "DayTimes",
    "DrivenTime",
    "HourCount",
    "SumoError",
    "emergency_drives",
    "is_installed",
    "is_plausible",
    "plan_days",
    "simulate_day",
    "sumo_version",
]
