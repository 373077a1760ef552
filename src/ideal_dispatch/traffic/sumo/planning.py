"""The days of a simulated year: chosen by the calendar and a seed, before any traffic."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType
from typing import Annotated, Final, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray, whole_number
from ideal_dispatch.context import Calendar
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import through_traffic
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.ranges import Checked, Positive, Range, Share, ZeroOrMore
from ideal_dispatch.traffic.made_up_weather import MadeUpWeather
from ideal_dispatch.traffic.sumo.day_plan import (
    HOUR_S,
    PEAKS,
    RAIN,
    WHOLE_DAY,
    Closure,
    DayPlan,
)
from ideal_dispatch.traffic.sumo.demand import strong_parts
from ideal_dispatch.traffic.sumo.network_export import lanes_per_direction

PATTERN: Final = (
    "weekday", "weekday", "holiday", "weekday", "saturday",
    "weekday", "sunday", "weekday", "weekday",
)  # fmt: skip
"""Kinds of usual days in turn; every third day is looked for among rainy ones."""

_PEAK_HOURS = [hour for period in PEAKS for hour in range(*period)]
_WET_MM = 1.0
_WORKS_CLASSES = ("secondary", "tertiary", "unclassified", "residential")


@dataclass(frozen=True, slots=True)
class Regime(Checked):
    """How busy simulated days are, how much they differ, and how often roads are closed.

    Where no demand is given, it is ``capacity_share`` of what the streets can carry
    (:func:`~ideal_dispatch.traffic.sumo.capacity.capacity`). A day's own lies within
    two ``day_spread`` of it. ``closures`` is their mean number in a day's hours;
    a share of them are ``works``, which close a narrow street, the others accidents
    that take a lane of a wide one, each for ``closed_s`` at least and at most. With
    ``main_roads`` accidents happen where most trips pass, each on a road of its own, and
    leave one lane. ``queues`` is that of :class:`~ideal_dispatch.traffic.sumo.day_plan.DayPlan`.
    ``pattern`` are the kinds of the days in turn.
    """

    capacity_share: Positive = 0.8
    day_spread: Annotated[float, Range(0, 0.4)] = 0.06
    closures: ZeroOrMore = 1.5
    works: Share = 0.3
    closed_s: tuple[int, int] = (1200, 7200)
    main_roads: bool = False
    queues: bool = False
    pattern: tuple[Literal["weekday", "saturday", "sunday", "holiday"], ...] = PATTERN


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
    weather = MadeUpWeather.of_year(year, calendar.time_zone, seed)
    dates = _dates(calendar, year, days, regime, weather, rng)
    whole = {int((k + 0.5) * days / whole_days) for k in range(whole_days)}
    plans = []
    for number, day in enumerate(sorted(dates)):
        own = np.random.default_rng([seed, number])
        periods = WHOLE_DAY if number in whole else hours
        busy = 1.04 if day.weekday() == 4 else 1.0  # Fridays
        spread = regime.day_spread
        own_demand = busy * own.lognormal(0, spread) if spread else busy
        plans.append(
            DayPlan(
                date=day,
                kind=_kind(calendar, day),
                time_zone=calendar.time_zone,
                hours=periods,
                demand_factor=round(
                    demand * float(np.clip(own_demand, 1 - 2 * spread, 1 + 2 * spread)), 3
                ),
                weather=tuple(map(tuple, _weather_known(weather, day).tolist())),
                closures=_closures(network, periods, regime, own),
                seed=int(own.integers(2**31)),
                queues=regime.queues,
            )
        )
    return tuple(plans)


def _kind(calendar: Calendar, day: date) -> str:
    if calendar.is_holiday(day):
        return "holiday"
    return {5: "saturday", 6: "sunday"}.get(day.weekday(), "weekday")


def _weather_known(weather: MadeUpWeather, day: date) -> FloatArray:
    """The hour before midnight and the 24 of a day.

    The year of the weather is in local time, and is taken to begin dry.
    """
    first = 24 * (day - date(day.year, 1, 1)).days
    known = weather.values[np.maximum(np.arange(first - 1, first + 24), 0)]
    known[0, RAIN] *= first > 0
    return known


def _dates(
    calendar: Calendar, year: int, days: int, regime: Regime, weather: MadeUpWeather,
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
        if _goes_round(network, street):
            closures.append(Closure(street, from_s, until_s))
    return tuple(closures)


def _goes_round(network: RoadNetwork, street: tuple[int, ...]) -> bool:
    """Whether every place stays reachable without the street."""
    rest = np.setdiff1d(np.arange(network.num_edges), street)
    return bool(strong_parts(network).max() == strong_parts(network, rest).max())
