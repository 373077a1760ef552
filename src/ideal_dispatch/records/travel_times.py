"""The travel time of each row, where from, and which rules leave it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.records import exclusions, targets
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.depots import DepotBook
from ideal_dispatch.records.exclusions import Rule
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.places import Places
from ideal_dispatch.records.schema import Reasons, RecordTable
from ideal_dispatch.records.trips import STAMPS, SUBTRACTION, TARGETS


@dataclass(frozen=True, slots=True, eq=False)
class TravelTimes:
    """Seconds of driving per row and how they were obtained (an index into TARGETS).

    ``rules`` are in the order in which they count. ``intervals`` is what the
    floor slope and the preparation were estimated from.
    """

    seconds: FloatArray
    target: npt.NDArray[np.uint8]
    rules: list[Rule]
    intervals: targets.Intervals
    slope: targets.FloorSlope
    preparation: Mapping[str, targets.DepotPreparation]
    notes: list[str]

    @property
    def excluded(self) -> BoolArray:
        any_rule: BoolArray = np.any([rule.applies for rule in self.rules], axis=0)
        return any_rule

    def reasons(self) -> Reasons:
        """What the rules say, by row."""
        found: Reasons = {}
        for rule in self.rules:
            for row in np.flatnonzero(rule.applies).tolist():
                found.setdefault(row, []).append(rule.says)
        return dict(sorted(found.items()))


def travel_times(
    table: RecordTable, places: Places, good: BoolArray, book: DepotBook, settings: AgencySettings
) -> TravelTimes:
    """Travel times and exclusions of the ``good`` rows."""
    rules = settings.exclusions
    floor = _floors(table, settings)
    given = _stamped(table, places, settings)
    first = [
        *_identity_rules(table, places, book, settings),
        exclusions.month_rule(rules, _months(table, settings)),
        *exclusions.distance_rules(rules, places.distance_m),
        exclusions.duration_rule(rules, given.call_to_cpr_s, given.drive_s),
    ]
    height = np.where(np.abs(floor) <= rules.floor_above, np.abs(floor), np.nan)
    usable = good & ~np.any([rule.applies for rule in first], axis=0)
    intervals = targets.Intervals(
        depot=places.depot,
        call_to_cpr_s=given.call_to_cpr_s,
        drive_s=np.where(given.sane, given.drive_s, np.nan),
        turnout_s=table.seconds("call_at", "en_route_at"),
        storeys=height,
        free_flow_s=places.free_flow_s,
        usable=usable & ~_repeated(table, usable),
    )
    slope, preparation = targets.estimate(
        intervals, book.names, settings.floors, settings.preparation
    )
    subtracted_s = targets.subtraction_s(intervals, book.names, slope, preparation)
    by_stamps = given.sane & (settings.target.rule != "subtraction")
    by_subtraction = ~by_stamps & (settings.target.rule != "stamps")
    seconds = np.where(by_stamps, given.drive_s, np.where(by_subtraction, subtracted_s, np.nan))
    needed = by_subtraction & ~np.isnan(given.call_to_cpr_s)
    floor_rule = exclusions.floor_rule(rules, floor, needed)
    # unusable stamps are judged if there is nothing else
    judged_s = np.where(np.isnan(seconds), given.drive_s, seconds)
    not_positive = (judged_s <= 0) | (np.isnan(judged_s) & (given.interval_s <= 0))
    speed_rule = exclusions.speed_rule(rules, places.distance_m, judged_s)
    told = floor_rule.applies | not_positive | speed_rule.applies
    rest = [
        floor_rule,
        Rule("not_positive", "a duration is zero or negative", not_positive),
        speed_rule,
        Rule("no_time", "its stamps give no travel time", np.isnan(seconds) & ~told),
    ]
    # rules are about rows that were understood
    ordered = [Rule(rule.name, rule.says, rule.applies & good) for rule in (*first, *rest)]
    # last, so that a row that is left out for itself does not take its repetition with it
    again = _repeated(table, good & ~np.any([rule.applies for rule in ordered], axis=0))
    ordered.append(Rule("duplicate", "the same call and unit as in an earlier row", again))
    return TravelTimes(
        seconds,
        np.where(by_stamps, TARGETS.index(STAMPS), TARGETS.index(SUBTRACTION)).astype(np.uint8),
        ordered,
        intervals,
        slope,
        preparation,
        _notes(given, slope, preparation, bool((needed & good).any())),
    )


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


def _stamped(table: RecordTable, places: Places, settings: AgencySettings) -> _Stamped:
    drive_s = table.seconds("en_route_at", "on_scene_at")
    turnout_s = table.seconds("call_at", "en_route_at")
    interval_s = np.where(
        np.isnan(table.call_to_cpr_s), table.seconds("call_at", "cpr_at"), table.call_to_cpr_s
    )
    sane = (drive_s > 0) & ~(turnout_s < 0)
    speed = exclusions.speed_kmh(places.distance_m, drive_s)
    sane &= ~(speed > settings.exclusions.faster_than_kmh)
    # someone on the spot began: the interval says nothing about the ambulance
    bystander = sane & (table.seconds("on_scene_at", "cpr_at") < 0)
    known = ~np.isnan(interval_s) & ~bystander
    doubted = known & sane & (drive_s > interval_s)
    sane &= ~doubted
    positive = known & (interval_s > 0)
    call_to_cpr_s = np.where(positive, interval_s, np.nan)
    return _Stamped(drive_s, sane, interval_s, call_to_cpr_s, bystander, doubted)


def _identity_rules(
    table: RecordTable, places: Places, book: DepotBook, settings: AgencySettings
) -> list[Rule]:
    names = [book.names[book.index(name)] for name in settings.depots.only] or book.names
    wanted = np.isin(places.depot, [book.names.index(name) for name in names])
    off = np.append(book.node, 0)[places.depot] < 0
    cancelled = ~np.isnat(table.times["cancelled_at"]) & np.isnat(table.times["on_scene_at"])
    return [
        Rule("cancelled", "cancelled before it arrived", cancelled),
        Rule("other_depot", "served by a depot that depots.only leaves out", ~wanted),
        Rule("depot_off_network", "its depot is not on the network", off & wanted),
        Rule("away", "the unit did not start at its depot", places.away),
    ]


def _repeated(table: RecordTable, usable: BoolArray) -> BoolArray:
    return exclusions.duplicates(table.texts["call_id"], table.texts["unit"], usable)


def _floors(table: RecordTable, settings: AgencySettings) -> FloatArray:
    known = {text: read_floor(text, settings.floors) for text in set(table.texts["floor"])}
    return np.array([known[text] for text in table.texts["floor"]], float)


def _months(table: RecordTable, settings: AgencySettings) -> npt.NDArray[np.str_]:
    """Month on the city's clock, such as 2022-02."""
    if not settings.exclusions.months:
        return np.full(len(table), "")
    there = zone(settings.agency.time_zone)
    stamps = table.at.astype("M8[s]").tolist()
    months = [
        "" if stamp is None else f"{stamp.replace(tzinfo=UTC).astimezone(there):%Y-%m}"
        for stamp in stamps
    ]
    return np.array(months, str)


def _notes(
    given: _Stamped,
    slope: targets.FloorSlope,
    preparation: Mapping[str, targets.DepotPreparation],
    subtracted: bool,
) -> list[str]:
    notes = []
    if given.bystander.any():
        notes.append(
            f"{int(given.bystander.sum()):,} rows: CPR began before the unit was on scene; "
            "the call-to-CPR interval is not used there"
        )
    if given.doubted.any():
        notes.append(
            f"{int(given.doubted.sum()):,} rows: driving lasts longer than call to CPR; "
            "the driving stamps are not used there"
        )
    if not subtracted:
        return notes
    if slope.method == "assumed":
        notes.append(
            f"too few floors to estimate seconds per floor; {slope.seconds_per_floor:.2f} s, the "
            "paper's value, is assumed"
        )
    elif slope.seconds_per_floor < 0:
        notes.append(
            f"seconds per floor came out negative ({slope.seconds_per_floor:.2f}); "
            "give floors.seconds_per_floor instead"
        )
    for name, depot in preparation.items():
        if depot.seconds < 0:
            notes.append(
                f"preparation of {name} came out negative ({depot.seconds:.0f} s); "
                "give preparation.seconds instead"
            )
    return notes
