"""Records of an agency that does not exist, messy on purpose, with the truth beside them.

Nothing in here is about any person. Names, ages and addresses are made up, and
are in the file so that it can be shown that they are dropped.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Weather
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.pages import render
from ideal_dispatch.records import synthetic_cells
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.synthetic_calls import SyntheticCalls
from ideal_dispatch.records.synthetic_cells import DEFECTS
from ideal_dispatch.records.synthetic_weather import SyntheticWeather

FILES = ("records.csv", "truth.csv", "depots.csv", "weather.csv", "agency.toml", "city.network")

TravelTime = Callable[[int, int, datetime, Weather], float]
"""(origin node, destination node, aware time, weather) → seconds."""

SECONDS_PER_FLOOR = 1.90
_BEDSIDE_S = 60.0  # from arrival to CPR on the ground floor
_SPREAD_S = 12.0  # standard deviation of both
_WITHOUT_STAMPS, _WITHOUT_CPR = 0.35, 0.15  # shares of the rows
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
    calls = SyntheticCalls(network, depots, zone(time_zone), params.year)
    agency = _Agency(calls, travel_time, weather, districts)
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

    calls: SyntheticCalls
    travel_time: TravelTime
    weather: WeatherProvider
    districts: Sequence[str] | None

    def draft(self, rng: np.random.Generator, number: int) -> _Draft:
        calls = self.calls
        while True:
            at = calls.moment(rng)
            depot, node = calls.ends(rng)
            origin = calls.depots[depot]
            lon, lat = float(calls.network.lon[node]), float(calls.network.lat[node])
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
        times = synthetic_cells.stamp_texts(rng, calls.zone, [at, en_route, on_scene, cpr])
        chance = rng.random()
        if chance < _WITHOUT_STAMPS:
            times[1] = times[2] = ""
        elif chance < _WITHOUT_STAMPS + _WITHOUT_CPR:
            times[3] = ""
        cells = dict(zip(synthetic_cells.STAMPS, times, strict=True))
        lon, lat = calls.beside(rng, node)
        cells |= {
            "call_id": f"{calls.year}-{number:06d}",
            "depot": synthetic_cells.depot_text(rng, origin.name),
            "lon": f"{lon:.6f}",
            "lat": f"{lat:.6f}",
            "floor": synthetic_cells.floor_text(rng, floor),
            "district": self.districts[node] if self.districts else "",
            **synthetic_cells.personal(rng),
        }
        truth = Truth(0, "trip", "", "", origin.node, node, float(travel_s), floor)
        return _Draft(at, cells, truth)


def _floor(rng: np.random.Generator) -> int:
    if rng.random() < 0.25:
        return int(rng.choice([0, 0, 0, 1, -1, -2]))
    return int(min(2 + rng.gamma(1.6, 8.0), 60))
