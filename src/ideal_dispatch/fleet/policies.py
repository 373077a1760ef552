"""Who gets a second unit in a fleet: rules of the event loop, and the dispatch policies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Calendar
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.dispatch.decision import Policy, decided
from ideal_dispatch.dispatch.policy_tables import FittedParts, check_policies, policies_from
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.dispatch.situation import Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.simulation import KINDS, FleetView, SecondRule, Simulator
from ideal_dispatch.fleet.travel import Roads
from ideal_dispatch.network import Depot, Path
from ideal_dispatch.toml_tables import refuse_unknown, require
from ideal_dispatch.traffic.source import RouteQuote

FIRST_YEAR = 2026
"""Every simulated year begins with the first of January of this one."""


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """A dispatch policy as a table of an experiment has it, made for every city and recall."""

    name: str
    table: Mapping[str, Any]

    def of(self, simulator: Simulator, recall: Recall) -> "PolicyRule":
        """The rule of a city: with its model, its response times, and the price of its units."""
        city = simulator.city
        before_s = city.curve.before_drive_s + city.work.delay_s
        count = np.bincount(city.units, minlength=len(city.stations)).tolist()
        priced = PricedThreshold(
            simulator.tables, dict(zip(city.station_names, count, strict=True)), recall,
            replace(city.curve, before_drive_s=before_s), city.arrests / city.entitled,
            city.work.assist.mean_s,
        )  # fmt: skip
        parts = FittedParts(city.model, city.responses, priced=priced)
        (policy,) = policies_from({self.name: self.table}, parts)
        return PolicyRule(city, policy)


Rule = SecondRule | PolicyTable | Policy


def rule_of(name: str, table: Any) -> SecondRule | PolicyTable:
    """The rule of a table ``[policies.NAME]``.

    A ``kind`` of :data:`~ideal_dispatch.fleet.simulation.KINDS` is simulated by the event loop; any
    other is a dispatch policy, with the keys that it has in a replay.
    """
    where = f"policies.{name}"
    require(isinstance(table, Mapping), f"[{where}] must be a table of keys, not {table!r}")
    if table.get("kind") not in KINDS:
        check_policies({name: table}, fleet=True)
        return PolicyTable(name, table)
    refuse_unknown(table, ("kind", "threshold"), where)
    threshold = table.get("threshold")
    if table["kind"] == "survival" and threshold not in (None, "priced"):
        cost = isinstance(threshold, Mapping) and set(threshold) == {"cost"}
        require(cost, f'{where}.threshold {threshold!r}: "priced" or {{cost = 0.001}} is needed')
        threshold = threshold["cost"]
    try:
        return SecondRule(table["kind"], threshold)
    except InputError as error:
        raise InputError(f"[{where}] {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRule:
    """A dispatch policy that chooses the units of a fleet.

    It is asked about the calls that are entitled to a second unit, with all free units:
    those at their stations, and each unit on the road where it is. A unit on its way to a less
    urgent call is one of them where the fleet would redirect it: where it is expected soonest.
    To other calls goes the unit expected soonest. Units drive as the fleet does, whatever path
    the policy names. ``midnight`` is the moment at which the simulation begins.
    """

    city: FleetCity
    policy: Policy
    seed: int = 0
    midnight: datetime = field(init=False)
    _calendar: Calendar = field(init=False, repr=False)
    _router: "FleetRouter" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        city, roads = self.city, self.city.travel.roads
        if city.calendar is None or roads is None:
            raise InputError(
                f"fleet {city.name}: a dispatch policy needs the time_zone, the country and the "
                "road network of the city"
            )
        calendar = city.calendar.looked_up(FIRST_YEAR, FIRST_YEAR + 1)
        midnight = datetime(FIRST_YEAR, 1, 1, tzinfo=zone(calendar.time_zone))
        for name, value in (("midnight", midnight), ("_calendar", calendar),
                            ("_router", FleetRouter(city, roads))):  # fmt: skip
            object.__setattr__(self, name, value)

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
        city, roads = self.city, self._router.roads
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
            self._calendar.context(at), Readiness(depots, [len(free) for free in units]),
            alternatives=False,
        )  # fmt: skip
        return made, units


@dataclass(frozen=True, slots=True, eq=False)
class FleetRouter:
    """Quotes by the drives that the fleet expects; a path is searched once."""

    city: FleetCity
    roads: Roads
    paths: dict[tuple[int, int], Path] = field(default_factory=dict)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest path with lights and sirens, and the mean of its drive."""
        roads, model = self.roads, self.city.responses
        way = origin, destination
        if way not in self.paths:
            self.paths[way] = roads.network.shortest_path(roads.edge_s, origin, destination)
        path = self.paths[way]
        first_s = model.drive_scale * float(roads.edge_s[path.edges[0]]) if len(path) else 0.0
        mean_s = model.drive_scale * path.time_s(roads.edge_s) + model.beside_s
        return RouteQuote(path, mean_s, first_s, math.nan, math.nan, at, math.nan)

    def router_times(self, at: datetime) -> FloatArray:
        """Seconds of every edge; what a unit takes beside the road is not in them."""
        return np.asarray(self.city.responses.drive_scale * self.roads.edge_s)
