"""Which records are left out on purpose, rule by rule, and how many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.records.agency import Exclusions


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rule, what it says of a row, and the rows it applies to."""

    name: str
    says: str
    applies: BoolArray


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How many rows a rule applies to, and how many of them no earlier rule removed."""

    name: str
    says: str
    applies: int
    removed: int


def count(rules: Sequence[Rule]) -> list[RuleCount]:
    """The rules in order; ``removed`` adds up to the rows excluded."""
    counts = []
    gone: BoolArray | None = None
    for rule in rules:
        new = rule.applies if gone is None else rule.applies & ~gone
        gone = rule.applies if gone is None else gone | rule.applies
        counts.append(RuleCount(rule.name, rule.says, int(rule.applies.sum()), int(new.sum())))
    return counts


def month_rule(settings: Exclusions, local_month: npt.NDArray[np.str_]) -> Rule:
    """[IDEAL] pandemic anomalies: months of the city's calendar."""
    says = f"the month is excluded ({', '.join(settings.months) or 'none'})"
    return Rule("month", says, np.isin(local_month, settings.months))


def floor_rule(settings: Exclusions, floor: FloatArray, needed: BoolArray) -> Rule:
    """[IDEAL] extreme elevations; ``floor`` is NaN where it was not recognised."""
    above = settings.floor_above
    bad = np.isnan(floor) | (np.abs(floor) > above)
    says = f"the floor is not recognised or above {above:g}"
    return Rule("floor", says, bad if settings.floors == "always" else bad & needed)


def distance_rules(settings: Exclusions, distance_m: FloatArray) -> list[Rule]:
    """[IDEAL] spatial outliers, measured along the network."""
    near, far = settings.nearer_than_km, settings.farther_than_km
    return [
        Rule("near", f"nearer than {near:g} km by road", distance_m < 1000 * near),
        Rule("far", f"farther than {far:g} km by road", distance_m > 1000 * far),
    ]


def duration_rule(settings: Exclusions, call_to_cpr_s: FloatArray, drive_s: FloatArray) -> Rule:
    """[IDEAL] extreme durations: call-to-CPR, or driving where that is not known."""
    limit = settings.longer_than_min
    seconds = np.where(np.isnan(call_to_cpr_s), drive_s, call_to_cpr_s)
    says = f"longer than {limit:g} min from call to CPR, or in driving where that is not known"
    return Rule("duration", says, seconds > 60 * limit)


def speed_rule(settings: Exclusions, distance_m: FloatArray, travel_s: FloatArray) -> Rule:
    """Faster than any ambulance drives."""
    limit = settings.faster_than_kmh
    too_fast = speed_kmh(distance_m, travel_s) > limit
    return Rule("speed", f"faster than {limit:g} km/h on the shortest way", too_fast)


def speed_kmh(distance_m: FloatArray, travel_s: FloatArray) -> FloatArray:
    """Implied speed, NaN where the time is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        speed: FloatArray = np.where(travel_s > 0, 3.6 * distance_m / travel_s, np.nan)
    return speed


def duplicates(call_id: Sequence[str], unit: Sequence[str], usable: BoolArray) -> BoolArray:
    """Rows whose call and unit appeared in an earlier usable row; empty ids are not duplicates."""
    seen: set[tuple[str, str]] = set()
    again = np.zeros(len(call_id), bool)
    for index, key in enumerate(zip(call_id, unit, strict=True)):
        if usable[index] and key[0]:
            again[index] = key in seen
            seen.add(key)
    return again
