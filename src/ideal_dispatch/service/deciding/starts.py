"""Where the ambulances of a call start: at their depots, or on the road where they were seen."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import IdealError, InputError, OffNetworkError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.service.clock import micros
from ideal_dispatch.service.deciding.depot_names import DepotNames, listed
from ideal_dispatch.service.deciding.roads import closed_by
from ideal_dispatch.service.messages import Call, IncidentLocation, Picture
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import THERE, Unit

_DRIVES_KMH = 5.0  # a receiver that stands reports any course
_AT_DEPOT_M = 200.0  # a unit that was sent and is no farther from its depot has not left it


class NoAdviceError(IdealError):
    """There is nothing to advise; the code says why."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts of a call with the free units of each, those that go first first.

    The depots come first, in their order, then units on the road. ``sent`` is the start of the
    primary that the CAD named and ``first`` its unit, where one is known or ``assumed``; it was
    sent ``sent_ago_s`` ago, and if it is rolling, it left its start ``driven_s`` ago.
    ``elsewhere`` counts free units by depot that are too far away to be considered. ``promised``
    says where the last unit of a depot is promised to another call.
    """

    depots: tuple[Depot, ...]
    units: tuple[tuple[Unit, ...], ...]
    sent: int | None = None
    first: Unit | None = None
    assumed: bool = False
    sent_ago_s: float = 0.0
    driven_s: float = 0.0
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    promised: str = ""


class UnitStarts:
    """Turns units into starts on one network; may be asked from many threads."""

    def __init__(
        self, network: RoadNetwork, depots: Sequence[Depot], settings: ServiceSettings
    ) -> None:
        self._network, self._depots, self._table = network, tuple(depots), settings.units
        self._limit_m = settings.city.snap_limit_m
        self._numbers = {depot.name: number for number, depot in enumerate(depots)}
        self._names = DepotNames(self._numbers, settings.city.aliases)

    def read(self, call: Call, picture: Picture, reasons: list[Reason]) -> Starts:
        """The starts of a call; ``reasons`` get what is less certain than it looks."""
        now, closed = picture.now, closed_by(picture.closures)
        first, sent = self._named(call, picture, reasons)
        here: list[list[Unit]] = [[] for _ in self._depots]
        road, stale, unknown, held = list[Unit](), list[Unit](), list[Unit](), dict[int, str]()
        for unit in sorted(picture.units, key=lambda one: _order(one, call.call_id)):
            number = self._numbers.get(unit.depot)
            if unit is first or not unit.free:
                continue
            if number is None:
                unknown.append(unit)
            elif unit.held_by_other(call.call_id, now):
                held[number] = unit.promised_to or ""
            elif self.seen(unit, now):
                road.append(unit)
            else:
                here[number].append(unit)
                stale += [unit] if unit.status == "available" and unit.seen_at is not None else []
        assumed = first is None and sent is not None
        if assumed and sent is not None:
            first = self._assumed(call, here[sent], reasons)

        lon, lat = np.array([(one.lon, one.lat) for one in road], float).reshape(-1, 2).T
        there = np.array([call.location.lon]), np.array([call.location.lat])
        away = np.argsort(great_circle_m(lon, lat, *there), kind="stable").tolist()
        near = sorted(away[: self._table.candidates])
        elsewhere = Counter(road[number].depot for number in away[self._table.candidates :])
        driving: list[tuple[Depot, Unit]] = []
        for unit in (road[number] for number in near):
            start = self._snapped(unit, call.location, closed, reasons)
            if start is None:
                here[self._numbers[unit.depot]].append(unit)
            else:
                driving.append((start, unit))
        kinds = [each[0].kind if each else "" for each in here]
        starts = [replace(at, kind=k or at.kind) for at, k in zip(self._depots, kinds, strict=True)]
        starts += [start for start, _ in driving]
        units = [*map(tuple, here), *((unit,) for _, unit in driving)]

        since, driven_s = micros(call.received_at), 0.0
        if first is not None:
            on_call = first.call_id in (None, call.call_id)
            rolling = first.status == "en_route" and on_call
            if first.status == "dispatched" and on_call:
                since = first.since
            start, driven_s = self.place(first, now, rolling, call.location, closed, reasons)
            if start.on_road or rolling:
                sent = len(starts)
                starts.append(start)
                units.append(())
            else:
                sent = self._numbers[first.depot]
                starts[sent] = replace(starts[sent], kind=first.kind or starts[sent].kind)
            waits = first.status in ("at_station", "dispatched") or self.seen(first, now)
            stale += [] if start.on_road or waits or first.seen_at is None else [first]
        if unknown:
            ids = listed(unit.id for unit in unknown)
            words = f"no depot is called {unknown[0].depot!r}; left out: {ids}"
            reasons.append(("unknown_depot", words))
        if stale:
            minutes = max(age_s(unit, now) or 0.0 for unit in stale) / 60
            words = f"positions up to {minutes:.0f} min old: {listed(unit.id for unit in stale)}"
            reasons.append(("position_stale", f"{words}; each is taken to be at its depot"))
        promised = "; ".join(
            f"the last unit of {self._depots[number].name} is promised to call {call_id}"
            for number, call_id in held.items() if not here[number]
        )  # fmt: skip
        sent_ago_s = 0.0 if sent is None else max(now - since, 0) / 1e6
        return Starts(
            tuple(starts), tuple(units), sent, first, assumed, sent_ago_s, driven_s, elsewhere,
            promised,
        )  # fmt: skip

    def _named(
        self, call: Call, picture: Picture, reasons: list[Reason]
    ) -> tuple[Unit | None, int | None]:
        """The unit that the CAD sends, or the number of its depot where that is all that is known.

        What speaks against the unit is said: it goes nevertheless.
        """
        named, call_id = call.primary, call.call_id
        if named is None:
            return None, None
        first, number = find_unit(picture.units, named.unit), None
        if first is None:
            if named.depot is None:
                words = f"unit {named.unit} is not known; report it with PUT /v1/units"
                raise NoAdviceError("unknown_unit", f"{words}, or name its depot")
            try:
                depot = self._names.find(named.depot)
            except InputError as error:
                raise NoAdviceError("unknown_depot", str(error)) from None
            number = self._numbers[depot]
            going = (one for one in picture.units if one.depot == depot and not one.free)
            first = next((one for one in going if one.call_id == call_id), None)
        if first is None:
            return None, number
        doing = first.status.replace("_", " ")
        if first.status in THERE and first.call_id == call_id:
            raise NoAdviceError("primary_arrived", f"{first.id} has arrived at this call")
        if first.held_by_other(call_id, picture.now):
            words = f"{first.id} goes to this call: call {first.promised_to} loses it"
            reasons.append(("unit_promised", words))
        if first.call_id not in (None, call_id):
            words = f"{first.id} is reported {doing} for call {first.call_id}"
            reasons.append(("other_call", f"{words}; it is not taken to be on its way to this one"))
        elif first.status in (*THERE, "out_of_service"):
            words = f"{first.id} is reported {doing}; it is taken to leave for this call now"
            reasons.append(("primary_busy", words))
        return first, None

    def _assumed(self, call: Call, here: list[Unit], reasons: list[Reason]) -> Unit | None:
        """The free unit of a depot that is taken to go: the first, or that of an earlier advice.

        A count that is newer than the call does not include the primary any more.
        """
        assert call.primary is not None
        named, received_at = call.primary, micros(call.received_at)
        old = [one for one in here if not one.anonymous or one.told_at < received_at]
        sent = [one for one in old if (one.promised_to, one.promise) == (call.call_id, "sent")]
        unit = next(iter(sent or old), None)
        if unit is not None:
            here.remove(unit)
        if unit is not None or named.unit is not None or not here:
            why = f"unit {named.unit} is not known" if named.unit else "the call names no unit"
            who = f"one of {named.depot}" if unit is None else unit.id
            reasons.append(("units_assumed", f"primary: {why}; {who} is taken to go"))
        return unit

    def seen(self, unit: Unit, now: int) -> bool:
        """Whether a unit was seen on the road lately.

        One at its station is there whatever its receiver says, and so is one that was sent and
        was seen there.
        """
        age = age_s(unit, now)
        if unit.status == "at_station" or age is None or age > self._table.position_stale_s:
            return False
        return unit.status != "dispatched" or not self._at_depot(unit)

    def place(
        self,
        unit: Unit,
        now: int,
        rolling: bool,
        location: IncidentLocation,
        closed: Collection[int],
        reasons: list[Reason],
    ) -> tuple[Depot, float]:
        """Where a unit's way to a place begins, and for how long it has been driving from there.

        That is where it was seen lately, else its depot. One that is ``rolling`` has been driving
        since it left or was seen, whichever is later; how old the position of another one is says
        nothing of its drive.
        """
        began, start = unit.since, None
        left = rolling and unit.seen_at is not None and unit.seen_at >= unit.since
        if left or self.seen(unit, now):
            start = self._snapped(unit, location, closed, reasons)
            began = max(unit.seen_at or 0, unit.since)
        if start is None:
            number = self._numbers.get(unit.depot)
            if number is None:
                words = f"{unit.id}: no depot is called {unit.depot!r}"
                raise NoAdviceError("unknown_depot", words)
            home, began = self._depots[number], unit.since
            start = Depot(unit.id, home.node, kind=unit.kind or home.kind, home=home.name)
        driven_s = max(now - began, 0) / 1e6 if rolling else 0.0
        return replace(start, rolling=rolling), driven_s

    def everywhere(self, free: Sequence[Unit], now: int) -> list[Depot]:
        """Where each of these units would start, whatever the call."""
        found = []
        for unit in free:
            start = self._snapped(unit, None, (), []) if self.seen(unit, now) else None
            number = self._numbers.get(unit.depot)
            if start is None and number is not None:
                start = self._depots[number]
            found += [] if start is None else [start]
        return list(dict.fromkeys(found))

    def _at_depot(self, unit: Unit) -> bool:
        number = self._numbers.get(unit.depot)
        if number is None or unit.lon is None or unit.lat is None:
            return False
        lon, lat = (
            each[[self._depots[number].node]] for each in (self._network.lon, self._network.lat)
        )
        away_m = great_circle_m(np.array([unit.lon]), np.array([unit.lat]), lon, lat)
        return bool(away_m[0] <= _AT_DEPOT_M)

    def _snapped(
        self,
        unit: Unit,
        location: IncidentLocation | None,
        closed: Collection[int],
        reasons: list[Reason],
    ) -> Depot | None:
        """Where the way of a unit on the road begins; None where it is off all roads.

        One on a closed road leaves it by the nearer end: the other may be blocked.
        """
        assert unit.lon is not None
        assert unit.lat is not None
        stands = unit.speed_kmh is not None and unit.speed_kmh < _DRIVES_KMH
        heading = None if stands else unit.heading
        towards = None if location is None else (location.lon, location.lat)
        snapper, place = self._network.snapper, (unit.lon, unit.lat, heading, self._limit_m)
        try:
            snap = snapper.vehicle(*place, towards)
            if snap.edge in closed:
                words = f"{unit.id} is on a closed road; it is taken to leave it"
                reasons.append(("closed_road", words))
                snap = snapper.vehicle(*place)
        except OffNetworkError:
            words = f"{unit.id} is off all roads; it is taken to be at {unit.depot}"
            reasons.append(("position_off_map", words))
            return None
        return Depot(unit.id, snap.node, True, unit.kind, unit.depot, snap.edge, snap.ahead)


def _order(unit: Unit, call_id: str) -> tuple[bool, bool, str]:
    """Units go in this order: those at their station first, then those that the call holds."""
    return unit.status == "available", unit.promised_to != call_id, unit.id


def find_unit(units: Sequence[Unit], name: str | None) -> Unit | None:
    """The unit of an id; capitals matter only where two ids differ in nothing else."""
    if name is None:
        return None
    alike = [unit for unit in units if unit.id.casefold() == name.casefold()]
    exact = [unit for unit in alike if unit.id == name]
    return (exact or alike)[0] if exact or len(alike) == 1 else None


def age_s(unit: Unit, now: int) -> float | None:
    """How old a unit's position is; None where it has none."""
    return None if unit.seen_at is None else max(now - unit.seen_at, 0) / 1e6


def seen_fields(unit: Unit, now: int) -> dict[str, float | bool | None]:
    """Where a unit on the road starts, for the API."""
    assert unit.lon is not None
    assert unit.lat is not None
    age = round(age_s(unit, now) or 0.0, 1)
    return {"lon": round(unit.lon, 6), "lat": round(unit.lat, 6), "on_road": True, "age_s": age}
