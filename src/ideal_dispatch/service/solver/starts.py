"""Where ambulances of a call can start: at depots, or on the road where their units are."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import OffNetworkError
from ideal_dispatch.network import Depot
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.service.settings import UnitsTable
from ideal_dispatch.service.solver.depot_names import named
from ideal_dispatch.service.solver.messages import KnownUnit, Scene

if TYPE_CHECKING:
    from ideal_dispatch.network import RoadNetwork


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts of a call, with the free units of each.

    The depots come first, in their order. ``units`` are the units at each start, those that go
    first: empty where only their number is known. ``sent`` is the start of the ambulance that was
    sent, ``first`` its unit, where that is known. ``promised`` says in words where others are
    promised the last unit. ``elsewhere`` are free units on the road, by depot, that are too far
    away to be looked at.
    """

    depots: tuple[Depot, ...]
    free: tuple[int, ...]
    units: tuple[tuple[KnownUnit, ...], ...]
    sent: int | None = None
    promised: str = ""
    first: KnownUnit | None = None
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    def primary(self, start: int) -> KnownUnit | None:
        """The unit that goes first from a start, where it is known."""
        if self.sent is not None:
            return self.first
        return next(iter(self.units[start]), None)

    def second(self, start: int, primary: int) -> KnownUnit | None:
        """The unit that would go second from a start, where it is known."""
        leaving = self.sent is None and start == primary  # the primary is among the units there
        return next(iter(self.units[start][leaving:]), None)


class UnitStarts:
    """Turns the units of a fleet into starts on one network."""

    def __init__(
        self, network: "RoadNetwork", depots: Sequence[Depot], table: UnitsTable, limit_m: float
    ) -> None:
        self._network, self._depots, self._table = network, tuple(depots), table
        self._limit_m = limit_m
        self._stations = {depot.name: number for number, depot in enumerate(depots)}

    def read(
        self,
        fleet: Sequence[KnownUnit],
        scene: Scene,
        sent: str | None,
        depot: int | None,
        reasons: list[Reason],
        closed: Collection[int] = (),
    ) -> Starts:
        """The starts of a call at a scene, where these edges are closed.

        ``sent`` is the id of the unit that goes first; where it is not known, one of its ``depot``
        goes.
        """
        by_id = {one.id.casefold(): one for one in fleet}
        first = by_id.get(sent.casefold()) if sent is not None else None
        here: list[list[KnownUnit]] = [[] for _ in self._depots]
        road: list[KnownUnit] = []
        taken: dict[int, str] = {}
        stale, lost = [], []
        for one in sorted(fleet, key=lambda unit: unit.id):
            station = self._stations.get(one.station)
            if station is None:
                lost.append(one)
            elif one is first:
                stale += [one] if one.place is not None and not self.seen(one) else []
            elif not one.free:
                continue
            elif one.promised:
                taken[station] = one.promised
            elif self.seen(one):
                road.append(one)
            else:
                here[station].append(one)
                stale += [one] if one.place is not None else []
        if lost:
            words = (
                f"no depot is called {lost[0].station!r}: {named(one.id for one in lost)} left out"
            )
            reasons.append(("unknown_depot", words))
        if stale:
            minutes = max(one.age_s or 0.0 for one in stale) / 60
            reasons.append((
                "position_stale",
                f"positions of {named(one.id for one in stale)} are up to {minutes:.0f} min old; "
                "they count as at their stations",
            ))  # fmt: skip
        for each in here:  # those that are surely there go before those that were lost sight of
            each.sort(key=lambda one: (one.place is not None, one.id))
        if first is None and depot is not None:
            going = here[depot].pop(0) if here[depot] else None
            which = f"unit {sent} is not known" if sent is not None else "no unit was named"
            words = f"the primary: {which}; one of {self._depots[depot].name} is assumed"
            reasons.append(("units_assumed", words))
            first = None if going is None else replace(going, free=False)
        near = self._nearest(road, scene)
        elsewhere = Counter(one.station for one in road if one not in near)
        driving = {}
        for one in near:
            placed = self.placed(one, reasons, scene, closed)
            if placed is None:  # off the roads: its station is the best guess
                here[self._stations[one.station]].append(one)
            else:
                driving[placed] = one
        starts = [
            replace(depot, kind=each[0].kind or depot.kind) if each else depot
            for depot, each in zip(self._depots, here, strict=True)
        ]
        starts += driving
        units = [*map(tuple, here), *((one,) for one in driving.values())]
        free = [*map(len, units)]
        start = depot
        if first is not None:
            start = self._stations.get(first.station, depot)
            placed = self.placed(first, reasons, scene, closed) if self.seen(first) else None
            if placed is not None:
                starts.append(replace(placed, rolling=first.rolling))
                units.append((first,))
                free.append(0)
                start = len(starts) - 1
        promised = [
            f"the last unit of {self._depots[station].name} is promised to call {call_id}"
            for station, call_id in taken.items() if not free[station]
        ]  # fmt: skip
        said = "; ".join(promised)
        return Starts(tuple(starts), tuple(free), tuple(units), start, said, first, elsewhere)

    def everywhere(self, free: Sequence[KnownUnit]) -> list[Depot]:
        """Where each of these units starts, without a look at any call."""
        found = []
        for one in free:
            placed = self.placed(one, []) if self.seen(one) else None
            station = self._stations.get(one.station)
            if placed is None and station is not None:
                placed = self._depots[station]
            found += [placed] if placed is not None else []
        return list(dict.fromkeys(found))

    def seen(self, unit: KnownUnit) -> bool:
        """Whether it is known where a unit is on the road."""
        fresh = unit.age_s is not None and unit.age_s <= self._table.position_stale_s
        return unit.place is not None and fresh

    def _nearest(self, road: Sequence[KnownUnit], scene: Scene) -> list[KnownUnit]:
        """Those on the road that are considered: the nearest as the crow flies."""
        places = np.array([one.place[:2] for one in road if one.place is not None]).reshape(-1, 2)
        lon, lat = np.array([scene.lon]), np.array([scene.lat])
        away_m = great_circle_m(places[:, 0], places[:, 1], lon, lat)
        chosen = np.sort(np.argsort(away_m, kind="stable")[: self._table.candidates])
        return [road[number] for number in chosen.tolist()]

    def placed(
        self,
        unit: KnownUnit,
        reasons: list[Reason],
        scene: Scene | None = None,
        closed: Collection[int] = (),
    ) -> Depot | None:
        """Where the way of a unit on the road to a scene begins; None where it is off all roads.

        One that stands on a closed road leaves it by the nearer end: nobody knows if the other is
        open to it.
        """
        assert unit.place is not None
        lon, lat, heading = unit.place
        snapper, towards = self._network.snapper, None if scene is None else (scene.lon, scene.lat)
        try:
            snap = snapper.vehicle(lon, lat, heading, self._limit_m, towards)
            if snap.edge in closed:
                words = f"{unit.id} is on a closed road; it is taken to leave it"
                reasons.append(("closed_road", words))
                snap = snapper.vehicle(lon, lat, heading, self._limit_m)
        except OffNetworkError:
            words = f"{unit.id} is off all roads; it counts as at {unit.station}"
            reasons.append(("position_off_map", words))
            return None
        return Depot(
            unit.id, snap.node, True, unit.kind, unit.station, snap.edge, snap.ahead
        )  # fmt: skip


def counted(
    depots: Sequence[Depot], units: Sequence[int], sent: int | None, promised: str
) -> Starts:
    """Starts of a centre that tells counts: its depots."""
    return Starts(tuple(depots), tuple(units), ((),) * len(depots), sent, promised)


def start_fields(
    network: "RoadNetwork", start: Depot, unit: KnownUnit | None
) -> Mapping[str, object]:
    """Where an ambulance starts, for the API."""
    lon, lat = float(network.lon[start.node]), float(network.lat[start.node])
    if start.on_road and unit is not None and unit.place is not None:
        lon, lat, _ = unit.place
    return {
        "lon": round(lon, 6), "lat": round(lat, 6), "on_road": start.on_road,
        "age_s": None if not start.on_road or unit is None or unit.age_s is None
        else round(unit.age_s, 1),
    }  # fmt: skip
