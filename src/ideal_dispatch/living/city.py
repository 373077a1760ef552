"""A city at work: calls come in, units turn out, drive, arrive, transport and return.

Nothing here knows of a service or of real time. The caller says what time it is, and which second
unit to send or to stand down. All moments are seconds from the midnight of the city's first day.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ideal_dispatch.fleet.calls import DAY_S
from ideal_dispatch.fleet.units import on_duty
from ideal_dispatch.living.incidents import Incident, incoming, lasting
from ideal_dispatch.living.plan import Plan, Station
from ideal_dispatch.living.roads import Drive, Sight, Spot, seconds_to, standing
from ideal_dispatch.network.routing import distances_to

FREE = ("at_station", "available")
COMING = ("dispatched", "en_route")
_SLOW = 1.4  # without lights, beside with them


@dataclass(eq=False)
class Unit:
    """One ambulance. Its ``turn`` counts its plans: what was planned before is void.

    ``arrive`` is what it does at the end of its drive.
    """

    id: str
    number: int
    station: Station
    status: str
    spot: Spot
    incident: Incident | None = None
    drive: Drive | None = None
    arrive: "Callable[[Unit, float], None] | None" = None
    turn: int = 0

    @property
    def free(self) -> bool:
        return self.status in FREE


class City:
    """The city of a plan from ``begins_s`` on; same seed, same calls.

    ``tell`` is called at every change of a unit's status, ``sent`` when a call got its primary.
    """

    def __init__(
        self,
        plan: Plan,
        seed: int,
        begins_s: float,
        tell: Callable[[Unit, float], None] = lambda unit, at_s: None,
        sent: Callable[[Incident, float], None] = lambda incident, at_s: None,
    ) -> None:
        self._plan, self._tell, self._sent = plan, tell, sent
        self._network, self._fleet = plan.network, plan.fleet
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers, self.waiting = count(), list[Incident]()
        self.now_s, self.calls, self._open = begins_s, 0, True
        self.units = {unit.id: unit for unit in self._parked(begins_s)}
        self._calls = incoming(plan, seed, begins_s)
        self._next_call()
        for unit in self.units.values():
            self._next_shift(unit, begins_s)

    def advance(self, now_s: float) -> None:
        """Let everything happen that is due, in its order."""
        while self._agenda and self._agenda[0][0] <= now_s:
            at_s, _, happen = heapq.heappop(self._agenda)
            self.now_s = max(self.now_s, at_s)
            happen(at_s)
        self.now_s = max(self.now_s, now_s)

    def close(self) -> None:
        """Take no more calls."""
        self._open = False
        self.waiting.clear()

    @property
    def next_s(self) -> float:
        """When something happens next."""
        return self._agenda[0][0]

    def seen(self, unit: Unit) -> tuple[Spot, Sight]:
        """Where a unit is now."""
        if unit.drive is not None:
            return unit.drive.at(self.now_s)
        return unit.spot, standing(self._network, unit.spot)

    def nearest(self, incident: Incident) -> Unit | None:
        """The free unit that is expected first at a call, by the city's own reckoning.

        Those that closed roads cut off come last.
        """
        away_s = seconds_to(self._network, incident.node)
        open_s = distances_to(self._network, self._network.free_flow_times_s, incident.node)
        found = []
        for unit in (one for one in self.units.values() if one.free):
            spot, _ = self.seen(unit)
            expected_s = self._turnout_s(unit) + self._drive_s(spot, away_s)
            found.append((math.isinf(open_s[spot.node]), expected_s, unit.number, unit))
        return min(found, default=(False, 0.0, 0, None))[3]

    def send(self, unit: Unit, incident: Incident) -> None:
        """A free unit gets a call: the first as its primary, any other as its second."""
        role = 0 if incident.primary is None else 1
        if role:
            incident.second = unit
        else:
            incident.primary = unit
        incident.units.append(unit)
        leaving_s = self._turnout_s(unit)
        self._stop(unit)
        self._become(unit, "dispatched", self.now_s, incident)
        away_s = seconds_to(self._network, incident.node)
        turnout_s, drive_s = lasting(
            self._fleet.responses, incident.luck, role, leaving_s, self._drive_s(unit.spot, away_s)
        )
        self._plan_for(unit, self.now_s + turnout_s, partial(self._leave, unit, drive_s))

    def stand_down(self, unit: Unit) -> None:
        """A unit on its way to a call turns round."""
        assert unit.status in COMING
        self._release(unit, self.now_s)

    def keep_off(self, edges: Iterable[int]) -> None:
        """From now on these edges are closed and no others: units drive around them.

        Those on their way do so, too. Where only closed roads lead to a place, they drive there.
        """
        self._network = self._plan.network.closing(edges)
        for unit in self.units.values():
            if unit.drive is None:
                continue
            drive = unit.drive.around(self._network, self.now_s)
            if drive is not unit.drive:
                unit.turn += 1
                self._take_way(unit, drive)

    # --- calls ------------------------------------------------------------------------

    def _next_call(self) -> None:
        incident = next(self._calls)
        at_s = incident.at_s + self._fleet.work.delay_s
        self._plan_at(at_s, partial(self._take, incident))

    def _take(self, incident: Incident, at_s: float) -> None:
        """The call taker is done: a unit is sent, or the call waits for one."""
        if not self._open:
            return
        self._next_call()
        self.calls += 1
        unit = self.nearest(incident)
        if unit is None:
            self.waiting.append(incident)
        else:
            self._first(unit, incident, at_s)

    def _first(self, unit: Unit, incident: Incident, at_s: float) -> None:
        self.send(unit, incident)
        self._sent(incident, at_s)

    def _take_waiting(self, unit: Unit, at_s: float) -> bool:
        """Whether a unit that has become free got a call that waited: the most urgent."""
        if not (unit.free and self.waiting):
            return False
        urgent = min(self.waiting, key=lambda one: (one.priority, one.at_s))
        self.waiting.remove(urgent)
        self._first(unit, urgent, at_s)
        return True

    # --- what a unit does, one thing after another --------------------------------------

    def _leave(self, unit: Unit, drive_s: float, at_s: float) -> None:
        incident = unit.incident
        assert incident is not None
        self._go(unit, incident.node, drive_s, at_s, incident.rng, self._arrive)
        self._become(unit, "en_route", at_s, incident)

    def _arrive(self, unit: Unit, at_s: float) -> None:
        self._stop(unit)
        incident = unit.incident
        assert incident is not None
        self._become(unit, "on_scene", at_s, incident)
        if incident.first is None:
            incident.first = unit
            self._plan_for(unit, at_s + incident.scene_s, partial(self._treated, unit))
        else:
            self._plan_for(unit, at_s + incident.assist_s, partial(self._release, unit))

    def _treated(self, unit: Unit, at_s: float) -> None:
        """The patient leaves the scene or stays without help; nobody else has to come."""
        incident = unit.incident
        assert incident is not None
        incident.over = True
        for other in [one for one in incident.units if one.status in COMING]:
            self._release(other, at_s)
        if incident.hospital is None:
            self._release(unit, at_s)
            return
        self._go(unit, incident.hospital, None, at_s, incident.rng, self._hand_over)
        self._become(unit, "transporting", at_s, incident)

    def _hand_over(self, unit: Unit, at_s: float) -> None:
        self._stop(unit)
        incident = unit.incident
        assert incident is not None
        self._become(unit, "at_hospital", at_s, incident)
        self._plan_for(unit, at_s + incident.handover_s, partial(self._release, unit))

    def _release(self, unit: Unit, at_s: float) -> None:
        """A unit is done with its call: it takes the next one, or drives home."""
        incident = unit.incident
        assert incident is not None
        self._stop(unit)
        incident.units.remove(unit)
        home = unit.spot == Spot(unit.station.node)
        duty = self._on_duty(unit, at_s)
        self._become(unit, self._idle(unit, at_s) if home or not duty else "available", at_s, None)
        if not self._take_waiting(unit, at_s) and not home:
            self._go(unit, unit.station.node, None, at_s, incident.rng, self._come_home)

    def _come_home(self, unit: Unit, at_s: float) -> None:
        self._stop(unit)
        self._become(unit, self._idle(unit, at_s), at_s, None)

    def _shift(self, unit: Unit, at_s: float) -> None:
        """A shift begins or ends; a unit at work ends its call first."""
        self._next_shift(unit, at_s)
        if unit.incident is None and unit.drive is None:
            self._become(unit, self._idle(unit, at_s), at_s, None)
            self._take_waiting(unit, at_s)

    # --- small parts --------------------------------------------------------------------

    def _parked(self, now_s: float) -> Iterator[Unit]:
        seen = dict[int, int]()
        for number, place in enumerate(self._fleet.units.tolist()):
            seen[place] = seen.get(place, 0) + 1
            station = self._plan.stations[place]
            name = f"A{place + 1}{seen[place]:02d}"
            unit = Unit(name, number, station, "", Spot(station.node))
            unit.status = self._idle(unit, now_s)
            yield unit

    def _idle(self, unit: Unit, at_s: float) -> str:
        """The status of a unit without work at its station."""
        if not self._on_duty(unit, at_s):
            return "out_of_service"
        return "available" if unit.station.post else "at_station"

    def _on_duty(self, unit: Unit, at_s: float) -> bool:
        return bool(on_duty(self._fleet.shifts, unit.number, at_s))

    def _next_shift(self, unit: Unit, at_s: float) -> None:
        begin, end = self._fleet.shifts[unit.number]
        if end - begin >= 24.0:
            return
        midnight_s = math.floor(at_s / DAY_S) * DAY_S
        moments = [midnight_s + day * DAY_S + 3600.0 * h for day in (0, 1) for h in (begin, end)]
        self._plan_at(min(m for m in moments if m > at_s), partial(self._shift, unit))

    def _turnout_s(self, unit: Unit) -> float:
        """The mean turnout of a unit where it is now."""
        responses, hour = self._fleet.responses, int(self.now_s / 3600.0) % 24
        median_s = responses.road_turnout_s
        if unit.status == "at_station":
            median_s = float(responses.turnout.median_s(unit.station.name, hour, ""))
        return median_s * math.exp(0.5 * responses.turnout.spread**2)

    def _drive_s(self, spot: Spot, away_s: Any) -> float:
        """The mean drive with lights, where all nodes are ``away_s`` from its end."""
        ahead_s, responses = 0.0, self._fleet.responses
        if spot.edge >= 0:
            ahead_s = (1.0 - spot.share) * float(self._network.free_flow_times_s[spot.edge])
        return responses.drive_scale * (ahead_s + float(away_s[spot.node])) + responses.beside_s

    def _go(
        self,
        unit: Unit,
        target: int,
        lasts_s: float | None,
        at_s: float,
        rng: np.random.Generator,
        then: Callable[[Unit, float], None],
    ) -> None:
        """Drive to a node; without lights where nobody says how long that takes."""
        if lasts_s is None:
            away_s = seconds_to(self._network, target)
            spread = self._fleet.responses.drive_spread
            luck = math.exp(spread * rng.standard_normal() - 0.5 * spread**2)
            lasts_s = _SLOW * self._drive_s(unit.spot, away_s) * luck
        unit.arrive = then
        self._take_way(unit, Drive(self._network, unit.spot, target, at_s, lasts_s, rng))

    def _take_way(self, unit: Unit, drive: Drive) -> None:
        assert unit.arrive is not None
        unit.drive = drive
        self._plan_for(unit, drive.ends_s, partial(unit.arrive, unit))

    def _stop(self, unit: Unit) -> None:
        unit.spot, unit.drive = self.seen(unit)[0], None
        unit.turn += 1

    def _become(self, unit: Unit, status: str, at_s: float, incident: Incident | None) -> None:
        changed = status != unit.status
        unit.status, unit.incident = status, incident
        if changed:
            self._tell(unit, at_s)

    def _plan_at(self, at_s: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._agenda, (at_s, next(self._numbers), happen))

    def _plan_for(self, unit: Unit, at_s: float, happen: Callable[[float], None]) -> None:
        """What a unit does next, unless its plans change before."""
        turn = unit.turn

        def unless_changed(now_s: float) -> None:
            if unit.turn == turn:
                happen(now_s)

        self._plan_at(at_s, unless_changed)
