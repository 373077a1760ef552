"""The travel time of a record, and what has to be subtracted to get it.

[IDEAL] appendix C.4: the interval from call to CPR, minus the
depot's preparation time, minus seconds per floor. Where an agency has stamps
of driving itself, on scene − en route, nothing needs to be subtracted.

Preparation is all that is not driving on the ground floor: call processing,
turnout, and the crew's first steps. docs/records.md lists the ways to get it,
by depot and in the order of trust: given, "paired", "stamps", "regression".

The floor slope is estimated by ordinary least squares. Unlike the paper, where
enough rows also have driving stamps, driving is subtracted too: otherwise it
is noise, and where towers stand far from depots it is in the slope. And where
preparation is not known beforehand, every depot has an intercept of its own.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.agency import Floors, Preparation

PAPER_SECONDS_PER_FLOOR = 1.90
"""[IDEAL] estimate for Hong Kong, used where too few rows allow one of their own."""

_PAIRS_WANTED = 100  # below, the paper's regression has more to go on


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

    With ``group`` every group has an intercept of its own: by Frisch and Waugh
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
    given = preparation.seconds.items()  # by the depots' own names
    found = {name: DepotPreparation(seconds, "given") for name, seconds in given}

    def add_medians(method: str, seconds: FloatArray, rows: BoolArray) -> None:
        for index, name in enumerate(depots):
            own = seconds[rows & (intervals.depot == index)]
            if name not in found and own.size >= minimum:
                found[name] = DepotPreparation(float(np.median(own)), method, own.size)

    if how in {"auto", "stamps"}:
        rows = intervals.usable & (intervals.turnout_s >= 0)
        if how == "auto":  # enough pairs do better
            pairs = np.bincount(intervals.depot[paired], minlength=len(depots))
            rows &= ~np.isin(intervals.depot, np.flatnonzero(pairs >= minimum))
        add_medians("stamps", intervals.turnout_s, rows)
    unknown = DepotPreparation(np.nan, "unknown")
    known_s = np.array([found.get(name, unknown).seconds for name in depots])
    slope = _slope(intervals, known_s, floors, minimum)
    above_ground_s = intervals.call_to_cpr_s - slope.seconds_per_floor * intervals.storeys
    if how in {"auto", "paired"}:
        add_medians("paired", above_ground_s - intervals.drive_s, paired)
    if how in {"auto", "regression"}:
        _add_intercepts(found, intervals, above_ground_s, depots, minimum)
    return slope, {name: found.get(name, unknown) for name in depots}


def _add_intercepts(
    found: dict[str, DepotPreparation],
    intervals: Intervals,
    above_ground_s: FloatArray,
    depots: tuple[str, ...],
    minimum_rows: int,
) -> None:
    """Intercepts by depot of call-to-CPR without floors on free-flow driving time."""
    rows = intervals.usable & ~np.isnan(above_ground_s + intervals.free_flow_s)
    counts = np.bincount(intervals.depot[rows], minlength=len(depots))
    wanted = [i for i, name in enumerate(depots) if name not in found and counts[i] >= minimum_rows]
    rows &= np.isin(intervals.depot, wanted)
    free_flow_s = intervals.free_flow_s[rows]
    if not wanted or np.ptp(free_flow_s) < 1:
        return
    columns = [intervals.depot[rows] == index for index in wanted]
    design = np.column_stack([*columns, free_flow_s]).astype(float)
    intercepts = np.linalg.lstsq(design, above_ground_s[rows], rcond=None)[0]
    for index, seconds in zip(wanted, intercepts[:-1].tolist(), strict=True):
        found[depots[index]] = DepotPreparation(seconds, "regression", int(counts[index]))


def _slope(
    intervals: Intervals, known_s: FloatArray, floors: Floors, minimum_rows: int
) -> FloorSlope:
    """The slope given, by pairs, or by the paper's regression; ``known_s`` per depot."""
    if floors.seconds_per_floor is not None:
        return FloorSlope(floors.seconds_per_floor, "given")
    rows, method = intervals.paired, "paired"
    seconds = intervals.call_to_cpr_s - intervals.drive_s
    group: IntArray | None = intervals.depot
    if floors.estimate == "paper" or (floors.estimate == "auto" and rows.sum() < _PAIRS_WANTED):
        rows = intervals.usable & ~np.isnan(intervals.call_to_cpr_s + intervals.storeys)
        seconds, method = intervals.call_to_cpr_s, "paper"
        preparation_s = known_s[intervals.depot]
        if not np.isnan(preparation_s[rows]).any():
            seconds, group = seconds - preparation_s, None
    if rows.sum() >= minimum_rows:
        own = None if group is None else group[rows]
        with suppress(InputError):  # all on one floor: there is nothing to estimate
            return floor_slope(intervals.storeys[rows], seconds[rows], own, method)
    return FloorSlope(PAPER_SECONDS_PER_FLOOR, "assumed", int(rows.sum()))
