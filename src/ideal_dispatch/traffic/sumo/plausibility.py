"""Congested but not gridlocked: the rule a simulated day is judged by.

1. In every hour fewer than 1 % of the vehicles that were on the road in it
   (those departed, and those running on average) teleport.
2. The slowest hour of a weekday runs at 0.45 to 0.80 of free flow; other days
   may be quicker, no hour of any day is slower.
3. At least 97 % of the vehicles that departed arrive within an hour after
   their period.
4. At the end of no hour more than 10 % of its trips wait to enter the network.

The four limits were given before the first run. What the first is a share of
was settled after two-hour trial runs, before any planned day.
"""

from collections.abc import Sequence
from datetime import date, datetime

from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.sumo.simulation import HourCount

MOST_TELEPORTED = 0.01
SLOWEST, QUICKEST_PEAK = 0.45, 0.80
MOST_UNFINISHED = 0.03
MOST_WAITING = 0.10


def broken_rules(recording: RecordedTraffic) -> list[str]:
    """Why days of a recording break the rule, a line each; days of other engines keep it."""
    reasons = []
    for stretches in recording.days:
        first = recording.stretches[stretches[0]]
        if "hours" in first.notes:
            hours = [
                HourCount(**{**row, "start": datetime.fromisoformat(row["start"])})
                for row in first.notes["hours"]
            ]
            day = recording.calendar.local(first.start).date()
            reasons += broken_by_day(day, first.notes["kind"], hours, first.notes["unfinished"])
    return reasons


def broken_by_day(day: date, kind: str, hours: Sequence[HourCount], unfinished: float) -> list[str]:
    """Why one day breaks the rule, a line each."""
    reasons = [
        f"{day} {hour.start:%H:%M}: {reason}" for hour in hours for reason in hour_breaks(hour)
    ]
    slowest = min(hour.relative_speed for hour in hours)
    if kind == "weekday" and slowest > QUICKEST_PEAK:
        reasons.append(f"{day}: a weekday at {slowest:.2f} of free flow in its peak")
    if unfinished > MOST_UNFINISHED:
        reasons.append(f"{day}: {unfinished:.1%} of the vehicles did not arrive")
    return reasons


def hour_breaks(hour: HourCount) -> list[str]:
    """Why one hour breaks the rule, a line each: it is gridlocked, or nearly."""
    reasons = []
    on_road = hour.departed + hour.running
    if hour.teleported >= MOST_TELEPORTED * max(on_road, 1.0):
        reasons.append(f"{hour.teleported} of {on_road:.0f} vehicles teleported")
    if not hour.relative_speed >= SLOWEST:
        reasons.append(f"speed is {hour.relative_speed:.2f} of free flow")
    if hour.waiting > MOST_WAITING * max(hour.wanted, 1):
        reasons.append(f"{hour.waiting} of {hour.wanted} trips wait to enter")
    return reasons
