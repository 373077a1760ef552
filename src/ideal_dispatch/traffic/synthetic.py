"""Synthetic traffic: its laws are written down here, for quick tests.

The time of edge e in a bin is

    free flow × (1 + busy[class, hour] · exposure[e] · demand of the day)
              × exp(0.15 · z[e]) × rain × incidents,

- ``busy`` has a morning and an evening peak on working days and one flat
  afternoon on others, higher on main roads than on side streets;
- ``exposure`` is a fixed gamma draw per edge with mean one, smoothed along the roads;
- ``z`` is white noise smoothed along the roads and autoregressive in time with
  a memory of half an hour: neighbouring streets are slow together;
- ``rain`` adds 3 % a millimetre, 25 % at most;
- incidents fall on edges by length at a given rate, multiply their time by 3 to
  8 and that of the edges leading into them by half as much, for 15 to 60 minutes.

The model knows none of this: not these curves, not this smoothing, and no incident.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import meetings
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.ranges import Count, Range, Share, Whole, ZeroOrMore, check_fields
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, counted_by, encode

_MAIN = np.isin(ROAD_CLASSES, ("motorway", "trunk", "primary", "motorway_link", "trunk_link"))
_MIDDLE = np.isin(ROAD_CLASSES, ("secondary", "tertiary", "primary_link", "secondary_link"))
_PEAK = np.select([_MAIN, _MIDDLE], [0.9, 0.7], 0.35)  # what the evening peak adds, by class
_SMOOTHINGS = 6
_MEMORY_S = 1800.0
_SPREAD = 0.15


@dataclass(frozen=True, slots=True)
class SyntheticParams:
    """Days and their laws.

    ``hours`` are recorded stretches of every day, local time. ``seen`` is the
    share of edge-bins in which a vehicle entered the busiest roads, to be seen
    when it leaves them; with 1 one enters every edge in every bin. Truth and
    sightings are drawn apart: another ``seen`` does not change the truth.
    """

    days: Count = 6
    first: date = date(2023, 5, 8)
    hours: tuple[tuple[int, int], ...] = ((6, 10), (16, 20))
    bin_s: Count = 60
    incidents_per_hour: ZeroOrMore = 1.5
    rainy_share: Share = 0.3
    seen: Annotated[float, Range(0, 1, above=True)] = 0.5
    seed: Whole = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.hours:
            raise InputError("hours: synthetic traffic needs at least one stretch of a day")
        for begin, end in self.hours:
            if not 0 <= begin < end <= 24:
                raise InputError(f"hours {begin}–{end}: they lie within 0–24 in order")
        if not date.min + timedelta(days=2) <= self.first <= date.max - timedelta(days=self.days):
            raise InputError(f"first {self.first}: too near the calendar's end")


def synthetic_traffic(
    network: RoadNetwork, calendar: Calendar, params: SyntheticParams | None = None
) -> RecordedTraffic:
    """Recorded traffic that follows the laws above."""
    params = params or SyntheticParams()
    roads = _Roads(network, np.random.default_rng([params.seed, 0]))
    # the chance that a vehicle is seen on each edge in one bin
    visible = 1.0 if params.seen == 1 else params.seen * _PEAK[network.road_class] / _PEAK.max()
    stretches, before_midnight = [], 0.0
    for number in range(params.days):
        rng = np.random.default_rng([params.seed, 1, number])
        demand, rain = rng.uniform(0.8, 1.2), _rain(rng, params.rainy_share)
        fell = np.concatenate([[before_midnight], rain[:-1]])  # known when an hour begins
        before_midnight = rain[-1]
        day = params.first + timedelta(days=number)
        midnight = datetime.combine(day, time(), zone(calendar.time_zone))
        for begin, end in params.hours:
            # an hour that the clocks skip is the next there is
            start, until = (
                (midnight + timedelta(hours=hour)).astimezone(UTC) for hour in (begin, end)
            )
            bins = int((until - start).total_seconds()) // params.bin_s
            if not bins:
                continue  # an hour that the clocks skip on this day
            falls = _rain_of_hours(calendar, start, until, rain)
            times = roads.times(calendar, start, bins, params, demand, falls, rng)
            looks = np.random.default_rng([params.seed, 2, number, begin])
            truth = encode(times, network)
            hidden = looks.random(times.shape) > visible
            entered = np.where(hidden, 0, truth).astype(np.uint8)
            codes = counted_by("exit", entered, network, params.bin_s)
            notes = {"demand": demand, "incidents": roads.incidents}
            weather = np.tile([22.0, 0.0, 75.0, 10.0, 1012.0], (falls.size + 1, 1))
            weather[:-1, 1] = _rain_of_hours(calendar, start, until, fell)
            weather[-1, 1] = falls[-1]
            stretches.append(Stretch(calendar.local(start), codes, weather, notes, truth))
    said = asdict(params) | {"first": params.first.isoformat()}
    provenance = {"engine": "synthetic", "seed": params.seed, "params": said}
    return RecordedTraffic(network, calendar, params.bin_s, tuple(stretches), provenance)


class _Roads:
    """What stays the same from day to day, and how a stretch is drawn."""

    def __init__(self, network: RoadNetwork, rng: np.random.Generator) -> None:
        self._network = network
        together = meetings(network)  # an edge and all edges that share an end with it
        self._mean = (sp.diags_array(1.0 / together.sum(axis=1)) @ together).tocsr()
        spread = self._diffuse(rng.gamma(2.0, 0.5, network.num_edges))
        self._exposure = np.clip(spread / spread.mean(), 0.3, 3.0)
        unit = self._diffuse(rng.standard_normal((network.num_edges, 64)))
        self._scale = unit.std(axis=1)
        self.incidents: list[dict[str, float]] = []

    def times(
        self, calendar: Calendar, start: datetime, bins: int, params: SyntheticParams,
        demand: float, rain: FloatArray, rng: np.random.Generator,
    ) -> FloatArray:  # fmt: skip
        """Seconds of every bin and edge; ``rain`` of the hours from ``start`` on."""
        network, memory = self._network, np.exp(-params.bin_s / _MEMORY_S)
        factor = self._incidents(bins, params, rng)
        local = calendar.local(start)
        works = local.weekday() < 5 and not calendar.is_holiday(local.date())
        peak = _PEAK[network.road_class] * self._exposure * demand
        state = self._noise(rng)
        times = np.empty((bins, network.num_edges))
        for i in range(bins):
            elapsed_h = i * params.bin_s / 3600
            later = calendar.local(start + timedelta(seconds=i * params.bin_s))
            hour = local.hour + elapsed_h + (_offset(later) - _offset(local)) / timedelta(hours=1)
            wet = 1 + min(0.03 * rain[int(elapsed_h)], 0.25)
            times[i] = (1 + _busy(hour, works) * peak) * np.exp(_SPREAD * state) * wet
            state = memory * state + np.sqrt(1 - memory**2) * self._noise(rng)
        shaped: FloatArray = times * factor * network.free_flow_times_s
        return shaped

    def _noise(self, rng: np.random.Generator) -> FloatArray:
        noise: FloatArray = self._diffuse(rng.standard_normal(self._network.num_edges))
        noise /= self._scale
        return noise

    def _incidents(
        self, bins: int, params: SyntheticParams, rng: np.random.Generator
    ) -> FloatArray:
        network = self._network
        factor = np.ones((bins, network.num_edges))
        self.incidents = []
        share = network.length_m / network.length_m.sum()
        hours = bins * params.bin_s / 3600
        for _ in range(rng.poisson(params.incidents_per_hour * hours)):
            edge = int(rng.choice(network.num_edges, p=share))
            begin = int(rng.integers(bins))
            end = begin + int(rng.uniform(900, 3600) / params.bin_s)
            slower = float(rng.uniform(3, 8))
            upstream = np.flatnonzero(network.head == network.tail[edge])
            factor[begin:end, edge] = np.maximum(factor[begin:end, edge], slower)
            factor[begin:end, upstream] = np.maximum(factor[begin:end, upstream], slower / 2)
            self.incidents.append({"edge": edge, "bin": begin, "end": end, "times": slower})
        return factor

    def _diffuse(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        for _ in range(_SMOOTHINGS):
            values = self._mean @ values
        return values


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
