"""Write the samples of ``examples/data`` and of the demo, the same bytes each time.

A made-up ambulance service answers made-up calls; its files have typical mistakes, and beside
each stands the truth. Settings, depots and the small files in other forms are written by hand.
"""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.cities import HARBOUR_RECORDS, harbour_city, harbour_traffic
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.replay.drive import DriveError, World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.sumo.plan import made_up_weather

EXAMPLES = Path(__file__).parents[1] / "examples" / "data"
LEARNED, YEAR, WEATHER_SEED = (0, 3, 4, 7), 2025, 5  # of the demo

Cells = dict[str, str]
DriveSeconds = Callable[[int, int, datetime], float]
"""(origin node, destination node, aware time) → seconds; 0 where it cannot be driven then."""

_REACH_M = 600.0, 9_800.0  # of calls from a depot
_NATURES = ("Chest pain", "Fall", "Breathing", "Traffic collision", "Stroke", "Other")
_PAIRED, _STOOD_DOWN, _CANCELLED = 0.45, 0.35, 0.04  # shares: of calls, late units, units alone

SECONDS_PER_FLOOR = 1.90
_WITHOUT_STAMPS, _WITHOUT_CPR = 0.35, 0.15  # shares of the rows
_STAMP = "%Y-%m-%d %H:%M:%S"
_FORMS = (_STAMP, "%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d %b %Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z")
_FLOORS = ("{}/F", "{}/F", "{}/F", "{}", "{}F", "{}A/F", "{}樓", "Floor {}", " {} /f ")
_LOW_FLOORS = {0: ("G/F", "Ground", "地下", ""), 1: ("M/F", "UG1"), -1: ("LG", "B1"), -2: ("LG2",)}

Row = tuple[Cells, Cells]
"""The cells of a row, and the truth: the verdict it deserves, part of the reason, its defect."""
Defects = Mapping[str, tuple[str, str, Callable[[Cells], Cells]]]


def choice(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


@dataclass(slots=True)
class Sent:
    """A unit on its way; seconds count from its own dispatch, ``there_s`` from the call's."""

    depot: int
    name: str
    origin: int
    on_road: bool
    logged: bool  # whether the log says where it started
    delay_s: int
    turnout_s: int
    drive_s: int
    recalled_s: int | None = None

    @property
    def there_s(self) -> int:
        return self.delay_s + self.turnout_s + self.drive_s


@dataclass(slots=True)
class Call:
    """A call and the units sent to it."""

    number: str
    at: datetime
    dispatched: datetime
    node: int
    place: Cells
    nature: str
    person: Cells
    units: list[Sent]


@dataclass(slots=True)
class Service:
    """Draws calls of a year, or of some ``days``; a share of the units starts ``on_road``."""

    network: RoadNetwork
    depots: Sequence[Depot]
    zone: ZoneInfo
    drive_s: DriveSeconds
    year: int
    days: Sequence[date] = ()
    on_road: float = 0.15
    positions: float = 0.67  # share of the starts on the road that the log has
    shared: float = 0.12  # sd of the logarithm of drives that the units of one call share
    free_flow_s: FloatArray = field(init=False)
    area: npt.NDArray[np.intp] = field(init=False)  # the nearest depot of every node
    in_reach: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        metres, self.free_flow_s = (
            np.array([self.network.distances(edges, depot) for depot in self.depots])
            for edges in (self.network.length_m, self.network.free_flow_times_s)
        )
        self.area = self.free_flow_s.argmin(axis=0)
        self.in_reach = (metres >= _REACH_M[0]) & (metres <= _REACH_M[1])

    def call(self, rng: np.random.Generator, number: int) -> Call:
        """One call; it is drawn again where a unit cannot drive there at that time."""
        while True:
            at = self._moment(rng)
            first, node = self._ends(rng)
            others = [depot for depot in range(len(self.depots)) if depot != first]
            shared = float(np.exp(self.shared * rng.normal()))
            units = [self._send(rng, first, node, at, shared, 0)]
            if others and rng.random() < _PAIRED:
                second = min(others, key=lambda depot: self.free_flow_s[depot, node])
                units.append(self._send(rng, second, node, at, shared, int(rng.integers(0, 4))))
                ahead, behind = sorted(units, key=lambda unit: unit.there_s)
                if behind.there_s > ahead.there_s + 45 and rng.random() < _STOOD_DOWN:
                    behind.recalled_s = ahead.there_s - behind.delay_s + int(rng.integers(10, 40))
            elif rng.random() < _CANCELLED:
                units[0].recalled_s = int(rng.uniform(0.2, 0.9) * units[0].there_s)
            if all(unit.drive_s > 0 for unit in units):
                break
        dispatched = at + timedelta(seconds=int(rng.integers(20, 90)))
        place, nature, person = self._beside(rng, node), choice(rng, _NATURES), _person(rng)
        return Call(f"{self.year}-{number:06d}", at, dispatched, node, place, nature, person, units)

    def _moment(self, rng: np.random.Generator) -> datetime:
        """A call time, more by day than by night."""
        while True:
            first = self.days[int(rng.integers(len(self.days)))] if self.days else None
            start = datetime.combine(first or date(self.year, 1, 1), time.min, self.zone)
            hours = 24 if first else 364 * 24 + 23
            at = start.astimezone(UTC) + timedelta(seconds=int(rng.integers(hours * 3600)))
            if rng.random() < (0.45 if at.astimezone(self.zone).hour < 7 else 1.0):
                return at

    def _ends(self, rng: np.random.Generator) -> tuple[int, int]:
        """A depot and a node: the quicker depot, or now and then another."""
        while True:
            node = int(rng.integers(self.network.num_nodes))
            depot = int(self.area[node])
            if rng.random() < 0.15:
                depot = int(rng.integers(len(self.depots)))
            if self.in_reach[depot, node]:
                return depot, node

    def _beside(self, rng: np.random.Generator, node: int) -> Cells:
        """A point beside the node that no other node is nearer to."""
        lon, lat = float(self.network.lon[node]), float(self.network.lat[node])
        x, y = lon + rng.normal(0, 1e-4), lat + rng.normal(0, 1e-4)
        nearest, far_m = self.network.snapper.nodes(np.array([x]), np.array([y]))
        lon, lat = (x, y) if nearest[0] == node and far_m[0] < 100 else (lon, lat)
        return {"lon": f"{lon:.6f}", "lat": f"{lat:.6f}"}

    def _send(
        self, rng: np.random.Generator, depot: int, node: int, at: datetime, shared: float,
        delay_s: int,
    ) -> Sent:  # fmt: skip
        on_road, origin = bool(rng.random() < self.on_road), self.depots[depot].node
        around = np.flatnonzero((self.area == depot) & (np.arange(self.area.size) != node))
        if on_road and around.size:
            origin = int(rng.choice(around))
        night = 1.0 if 6 <= at.astimezone(self.zone).hour < 22 else 1.4
        median_s = 15.0 if on_road else (50.0 + 15.0 * (depot % 3)) * night
        turnout_s = max(round(median_s * float(np.exp(0.35 * rng.normal()))), 1)
        drive_s = round(shared * self.drive_s(origin, node, at))
        name = f"A{depot + 1}{int(rng.integers(1, 4))}"
        logged = on_road and bool(rng.random() < self.positions)
        return Sent(depot, name, origin, on_road, logged, delay_s, turnout_s, drive_s)


def _person(rng: np.random.Generator) -> Cells:
    """A made-up person, there to be dropped; the age is in words, so that a leak can be seen."""
    drawn = map(rng.integers, (0, 0, 1, 0, 1, 100), (6, 5, 104, 4, 40, 999))
    first, last, age, *home = map(str, drawn)
    address = f"Nowhere Lane {'/'.join(home)}"
    return {"patient_name": f"Madeup {first}{last}", "age": f"{age} years", "address": address}


def seconds_in(world: ReplayedTraffic, origin: int, destination: int, at: datetime) -> float:
    """What a drive takes in recorded traffic, 0 where that is not recorded to its end."""
    try:
        sent = Assignment(0, world.quote(origin, destination, at).path)
        return drive(world, world.network, sent, destination, at, World.EXPERIENCED).total_s
    except (DriveError, InputError):
        return 0.0


def seconds_that_hour(world: ReplayedTraffic, origin: int, to: int, at: datetime) -> float:
    """The same at the time of day of ``at``, on one of the recorded days."""
    recording, moments = world.recording, []
    local = recording.calendar.local(at)
    for stretch in recording.stretches:
        start = recording.calendar.local(stretch.start)
        moment = datetime.combine(start, local.time(), start.tzinfo)
        if start <= moment < recording.end(stretch):
            moments.append(moment)
    return seconds_in(world, origin, to, moments[at.toordinal() % len(moments)]) if moments else 0.0


def _times(call: str, en_route: str = "", on_scene: str = "", cpr: str = "") -> Cells:
    return {"call_at": call, "en_route_at": en_route, "on_scene_at": on_scene, "cpr_at": cpr}


_NOON, _MINUTE = "2025-05-01 12:00:00", timedelta(minutes=1)
RECORD_DEFECTS: Defects = {
    "swapped places": ("quarantined", "swapped", lambda c: {"lon": c["lat"], "lat": c["lon"]}),
    "off the map": ("quarantined", "beyond the limit of", lambda c: {"lat": "21.5"}),
    "no place": ("quarantined", "lat is missing", lambda c: {"lon": "", "lat": "N/A"}),
    "no such depot": ("quarantined", "not in the depots", lambda c: {"depot": "=HYPERLINK(0)"}),
    "no drive": ("excluded", "zero or negative", lambda c: _times(_NOON, "12:01:30", "12:01:30")),
}  # fmt: skip
LOG_DEFECTS: Defects = {
    "no incident number": ("left out", "incident is missing", lambda c: {"Incident": ""}),
    "time in words": ("left out", "not a known form", lambda c: {"Dispatched": "at once"}),
    "place in words": ("left out", "not a finite number", lambda c: {"Latitude": "north"}),
    "left before it was sent": (
        "response", "turnout is negative",
        lambda c: {"En Route": str(datetime.fromisoformat(c["Dispatched"]) - _MINUTE)},
    ),
}  # fmt: skip


def records(
    service: Service, seed: int, count: int, districts: Sequence[str] = (), each: int = 5
) -> list[Row]:
    """Records for ``ideal records prepare``, ``each`` defect so many times."""
    rng, rows = np.random.default_rng(seed), list[Row]()
    while len(rows) < count - each:
        call = service.call(rng, len(rows))
        unit = call.units[0]
        floor = int(rng.choice([0, 0, 0, 1, -1, -2, *[2 + int(rng.gamma(1.6, 8.0))] * 18]))
        en_route = call.dispatched + timedelta(seconds=unit.turnout_s)
        on_scene = en_route + timedelta(seconds=unit.drive_s)
        bedside_s = max(rng.normal(60, 12), 1)  # from arrival to CPR on the ground floor
        cpr = on_scene + timedelta(seconds=round(bedside_s + SECONDS_PER_FLOOR * abs(floor)))
        if (cpr - call.at).total_seconds() >= 1700 or floor > 60:
            continue  # it would be left out by accident
        moments = [at.astimezone(service.zone) for at in (call.at, en_route, on_scene, cpr)]
        form, chance = choice(rng, _FORMS), rng.random()
        later = "%H:%M:%S" if rng.random() < 0.2 else form  # also past midnight
        times = [at.strftime(later if n else form) for n, at in enumerate(moments)]
        if chance < _WITHOUT_STAMPS:
            times[1] = times[2] = ""
        elif chance < _WITHOUT_STAMPS + _WITHOUT_CPR:
            times[3] = ""
        depot = service.depots[unit.depot].name
        cells = {
            "call_id": call.number, **call.person,
            "floor": choice(rng, _LOW_FLOORS.get(floor, _FLOORS)).format(floor), **call.place,
            "district": districts[call.node] if districts else "",
            "depot": choice(rng, (depot, depot, depot.upper(), f" {depot} ")), **_times(*times),
        }  # fmt: skip
        told = {"origin": str(unit.origin), "destination": str(call.node)}
        rows.append((cells, told | {"verdict": "trip", "travel_s": str(unit.drive_s)}))
    _spoil(rng, rows, RECORD_DEFECTS, each)
    again = {"verdict": "excluded", "reason": "the same call and unit", "defect": "repeated"}
    good = [cells for cells, truth in rows if truth["verdict"] == "trip"]
    return rows + [(cells, again) for cells in good[:each]]


def unit_log(service: Service, seed: int, count: int, each: int = 3) -> list[Row]:
    """The rows of a unit log for ``ideal records responses``, ``each`` defect so many times."""
    rng, rows, network = np.random.default_rng(seed), list[Row](), service.network
    for number in range(count):
        call = service.call(rng, number)
        arrived = sorted(unit.there_s for unit in call.units if unit.recalled_s is None)
        for unit in call.units:
            at, ended = call.dispatched + timedelta(seconds=unit.delay_s), unit.recalled_s
            there = None if ended is not None else unit.turnout_s + unit.drive_s
            left = None if ended is not None and ended <= unit.turnout_s else unit.turnout_s
            busy_s = unit.turnout_s + unit.drive_s + int(rng.integers(1200, 3000))
            pressed, noted = rng.random() >= 0.04, rng.random() < 0.5  # the buttons
            stamps: dict[str, float | None] = {
                "Received": (call.at - at).total_seconds(), "Dispatched": 0,
                "En Route": left if pressed else None, "On Scene": there,
                "Clear": busy_s if ended is None else ended + 30,
                "Cancelled": ended if noted else None,
            }  # fmt: skip
            lon, lat = network.lon[unit.origin], network.lat[unit.origin]
            cells = {
                "Incident": call.number, "Nature": call.nature, "Unit": unit.name,
                "Type": "Ambulance", "Station": service.depots[unit.depot].name,
                "Longitude": call.place["lon"], "Latitude": call.place["lat"],
                "Start Longitude": f"{lon:.6f}" if unit.logged else "",
                "Start Latitude": f"{lat:.6f}" if unit.logged else "",
                "Arrival Order": "" if there is None else str(arrived.index(unit.there_s) + 1),
                "Patient": call.person["patient_name"],
            }  # fmt: skip
            for name, after_s in stamps.items():
                local = (at + timedelta(seconds=after_s or 0)).astimezone(service.zone)
                cells[name] = "" if after_s is None else local.strftime(_STAMP)
            truth = {
                "verdict": "response", "origin": unit.origin, "destination": call.node,
                "on_road": unit.on_road, "turnout_s": unit.turnout_s, "drive_s": unit.drive_s,
                "recalled": there is None,
            }  # fmt: skip
            rows.append((cells, {key: str(value) for key, value in truth.items()}))
    sent = [cells["Dispatched"] for cells, _ in rows]
    _spoil(rng, rows, LOG_DEFECTS, each)
    order = sorted(range(len(rows)), key=lambda i: (sent[i], rows[i][0]["Unit"]))
    return [rows[i] for i in order]


def _spoil(rng: np.random.Generator, rows: list[Row], defects: Defects, each: int) -> None:
    kinds = [name for name in defects for _ in range(each)]
    for index, kind in zip(rng.permutation(len(rows)).tolist(), kinds, strict=False):
        (cells, truth), (verdict, reason, spoil) = rows[index], defects[kind]
        told = {"verdict": verdict, "reason": reason, "defect": kind}
        rows[index] = cells | spoil(cells), truth | told


def write_rows(file: Path, rows: list[Row]) -> None:
    """A table of the rows, and the truth of each among the examples."""
    write_csv(file, list(rows[0][0]), [list(cells.values()) for cells, _ in rows])
    keys = list(dict.fromkeys(key for _, truth in rows for key in truth))
    truth = [[n, *(row[1].get(key, "") for key in keys)] for n, row in enumerate(rows, 2)]
    write_csv(EXAMPLES / f"{file.stem}_truth.csv", ["row", *keys], truth)


def main() -> None:
    city = harbour_city()
    there, days = zone(city.time_zone), harbour_traffic(city).only(LEARNED)
    service = Service(
        city.network, city.depots, there, partial(seconds_that_hour, ReplayedTraffic(days)), YEAR
    )
    write_rows(EXAMPLES / "unit_log.csv", unit_log(service, 7, 1500))
    service.on_road = service.shared = 0.0
    write_rows(HARBOUR_RECORDS / "records.csv", records(service, 7, 1500, city.node_districts))
    start_s, weather = made_up_weather(YEAR, city.time_zone, WEATHER_SEED)
    lines = [",".join(["time", *WEATHER_VARIABLES])]
    for hour, values in enumerate(weather.tolist()):
        at = datetime.fromtimestamp(start_s + 3600 * hour, there)
        lines.append(",".join([at.isoformat(), *map(str, values)]))
    packed = gzip.compress("\n".join([*lines, ""]).encode(), mtime=0)
    write_file(HARBOUR_RECORDS / "weather.csv.gz", packed)


if __name__ == "__main__":
    main()
