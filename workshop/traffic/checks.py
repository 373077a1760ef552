"""Is recorded traffic like traffic? Peak and night, memory, likeness over distance, days apart."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.traffic.recording import RATIOS, RecordedTraffic
from workshop.traffic.slowness import (
    LEAST_SEEN,
    Correlation,
    Slowness,
    autocorrelation,
    together,
)

KINDS = ("working days", "weekends and holidays")
GROUPS = ("all roads", "main roads", "collector roads", "side streets")
"""Motorway to primary; secondary and tertiary; all others. Links go with their roads."""

LAGS_MIN: FloatArray = np.array([1, 2, 4, 6, 8, 10, 14, 20, 30, 40, 50, 60, 90, 120.0])
LIMITS_KM: FloatArray = np.array([0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6.0])
EVENING, EVENING_NAME = (17 + 56 / 60, 18 + 51 / 60), "17:56–18:51"
"""Hours of the city's clock: the minutes in which the real Hong Kong speeds were captured."""

SPEED_QUANTILES: FloatArray = np.arange(1, 100) / 100
_SILENCE_S = 600.0
_HALF = np.log(2.0) + 1e-6  # whole km/h hit it exactly, and rounding must not decide
_HIERARCHY = [name.removesuffix("_link") for name in ROAD_CLASSES]
_GROUP_OF_CLASS = np.select(
    [np.isin(_HIERARCHY, ("motorway", "trunk", "primary")),
     np.isin(_HIERARCHY, ("secondary", "tertiary"))], [1, 2], 3,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class WindowChecks:
    """What can be said of an hour of speeds, recorded or real.

    ``memory`` is the autocorrelation of a place by minutes, against its mean in
    the window; ``swings`` by kilometres how far places get slower together;
    ``levels`` how far slow places lie together. ``relative_speed`` are the
    :data:`SPEED_QUANTILES` of speed over free flow, weighted by length;
    ``below_half`` is the share of the length strictly slower than half of it.
    """

    name: str
    places: int
    mean_length_m: float
    memory: Correlation
    swings: Correlation
    levels: Correlation
    relative_speed: FloatArray
    below_half: float


@dataclass(frozen=True, slots=True, eq=False)
class TrafficChecks:
    """How a recording behaves.

    ``days`` counts the days of each of :data:`KINDS`. ``relative_speed`` is the
    speed over free flow, (kinds, groups of roads, hours of the clock), NaN
    where nothing was recorded; ``peak_hour`` the slowest one of those recorded
    on at least half of the working days, so that one day's rain makes no peak;
    ``observed`` the share of edge-bins with a vehicle, by group. ``city_spread``
    and ``edge_spread`` are standard deviations, over working days at the same
    hour, of the log of the whole city's and of a single road's hourly time, NaN
    with fewer than two such days. ``memory`` and ``swings`` are over whole days; ``evening`` is the
    window of :data:`EVENING` on working days, where there is one. ``silences``
    name stretches in which no vehicle was seen anywhere for ten minutes: a
    simulation or a feed that broke off.
    """

    name: str
    days: tuple[int, int]
    relative_speed: FloatArray
    peak_hour: int | None
    observed: FloatArray
    city_spread: float
    edge_spread: float
    memory: Correlation
    swings: Correlation
    evening: WindowChecks | None
    silences: tuple[str, ...] = ()

    def peak_and_night(self) -> tuple[float, float]:
        """Relative speed of all roads on working days: the peak hour, mean of 1 to 5 o'clock."""
        by_hour = self.relative_speed[0, 0]
        peak = np.nan if self.peak_hour is None else float(by_hour[self.peak_hour])
        night = by_hour[1:5][np.isfinite(by_hour[1:5])]
        return peak, float(night.mean()) if night.size else np.nan


def check_traffic(recording: RecordedTraffic, name: str, rng: np.random.Generator) -> TrafficChecks:
    """The checks of a recording; ``rng`` samples roads where there are very many."""
    works = _works(recording)
    speeds, peak_hour, city, edges = _by_hour(recording, works)
    whole = slowness_of(recording)
    evening = slowness_of(recording, EVENING, works)
    known = not np.isnan(evening.values).all()
    return TrafficChecks(
        name=name,
        days=_count_days(recording, works),
        relative_speed=speeds,
        peak_hour=peak_hour,
        observed=_observed(recording),
        city_spread=city,
        edge_spread=edges,
        memory=autocorrelation(whole, LAGS_MIN),
        swings=together(whole, whole.swings(), LIMITS_KM, rng),
        evening=(
            check_window(evening, name, rng)
            if known and len(evening.values) >= LEAST_SEEN
            else None
        ),
        silences=_silences(recording),
    )


def check_window(slowness: Slowness, name: str, rng: np.random.Generator) -> WindowChecks:
    """The checks that need an hour at most; one moment is enough for levels and speeds."""
    known = ~np.isnan(slowness.values)
    if not known.any():
        raise InputError(f"{name}: no speed is known in this window")
    lengths = np.broadcast_to(slowness.length_m, known.shape)[known]
    speeds = np.exp(-slowness.values[known].astype(np.float64))
    order = np.argsort(speeds, kind="stable")
    below = np.cumsum(lengths[order])
    return WindowChecks(
        name=name,
        places=int(known.any(axis=0).sum()),
        mean_length_m=float(slowness.length_m.mean()),
        memory=autocorrelation(slowness, LAGS_MIN[LAGS_MIN <= 50]),
        swings=together(slowness, slowness.swings(), LIMITS_KM, rng),
        levels=together(slowness, slowness.levels(), LIMITS_KM, rng),
        relative_speed=speeds[order][np.searchsorted(below, SPEED_QUANTILES * below[-1])],
        below_half=float(lengths[slowness.values[known] > _HALF].sum() / below[-1]),
    )


def slowness_of(
    recording: RecordedTraffic,
    clock: tuple[float, float] = (0.0, 24.0),
    stretches: BoolArray | None = None,
) -> Slowness:
    """What met those who entered each road, between two hours of the city's clock."""
    network, bin_s = recording.network, recording.bin_s
    values, seconds, days = [], [], []
    for number, stretch in enumerate(recording.stretches):
        local = recording.calendar.local(stretch.start)
        inside_s = np.arange(stretch.bins) * bin_s
        second = (3600 * local.hour + 60 * local.minute + local.second + inside_s) % 86_400
        rows = (second >= round(3600 * clock[0])) & (second < round(3600 * clock[1]))
        if stretches is not None and not stretches[number]:
            rows[:] = False
        values.append(np.log(RATIOS[np.asarray(stretch.truth)[rows]]))
        seconds.append(stretch.start.timestamp() + inside_s[rows])
        days.append(np.full(rows.sum(), local.date().toordinal()))
    return Slowness(
        np.concatenate(values),
        np.concatenate(seconds),
        np.concatenate(days),
        (network.lon[network.tail] + network.lon[network.head]) / 2,
        (network.lat[network.tail] + network.lat[network.head]) / 2,
        network.length_m,
    )


def road_groups(network: RoadNetwork) -> npt.NDArray[np.int64]:
    """The number in :data:`GROUPS` of every edge, 1 to 3."""
    return _GROUP_OF_CLASS[network.road_class]


def _works(recording: RecordedTraffic) -> BoolArray:
    """Which stretches are of working days."""
    days = [recording.calendar.local(stretch.start).date() for stretch in recording.stretches]
    return np.array([d.weekday() < 5 and not recording.calendar.is_holiday(d) for d in days])


def _count_days(recording: RecordedTraffic, works: BoolArray) -> tuple[int, int]:
    working = sum(bool(works[day[0]]) for day in recording.days)
    return working, len(recording.days) - working


def _observed(recording: RecordedTraffic) -> FloatArray:
    groups = road_groups(recording.network)
    bins = sum(stretch.bins for stretch in recording.stretches)
    seen = sum(np.count_nonzero(stretch.codes, axis=0) for stretch in recording.stretches)
    members = [np.ones(groups.size, bool), *(groups == number for number in (1, 2, 3))]
    share = np.asarray(seen) / bins
    return np.array([share[rows].mean() if rows.any() else np.nan for rows in members])


def _by_hour(
    recording: RecordedTraffic, works: BoolArray
) -> tuple[FloatArray, int | None, float, float]:
    """Relative speed by kind, group and hour; peak hour; spread over days, of city and road.

    A speed is free-flow time over real time, both summed over all edge-bins
    with a vehicle: of who drives every metre as often as it was seen driven.
    """
    network = recording.network
    groups, free_s = road_groups(network), network.free_flow_times_s
    sums = np.zeros((2, 2, 4, 24))  # free-flow and real seconds by kind, group and hour
    city: dict[int, list[float]] = {}
    roads: dict[int, list[FloatArray]] = {}
    for stretch, working in zip(recording.stretches, works, strict=True):
        local = recording.calendar.local(stretch.start)
        begin_s = 3600 * local.hour + 60 * local.minute + local.second
        hours = (begin_s + np.arange(stretch.bins) * recording.bin_s) // 3600 % 24
        for hour in np.unique(hours).tolist():
            codes = np.asarray(stretch.truth)[hours == hour]
            count = np.count_nonzero(codes, axis=0)
            ratio = np.nansum(RATIOS[codes], axis=0, dtype=np.float64)
            both = np.stack([count * free_s, ratio * free_s])
            kind = 0 if working else 1
            sums[:, kind, 0, hour] += both.sum(axis=1)
            for group in (1, 2, 3):
                sums[:, kind, group, hour] += both[:, groups == group].sum(axis=1)
            if working and count.any():
                city.setdefault(hour, []).append(float(np.log(both[1].sum() / both[0].sum())))
                known = count >= LEAST_SEEN
                mean = np.where(known, ratio / np.maximum(count, 1), np.nan)
                roads.setdefault(hour, []).append(np.log(mean))
    speeds: FloatArray = np.full((2, 4, 24), np.nan)
    np.divide(sums[0], sums[1], out=speeds, where=sums[1] > 0)
    most = max(map(len, city.values()), default=0)
    usual = [hour for hour, days in city.items() if 2 * len(days) >= most]
    peak_hour = min(usual, key=lambda hour: float(speeds[0, 0, hour]), default=None)
    of_city = [float(np.var(days, ddof=1)) for days in city.values() if len(days) > 1]
    of_roads = _variances([np.array(days) for days in roads.values()])
    return (
        speeds,
        peak_hour,
        float(np.sqrt(np.mean(of_city))) if of_city else np.nan,
        float(np.sqrt(np.mean(of_roads))) if of_roads.size else np.nan,
    )


def _variances(hours: list[FloatArray]) -> FloatArray:
    """Over days, of every road and hour known on at least two."""
    found = [np.zeros(0)]
    for days in hours:
        enough = days[:, (~np.isnan(days)).sum(axis=0) >= 2]
        if enough.size:
            found.append(np.nanvar(enough, axis=0, ddof=1))
    return np.concatenate(found)


def _silences(recording: RecordedTraffic) -> tuple[str, ...]:
    lines = []
    for stretch in recording.stretches:
        seen = np.flatnonzero(stretch.codes.any(axis=1))
        for before, after in pairwise([-1, *seen.tolist(), stretch.bins]):
            if (after - before - 1) * recording.bin_s >= _SILENCE_S:
                local = recording.calendar.local(stretch.start)
                from_, until = (
                    _clock(local.hour * 3600 + local.minute * 60 + row * recording.bin_s)
                    for row in (before + 1, after)
                )
                lines.append(f"{local:%a %d %b %Y}: no vehicle seen from {from_} to {until}")
    return tuple(lines)


def _clock(seconds: int) -> str:
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}"
