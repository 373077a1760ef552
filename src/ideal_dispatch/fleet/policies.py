"""Dispatch policies in a fleet: what decides about one call decides about all of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.dispatch.decision import Policy, decided
from ideal_dispatch.dispatch.policy_tables import FittedParts, policies_from
from ideal_dispatch.dispatch.price import UnitPrices
from ideal_dispatch.dispatch.priced_threshold import PricedThreshold
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.dispatch.situation import Incident, Readiness, Situation, observe
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.desk import FIRST_YEAR, Desk
from ideal_dispatch.fleet.simulation import FleetView, Simulator
from ideal_dispatch.fleet.travel import Roads
from ideal_dispatch.network import Depot, Path
from ideal_dispatch.traffic.source import RouteQuote


def roads_of(city: FleetCity) -> Roads:
    """The roads of a city, or one line that says that it has none."""
    if city.travel.roads is None:
        raise InputError(
            f"fleet {city.name}: its drives are a matrix; a dispatch policy needs a road network"
        )
    return city.travel.roads


@dataclass(frozen=True, slots=True, eq=False)
class FleetRouter:
    """Quotes by the drives that the fleet expects; a path is looked for once."""

    city: FleetCity
    paths: dict[tuple[int, int], Path] = field(default_factory=dict)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path with lights and sirens, and the mean of its drive."""
        roads, model = roads_of(self.city), self.city.responses
        way = origin, destination
        if way not in self.paths:
            self.paths[way] = roads.network.shortest_path(roads.edge_s, origin, destination)
        path = self.paths[way]
        first_s = model.drive_scale * float(roads.edge_s[path.edges[0]]) if len(path) else 0.0
        mean_s = model.drive_scale * path.time_s(roads.edge_s) + model.beside_s
        return RouteQuote(path, mean_s, first_s, math.nan, math.nan, at, math.nan)

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds of every edge; what a unit takes beside the road is not in them."""
        return np.asarray(self.city.responses.drive_scale * roads_of(self.city).edge_s)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRule:
    """A dispatch policy as the rule of a fleet.

    It is asked about the calls that are entitled to a second unit, with all free units:
    those at their stations, and each unit on the road where it is. A unit on its way to a less
    urgent call is one of them where the fleet would redirect it: where it is expected soonest.
    To other calls goes the unit expected soonest.
    ``midnight`` is the moment, with its zone, at which the simulation begins, ``calendar``
    knows what day that is. Units drive as the fleet does, whatever path the policy tells them.
    """

    city: FleetCity
    policy: Policy
    midnight: datetime
    calendar: Calendar
    seed: int = 0
    _router: FleetRouter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_zone(self.midnight)
        roads_of(self.city)
        object.__setattr__(self, "_router", FleetRouter(self.city))

    @property
    def name(self) -> str:
        """The policy's."""
        return self.policy.name

    def choose(self, view: FleetView) -> tuple[int, int]:
        """The units of the stations that the policy names."""
        if not view.calls.entitled[view.call] or not view.free.any():
            return view.primary, -1
        situation, units = self.situation(view)
        luck = int(2.0**53 * view.calls.chance[view.call])  # the call's own: not every year's
        rng = np.random.default_rng([self.seed, view.call, luck])
        made = decided(self.policy, situation, rng)
        first = units[made.primary.station].pop(0)
        if made.second is None or not made.send_second:
            return first, -1
        second = units[made.second.station].pop(0)
        # both go; a unit that is redirected goes as the first
        return (first, second) if view.free[second] else (second, first)

    def situation(self, view: FleetView) -> tuple[Situation, list[list[int]]]:
        """The call as a dispatcher knows it, and the units of each of its stations."""
        city, roads = self.city, roads_of(self.city)
        depots = [
            Depot(name, int(roads.nodes[place]))
            for name, place in zip(city.station_names, city.stations, strict=True)
        ]
        units: list[list[int]] = [[] for _ in depots]
        can_go = view.free | (np.arange(city.num_units) == view.primary)
        for unit in np.flatnonzero(can_go).tolist():
            if view.at_home[unit]:
                units[city.units[unit]].append(unit)
            else:
                depots.append(Depot(f"unit {unit}", int(roads.nodes[view.place[unit]]), True))
                units.append([unit])
        at = self.midnight + timedelta(seconds=view.now_s)
        node = int(roads.nodes[city.cells[view.calls.cell[view.call]]])
        made = observe(
            self._router, roads.network, Incident(str(view.call), node, at),
            self.calendar.context(at), Readiness(depots, [len(free) for free in units]),
            alternatives=False,
        )  # fmt: skip
        return made, units


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """A dispatch policy of an experiment's table, which is made for every city and recall."""

    name: str
    table: Mapping[str, Any]

    def of(self, simulator: Simulator, desk: Desk, recall: Recall) -> PolicyRule:
        """The rule of a city: with its model, its response times, and the price of its units."""
        city = simulator.city
        parts = FittedParts(desk.model, city.responses, priced=_priced(simulator, recall))
        (policy,) = policies_from({self.name: self.table}, parts)
        midnight = datetime(FIRST_YEAR, 1, 1, tzinfo=zone(desk.calendar.time_zone))
        return PolicyRule(city, policy, midnight, desk.calendar)


def _priced(simulator: Simulator, recall: Recall) -> PricedThreshold:
    """The threshold by the prices of the simulation."""
    city = simulator.city
    before_s = city.curve.before_drive_s + city.work.delay_s
    count = np.bincount(city.units, minlength=len(city.stations)).tolist()
    return PricedThreshold(
        UnitPrices(simulator.tables), dict(zip(city.station_names, count, strict=True)), recall,
        replace(city.curve, before_drive_s=before_s), city.arrests / city.entitled,
        city.work.assist.mean_s,
    )  # fmt: skip
