"""The travel time of a record: where it comes from, what is subtracted, which rules leave it out.

[IDEAL] appendix C.4: the interval from call to CPR, minus the
depot's preparation time, minus seconds per floor. Where an agency has stamps
of driving itself, on scene − en route, nothing needs to be subtracted.

Preparation is all that is not driving on the ground floor: call processing,
turnout, and the crew's first steps. docs/records.md lists the ways to get it,
by depot and in the order of trust: given, "paired", "stamps", "regression".

The floor slope is estimated by ordinary least squares. Unlike the paper, where
enough rows also have driving stamps, driving is subtracted too: otherwise it
is noise, and where towers stand far from depots it is in the slope. And where
preparation is not known beforehand, every depot has its intercept.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC

import numpy as np
import numpy.typing as npt
from scipy import stats

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.agency import AgencySettings, Floors, Preparation
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.places import DepotBook, Places
from ideal_dispatch.records.schema import Reasons, Table, Times
from ideal_dispatch.records.trips import STAMPS, SUBTRACTION, TARGETS

PAPER_SECONDS_PER_FLOOR = 1.90
"""[IDEAL] estimate for Hong Kong, used where there are too few rows for an estimate."""

_PAIRS_WANTED = 100  # below, the paper's regression has more to go on


# --- seconds per floor, and preparation -----------------------------------------------


@dataclass(frozen=True, slots=True)
class FloorSlope:
    """Seconds per floor with its 95 % confidence interval, and how it was obtained."""

    seconds_per_floor: float
    method: str
    rows: int = 0
    standard_error: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    intercept_s: float = np.nan


@dataclass(frozen=True, slots=True)
class DepotPreparation:
    """Preparation seconds of a depot and how they were obtained; NaN where they could not be."""

    seconds: float
    method: str
    rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """What the rows say about time, NaN where they do not; ``storeys`` are floors from the street.

    ``usable`` are rows that may enter an estimate: no exclusion before the target applies.
    """

    depot: IntArray
    call_to_cpr_s: FloatArray
    drive_s: FloatArray
    turnout_s: FloatArray
    storeys: FloatArray
    free_flow_s: FloatArray
    usable: BoolArray

    @property
    def paired(self) -> BoolArray:
        """Rows that know driving as well as call-to-CPR."""
        rows: BoolArray = self.usable & ~np.isnan(self.call_to_cpr_s + self.drive_s + self.storeys)
        return rows


def floor_slope(
    storeys: FloatArray,
    seconds: FloatArray,
    group: npt.NDArray[np.integer] | None = None,
    method: str = "given rows",
) -> FloorSlope:
    """Ordinary least squares of seconds on storeys, in closed form.

    With ``group`` every group has its intercept: by Frisch and Waugh
    the same slope as on values centred within groups, which is how it is done.
    """
    index = np.zeros(storeys.size, np.int64) if group is None else np.unique(group, False, True)[1]
    groups = int(index.max()) + 1 if index.size else 0
    counts = np.bincount(index, minlength=groups)
    x = storeys - (np.bincount(index, storeys) / counts)[index] if groups else storeys
    y = seconds - (np.bincount(index, seconds) / counts)[index] if groups else seconds
    spread, freedom = float(x @ x), storeys.size - groups - 1
    if freedom < 1 or spread <= 1e-9 * max(float(storeys @ storeys), 1e-9):
        raise InputError("seconds per floor: the rows have too few different floors")
    slope = float(x @ y) / spread
    residual = y - slope * x
    error = float(np.sqrt(residual @ residual / freedom / spread))
    reach = float(stats.t.ppf(0.975, freedom)) * error
    intercept = float(seconds.mean() - slope * storeys.mean())
    ends = slope - reach, slope + reach
    return FloorSlope(slope, method, storeys.size, error, *ends, intercept)


def estimate(
    intervals: Intervals, depots: tuple[str, ...], floors: Floors, preparation: Preparation
) -> tuple[FloorSlope, dict[str, DepotPreparation]]:
    """Seconds per floor, and preparation of every depot."""
    how, minimum, paired = preparation.estimate, preparation.minimum_rows, intervals.paired
    depot, to_cpr_s = intervals.depot, intervals.call_to_cpr_s
    given = preparation.seconds.items()  # by the depots' own names
    found = {name: DepotPreparation(seconds, "given") for name, seconds in given}
    unknown = DepotPreparation(np.nan, "unknown")

    def add_medians(method: str, seconds: FloatArray, rows: BoolArray) -> None:
        for index, name in enumerate(depots):
            own = seconds[rows & (depot == index)]
            if name not in found and own.size >= minimum:
                found[name] = DepotPreparation(float(np.median(own)), method, own.size)

    if how in {"auto", "stamps"}:
        rows = intervals.usable & (intervals.turnout_s >= 0)
        if how == "auto":  # enough pairs do better
            pairs = np.bincount(depot[paired], minlength=len(depots))
            rows &= ~np.isin(depot, np.flatnonzero(pairs >= minimum))
        add_medians("stamps", intervals.turnout_s, rows)

    # seconds per floor: given, by pairs, or by the paper's regression
    rows, method, seconds = paired, "paired", to_cpr_s - intervals.drive_s
    group: IntArray | None = depot
    if floors.estimate == "paper" or (floors.estimate == "auto" and rows.sum() < _PAIRS_WANTED):
        rows = intervals.usable & ~np.isnan(to_cpr_s + intervals.storeys)
        seconds, method = to_cpr_s, "paper"
        known_s = np.array([found.get(name, unknown).seconds for name in depots])[depot]
        if not np.isnan(known_s[rows]).any():
            seconds, group = seconds - known_s, None
    slope = FloorSlope(PAPER_SECONDS_PER_FLOOR, "assumed", int(rows.sum()))
    if floors.seconds_per_floor is not None:
        slope = FloorSlope(floors.seconds_per_floor, "given")
    elif rows.sum() >= minimum:
        own = None if group is None else group[rows]
        with suppress(InputError):  # all on one floor: there is nothing to estimate
            slope = floor_slope(intervals.storeys[rows], seconds[rows], own, method)

    above_ground_s = to_cpr_s - slope.seconds_per_floor * intervals.storeys
    if how in {"auto", "paired"}:
        add_medians("paired", above_ground_s - intervals.drive_s, paired)
    if how in {"auto", "regression"}:
        # intercepts by depot of call-to-CPR without floors on free-flow driving time
        rows = intervals.usable & ~np.isnan(above_ground_s + intervals.free_flow_s)
        counts = np.bincount(depot[rows], minlength=len(depots))
        wanted = [i for i, name in enumerate(depots) if name not in found and counts[i] >= minimum]
        rows &= np.isin(depot, wanted)
        free_flow_s = intervals.free_flow_s[rows]
        if wanted and np.ptp(free_flow_s) >= 1:
            design = np.column_stack([*(depot[rows] == index for index in wanted), free_flow_s])
            fitted = np.linalg.lstsq(design.astype(float), above_ground_s[rows], rcond=None)[0]
            for index, intercept_s in zip(wanted, fitted[:-1].tolist(), strict=True):
                rows_of = int(counts[index])
                found[depots[index]] = DepotPreparation(intercept_s, "regression", rows_of)
    return slope, {name: found.get(name, unknown) for name in depots}


# --- travel times and rules -----------------------------------------------------------


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
    order in which they count.
    """

    seconds: FloatArray
    target: npt.NDArray[np.uint8]
    excluded: Reasons
    rules: list[RuleCount]
    slope: FloorSlope
    preparation: Mapping[str, DepotPreparation]
    notes: list[str]


def travel_times(
    table: Table, places: Places, good: BoolArray, book: DepotBook, settings: AgencySettings
) -> TravelTimes:
    """Travel times and exclusions of the ``good`` rows, which were understood."""
    limits = settings.exclusions
    floors = {text: read_floor(text, settings.floors) for text in set(table.texts["floor"])}
    floor = np.array([floors[text] for text in table.texts["floor"]], float)

    # what the stamps say; plausible driving times are used unchanged
    drive_s = table.seconds("en_route_at", "on_scene_at")
    turnout_s = table.seconds("call_at", "en_route_at")
    given_s = table.numbers["call_to_cpr"]
    interval_s = np.where(np.isnan(given_s), table.seconds("call_at", "cpr_at"), given_s)
    sane = (drive_s > 0) & ~(turnout_s < 0)
    sane &= ~(speed_kmh(places.distance_m, drive_s) > limits.faster_than_kmh)
    # someone on the spot began: the interval says nothing about the ambulance
    bystander = sane & (table.seconds("on_scene_at", "cpr_at") < 0)
    doubted = sane & ~bystander & (drive_s > interval_s)
    sane &= ~doubted
    call_to_cpr_s = np.where(~bystander & (interval_s > 0), interval_s, np.nan)

    # rules that need no travel time: a row that one applies to enters no estimate
    only = [book.index(name) for name in settings.depots.only]
    wanted = np.isin(places.depot, only) | (not only)
    off = (np.append(book.node, 0)[places.depot] < 0) & ~places.away
    lasted_s = np.where(np.isnan(call_to_cpr_s), drive_s, call_to_cpr_s)
    rules: dict[tuple[str, str], BoolArray] = {
        ("cancelled", "cancelled before it arrived"):
            ~np.isnat(table.times["cancelled_at"]) & np.isnat(table.times["on_scene_at"]),
        ("other_depot", "served by a depot that depots.only leaves out"): ~wanted,
        ("depot_off_network", "its depot is not on the network"): off & wanted,
        # [IDEAL] pandemic anomalies, spatial outliers along the network, extreme durations
        ("month", f"the month is excluded ({', '.join(limits.months) or 'none'})"):
            np.isin(_months(table, settings), limits.months),
        ("near", f"nearer than {limits.nearer_than_km:g} km by road"):
            places.distance_m < 1000 * limits.nearer_than_km,
        ("far", f"farther than {limits.farther_than_km:g} km by road"):
            places.distance_m > 1000 * limits.farther_than_km,
        ("duration", f"longer than {limits.longer_than_min:g} min from call to CPR, or in driving "
         "where that is not known"): lasted_s > 60 * limits.longer_than_min,
    }  # fmt: skip

    def left() -> BoolArray:
        rows: BoolArray = good & ~np.any(list(rules.values()), axis=0)
        return rows

    # what a unit on the road did says nothing about the preparation at a depot
    usable = left() & ~places.away
    intervals = Intervals(
        depot=places.depot,
        call_to_cpr_s=call_to_cpr_s,
        drive_s=np.where(sane, drive_s, np.nan),
        turnout_s=turnout_s,
        storeys=np.where(np.abs(floor) <= limits.floor_above, np.abs(floor), np.nan),
        free_flow_s=places.free_flow_s,
        usable=usable & ~table.repeated("call_id", "call_id", usable),
    )
    slope, preparation = estimate(intervals, book.names, settings.floors, settings.preparation)
    preparation_s = np.array([preparation[name].seconds for name in book.names])[places.depot]
    preparation_s = np.where(places.away, np.nan, preparation_s)
    subtracted_s = call_to_cpr_s - preparation_s - slope.seconds_per_floor * intervals.storeys
    by_stamps = sane & (settings.target.rule != "subtraction")
    by_subtraction = ~by_stamps & (settings.target.rule != "stamps")
    seconds = np.where(by_stamps, drive_s, np.where(by_subtraction, subtracted_s, np.nan))

    # rules that judge the travel time, or unusable stamps if there is nothing else
    needs_floor = by_subtraction & ~np.isnan(call_to_cpr_s)
    # [IDEAL] extreme elevations; NaN is a floor that was not recognised
    bad_floor = np.isnan(floor) | (np.abs(floor) > limits.floor_above)
    bad_floor &= needs_floor | (limits.floors == "always")
    judged_s = np.where(np.isnan(seconds), drive_s, seconds)
    not_positive = (judged_s <= 0) | (np.isnan(judged_s) & (interval_s <= 0))
    too_fast = speed_kmh(places.distance_m, judged_s) > limits.faster_than_kmh
    rules |= {
        ("floor", f"the floor is not recognised or above {limits.floor_above:g}"): bad_floor,
        ("not_positive", "a duration is zero or negative"): not_positive,
        ("speed", f"faster than {limits.faster_than_kmh:g} km/h on the shortest way: it may have "
         "started on the road"): too_fast,
        ("no_time", "its stamps give no travel time"):
            np.isnan(seconds) & ~(bad_floor | not_positive | too_fast),
    }  # fmt: skip
    # last, so that a row that is left out for itself does not take its repetition with it
    rules["duplicate", "the same call and unit as in an earlier row"] = table.repeated(
        "call_id", "call_id", left()
    )
    excluded, counts, first = Reasons(), [], good.copy()
    for (name, says), rows in rules.items():
        applies = rows & good
        counts.append(RuleCount(name, says, int(applies.sum()), int((applies & first).sum())))
        first &= ~applies
        excluded.add(applies, says)

    early = "CPR began before the unit was on scene; the call-to-CPR interval is not used there"
    late = "driving lasts longer than call to CPR; the driving stamps are not used there"
    notes = [f"{rows.sum():,} rows: {text}" for rows, text in ((bystander, early), (doubted, late))
             if rows.any()]  # fmt: skip
    if (needs_floor & good).any():
        notes += _doubts(slope, preparation)
    target = np.where(by_stamps, TARGETS.index(STAMPS), TARGETS.index(SUBTRACTION))
    return TravelTimes(
        seconds, target.astype(np.uint8), excluded, counts, slope, preparation, notes
    )


def at(table: Table) -> Times:
    """When each call came in, or else when the unit was notified."""
    call = table.times["call_at"]
    return np.where(np.isnat(call), table.times["notified_at"], call)


def speed_kmh(distance_m: FloatArray, travel_s: FloatArray) -> FloatArray:
    """Implied speed, NaN where the time is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        speed: FloatArray = np.where(travel_s > 0, 3.6 * distance_m / travel_s, np.nan)
    return speed


def _months(table: Table, settings: AgencySettings) -> npt.NDArray[np.str_]:
    """Month on the city's clock, such as 2022-02."""
    if not settings.exclusions.months:
        return np.full(len(table), "")
    there = zone(settings.agency.time_zone)
    months = [
        "" if moment is None else f"{moment.replace(tzinfo=UTC).astimezone(there):%Y-%m}"
        for moment in at(table).astype("M8[s]").tolist()
    ]
    return np.array(months, str)


def _doubts(slope: FloorSlope, preparation: Mapping[str, DepotPreparation]) -> list[str]:
    """What to know of the numbers that were subtracted."""
    notes, per_floor_s = list[str](), slope.seconds_per_floor
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
    return notes + [
        f"preparation of {name} came out negative ({depot.seconds:.0f} s); "
        "give preparation.seconds instead"
        for name, depot in preparation.items()
        if depot.seconds < 0
    ]
