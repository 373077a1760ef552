"""Synthetic traffic, by laws that are written here: for tests, and where the truth must be known.

The time of edge e in a bin is

    free flow × (1 + busy[class, hour] · exposure[e] · demand of the day)
              × exp(spread · z[e]) × rain × shocks,

- ``busy`` has a morning and an evening peak on working days and one flat
  afternoon on others, higher on main roads than on side streets;
- ``exposure`` is a fixed log-normal field over the edges with mean one;
- ``z`` is a standard normal field over the edges, with a correlation of exp(−d / reach) at the
  distance d. A part of its variance stays for good, a part for a day, and the rest is
  autoregressive in time: neighbouring streets are slow together, for a while;
- ``rain`` adds 3 % a millimetre, 25 % at most;
- shocks fall on edges by length at a given rate, multiply their time by 3 to
  8 and that of the edges leading into them by half as much, for 15 to 60 minutes.

A router may see what vehicles took with an error of its own: a log-normal field that changes,
one that lasts, and a delay. The model knows none of these laws.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.ranges import Checked, Count, Positive, Range, Share, Whole, ZeroOrMore
from ideal_dispatch.traffic.recording import Codes, RecordedTraffic, Stretch, counted_by, encode

_MAIN = np.isin(ROAD_CLASSES, ("motorway", "trunk", "primary", "motorway_link", "trunk_link"))
_MIDDLE = np.isin(ROAD_CLASSES, ("secondary", "tertiary", "primary_link", "secondary_link"))
_PEAK = np.select([_MAIN, _MIDDLE], [0.9, 0.7], 0.35)  # what the evening peak adds, by class
_EXPOSURE = 0.35
_WAVES = 256
_ERROR_REACH_M, _ERROR_MEMORY_S = 150.0, 1800.0


@dataclass(frozen=True, slots=True)
class SyntheticParams(Checked):
    """Days and their laws.

    ``hours`` are recorded stretches of every day, local time. ``spread`` is the standard
    deviation of the logarithm of a time about its usual value, ``reach_m`` and ``memory_s`` the
    distance and the time after which its correlation has fallen to 1/e; ``lasting`` and ``daily``
    are the shares of its variance that never change and that change from day to day. ``shocks``
    is their mean number an hour.

    ``seen`` is the share of edge-bins in which a vehicle entered the busiest roads, to be seen
    when it leaves them; with 1 one enters every edge in every bin. What is seen, and so what a
    router may know, is wrong by ``router_error`` (standard deviation of the logarithm, over 150 m
    and half an hour) and by ``router_bias`` (the same, for good), and is known ``router_delay_s``
    later. None of these changes the truth.
    """

    days: Count = 6
    first: date = date(2023, 5, 8)
    hours: tuple[tuple[int, int], ...] = ((6, 10), (16, 20))
    bin_s: Count = 60
    spread: ZeroOrMore = 0.15
    reach_m: Positive = 150.0
    memory_s: Positive = 1800.0
    lasting: Share = 0.0
    daily: Share = 0.0
    shocks: ZeroOrMore = 1.5
    rainy_share: Share = 0.3
    seen: Annotated[float, Range(0, 1, above=True)] = 0.5
    router_error: ZeroOrMore = 0.0
    router_bias: ZeroOrMore = 0.0
    router_delay_s: ZeroOrMore = 0.0
    seed: Whole = 0

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not self.hours:
            raise InputError("hours: synthetic traffic needs at least one stretch of a day")
        for begin, end in self.hours:
            if not 0 <= begin < end <= 24:
                raise InputError(f"hours {begin}–{end}: they lie within 0–24 in order")
        if not date.min + timedelta(days=2) <= self.first <= date.max - timedelta(days=self.days):
            raise InputError(f"first {self.first}: too near the calendar's end")
        if self.lasting + self.daily > 1.0:
            raise InputError(f"lasting {self.lasting:g} and daily {self.daily:g} are more than 1")


def synthetic_traffic(
    network: RoadNetwork, calendar: Calendar, params: SyntheticParams | None = None
) -> RecordedTraffic:
    """Recorded traffic that follows the laws above."""
    params = params or SyntheticParams()
    seed = params.seed
    roads = _Roads(network, params)
    stretches, before_midnight = [], 0.0
    for number in range(params.days):
        rng = np.random.default_rng([seed, 1, number])
        demand, rain = rng.uniform(0.8, 1.2), _rain(rng, params.rainy_share)
        fell = np.concatenate([[before_midnight], rain[:-1]])  # known when an hour begins
        before_midnight = rain[-1]
        day = params.first + timedelta(days=number)
        midnight = datetime.combine(day, time(), zone(calendar.time_zone))
        of_day = roads.field.drawn(np.random.default_rng([seed, 3, number]))
        for begin, end in params.hours:
            # an hour that the clocks skip is the next there is
            start, until = (
                (midnight + timedelta(hours=hour)).astimezone(UTC) for hour in (begin, end)
            )
            bins = int((until - start).total_seconds()) // params.bin_s
            if not bins:
                continue  # an hour that the clocks skip on this day
            falls = _rain_of_hours(calendar, start, until, rain)
            shocks, factor = roads.shocks(bins, rng)
            times = factor * roads.times(calendar, start, bins, demand, falls, of_day, rng)
            codes = roads.seen(times, np.random.default_rng([seed, 2, number, begin]))
            notes = {"demand": demand, "shocks": shocks}
            weather = np.tile([22.0, 0.0, 75.0, 10.0, 1012.0], (falls.size + 1, 1))
            weather[:-1, 1] = _rain_of_hours(calendar, start, until, fell)
            weather[-1, 1] = falls[-1]
            truth = encode(times, network)
            stretches.append(Stretch(calendar.local(start), codes, weather, notes, truth))
    said = asdict(params) | {"first": params.first.isoformat()}
    provenance = {"engine": "synthetic", "seed": seed, "params": said}
    return RecordedTraffic(network, calendar, params.bin_s, tuple(stretches), provenance)


class _Field:
    """Standard normal fields over the edges, correlated by exp(−d / ``reach_m``).

    A field is a sum of plane waves, whose wave vectors have the spectrum of that correlation and
    whose amplitudes are drawn.
    """

    def __init__(self, network: RoadNetwork, reach_m: float, rng: np.random.Generator) -> None:
        plane = LocalPlane(float(network.lat.mean()))
        places = plane.to_metres(np.column_stack([network.lon, network.lat]))
        middles = (places[network.tail] + places[network.head]) / 2
        if np.isnan(middles).any():  # roads without a place are independent
            middles = rng.uniform(0.0, 1e4 * reach_m, middles.shape)
        waves = rng.standard_normal((2, _WAVES)) / np.abs(rng.standard_normal(_WAVES)) / reach_m
        values = np.cos(middles @ waves + rng.uniform(0.0, 2 * np.pi, _WAVES))
        self._waves = values / np.linalg.norm(values, axis=1, keepdims=True)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """One field."""
        return np.asarray(self._waves @ rng.standard_normal(_WAVES))

    def moving(self, bins: int, memory: float, rng: np.random.Generator) -> FloatArray:
        """A field for every bin, each ``memory`` times the one before it and new for the rest."""
        amplitudes = rng.standard_normal((bins, _WAVES))
        for i in range(1, bins):
            amplitudes[i] = memory * amplitudes[i - 1] + np.sqrt(1 - memory**2) * amplitudes[i]
        return np.asarray(amplitudes @ self._waves.T)


class _Roads:
    """What stays the same from day to day, and how a stretch is drawn."""

    def __init__(self, network: RoadNetwork, params: SyntheticParams) -> None:
        rng = np.random.default_rng([params.seed, 0])
        self._network, self._params = network, params
        self.field = _Field(network, params.reach_m, rng)
        self._exposure = np.exp(_EXPOSURE * self.field.drawn(rng) - 0.5 * _EXPOSURE**2)
        self._lasting = self.field.drawn(rng)
        self._errors = _Field(network, _ERROR_REACH_M, rng)
        self._bias = params.router_bias * self._errors.drawn(rng)

    def times(
        self, calendar: Calendar, start: datetime, bins: int, demand: float, rain: FloatArray,
        of_day: FloatArray, rng: np.random.Generator,
    ) -> FloatArray:  # fmt: skip
        """Seconds of every bin and edge; ``rain`` of the hours from ``start`` on."""
        network, params = self._network, self._params
        local = calendar.local(start)
        works = local.weekday() < 5 and not calendar.is_holiday(local.date())
        peak = _PEAK[network.road_class] * self._exposure * demand
        present = 1.0 - params.lasting - params.daily
        logs = np.sqrt(max(present, 0.0)) * self.field.moving(
            bins, np.exp(-params.bin_s / params.memory_s), rng
        )
        logs += np.sqrt(params.lasting) * self._lasting + np.sqrt(params.daily) * of_day
        busy, wet = np.empty(bins), np.empty(bins)
        for i in range(bins):
            elapsed_h = i * params.bin_s / 3600
            later = calendar.local(start + timedelta(seconds=i * params.bin_s))
            hour = local.hour + elapsed_h + (_offset(later) - _offset(local)) / timedelta(hours=1)
            busy[i], wet[i] = _busy(hour, works), 1 + min(0.03 * rain[int(elapsed_h)], 0.25)
        usual = (1 + busy[:, None] * peak) * wet[:, None] * network.free_flow_times_s
        return np.asarray(usual * np.exp(params.spread * logs))

    def shocks(
        self, bins: int, rng: np.random.Generator
    ) -> tuple[list[dict[str, float]], FloatArray]:
        """Where and when something happens, and how many times slower every bin and edge is."""
        network, found = self._network, []
        factor = np.ones((bins, network.num_edges))
        share = network.length_m / network.length_m.sum()
        for _ in range(rng.poisson(self._params.shocks * bins * self._params.bin_s / 3600)):
            edge = int(rng.choice(network.num_edges, p=share))
            begin = int(rng.integers(bins))
            end = begin + int(rng.uniform(900, 3600) / self._params.bin_s)
            slower = float(rng.uniform(3, 8))
            upstream = np.flatnonzero(network.head == network.tail[edge])
            factor[begin:end, edge] = np.maximum(factor[begin:end, edge], slower)
            factor[begin:end, upstream] = np.maximum(factor[begin:end, upstream], slower / 2)
            found.append({"edge": edge, "bin": begin, "end": end, "times": slower})
        return found, factor

    def seen(self, times: FloatArray, rng: np.random.Generator) -> Codes:
        """What the vehicles of a stretch were seen to take, in the bin in which that was known."""
        network, params = self._network, self._params
        # the chance that a vehicle enters each edge in one bin
        visible = 1.0 if params.seen == 1 else params.seen * _PEAK[network.road_class] / _PEAK.max()
        hidden = rng.random(times.shape) > visible
        memory = np.exp(-params.bin_s / _ERROR_MEMORY_S)
        if params.router_error:
            wrong = params.router_error * self._errors.moving(len(times), memory, rng)
            times = times * np.exp(wrong)
        entered = np.where(hidden, 0, encode(times * np.exp(self._bias), network)).astype(np.uint8)
        codes = counted_by("exit", entered, network, params.bin_s)
        late = min(round(params.router_delay_s / params.bin_s), len(codes))
        return np.concatenate([np.zeros_like(codes[:late]), codes[: len(codes) - late]])


def _busy(hour: float, works: bool) -> float:
    """How far the day's traffic is between night (0) and the evening peak (1)."""
    if not works:
        return float(0.1 + 0.4 * np.exp(-(((hour - 15) / 4.5) ** 2)))
    morning = 0.85 * np.exp(-(((hour - 8.25) / 1.1) ** 2))
    evening = np.exp(-(((hour - 18.0) / 1.4) ** 2))
    midday = 0.35 * np.exp(-(((hour - 13.0) / 3.5) ** 2))
    return float(0.03 + max(morning, evening, midday))


def _rain(rng: np.random.Generator, rainy_share: float) -> FloatArray:
    """Millimetres in each hour of a day."""
    wet = rng.random() < rainy_share
    showers = rng.gamma(0.6, 4.0, 24) * (rng.random(24) < 0.6)
    return showers if wet else np.zeros(24)


def _rain_of_hours(
    calendar: Calendar, start: datetime, until: datetime, rain: FloatArray
) -> FloatArray:
    """Millimetres in every hour begun."""
    hours = int(np.ceil((until - start) / timedelta(hours=1)))
    moments = (start + timedelta(hours=hour) for hour in range(hours))
    return np.array([rain[calendar.local(at).hour] for at in moments])


def _offset(at: datetime) -> timedelta:
    """Of its clock from UTC."""
    return at.replace(tzinfo=UTC) - at
