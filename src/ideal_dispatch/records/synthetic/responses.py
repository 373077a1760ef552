"""The unit log of an agency that does not exist, with the truth beside it.

Nothing in here is about any person; the names are made up, and are in the file so that it can be
shown that they are dropped. Units turn out, start on the road now and then, race each other and
are recalled, and some rows are spoiled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ideal_dispatch.context import Weather
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.files import write_csv, write_file
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.pages import render
from ideal_dispatch.ranges import Checked, Count, Share, Whole
from ideal_dispatch.records.response_log import LogSettings
from ideal_dispatch.records.synthetic import cells
from ideal_dispatch.records.synthetic.calls import SyntheticCalls
from ideal_dispatch.records.synthetic.records import TravelTime, TypicalTravelTime

FILES = ("unit_log.csv", "truth.csv", "stations.csv", "log.toml", "city.network")
HEADER = (
    "Incident", "Nature", "Received", "Unit", "Type", "Station", "Dispatched", "En Route",
    "On Scene", "Clear", "Cancelled", "Longitude", "Latitude", "Start Longitude",
    "Start Latitude", "Arrival Order", "Patient",
)  # fmt: skip
_NATURES = ("Chest pain", "Fall", "Breathing", "Traffic collision", "Stroke", "Other")
_UNITS = 3  # of every station
_PAIRED, _ON_ROAD = 0.45, 0.15  # shares
_STOOD_DOWN, _CANCELLED = 0.35, 0.04  # of those that are late, and of units sent alone
_LATE_S = 45.0  # behind the first, from which on a second may be stood down
_SHARED = 0.12  # sd of the logarithm that the units of one call share
_NIGHT = (22, 23, 0, 1, 2, 3, 4, 5)

Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class LogParams(Checked):
    """How many calls of which year; ``defects_each`` rows of every kind of defect are planted.

    With ``days`` all calls come in on one of these. Of units that start on the road the log has
    the position for a share of ``positions``.
    """

    calls: Count = 2000
    year: Count = 2023
    defects_each: Whole = 3
    days: tuple[date, ...] = ()
    positions: Share = 0.67


@dataclass(frozen=True, slots=True)
class UnitTruth:
    """What really happened to a unit on a call.

    ``response_s`` is what it took, or would have taken had it not been recalled. ``on_road`` says
    that it did not start at its station, ``position_logged`` that the log tells where.
    """

    row: int
    verdict: str
    reason: str
    defect: str
    origin: int
    destination: int
    on_road: bool
    position_logged: bool
    turnout_s: float
    drive_s: float
    response_s: float
    recalled: bool


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticLog:
    """Rows of cells, and the truth of each."""

    rows: tuple[tuple[str, ...], ...]
    truth: tuple[UnitTruth, ...]


def synthesise_log(
    network: RoadNetwork,
    depots: Sequence[Depot],
    time_zone: str,
    *,
    seed: int,
    params: LogParams | None = None,
    travel_time: TravelTime | None = None,
) -> SyntheticLog:
    """A unit log on ``network``, the depots being stations; same seed, same bytes.

    Where a drive takes no time by ``travel_time``, another call is drawn.
    """
    params = params or LogParams()
    rng = np.random.default_rng(seed)
    calls = SyntheticCalls(network, depots, zone(time_zone), params.year, params.days)
    travel_time = travel_time or TypicalTravelTime(network, rng, time_zone)
    agency = _Agency(calls, travel_time, calls.free_flow_s.argmin(axis=0), params.positions)
    drafts = [draft for number in range(params.calls) for draft in agency.call(rng, number)]
    kinds = [name for name in DEFECTS for _ in range(params.defects_each)]
    for index, kind in zip(rng.permutation(len(drafts)), kinds, strict=False):
        verdict, reason = DEFECTS[kind](drafts[index].cells)
        drafts[index].mark(verdict, reason, kind)
    order = sorted(range(len(drafts)), key=lambda i: (drafts[i].at, drafts[i].cells["Unit"]))
    drafts = [drafts[i] for i in order]
    rows = tuple(tuple(draft.cells[name] for name in HEADER) for draft in drafts)
    return SyntheticLog(rows, tuple(replace(d.truth, row=row) for row, d in enumerate(drafts, 2)))


def write_log(
    folder: Path,
    log: SyntheticLog,
    network: RoadNetwork,
    depots: Sequence[Depot],
    *,
    name: str,
    time_zone: str,
    country: str,
) -> LogSettings:
    """Write :data:`FILES` into a folder, made where it is not there; gives the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "unit_log.csv", HEADER, log.rows)
    names = [column.name for column in fields(UnitTruth)]
    write_csv(folder / "truth.csv", names, [astuple(row) for row in log.truth])
    places = [(d.name, f"{network.lon[d.node]:.6f}", f"{network.lat[d.node]:.6f}") for d in depots]
    write_csv(folder / "stations.csv", ("name", "lon", "lat"), places)
    settings = render("unit_log.toml", name=name, time_zone=time_zone, country=country)
    write_file(folder / "log.toml", settings)
    network.save(folder / "city.network")
    return LogSettings.given(mapping=folder / "log.toml")


# --- calls and their units ------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """A row in the making."""

    at: datetime
    cells: Cells
    truth: UnitTruth

    def mark(self, verdict: str, reason: str, defect: str) -> None:
        self.truth = replace(self.truth, verdict=verdict, reason=reason, defect=defect)


@dataclass(slots=True)
class _Sent:
    """A unit on its way; seconds count from the dispatch."""

    depot: int
    unit: str
    origin: int
    on_road: bool
    logged: bool
    delay_s: int
    turnout_s: int
    drive_s: int
    recalled_s: int | None = None

    @property
    def response_s(self) -> int:
        return self.turnout_s + self.drive_s

    @property
    def there_s(self) -> int:
        """When it arrives, from the dispatch of the call."""
        return self.delay_s + self.response_s


@dataclass(slots=True)
class _Agency:
    """Draws calls and what units do; ``area`` is the nearest depot of every node."""

    calls: SyntheticCalls
    travel_time: TravelTime
    area: npt.NDArray[np.intp]
    positions: float

    def call(self, rng: np.random.Generator, number: int) -> list[_Draft]:
        """The rows of one call."""
        while not (drafts := self._call(rng, number)):
            pass
        return drafts

    def _call(self, rng: np.random.Generator, number: int) -> list[_Draft]:
        """The rows of one call; none where a unit cannot drive there at that time."""
        calls = self.calls
        at = calls.moment(rng)
        first, node = calls.ends(rng)
        others = [depot for depot in range(len(calls.depots)) if depot != first]
        shared = float(np.exp(_SHARED * rng.normal()))
        sent = [self._send(rng, first, node, at, shared, 0)]
        if others and rng.random() < _PAIRED:
            second = min(others, key=lambda depot: calls.free_flow_s[depot, node])
            sent.append(self._send(rng, second, node, at, shared, int(rng.integers(0, 4))))
            ahead, behind = sorted(sent, key=lambda unit: unit.there_s)
            if behind.there_s > ahead.there_s + _LATE_S and rng.random() < _STOOD_DOWN:
                behind.recalled_s = ahead.there_s - behind.delay_s + int(rng.integers(10, 40))
        elif rng.random() < _CANCELLED:
            sent[0].recalled_s = int(rng.uniform(0.2, 0.9) * sent[0].response_s)
        if any(unit.drive_s == 0 for unit in sent):
            return []
        dispatched = at + timedelta(seconds=int(rng.integers(20, 90)))
        lon, lat = calls.beside(rng, node)
        call = {
            "Incident": f"{calls.year}-{number:06d}",
            "Nature": _NATURES[int(rng.integers(len(_NATURES)))],
            "Received": self._stamp(at),
            "Longitude": f"{lon:.6f}",
            "Latitude": f"{lat:.6f}",
            "Patient": cells.personal(rng)["patient_name"],
        }
        arrived = sorted(u.there_s for u in sent if u.recalled_s is None)
        return [self._draft(rng, unit, node, dispatched, call, arrived) for unit in sent]

    def _send(
        self, rng: np.random.Generator, depot: int, node: int, at: datetime, shared: float,
        delay_s: int,
    ) -> _Sent:  # fmt: skip
        """A unit of the depot on its way to the node."""
        home = self.calls.depots[depot].node
        on_road = bool(rng.random() < _ON_ROAD)
        around = np.flatnonzero((self.area == depot) & (np.arange(self.area.size) != node))
        origin = int(rng.choice(around)) if on_road and around.size else home
        median_s = 15.0 if on_road else 50.0 + 15.0 * (depot % 3)
        if not on_road and at.astimezone(self.calls.zone).hour in _NIGHT:
            median_s *= 1.4
        turnout_s = max(round(median_s * float(np.exp(0.35 * rng.normal()))), 1)
        drive_s = round(shared * self.travel_time(origin, node, at, Weather()))
        unit = f"A{depot + 1}{int(rng.integers(1, _UNITS + 1))}"
        logged = on_road and bool(rng.random() < self.positions)
        return _Sent(depot, unit, origin, on_road, logged, delay_s, turnout_s, drive_s)

    def _draft(
        self, rng: np.random.Generator, unit: _Sent, node: int, dispatched: datetime, call: Cells,
        arrived: Sequence[int],
    ) -> _Draft:  # fmt: skip
        """The row of a unit, as the centre's log has it."""
        network, at = self.calls.network, dispatched + timedelta(seconds=unit.delay_s)

        def stamp(seconds: float | None) -> str:
            return "" if seconds is None else self._stamp(at + timedelta(seconds=seconds))

        ended = unit.recalled_s
        there = unit.response_s if ended is None else None
        busy_s = unit.response_s + int(rng.integers(1200, 3000))
        left = unit.turnout_s if ended is None or ended > unit.turnout_s else None
        told = rng.random() >= 0.04  # now and then nobody presses the button
        cancelled = ended if rng.random() < 0.5 else None
        place = (f"{network.lon[unit.origin]:.6f}", f"{network.lat[unit.origin]:.6f}")
        cells = {
            **call,
            "Unit": unit.unit,
            "Type": "Ambulance",
            "Station": self.calls.depots[unit.depot].name,
            "Dispatched": stamp(0),
            "En Route": stamp(left) if told else "",
            "On Scene": stamp(there),
            "Clear": stamp(busy_s if ended is None else ended + 30),
            "Cancelled": stamp(cancelled),
            "Start Longitude": place[0] if unit.logged else "",
            "Start Latitude": place[1] if unit.logged else "",
            "Arrival Order": "" if there is None else str(arrived.index(unit.there_s) + 1),
        }
        truth = UnitTruth(
            0, "response", "", "", unit.origin, node, unit.on_road, unit.logged,
            float(unit.turnout_s), float(unit.drive_s), float(unit.response_s),
            ended is not None,
        )  # fmt: skip
        return _Draft(at, cells, truth)

    def _stamp(self, at: datetime) -> str:
        return f"{at.astimezone(self.calls.zone):%Y-%m-%d %H:%M:%S}"


# --- how a row is spoiled -------------------------------------------------------------


def _left_out(reason: str, **changes: str) -> Callable[[Cells], tuple[str, str]]:
    def spoil(cells: Cells) -> tuple[str, str]:
        cells.update({name.replace("_", " "): value for name, value in changes.items()})
        return "left out", reason

    return spoil


def _early(cells: Cells) -> tuple[str, str]:
    sent = datetime.fromisoformat(cells["Dispatched"])
    cells["En Route"] = str(sent - timedelta(seconds=60))
    return "response", "turnout is negative"


DEFECTS: Mapping[str, Callable[[Cells], tuple[str, str]]] = {
    "no incident number": _left_out("incident is missing", Incident=""),
    "time that is none": _left_out("dispatched is not a known form", Dispatched="at once"),
    "place that is text": _left_out("lat is not a finite number", Latitude="N/A"),
    "left before it was sent": _early,
}
"""Kinds of defects: each spoils a row and says which verdict and reason it deserves."""
