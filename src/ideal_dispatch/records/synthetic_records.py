"""Records of an agency that does not exist, messy on purpose, with the truth beside them.

Nothing in here is about any person. Names, ages and addresses are made up, and
are in the file so that it can be shown that they are dropped.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Weather
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.records.synthetic_cells import (
    DEFECTS,
    HEADER,
    age,
    depot_text,
    floor_text,
    personal,
    stamp_texts,
)  # fmt: skip
from ideal_dispatch.records.synthetic_weather import SyntheticWeather

TravelTime = Callable[[int, int, datetime, Weather], float]
"""(origin node, destination node, aware time, weather) → seconds."""

_NEAREST_M, _FARTHEST_M = 600.0, 9_800.0
_LONGEST_S = 1_700.0  # below the paper's 30 minutes: nothing is left out by accident


class TypicalTravelTime:
    """The default truth: free-flow shortest path × hour of day × rain × lognormal noise.

    Weekday peaks at half past eight and at six add up to half; each millimetre
    of rain adds 2 %, 20 % at most; the noise has a spread of 12 %.
    """

    def __init__(self, network: RoadNetwork, rng: np.random.Generator, time_zone: str) -> None:
        self._network, self._rng, self._zone = network, rng, zone(time_zone)
        self._from: dict[int, FloatArray] = {}

    def __call__(self, origin: int, destination: int, at: datetime, weather: Weather) -> float:
        if origin not in self._from:
            times = self._network.free_flow_times_s
            self._from[origin] = self._network.distances(times, origin)
        rain = weather.rainfall_mm.value if weather.rainfall_mm.known else 0.0
        noise = np.exp(0.12 * np.clip(self._rng.normal(), -2.5, 2.5))
        busy = 1.1 * self._busy(at.astimezone(self._zone)) * (1 + min(0.02 * rain, 0.2))
        return float(self._from[origin][destination] * busy * noise)

    @staticmethod
    def _busy(local: datetime) -> float:
        hour = local.hour + local.minute / 60
        if local.weekday() >= 5:
            return float(1 + 0.2 * np.exp(-(((hour - 15) / 4) ** 2)))
        morning, evening = np.exp(-(((hour - 8.5) / 1.5) ** 2)), np.exp(-(((hour - 18) / 1.8) ** 2))
        return float(1 + 0.45 * morning + 0.5 * evening)


@dataclass(frozen=True, slots=True)
class RecordsParams:
    """How many records, and the truth behind them.

    ``preparation_s`` is from the call until the unit is en route, by depot
    (90 s and 20 s more for each next depot where not given), ``bedside_s`` from
    arrival to CPR on the ground floor; both vary by ``spread_s`` (standard
    deviation). ``defects_each`` rows of every kind of defect are planted.
    """

    count: int = 2000
    year: int = 2023
    seconds_per_floor: float = 1.90
    preparation_s: Mapping[str, float] = field(default_factory=dict)
    bedside_s: float = 60.0
    spread_s: float = 12.0
    without_stamps: float = 0.35
    without_cpr: float = 0.15
    defects_each: int = 5
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.count < self.defects_each * (len(DEFECTS) + 1):
            raise InputError(
                f"count {self.count}: {self.defects_each} rows of each of {len(DEFECTS)} defects "
                f"need at least {self.defects_each * (len(DEFECTS) + 1)}"
            )
        if not (self.without_stamps >= 0 and self.without_cpr >= 0
                and self.without_stamps + self.without_cpr <= 1):  # fmt: skip
            raise InputError("without_stamps and without_cpr are shares that add up to 1 at most")


@dataclass(frozen=True, slots=True)
class Truth:
    """What a row is: ``verdict`` is trip, quarantined or excluded, ``reason`` a part of why."""

    row: int
    verdict: str
    reason: str
    defect: str
    origin: int
    destination: int
    travel_s: float
    floor: int


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticRecords:
    """Rows of cells, and the truth of each.

    ``not_driving_s`` is, by depot, what preparation estimated from paired rows
    should come to: preparation and bedside time together.
    """

    rows: tuple[tuple[str, ...], ...]
    truth: tuple[Truth, ...]
    params: RecordsParams
    preparation_s: Mapping[str, float]

    @property
    def not_driving_s(self) -> dict[str, float]:
        return {name: s + self.params.bedside_s for name, s in self.preparation_s.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the CSV in the encoding of the parameters."""
        write_csv(path, HEADER, self.rows, self.params.encoding)

    def save_truth(self, path: str | os.PathLike[str]) -> None:
        """Write what is true of each row, for checking a preparation against it."""
        names = Truth.__slots__
        rows = [[str(getattr(truth, name)) for name in names] for truth in self.truth]
        write_csv(path, names, rows)


def synthesise(
    network: RoadNetwork,
    depots: Sequence[Depot],
    time_zone: str,
    *,
    seed: int,
    params: RecordsParams | None = None,
    travel_time: TravelTime | None = None,
    weather: WeatherProvider | None = None,
    districts: Sequence[str] | None = None,
) -> SyntheticRecords:
    """Records on ``network``; same seed, same bytes. ``districts`` has a name per node."""
    params = params or RecordsParams()
    rng = np.random.default_rng(seed)
    agency = _Agency(
        network,
        tuple(depots),
        time_zone,
        params,
        travel_time or TypicalTravelTime(network, rng, time_zone),
        weather or SyntheticWeather.of_year(params.year, time_zone, seed),
        districts,
    )
    duplicated = params.defects_each
    drafts = [agency.draft(rng, number) for number in range(params.count - duplicated)]
    chosen = rng.permutation(len(drafts))
    kinds = [name for name in DEFECTS for _ in range(params.defects_each)]
    for index, kind in zip(chosen, kinds, strict=False):
        drafts[index].spoil(kind, rng)
    for index in chosen[len(kinds) : len(kinds) + duplicated]:
        drafts.append(drafts[index].repeated())
    drafts.sort(key=lambda draft: draft.at)  # stable: a repetition follows its original
    rows, truth = zip(*(draft.result(row + 2) for row, draft in enumerate(drafts)), strict=True)
    return SyntheticRecords(rows, truth, params, agency.preparation_s)


@dataclass(slots=True)
class _Draft:
    """A row in the making."""

    at: datetime
    cells: dict[str, str]
    origin: int
    destination: int
    travel_s: float
    floor: int
    verdict: str = "trip"
    reason: str = ""
    defect: str = ""

    def spoil(self, kind: str, rng: np.random.Generator) -> None:
        self.defect = kind
        self.verdict, self.reason = DEFECTS[kind](self.cells, rng)

    def repeated(self) -> "_Draft":
        return _Draft(
            self.at, dict(self.cells), self.origin, self.destination, self.travel_s, self.floor,
            "excluded", "the same call and unit as in an earlier row", "duplicate",
        )  # fmt: skip

    def result(self, row: int) -> tuple[tuple[str, ...], Truth]:
        cells = tuple(self.cells[name] for name in HEADER if name in self.cells)
        truth = Truth(row, self.verdict, self.reason, self.defect, self.origin, self.destination,
                      self.travel_s, self.floor)  # fmt: skip
        return cells, truth


class _Agency:
    """Draws calls and how they were answered."""

    def __init__(
        self,
        network: RoadNetwork,
        depots: tuple[Depot, ...],
        time_zone: str,
        params: RecordsParams,
        travel_time: TravelTime,
        weather: WeatherProvider,
        districts: Sequence[str] | None,
    ) -> None:
        self.network, self.depots, self.params = network, depots, params
        self.zone, self.travel_time, self.weather = zone(time_zone), travel_time, weather
        self.districts = districts
        self.preparation_s = {
            depot.name: params.preparation_s.get(depot.name, 90.0 + 20.0 * index)
            for index, depot in enumerate(depots)
        }
        self.metres = np.array([network.distances(network.length_m, d) for d in depots])
        self.seconds = np.array([network.distances(network.free_flow_times_s, d) for d in depots])
        fit = (self.metres >= _NEAREST_M) & (self.metres <= _FARTHEST_M)
        if not fit.any(axis=1).all():
            raise InputError(
                f"a depot has no node {_NEAREST_M:.0f} to {_FARTHEST_M:.0f} m away by road; "
                "use a larger network"
            )
        self.fit = fit
        start = datetime(params.year, 1, 1, tzinfo=self.zone)
        end = datetime(params.year + 1, 1, 1, tzinfo=self.zone)
        self.start, self.length_s = start.astimezone(UTC), (end - start).total_seconds()

    def draft(self, rng: np.random.Generator, number: int) -> _Draft:
        params = self.params
        while True:
            at = self._moment(rng)
            depot, node = self._ends(rng)
            origin = self.depots[depot]
            weather = self.weather.reading(at, float(self.network.lon[node]),
                                           float(self.network.lat[node]))  # fmt: skip
            travel_s = round(self.travel_time(origin.node, node, at, weather))
            floor = self._floor(rng)
            preparation = self.preparation_s[origin.name] + rng.normal(0, params.spread_s)
            bedside = max(params.bedside_s + rng.normal(0, params.spread_s), 1.0)
            en_route = at + timedelta(seconds=round(max(preparation, 1.0)))
            on_scene = en_route + timedelta(seconds=travel_s)
            climb = bedside + params.seconds_per_floor * abs(floor)
            cpr = on_scene + timedelta(seconds=round(climb))
            if travel_s > 0 and (cpr - at).total_seconds() < _LONGEST_S:
                break
        times = stamp_texts(rng, self.zone, [at, en_route, on_scene, cpr])
        chance = rng.random()
        if chance < params.without_stamps:
            times[1] = times[2] = ""
        elif chance < params.without_stamps + params.without_cpr:
            times[3] = ""
        cells = dict(zip(("call_at", "en_route_at", "on_scene_at", "cpr_at"), times, strict=True))
        lon, lat = self._place(rng, node)
        cells |= {
            "call_id": f"{params.year}-{number:06d}",
            "depot": depot_text(rng, origin.name),
            "lon": f"{lon:.6f}",
            "lat": f"{lat:.6f}",
            "floor": floor_text(rng, floor, params.encoding),
            "district": self.districts[node] if self.districts else "",
            "patient_name": personal(rng, "name"),
            "age": age(rng),
            "address": personal(rng, "address"),
        }
        return _Draft(at, cells, origin.node, node, float(travel_s), floor)

    def _moment(self, rng: np.random.Generator) -> datetime:
        """A call time, more by day than by night, in no hour that comes twice."""
        while True:
            at = self.start + timedelta(seconds=int(rng.integers(int(self.length_s) - 3600)))
            local = at.astimezone(self.zone)
            hours = [(at + timedelta(hours=h)).astimezone(self.zone).utcoffset() for h in (-2, 2)]
            if hours[0] == hours[1] and rng.random() < (0.45 if local.hour < 7 else 1.0):
                return at

    def _ends(self, rng: np.random.Generator) -> tuple[int, int]:
        """A destination and its depot: the quicker, or now and then another."""
        while True:
            node = int(rng.integers(self.network.num_nodes))
            depot = int(np.argmin(self.seconds[:, node]))
            if rng.random() < 0.15:
                depot = int(rng.integers(len(self.depots)))
            if self.fit[depot, node]:
                return depot, node

    def _place(self, rng: np.random.Generator, node: int) -> tuple[float, float]:
        """A point beside the node that no other node is nearer to."""
        lon, lat = float(self.network.lon[node]), float(self.network.lat[node])
        x, y = lon + rng.normal(0, 1e-4), lat + rng.normal(0, 1e-4)
        nearest, far_m = self.network.snapper.nodes(np.array([x]), np.array([y]))
        near = nearest[0] == node and far_m[0] < 100
        return (x, y) if near else (lon, lat)

    @staticmethod
    def _floor(rng: np.random.Generator) -> int:
        if rng.random() < 0.25:
            return int(rng.choice([0, 0, 0, 1, -1, -2]))
        return int(min(2 + rng.gamma(1.6, 8.0), 60))
