"""Records of an agency that does not exist, messy on purpose, with the truth beside them.

Nothing in here is about any person. Names, ages and addresses are made up, and
are in the file so that it can be shown that they are dropped.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context import Weather
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.pages import render
from ideal_dispatch.records import synthetic_cells
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.synthetic_cells import DEFECTS
from ideal_dispatch.records.synthetic_weather import SyntheticWeather

FILES = ("records.csv", "truth.csv", "depots.csv", "weather.csv", "agency.toml", "city.network")

TravelTime = Callable[[int, int, datetime, Weather], float]
"""(origin node, destination node, aware time, weather) → seconds."""

SECONDS_PER_FLOOR = 1.90
_BEDSIDE_S = 60.0  # from arrival to CPR on the ground floor
_SPREAD_S = 12.0  # standard deviation of both
_WITHOUT_STAMPS, _WITHOUT_CPR = 0.35, 0.15  # shares of the rows
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
        local = at.astimezone(self._zone)
        hour = local.hour + local.minute / 60
        peaks = [(0.2, 15, 4)] if local.weekday() >= 5 else [(0.45, 8.5, 1.5), (0.5, 18, 1.8)]
        busy = 1.0
        for height, middle, width in peaks:
            busy += height * float(np.exp(-(((hour - middle) / width) ** 2)))
        busy = 1.1 * busy * (1 + min(0.02 * rain, 0.2))
        return float(self._from[origin][destination] * busy * noise)


@dataclass(frozen=True, slots=True)
class RecordsParams:
    """How many records of which year; ``defects_each`` rows of every kind of defect are planted."""

    count: int = 2000
    year: int = 2023
    defects_each: int = 5

    def __post_init__(self) -> None:
        needed = self.defects_each * (len(DEFECTS) + 1)
        if self.count < needed:
            raise InputError(
                f"count {self.count}: {self.defects_each} rows of each of {len(DEFECTS)} defects "
                f"need at least {needed}"
            )


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
    """Rows of cells, and the truth of each."""

    rows: tuple[tuple[str, ...], ...]
    truth: tuple[Truth, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the CSV."""
        write_csv(path, synthetic_cells.HEADER, self.rows)


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
    travel_time = travel_time or TypicalTravelTime(network, rng, time_zone)
    weather = weather or SyntheticWeather.of_year(params.year, time_zone, seed)
    there = zone(time_zone)
    agency = _Agency(network, depots, there, params.year, travel_time, weather, districts)
    duplicated = params.defects_each
    drafts = [agency.draft(rng, number) for number in range(params.count - duplicated)]
    chosen = rng.permutation(len(drafts))
    kinds = [name for name in DEFECTS for _ in range(params.defects_each)]
    for index, kind in zip(chosen, kinds, strict=False):
        verdict, reason = DEFECTS[kind](drafts[index].cells, rng)
        drafts[index].mark(verdict, reason, kind)
    for index in chosen[len(kinds) : len(kinds) + duplicated]:
        drafts.append(replace(drafts[index]))
        drafts[-1].mark("excluded", "the same call and unit as in an earlier row", "duplicate")
    drafts.sort(key=lambda draft: draft.at)  # stable: a repetition follows its original
    rows = tuple(
        tuple(draft.cells[name] for name in synthetic_cells.HEADER if name in draft.cells)
        for draft in drafts
    )
    truth = tuple(replace(draft.truth, row=row) for row, draft in enumerate(drafts, 2))
    return SyntheticRecords(rows, truth)


def write_agency(
    folder: Path,
    records: SyntheticRecords,
    weather: SyntheticWeather,
    network: RoadNetwork,
    depots: Sequence[Depot],
    *,
    name: str,
    country: str,
    weather_name: str = "synthetic",
) -> AgencySettings:
    """Write :data:`FILES` into a folder, made where it is not there; gives the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    records.save(folder / "records.csv")
    names = [column.name for column in fields(Truth)]
    truth = [astuple(row) for row in records.truth]
    write_csv(folder / "truth.csv", names, truth)
    weather.save(folder / "weather.csv")
    network.save(folder / "city.network")
    lon, lat = network.lon, network.lat
    rows = [
        (depot.name, f"A{number}", f"{lon[depot.node]:.6f}", f"{lat[depot.node]:.6f}")
        for number, depot in enumerate(depots, 1)
    ]
    write_csv(folder / "depots.csv", ("name", "call_sign", "lon", "lat"), rows)
    settings = render(
        "agency.toml", name=name, time_zone=weather.time_zone, country=country, weather=weather_name
    )
    write_file(folder / "agency.toml", settings)
    return AgencySettings.load(folder / "agency.toml")


@dataclass(slots=True)
class _Draft:
    """A row in the making."""

    at: datetime
    cells: dict[str, str]
    truth: Truth

    def mark(self, verdict: str, reason: str, defect: str) -> None:
        self.truth = replace(self.truth, verdict=verdict, reason=reason, defect=defect)


@dataclass(slots=True)
class _Agency:
    """Draws calls and how they were answered."""

    network: RoadNetwork
    depots: Sequence[Depot]
    zone: ZoneInfo
    year: int
    travel_time: TravelTime
    weather: WeatherProvider
    districts: Sequence[str] | None
    free_flow_s: FloatArray = field(init=False)
    in_reach: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        network, depots = self.network, self.depots
        metres = np.array([network.distances(network.length_m, d) for d in depots])
        times = network.free_flow_times_s
        self.free_flow_s = np.array([network.distances(times, depot) for depot in depots])
        self.in_reach = (metres >= _NEAREST_M) & (metres <= _FARTHEST_M)
        if not self.in_reach.any(axis=1).all():
            raise InputError(
                f"a depot has no node {_NEAREST_M:.0f} to {_FARTHEST_M:.0f} m away by road; "
                "use a larger network"
            )

    def draft(self, rng: np.random.Generator, number: int) -> _Draft:
        while True:
            at = self._moment(rng)
            depot, node = self._ends(rng)
            origin = self.depots[depot]
            lon, lat = float(self.network.lon[node]), float(self.network.lat[node])
            weather = self.weather.reading(at, lon, lat)
            travel_s = round(self.travel_time(origin.node, node, at, weather))
            floor = _floor(rng)
            # from the call until the unit is en route: depots differ
            preparation = 90.0 + 20.0 * depot + rng.normal(0, _SPREAD_S)
            bedside = max(_BEDSIDE_S + rng.normal(0, _SPREAD_S), 1.0)
            en_route = at + timedelta(seconds=round(max(preparation, 1.0)))
            on_scene = en_route + timedelta(seconds=travel_s)
            climb = bedside + SECONDS_PER_FLOOR * abs(floor)
            cpr = on_scene + timedelta(seconds=round(climb))
            if travel_s > 0 and (cpr - at).total_seconds() < _LONGEST_S:
                break
        times = synthetic_cells.stamp_texts(rng, self.zone, [at, en_route, on_scene, cpr])
        chance = rng.random()
        if chance < _WITHOUT_STAMPS:
            times[1] = times[2] = ""
        elif chance < _WITHOUT_STAMPS + _WITHOUT_CPR:
            times[3] = ""
        cells = dict(zip(synthetic_cells.STAMPS, times, strict=True))
        lon, lat = self._beside(rng, node, lon, lat)
        cells |= {
            "call_id": f"{self.year}-{number:06d}",
            "depot": synthetic_cells.depot_text(rng, origin.name),
            "lon": f"{lon:.6f}",
            "lat": f"{lat:.6f}",
            "floor": synthetic_cells.floor_text(rng, floor),
            "district": self.districts[node] if self.districts else "",
            **synthetic_cells.personal(rng),
        }
        truth = Truth(0, "trip", "", "", origin.node, node, float(travel_s), floor)
        return _Draft(at, cells, truth)

    def _moment(self, rng: np.random.Generator) -> datetime:
        """A call time, more by day than by night, in no hour that comes twice."""
        start, end = (datetime(self.year + n, 1, 1, tzinfo=self.zone) for n in (0, 1))
        length_s = int((end - start).total_seconds())
        start = start.astimezone(UTC)
        while True:
            at = start + timedelta(seconds=int(rng.integers(length_s - 3600)))
            local = at.astimezone(self.zone)
            hours = [(at + timedelta(hours=h)).astimezone(self.zone).utcoffset() for h in (-2, 2)]
            if hours[0] == hours[1] and rng.random() < (0.45 if local.hour < 7 else 1.0):
                return at

    def _ends(self, rng: np.random.Generator) -> tuple[int, int]:
        """A destination and its depot: the quicker, or now and then another."""
        while True:
            node = int(rng.integers(self.network.num_nodes))
            depot = int(np.argmin(self.free_flow_s[:, node]))
            if rng.random() < 0.15:
                depot = int(rng.integers(len(self.depots)))
            if self.in_reach[depot, node]:
                return depot, node

    def _beside(
        self, rng: np.random.Generator, node: int, lon: float, lat: float
    ) -> tuple[float, float]:
        """A point beside the node that no other node is nearer to."""
        x, y = lon + rng.normal(0, 1e-4), lat + rng.normal(0, 1e-4)
        nearest, far_m = self.network.snapper.nodes(np.array([x]), np.array([y]))
        near = nearest[0] == node and far_m[0] < 100
        return (x, y) if near else (lon, lat)


def _floor(rng: np.random.Generator) -> int:
    if rng.random() < 0.25:
        return int(rng.choice([0, 0, 0, 1, -1, -2]))
    return int(min(2 + rng.gamma(1.6, 8.0), 60))
