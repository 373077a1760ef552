"""A year of a whole fleet beside the same fleet written in SimPy.

Both get the same calls with the same luck, the same travel times and the same rules. Before
anything is timed, every call has the same units and the same times in both. SimPy's model
is written as its manual shows: a process for each mission of a unit, interrupts for units
that are stood down or sent again. It is given our compiled function for what a second unit
saves. Times are CPU seconds, which do not mind a busy machine.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import simpy
from rich.console import Console
from rich.table import Table

from benchmarks.networks import street_grid
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.fleet.calls import YEAR_DAYS, Calls, draw_calls
from ideal_dispatch.fleet.chances import pair, response
from ideal_dispatch.fleet.city import FleetCity, Priority
from ideal_dispatch.fleet.results import year_totals
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.fleet.travel import STEPS, Travel, cells_of, connected_nodes, junction_weights
from ideal_dispatch.fleet.units import EVENTS, Log

STATIONS, HOSPITALS, CELLS = 6, 2, 300
_OPTIONS = 3
_PEERED = (("never", "none"), ("always", "none"), ("always", "first arrival"))
_ALONE = (("survival", "first arrival"), ("survival", "worth"))


def street_fleet(units: int, calls_per_day: float) -> FleetCity:
    """A fleet on a grid of streets: stations and hospitals anywhere, calls where streets are."""
    network = street_grid(30_000)
    nodes = connected_nodes(network)
    cells, weights = cells_of(network, nodes, junction_weights(network, nodes), CELLS)
    houses = np.random.default_rng(1).choice(nodes, STATIONS + HOSPITALS, replace=False)
    times_s = network.free_flow_times_s
    travel = Travel.on_roads(network, [*houses, *cells], times_s, 1.3 * times_s)
    places = np.arange(travel.num_places, dtype=np.int32)
    hour = np.arange(24)
    return FleetCity(
        "streets", travel, tuple(f"S{k}" for k in range(STATIONS)), places[:STATIONS],
        np.arange(units, dtype=np.int32) % STATIONS, places[STATIONS : STATIONS + HOSPITALS],
        places[STATIONS + HOSPITALS :], weights, calls_per_day,
        (Priority("urgent", 0.5), Priority("routine", 0.5, lights=False)),
        by_hour=1.0 + 0.4 * np.sin((hour - 8) / 24 * 2.0 * np.pi),
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class Unit:
    """A unit and what it does."""

    number: int
    station: int
    home: int
    origin: int
    target: int
    free: bool = True
    idle: bool = True
    left_s: float = 0.0
    arrive_s: float = 0.0
    sent_s: float = 0.0
    call: int = -1
    mission: Any = None


class SimpyFleet:
    """The fleet in SimPy: never or always a second, stood down at the first arrival or not."""

    def __init__(self, city: FleetCity, calls: Calls, second: bool, recall: bool) -> None:
        self.city, self.calls, self.second, self.recall = city, calls, second, recall
        self.env = simpy.Environment()
        self.log = Log.empty(len(calls))
        homes = city.stations[city.units].tolist()
        self.units = [
            Unit(k, station, home, home, home)
            for k, (station, home) in enumerate(zip(city.units.tolist(), homes, strict=True))
        ]
        self.waiting: list[tuple[int, int]] = []
        self.cell, self.priority = calls.cell.tolist(), calls.priority.tolist()
        self.place, self.hospital = city.cells.tolist(), city.hospital.tolist()
        self.lights = [one.lights for one in city.priorities]
        self.turnout_s = city.turnout_s.tolist()
        self.lift = math.exp(0.5 * city.responses.turnout.spread**2)

    def run(self) -> Log:
        """All calls to their end."""
        self.env.process(self._arrivals())
        self.env.run()
        return self.log

    def _arrivals(self) -> Generator[Any, Any, None]:
        for call, at_s in enumerate((self.calls.at_s + self.city.work.delay_s).tolist()):
            yield self.env.timeout(at_s - self.env.now)
            self.waiting.append((self.priority[call], call))
            self._serve()

    def _serve(self) -> None:
        while self.waiting:
            waiting = min(self.waiting)
            units = self._chosen(waiting[1])
            if not units:
                return
            self.waiting.remove(waiting)
            for role, unit in enumerate(units):
                self._send(unit, waiting[1], role)

    def _where(self, unit: Unit) -> int:
        now_s = self.env.now
        if unit.idle or now_s <= unit.left_s:
            return unit.origin
        whole_s = unit.arrive_s - unit.left_s
        part = int((now_s - unit.left_s) / whole_s * (STEPS + 1)) if whole_s > 0.0 else STEPS + 1
        if part <= 0:
            return unit.origin
        if part > STEPS:
            return unit.target
        return int(self.city.travel.between[unit.origin, unit.target, part - 1])

    def _parts(self, unit: Unit, call: int) -> tuple[float, float]:
        """The median turnout and the mean drive of a unit that is sent now."""
        model, travel = self.city.responses, self.city.travel
        turnout_s = model.road_turnout_s
        if unit.idle:
            turnout_s = self.turnout_s[unit.station][int(self.env.now / 3600.0) % 24]
        times_s = travel.fast_s if self.lights[self.priority[call]] else travel.slow_s
        drive_s = times_s[self._where(unit), self.place[self.cell[call]]]
        return turnout_s, float(model.drive_scale * drive_s + model.beside_s)

    def _chosen(self, call: int) -> list[Unit]:
        """The primary, and the second that saves most of the three expected soonest."""
        means = []
        for unit in self.units:
            if unit.free:
                turnout_s, drive_s = self._parts(unit, call)
                means.append((max(turnout_s * self.lift + drive_s, 1.0), unit.number))
        means.sort()
        chosen = [self.units[number] for _, number in means[:1]]
        if self.second and len(means) > 1 and self.calls.entitled[call]:
            first = self._response(chosen[0], call)
            surprise = self.city.responses.surprise, self.city.responses.wide
            before_s, best = self.env.now - self.calls.at_s[call], -1.0
            for _, number in means[1 : 1 + _OPTIONS]:
                other = self._response(self.units[number], call)
                saved, _ = pair(first, other, before_s, self.city.risk, surprise)
                if saved > best:
                    best, chosen = saved, [chosen[0], self.units[number]]
        return chosen

    def _response(self, unit: Unit, call: int) -> Any:
        turnout_s, drive_s = self._parts(unit, call)
        model, leaving_s = self.city.responses, turnout_s * self.lift
        spreads = model.drive_spread, model.slack_s, model.shared
        square = leaving_s**2 * math.expm1(model.turnout.spread**2)
        return response(leaving_s, square, drive_s, spreads)

    def _send(self, unit: Unit, call: int, role: int) -> None:
        model, luck, now_s = self.city.responses, self.calls.luck[call], self.env.now
        turnout_s, drive_s = self._parts(unit, call)
        unit.origin = self._where(unit)
        square = math.log1p(model.drive_spread**2 + (model.slack_s / max(drive_s, 1.0)) ** 2)
        logarithm = math.sqrt(square) * luck[2 + 4 * role] - 0.5 * square
        logarithm += model.shared * luck[0] - 0.5 * model.shared**2
        unit.free, unit.call = False, call
        unit.target, unit.sent_s = self.place[self.cell[call]], now_s
        unit.left_s = now_s + turnout_s * math.exp(model.turnout.spread * luck[1 + 4 * role])
        unit.arrive_s = unit.left_s + drive_s * math.exp(logarithm)
        if not unit.idle and unit.mission is not self.env.active_process:
            unit.mission.interrupt()  # it is on its way home
        self.log.unit[call, role], self.log.sent_s[call, role] = unit.number, now_s
        started_home, unit.idle = unit.idle, False
        unit.mission = self.env.process(self._mission(unit, call, role, started_home))

    def _mission(
        self, unit: Unit, call: int, role: int, from_station: bool
    ) -> Generator[Any, Any, None]:
        env, calls, log, travel = self.env, self.calls, self.log, self.city.travel
        try:
            yield env.timeout(unit.arrive_s - env.now)
        except simpy.Interrupt:
            log.stood_s[call, role], log.held_s[call] = env.now, env.now - unit.sent_s
            if from_station and env.now <= unit.left_s:
                unit.free = unit.idle = True
                self._serve()
                return
            yield from self._home(unit, self._where(unit))
            return
        log.arrive_s[call, role] = env.now
        if log.first_s[call] < math.inf:
            yield env.timeout(calls.assist_s[call])
            log.held_s[call] = env.now - unit.sent_s
        else:
            log.first_s[call] = env.now
            other = self.units[log.unit[call, 1 - role]] if log.unit[call, 1 - role] >= 0 else None
            if self.recall and other is not None:
                other.mission.interrupt()
            yield env.timeout(calls.scene_s[call])
            if calls.transported[call]:
                hospital = self.hospital[self.cell[call]]
                drive_s = travel.slow_s[unit.target, hospital]
                unit.target = hospital
                yield env.timeout(drive_s + calls.handover_s[call])
        yield from self._home(unit, unit.target)

    def _home(self, unit: Unit, place: int) -> Generator[Any, Any, None]:
        env, mission = self.env, unit.mission
        unit.free, unit.origin, unit.target = True, place, unit.home
        drive_s = self.city.travel.slow_s[place, unit.home]
        unit.left_s, unit.arrive_s = env.now, env.now + drive_s
        self._serve()
        if unit.mission is not mission:
            return  # it has been sent again at once
        try:
            yield env.timeout(drive_s)
        except simpy.Interrupt:
            return
        unit.idle, unit.origin = True, unit.home


def same_year(ours: Log, peers: Log) -> None:
    """Every call has the same units and the same times, to a millionth of a second."""
    np.testing.assert_array_equal(ours.unit, peers.unit)
    for name in ("sent_s", "arrive_s", "stood_s", "first_s", "held_s"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peers, name), rtol=0, atol=1e-6)


def _cpu_s(call: Callable[[], Any], times: int) -> float:
    seconds = []
    for _ in range(times):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return median(seconds)


def run(console: Console, days: int = YEAR_DAYS, rounds: int = 7) -> None:
    """Print one table."""
    table = Table(title="A year of a fleet: events a second of one core, and CPU seconds a year")
    for column in ("units", "busy", "second, recall", "events", "ours, events/s",
                   "SimPy, events/s", "ratio", "ours, CPU s a year"):  # fmt: skip
        table.add_column(column, justify="left" if column == "second, recall" else "right")
    for units, calls_per_day in ((16, 190.0), (30, 350.0)):
        city = street_fleet(units, calls_per_day)
        simulator, calls = Simulator(city), draw_calls(city, seed=0, days=days)
        for kind, recall in (*_PEERED, *_ALONE):
            _add_row(table, simulator, calls, (kind, recall), days, rounds)
    console.print(table)


def _add_row(
    table: Table, simulator: Simulator, calls: Calls, what: Any, days: int, rounds: int
) -> None:
    kind, recall = what
    chosen: Recall = recall
    rule = SecondRule(kind).compiled(chosen)
    state, log = simulator.run(calls, rule)
    ours_s = _cpu_s(lambda: simulator.run(calls, rule), rounds)
    events = int(state.count[EVENTS])
    theirs = ratio = "–"
    if what in _PEERED:
        peer = SimpyFleet(simulator.city, calls, kind == "always", recall != "none")
        seconds = _cpu_s(lambda: same_year(log, peer.run()), 1)
        theirs, ratio = f"{events / seconds:,.0f}", f"{seconds / ours_s:.0f}×"
    busy = year_totals(simulator, calls, state, log, float(days))[0]["busy"]
    table.add_row(
        str(simulator.city.num_units), f"{busy:.2f}", f"{kind}, {recall}", f"{events:,}",
        f"{events / ours_s:,.0f}", theirs, ratio, f"{ours_s * YEAR_DAYS / days:.3f}",
    )  # fmt: skip
