"""The travel time of each row, where from, and which rules leave it out."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.records import targets
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.places import DepotBook, Places
from ideal_dispatch.records.reasons import Reasons
from ideal_dispatch.records.schema import RecordTable
from ideal_dispatch.records.trips import STAMPS, SUBTRACTION, TARGETS


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How many rows a rule applies to, and how many of them no earlier rule removed."""

    rule: str
    says: str
    applies: int
    removed: int


@dataclass(frozen=True, slots=True, eq=False)
class TravelTimes:
    """Seconds of driving per row and how they were obtained (an index into TARGETS).

    ``excluded`` has what the rules say of a row, ``rules`` their counts in the
    order in which they count. ``intervals`` is what the floor slope and the
    preparation were estimated from.
    """

    seconds: FloatArray
    target: npt.NDArray[np.uint8]
    excluded: Reasons
    rules: list[RuleCount]
    intervals: targets.Intervals
    slope: targets.FloorSlope
    preparation: Mapping[str, targets.DepotPreparation]
    notes: list[str]


_Rules = dict[tuple[str, str], BoolArray]
"""The rows that each rule applies to, by its name and what it says of a row."""


def travel_times(
    table: RecordTable, places: Places, good: BoolArray, book: DepotBook, settings: AgencySettings
) -> TravelTimes:
    """Travel times and exclusions of the ``good`` rows."""
    limits = settings.exclusions
    floors = {text: read_floor(text, settings.floors) for text in set(table.texts["floor"])}
    floor = np.array([floors[text] for text in table.texts["floor"]], float)
    given = _stamped(table, places, limits.faster_than_kmh)
    rules = _rules_before_the_target(table, places, given, book, settings)
    # what a unit on the road did says nothing about the preparation at a depot
    usable = good & ~np.any(list(rules.values()), axis=0) & ~places.away
    intervals = targets.Intervals(
        depot=places.depot,
        call_to_cpr_s=given.call_to_cpr_s,
        drive_s=np.where(given.sane, given.drive_s, np.nan),
        turnout_s=table.seconds("call_at", "en_route_at"),
        storeys=np.where(np.abs(floor) <= limits.floor_above, np.abs(floor), np.nan),
        free_flow_s=places.free_flow_s,
        usable=usable & ~_repeated(table, usable),
    )
    slope, preparation = targets.estimate(
        intervals, book.names, settings.floors, settings.preparation
    )
    preparation_s = np.array([preparation[name].seconds for name in book.names])[places.depot]
    preparation_s = np.where(places.away, np.nan, preparation_s)
    climb_s = slope.seconds_per_floor * intervals.storeys
    subtracted_s = intervals.call_to_cpr_s - preparation_s - climb_s
    by_stamps = given.sane & (settings.target.rule != "subtraction")
    by_subtraction = ~by_stamps & (settings.target.rule != "stamps")
    seconds = np.where(by_stamps, given.drive_s, np.where(by_subtraction, subtracted_s, np.nan))
    needs_floor = by_subtraction & ~np.isnan(given.call_to_cpr_s)
    # [IDEAL] extreme elevations; NaN is a floor that was not recognised
    bad_floor = np.isnan(floor) | (np.abs(floor) > limits.floor_above)
    bad_floor &= needs_floor | (limits.floors == "always")
    # unusable stamps are judged if there is nothing else
    judged_s = np.where(np.isnan(seconds), given.drive_s, seconds)
    not_positive = (judged_s <= 0) | (np.isnan(judged_s) & (given.interval_s <= 0))
    too_fast = speed_kmh(places.distance_m, judged_s) > limits.faster_than_kmh
    no_time = np.isnan(seconds) & ~(bad_floor | not_positive | too_fast)
    fast = (
        f"faster than {limits.faster_than_kmh:g} km/h on the shortest way: it may have started on "
        "the road"
    )
    rules |= {
        ("floor", f"the floor is not recognised or above {limits.floor_above:g}"): bad_floor,
        ("not_positive", "a duration is zero or negative"): not_positive,
        ("speed", fast): too_fast,
        ("no_time", "its stamps give no travel time"): no_time,
    }
    # last, so that a row that is left out for itself does not take its repetition with it
    again = _repeated(table, good & ~np.any(list(rules.values()), axis=0))
    rules["duplicate", "the same call and unit as in an earlier row"] = again
    target = np.where(by_stamps, TARGETS.index(STAMPS), TARGETS.index(SUBTRACTION))
    notes = _notes(given, slope, preparation, bool((needs_floor & good).any()))
    excluded, counts = _applied(rules, good)
    target = target.astype(np.uint8)
    return TravelTimes(seconds, target, excluded, counts, intervals, slope, preparation, notes)


def speed_kmh(distance_m: FloatArray, travel_s: FloatArray) -> FloatArray:
    """Implied speed, NaN where the time is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        speed: FloatArray = np.where(travel_s > 0, 3.6 * distance_m / travel_s, np.nan)
    return speed


@dataclass(frozen=True, slots=True, eq=False)
class _Stamped:
    """Intervals between stamps: ``sane`` driving can be used as it is.

    ``interval_s`` is call-to-CPR as written; ``call_to_cpr_s`` is NaN where it
    cannot be that of the crew.
    """

    drive_s: FloatArray
    sane: BoolArray
    interval_s: FloatArray
    call_to_cpr_s: FloatArray
    bystander: BoolArray
    doubted: BoolArray


def _stamped(table: RecordTable, places: Places, fastest_kmh: float) -> _Stamped:
    drive_s = table.seconds("en_route_at", "on_scene_at")
    turnout_s = table.seconds("call_at", "en_route_at")
    interval_s = np.where(
        np.isnan(table.call_to_cpr_s), table.seconds("call_at", "cpr_at"), table.call_to_cpr_s
    )
    sane = (drive_s > 0) & ~(turnout_s < 0)
    sane &= ~(speed_kmh(places.distance_m, drive_s) > fastest_kmh)
    # someone on the spot began: the interval says nothing about the ambulance
    bystander = sane & (table.seconds("on_scene_at", "cpr_at") < 0)
    known = ~np.isnan(interval_s) & ~bystander
    doubted = known & sane & (drive_s > interval_s)
    call_to_cpr_s = np.where(known & (interval_s > 0), interval_s, np.nan)
    return _Stamped(drive_s, sane & ~doubted, interval_s, call_to_cpr_s, bystander, doubted)


def _rules_before_the_target(
    table: RecordTable, places: Places, given: _Stamped, book: DepotBook, settings: AgencySettings
) -> _Rules:
    """Rules that need no travel time; a row that one applies to enters no estimate."""
    limits = settings.exclusions
    only = [book.index(name) for name in settings.depots.only]
    wanted = np.isin(places.depot, only) | (not only)
    off = (np.append(book.node, 0)[places.depot] < 0) & ~places.away
    cancelled = ~np.isnat(table.times["cancelled_at"]) & np.isnat(table.times["on_scene_at"])
    month = f"the month is excluded ({', '.join(limits.months) or 'none'})"
    near_m, far_m = 1000 * limits.nearer_than_km, 1000 * limits.farther_than_km
    duration = (
        f"longer than {limits.longer_than_min:g} min from call to CPR, or in driving where that "
        "is not known"
    )
    lasted_s = np.where(np.isnan(given.call_to_cpr_s), given.drive_s, given.call_to_cpr_s)
    near, far = places.distance_m < near_m, places.distance_m > far_m
    return {
        ("cancelled", "cancelled before it arrived"): cancelled,
        ("other_depot", "served by a depot that depots.only leaves out"): ~wanted,
        ("depot_off_network", "its depot is not on the network"): off & wanted,
        # [IDEAL] pandemic anomalies, spatial outliers along the network, extreme durations
        ("month", month): np.isin(_months(table, settings), limits.months),
        ("near", f"nearer than {limits.nearer_than_km:g} km by road"): near,
        ("far", f"farther than {limits.farther_than_km:g} km by road"): far,
        ("duration", duration): lasted_s > 60 * limits.longer_than_min,
    }


def _applied(rules: _Rules, good: BoolArray) -> tuple[Reasons, list[RuleCount]]:
    """What the rules say, by row, and their counts; of ``good`` rows, which were understood."""
    reasons: Reasons = defaultdict(list)
    counts, left = [], good.copy()
    for (name, says), rows in rules.items():
        applies = rows & good
        counts.append(RuleCount(name, says, int(applies.sum()), int((applies & left).sum())))
        left &= ~applies
        for row in np.flatnonzero(applies).tolist():
            reasons[row].append(says)
    return defaultdict(list, sorted(reasons.items())), counts


def _repeated(table: RecordTable, usable: BoolArray) -> BoolArray:
    """Rows whose call and unit appeared in an earlier usable row; empty ids are not duplicates."""
    seen: set[tuple[str, str]] = set()
    again = np.zeros(len(table), bool)
    for row, key in enumerate(zip(table.texts["call_id"], table.texts["unit"], strict=True)):
        if usable[row] and key[0]:
            again[row] = key in seen
            seen.add(key)
    return again


def _months(table: RecordTable, settings: AgencySettings) -> npt.NDArray[np.str_]:
    """Month on the city's clock, such as 2022-02."""
    if not settings.exclusions.months:
        return np.full(len(table), "")
    there = zone(settings.agency.time_zone)
    months = [
        "" if at is None else f"{at.replace(tzinfo=UTC).astimezone(there):%Y-%m}"
        for at in table.at.astype("M8[s]").tolist()
    ]
    return np.array(months, str)


def _notes(
    given: _Stamped,
    slope: targets.FloorSlope,
    preparation: Mapping[str, targets.DepotPreparation],
    subtracted: bool,
) -> list[str]:
    early = "CPR began before the unit was on scene; the call-to-CPR interval is not used there"
    late = "driving lasts longer than call to CPR; the driving stamps are not used there"
    counts = (int(given.bystander.sum()), early), (int(given.doubted.sum()), late)
    notes = [f"{count:,} rows: {text}" for count, text in counts if count]
    if not subtracted:
        return notes
    per_floor_s = slope.seconds_per_floor
    if slope.method == "assumed":
        notes.append(
            f"too few floors to estimate seconds per floor; {per_floor_s:.2f} s, the paper's "
            "value, is assumed"
        )
    elif per_floor_s < 0:
        notes.append(
            f"seconds per floor came out negative ({per_floor_s:.2f}); "
            "give floors.seconds_per_floor instead"
        )
    notes += [
        f"preparation of {name} came out negative ({depot.seconds:.0f} s); "
        "give preparation.seconds instead"
        for name, depot in preparation.items()
        if depot.seconds < 0
    ]
    return notes
