"""A city at work: calls come in; units turn out, drive, arrive, transport and return.

It knows no service and no real time: the caller says what time it is, in seconds from the midnight
before it began. What lasts is a job: a generator that yields the moment at which it goes on.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from ideal_dispatch.fleet.calls import DAY_S, YEAR_DAYS, Calls, draw_calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.places import nearest_of
from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.fleet.units import lasting, on_duty
from ideal_dispatch.network.routing import distances_to
from ideal_dispatch.player.roads import Ride, Roads, Spot

FREE, COMING = ("at_station", "available"), ("dispatched", "en_route")
_SLOW = 1.4  # without lights, beside with them
LOOK_S = 5.0  # how often a shift, a way or a unit for a call is looked at

Job = Iterator[float]


@dataclass(eq=False)
class PlayedCall:
    """A call, row ``row`` of ``calls``, at a node; its unit ``first`` was there first.

    ``advice`` is the id of what was advised: the unit ``second``. ``asked`` is the id of the last
    question about its dispatch, ``sent`` are second units that went.
    """

    id: str
    at_s: float
    node: int
    calls: Calls
    row: int
    dice: np.random.Generator  # its dispatcher's
    primary: "Ambulance | None" = None
    first: "Ambulance | None" = None
    over: bool = False
    advice: str = ""
    second: str | None = None
    answered: bool = False
    asked: str = ""
    sent: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Ambulance:
    """One unit. Idle it is ``at_station``, or ``available`` at a post that is no depot."""

    id: str
    number: int
    depot: str
    idle: str
    home: int
    spot: Spot
    status: str = ""
    call: PlayedCall | None = None
    ride: Ride | None = None
    job: Job | None = None


class PlayedCity:
    """A city from ``begins_s`` on. Same seed, same calls; ``prefix`` begins their names.

    ``depots`` are places (lon, lat), ``news`` reports of units whose status changed; ``called``
    makes a job of a call that got its primary.
    """

    def __init__(
        self,
        depots: Mapping[str, tuple[float, float]],
        roads: Roads,
        fleet: FleetCity,
        seed: int,
        begins_s: float,
        prefix: str = "L",
        called: Callable[[PlayedCall], Job] = lambda call: iter(()),
    ) -> None:
        self.roads, self._fleet, self._called = roads, fleet, called
        self._numbers, network, travel = Simulator(fleet).world.numbers, roads.network, fleet.travel
        usable = connected_nodes(network)
        self._nodes = usable[nearest_of(network, usable, travel.lon, travel.lat)[0]]
        self._agenda: list[tuple[float, int, Ambulance | None, Job]] = []
        self._turns, self.now_s = count(), begins_s
        self.units, self.news = dict[str, Ambulance](), deque[dict[str, Any]]()
        into = dict(zip(network.head.tolist(), range(network.num_edges), strict=True))
        lon, lat = network.lon, network.lat
        for number, station in enumerate(fleet.units):
            home, depot = int(self._nodes[fleet.stations[station]]), fleet.station_names[station]
            idle = "at_station" if depot in depots else "available"
            if depot not in depots:
                away = {math.dist(depots[one], (lon[home], lat[home])): one for one in depots}
                depot = away[min(away)]
            id_ = f"A{station + 1}{number + 1:02d}"
            unit = self.units[id_] = Ambulance(id_, number, depot, idle, home, Spot(into[home]))
            self.begin(self._shifts(unit))
        self.begin(self._call_taker(seed, prefix))

    def advance(self, now_s: float) -> None:
        """Let everything happen that is due, in its order."""
        while self._agenda and self._agenda[0][0] <= now_s:
            at_s, _, unit, job = heapq.heappop(self._agenda)
            if unit is None or unit.job is job:
                self.now_s = max(self.now_s, at_s)
                self.begin(job, unit)
        self.now_s = max(self.now_s, now_s)

    def begin(self, job: Job, unit: Ambulance | None = None) -> None:
        """Run a job until it waits; one of a unit replaces the job that the unit had."""
        if unit is not None:
            unit.job = job
        if (at_s := next(job, None)) is not None:
            heapq.heappush(self._agenda, (at_s, next(self._turns), unit, job))

    def spot(self, unit: Ambulance) -> tuple[Spot, float]:
        """Where a unit is now, and how fast in km/h."""
        return (unit.spot, 0.0) if unit.ride is None else unit.ride.at(self.now_s)

    def report(self, unit: Ambulance) -> dict[str, Any]:
        """All that is known of a unit, as the API takes it, but for the moment ``at``."""
        spot, speed_kmh = self.spot(unit)
        return {
            "id": unit.id, "depot": unit.depot, "status": unit.status,
            "call_id": None if unit.call is None else unit.call.id, "at": self.now_s,
            **self.roads.place(spot), "speed_kmh": round(speed_kmh, 1),
        }  # fmt: skip

    def nearest(self, call: PlayedCall) -> Ambulance | None:
        """The free unit that is expected first, by the city's own reckoning."""
        network, free = self.roads.network, [u for u in self.units.values() if u.status in FREE]
        costs_s = distances_to(network, self.roads.costs_s, call.node)

        def expected_s(unit: Ambulance) -> float:
            return self._turnout_s(unit) + float(costs_s[network.head[self.spot(unit)[0].edge]])

        return min(free, key=expected_s, default=None)

    def send(self, unit: Ambulance, call: PlayedCall) -> None:
        """A free unit gets a call: the first as its primary, any other as its second."""
        self._stop(unit)
        call.primary = call.primary or unit
        self.begin(self._respond(unit, call), unit)

    def stand_down(self, unit: Ambulance) -> None:
        """A unit on its way to a call turns round."""
        self._stop(unit)
        self.begin(self._leave_call(unit), unit)

    def close_roads(self, edges: Iterable[int]) -> None:
        """From now on these edges alone are closed; units drive around them if they can."""
        self.roads.close(edges)
        for unit in self.units.values():
            if (ride := unit.ride) is not None:
                unit.ride = Ride(self.roads, self.spot(unit)[0], ride.target, self.now_s, ride.pace)

    def _call_taker(self, seed: int, prefix: str) -> Job:
        """Calls come in, year after year."""
        for year in count():
            calls = draw_calls(self._fleet, seed, year, days=YEAR_DAYS)
            at_s = calls.at_s + year * YEAR_DAYS * DAY_S
            for row in range(int(np.searchsorted(at_s, self.now_s)), len(calls)):
                yield at_s[row] + self._fleet.work.delay_s
                node = int(self._nodes[self._fleet.cells[calls.cell[row]]])
                id_, dice = f"{prefix}{year}-{row:05d}", np.random.default_rng([seed, year, row])
                call = PlayedCall(id_, float(at_s[row]), node, calls, row, dice)
                self.begin(self._get_unit(call))

    def _get_unit(self, call: PlayedCall) -> Job:
        """A call gets the nearest unit, as soon as one is free."""
        while (unit := self.nearest(call)) is None:
            yield self.now_s + LOOK_S
        self.send(unit, call)
        yield from self._called(call)

    def _respond(self, unit: Ambulance, call: PlayedCall) -> Job:
        """A unit's work on one call, from the order to its release."""
        calls, row, numbers, role = call.calls, call.row, self._numbers, call.primary is not unit
        usual_s = float(self.roads.way(unit.spot, call.node)[1].sum())
        means_s = self._turnout_s(unit), numbers.drive_scale * usual_s + numbers.beside_s
        turnout_s, drive_s = lasting(numbers, calls.luck, row, int(role), *means_s)
        self._become(unit, "dispatched", call)
        yield self.now_s + turnout_s
        yield from self._ride(unit, "en_route", call.node, drive_s / max(usual_s, 1.0))
        self._become(unit, "on_scene", call)
        if call.first is None:
            call.first = unit
            yield self.now_s + float(calls.scene_s[row])
            call.over = True
            for other in self.units.values():
                if other.call is call and other.status in COMING:
                    self.stand_down(other)
            if calls.transported[row]:
                hospital = int(self._nodes[self._fleet.hospital[calls.cell[row]]])
                yield from self._ride(unit, "transporting", hospital, _SLOW)
                self._become(unit, "at_hospital", call)
                yield self.now_s + float(calls.handover_s[row])
        else:
            yield self.now_s + float(calls.assist_s[row])
        yield from self._leave_call(unit)

    def _leave_call(self, unit: Ambulance) -> Job:
        """A unit is done with its call and drives home."""
        idle = self._idle(unit)
        self._become(unit, "available" if idle == unit.idle else idle, None)
        yield from self._ride(unit, unit.status, unit.home, _SLOW)
        self._become(unit, self._idle(unit), None)

    def _ride(self, unit: Ambulance, status: str, target: int, pace: float) -> Job:
        unit.ride = Ride(self.roads, unit.spot, target, self.now_s, pace)
        self._become(unit, status, unit.call)
        while self.now_s < unit.ride.ends_s:  # closed roads may change it
            yield min(unit.ride.ends_s, self.now_s + LOOK_S)
        self._stop(unit)

    def _shifts(self, unit: Ambulance) -> Job:
        """A unit goes on and off duty; at work it ends its call first."""
        while True:
            if unit.call is None and unit.ride is None:
                self._become(unit, self._idle(unit), None)
            yield self.now_s + LOOK_S

    def _idle(self, unit: Ambulance) -> str:
        """The status of a unit without work at its station."""
        duty = on_duty(self._fleet.shifts, unit.number, self.now_s)
        return unit.idle if duty else "out_of_service"

    def _turnout_s(self, unit: Ambulance) -> float:
        """The mean turnout of a unit where it is now."""
        median_s, hour = self._numbers.road_turnout_s, int(self.now_s / 3600.0) % 24
        if unit.status == "at_station":
            median_s = float(self._fleet.turnout_s[self._fleet.units[unit.number], hour])
        return median_s * self._numbers.turnout_lift

    def _stop(self, unit: Ambulance) -> None:
        unit.spot, unit.ride = self.spot(unit)[0], None

    def _become(self, unit: Ambulance, status: str, call: PlayedCall | None) -> None:
        changed, unit.status, unit.call = status != unit.status, status, call
        if changed:
            self.news.append(self.report(unit))
