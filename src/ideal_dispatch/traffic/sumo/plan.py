"""The days that SUMO simulates: chosen by the calendar and a seed, before any traffic."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray, whole_number
from ideal_dispatch.context import WEATHER_VARIABLES, Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import through_traffic
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.ranges import Checked, Positive, Range, Share, Whole, ZeroOrMore
from ideal_dispatch.traffic.sumo.network import lanes_per_direction, strong_parts

PEAKS = ((6, 10), (16, 20))
HOUR_S = 3600
RAIN = WEATHER_VARIABLES.index("rainfall_mm")

DayKind = Literal["weekday", "saturday", "sunday", "holiday"]
PATTERN: Final[tuple[DayKind, ...]] = (
    "weekday", "weekday", "holiday", "weekday", "saturday",
    "weekday", "sunday", "weekday", "weekday",
)  # fmt: skip
"""Kinds of usual days in turn; every third day is looked for among rainy ones."""

_PEAK_HOURS = [hour for period in PEAKS for hour in range(*period)]
_WET_MM = 1.0
_WORKS_CLASSES = ("secondary", "tertiary", "unclassified", "residential")


@dataclass(frozen=True, slots=True)
class Closure(Checked):
    """Edges that lose lanes for a while: works, or an accident.

    Times are seconds of the local day. ``lanes_left`` of 0 closes the edges to
    all but emergency vehicles; an edge always loses at least one lane.
    """

    edges: tuple[Whole, ...]
    from_s: Whole
    until_s: Whole
    lanes_left: Whole = 0

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not self.edges or self.from_s >= self.until_s:
            raise InputError(
                f"closure of edges {self.edges} from {self.from_s} s until {self.until_s} s: "
                "name at least one edge and a later end"
            )


@dataclass(frozen=True, slots=True)
class DayPlan(Checked):
    """One day to simulate: its calendar, demand, weather, closures and seed.

    ``hours`` are the simulated periods of the local day, in order; the clocks
    may not change within one. ``demand_factor`` multiplies the trips of the kind of
    day. ``weather`` has 25 rows of the variables of :data:`WEATHER_VARIABLES`: row h
    is of the hour that ends h hours after midnight, so the first is of the day before.
    ``queues`` moves vehicles from queue to queue along a road (SUMO's mesoscopic
    model), which is much quicker to simulate than how each follows the one before it.
    """

    date: date
    kind: DayKind
    time_zone: str
    hours: tuple[tuple[int, int], ...]
    demand_factor: ZeroOrMore
    weather: tuple[tuple[float, ...], ...]
    closures: tuple[Closure, ...] = ()
    seed: Whole = 0
    queues: bool = False

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        ends = [hour for period in self.hours for hour in period]
        if not ends or ends != sorted(set(ends)) or ends[0] < 0 or ends[-1] > 24:
            raise InputError(f"hours {self.hours}: give periods within 0 … 24, in order and apart")
        for first, last in self.hours:
            begin, end = (self.moment(hour * HOUR_S).astimezone(UTC) for hour in (first, last))
            if end - begin != timedelta(hours=last - first):
                raise InputError(
                    f"{self.date}: the clocks of {self.time_zone} change within {first}–{last}; "
                    "simulate other hours, or another day (another seed draws others)"
                )

    def moment(self, second: float) -> datetime:
        """An aware time of the day by its second on the wall clock of midnight."""
        midnight = datetime.combine(self.date, time(), zone(self.time_zone))
        return midnight + timedelta(seconds=second)

    def to_json(self) -> dict[str, Any]:
        """The plan in plain values."""
        return asdict(self) | {"date": self.date.isoformat()}


@dataclass(frozen=True, slots=True)
class Regime(Checked):
    """How busy simulated days are, how much they differ, and how often roads are closed.

    Where no demand is given, it is ``capacity_share`` of what the streets can carry
    (:func:`~ideal_dispatch.traffic.sumo.campaign.capacity`). A day's own lies within
    two ``day_spread`` of it. ``closures`` is their mean number in a day's hours;
    a share of them are ``works``, which close a narrow street, the others accidents
    that take a lane of a wide one, each for ``closed_s`` at least and at most. With
    ``main_roads`` accidents happen where most trips pass, each on another road, and
    leave one lane. ``queues`` is that of :class:`DayPlan`. ``pattern`` are the kinds of
    the days in turn.
    """

    capacity_share: Positive = 0.8
    day_spread: Annotated[float, Range(0, 0.4)] = 0.06
    closures: ZeroOrMore = 1.5
    works: Share = 0.3
    closed_s: tuple[int, int] = (1200, 7200)
    main_roads: bool = False
    queues: bool = False
    pattern: tuple[DayKind, ...] = PATTERN


CALM = Regime()
VOLATILE = Regime(
    capacity_share=1.0, day_spread=0.12, closures=10.0, works=0.1, closed_s=(1200, 3600),
    main_roads=True, queues=True, pattern=("weekday",),
)  # fmt: skip
REGIMES = MappingProxyType({"calm": CALM, "volatile": VOLATILE})


def plan_days(
    network: RoadNetwork,
    calendar: Calendar,
    seed: int,
    *,
    year: int = 2025,
    days: int = 18,
    whole_days: int = 3,
    hours: tuple[tuple[int, int], ...] = PEAKS,
    demand: float = 1.0,
    regime: Regime = CALM,
) -> tuple[DayPlan, ...]:
    """Days spread over a year, in order; same arguments, same plans.

    Most have the periods ``hours``, ``whole_days`` of them all 24 hours. The
    weather is synthetic; closures, seed and demand, around ``demand`` times what the
    streets suggest, are drawn for each day as the ``regime`` says.
    """
    if not 0.0 < demand < np.inf:
        raise InputError(f"demand {demand:g}: a factor above zero is needed")
    if not 0 <= whole_number(whole_days, "whole days") <= whole_number(days, "days") <= 200:
        raise InputError(f"{days} days, {whole_days} of them whole: at most 200, whole ones within")
    rng = np.random.default_rng(whole_number(seed, "seed"))
    weather = made_up_weather(year, calendar.time_zone, seed)[1]
    dates = _dates(calendar, year, days, regime, weather, rng)
    whole = {int((k + 0.5) * days / whole_days) for k in range(whole_days)}
    spread, plans = regime.day_spread, []
    for number, day in enumerate(sorted(dates)):
        own = np.random.default_rng([seed, number])
        periods = ((0, 24),) if number in whole else hours
        busy = 1.04 if day.weekday() == 4 else 1.0  # Fridays
        own_demand = busy * own.lognormal(0, spread) if spread else busy
        factor = demand * float(np.clip(own_demand, 1 - 2 * spread, 1 + 2 * spread))
        known = tuple(map(tuple, _weather_known(weather, day).tolist()))
        closures = _closures(network, periods, regime, own)
        plans.append(
            DayPlan(
                day, _kind(calendar, day), calendar.time_zone, periods, round(factor, 3), known,
                closures, int(own.integers(2**31)), regime.queues,
            )
        )  # fmt: skip
    return tuple(plans)


def _kind(calendar: Calendar, day: date) -> DayKind:
    if calendar.is_holiday(day):
        return "holiday"
    return "saturday" if day.weekday() == 5 else "sunday" if day.weekday() == 6 else "weekday"


def _weather_known(weather: FloatArray, day: date) -> FloatArray:
    """The hour before midnight and the 24 of a day.

    The year of the weather is in local time, and is taken to begin dry.
    """
    first = 24 * (day - date(day.year, 1, 1)).days
    known = weather[np.maximum(np.arange(first - 1, first + 24), 0)]
    known[0, RAIN] *= first > 0
    return known


def _dates(
    calendar: Calendar, year: int, days: int, regime: Regime, weather: FloatArray,
    rng: np.random.Generator,
) -> list[date]:  # fmt: skip
    """One date in each equal slice of the year, of the pattern's kind, wet or dry in turn."""
    first, length = date(year, 1, 1), (date(year, 12, 31) - date(year, 1, 1)).days
    every = [first + timedelta(days=n) for n in range(length)]
    kinds = [_kind(calendar, day) for day in every]
    wet = [_weather_known(weather, day)[1:][_PEAK_HOURS, RAIN].sum() >= _WET_MM for day in every]
    chosen: list[int] = []
    for number in range(days):
        kind, rainy = regime.pattern[number % len(regime.pattern)], number % 3 == 1
        middle = (number + 0.5) * length / days
        free = [i for i in range(length) if kinds[i] == kind and i not in chosen]
        free = free or [i for i in range(length) if i not in chosen]
        near = [i for i in free if abs(i - middle) <= length / days / 2]
        near = near or [min(free, key=lambda i, to=middle: abs(i - to))]  # type: ignore[misc]
        alike = [i for i in near if wet[i] == rainy] or near
        chosen.append(int(rng.choice(alike)))
    return [every[i] for i in chosen]


def _closures(
    network: RoadNetwork,
    hours: Sequence[tuple[int, int]],
    regime: Regime,
    rng: np.random.Generator,
) -> tuple[Closure, ...]:
    """Accidents that take a lane of a wide road, and works that close a narrow one."""
    lanes = lanes_per_direction(network)
    works_class = np.isin(network.road_class, [ROAD_CLASSES.index(n) for n in _WORKS_CLASSES])
    shortest_s, longest_s = regime.closed_s
    busy = through_traffic(network) if regime.main_roads else np.ones(network.num_edges)
    closures = []
    for _ in range(int(rng.poisson(regime.closures))):
        works = rng.random() < regime.works
        fit = works_class & (lanes == 1) if works else lanes > 1
        weight = np.where(fit, np.minimum(network.length_m, 300.0) * lanes, 0.0)
        if not works:
            weight *= busy
        period = hours[int(rng.integers(len(hours)))]
        from_s = int(rng.uniform(period[0] * HOUR_S, period[1] * HOUR_S - shortest_s))
        until_s = from_s + int(rng.uniform(shortest_s, longest_s))
        if not weight.any():
            continue
        edge = int(rng.choice(network.num_edges, p=weight / weight.sum()))
        if not works:
            left = 1 if regime.main_roads else int(lanes[edge]) - 1
            if regime.main_roads:
                busy[edge] = 0.0  # SUMO may fail where two closures of a road overlap
            closures.append(Closure((edge,), from_s, until_s, left))
            continue
        back = np.flatnonzero(
            (network.tail == network.head[edge]) & (network.head == network.tail[edge])
        )
        street = (edge, *back.tolist())
        rest = np.setdiff1d(np.arange(network.num_edges), street)
        if strong_parts(network).max() == strong_parts(network, rest).max():
            closures.append(Closure(street, from_s, until_s))  # every place stays reachable
    return tuple(closures)


def made_up_weather(year: int, time_zone: str, seed: int) -> tuple[int, FloatArray]:
    """A subtropical year, hour by hour: the POSIX second of its start, and a column per variable.

    Summers are warm and wet, showers last some hours, and temperature has a daily course.
    """
    rng = np.random.default_rng(seed)
    there = zone(time_zone)
    start_s, end_s = (int(datetime(y, 1, 1, tzinfo=there).timestamp()) for y in (year, year + 1))
    hours = np.arange((end_s - start_s) // HOUR_S)
    season = -np.cos(2 * np.pi * (hours / 24 - 20) / 365)  # −1 in January, 1 in July
    daily = -np.cos(2 * np.pi * ((hours - 3) % 24) / 24)
    slow = _smooth(rng.normal(size=hours.size), 48)
    showers = _smooth(rng.normal(size=hours.size), 4) + 0.4 * season > 1.75
    rain = np.where(showers, rng.gamma(1.2, 4.0, hours.size), 0.0)
    columns = {
        "temperature_c": 23 + 6 * season + 2.2 * daily + 1.5 * slow - 1.5 * showers,
        "rainfall_mm": np.minimum(rain, 90),
        "humidity_percent": np.clip(74 + 8 * season - 7 * daily + 12 * showers, 25, 100),
        "wind_kmh": np.abs(12 + 5 * slow + 4 * daily + 6 * showers),
        "pressure_hpa": 1013 - 7 * season + 2.5 * slow,
    }
    return start_s, np.column_stack([columns[v] for v in WEATHER_VARIABLES]).round(1)


def _smooth(noise: FloatArray, hours: int) -> FloatArray:
    """Moving average around the year, scaled back to unit variance."""
    window = np.ones(hours) / np.sqrt(hours)
    wrapped = np.concatenate([noise, noise[: hours - 1]])
    smooth: FloatArray = np.convolve(wrapped, window, "valid")
    return smooth
