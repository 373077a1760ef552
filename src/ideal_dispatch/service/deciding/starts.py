"""Where the ambulances of a call start: at their depots, or on the road where they were seen."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ideal_dispatch.dispatch import Readiness
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import IdealError, InputError, OffNetworkError
from ideal_dispatch.network import Depot
from ideal_dispatch.network.depot import alike, listed
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.service.clock import micros
from ideal_dispatch.service.deciding.assets import Assets
from ideal_dispatch.service.requests import Location, RecommendationRequest
from ideal_dispatch.service.units import THERE, Unit

_DRIVES_KMH = 5.0  # a receiver that stands reports any course
_AT_DEPOT_M = 200.0  # a unit that was sent and is no farther from its depot has not left it


class NoAdviceError(IdealError):
    """There is nothing to advise; the code says why."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class UnitStarts:
    """Turns units into starts, for a call at a ``location`` or for any.

    ``reasons`` get what is less certain than it looks.
    """

    assets: Assets
    now: int
    location: Location | None = None
    closed: Collection[int] = ()
    reasons: list[Reason] = field(default_factory=list)

    def read(self, call: RecommendationRequest, units: Sequence[Unit]) -> tuple[Readiness, bool]:
        """Who could go to a call, and whether a unit is assumed to be the primary of the CAD.

        The depots come first, in their order, each with its free units: those at their station go
        first, then those that the call holds. Then come units on the road, the nearest first, and
        the primary where it does not leave from its depot.
        """
        now, most, call_id = self.now, self.assets.settings.units.candidates, call.call_id
        received_at = now if call.received_at is None else micros(call.received_at)
        first, sent_from = self._named(call, units)
        depots = self.assets.depots
        here: dict[str, list[Unit]] = {name: [] for name in depots}
        road, stale, unknown, held = list[Unit](), list[Unit](), list[Unit](), dict[str, str]()

        def order(unit: Unit) -> tuple[bool, bool, str]:
            return unit.status == "available", unit.promised_to != call_id, unit.id

        for unit in sorted(units, key=order):
            if unit is first or not unit.free:
                continue
            if unit.depot not in here:
                unknown.append(unit)
            elif unit.held_by_other(call_id, now):
                held[unit.depot] = unit.promised_to or ""
            elif self.seen(unit):
                road.append(unit)
            else:
                here[unit.depot].append(unit)
                stale += [unit] if unit.status == "available" and unit.seen_at is not None else []
        if sent_from is not None and call.primary is not None:  # the CAD names a depot alone
            named, free = call.primary.unit, here[sent_from]
            # a count that is newer than the call does not include the primary any more
            old = [one for one in free if not one.anonymous or one.told_at < received_at]
            known = [one for one in old if (one.promise, one.promised_to) == ("sent", call_id)]
            first = next(iter(known or old), None)
            if first is not None or named is not None or not free:
                why = "the call names no unit" if named is None else f"unit {named} is not known"
                who = f"one of {sent_from}" if first is None else first.id
                self.reasons.append(("units_assumed", f"primary: {why}; {who} is taken to go"))
            here[sent_from] = [one for one in free if one is not first]

        lon, lat = np.array([(one.lon, one.lat) for one in road], float).reshape(-1, 2).T
        place = np.array([[call.location.lon], [call.location.lat]])
        nearest = np.argsort(great_circle_m(lon, lat, *place), kind="stable")
        road = [road[number] for number in nearest]
        snapped = [(unit, self._snapped(unit)) for unit in road[:most]]
        for unit, start in snapped:
            here[unit.depot] += [unit] if start is None else []
        kinds = {name: each[0].kind for name, each in here.items() if each}
        starts = [replace(one, kind=kinds.get(name) or one.kind) for name, one in depots.items()]
        starts += [start for _, start in snapped if start is not None]
        going = [*here.values(), *([unit] for unit, start in snapped if start is not None)]

        sent, since, driven_s = None, received_at, 0.0
        if first is not None:
            on_call = first.call_id in (None, call_id)
            rolling = first.status == "en_route" and on_call
            if first.status == "dispatched" and on_call:
                since = first.since
            start, driven_s = self.place(first, rolling)
            if start.on_road or rolling:
                sent = len(starts)
                starts.append(start)
                going.append([])
            else:
                sent = list(here).index(first.depot)
                starts[sent] = replace(starts[sent], kind=first.kind or starts[sent].kind)
            waits = first.status in ("at_station", "dispatched") or self.seen(first)
            stale += [] if start.on_road or waits or first.seen_at is None else [first]
        elif sent_from is not None:
            sent = list(here).index(sent_from)

        if unknown:
            ids = listed(unit.id for unit in unknown)
            words = f"no depot is called {unknown[0].depot!r}; left out: {ids}"
            self.reasons.append(("unknown_depot", words))
        if stale:
            minutes = max(unit.age_s(now) or 0.0 for unit in stale) / 60
            words = f"positions up to {minutes:.0f} min old: {listed(unit.id for unit in stale)}"
            self.reasons.append(("position_stale", f"{words}; each is taken to be at its depot"))
        promised = [
            f"the last unit of {name} is promised to call {call_id}"
            for name, call_id in held.items() if not here[name]
        ]  # fmt: skip
        if promised:
            self.reasons.append(("last_unit_promised", "; ".join(promised)))
        sent_unit = "" if call.primary is None else call.primary.unit or ""
        return Readiness(
            starts,
            [len(each) for each in going],
            sent=sent,
            sent_ago_s=0.0 if sent is None else max(now - since, 0) / 1e6,
            elsewhere=Counter(unit.depot for unit in road[most:]),
            driven_s=driven_s,
            sent_unit=sent_unit if first is None else first.id,
            ids=[[unit.id for unit in each] for each in going],
        ), sent_from is not None and first is not None

    def _named(
        self, call: RecommendationRequest, units: Sequence[Unit]
    ) -> tuple[Unit | None, str | None]:
        """The unit that the CAD sends, or its depot where that is all that is known.

        What speaks against the unit is said: it goes nevertheless.
        """
        named, call_id = call.primary, call.call_id
        if named is None:
            return None, None
        first = find_unit(units, named.unit)
        if first is None:
            if named.depot is None:
                words = f"unit {named.unit} is not known; report it with PUT /v1/units"
                raise NoAdviceError("unknown_unit", f"{words}, or name its depot")
            try:
                depot = self.assets.depot_names.find(named.depot)
            except InputError as error:
                raise NoAdviceError("unknown_depot", str(error)) from None
            going = (one for one in units if one.depot == depot and not one.free)
            first = next((one for one in going if one.call_id == call_id), None)
            if first is None:
                return None, depot
        doing = first.status.replace("_", " ")
        if first.status in THERE and first.call_id == call_id:
            raise NoAdviceError("primary_arrived", f"{first.id} has arrived at this call")
        if first.held_by_other(call_id, self.now):
            words = f"{first.id} goes to this call: call {first.promised_to} loses it"
            self.reasons.append(("unit_promised", words))
        if first.call_id not in (None, call_id):
            words = f"{first.id} is reported {doing} for call {first.call_id}"
            words += "; it is not taken to be on its way to this one"
            self.reasons.append(("other_call", words))
        elif first.status in (*THERE, "out_of_service"):
            words = f"{first.id} is reported {doing}; it is taken to leave for this call now"
            self.reasons.append(("primary_busy", words))
        return first, None

    def seen(self, unit: Unit) -> bool:
        """Whether a unit was seen on the road lately; one sent and seen at its depot was not."""
        age_s, depot = unit.age_s(self.now), self.assets.depots.get(unit.depot)
        stale_s = self.assets.settings.units.position_stale_s
        if unit.status == "at_station" or age_s is None or age_s > stale_s:
            return False
        if unit.status != "dispatched" or depot is None:
            return True
        network, node = self.assets.network, [depot.node]
        here = np.array([unit.lon], float), np.array([unit.lat], float)
        away_m = great_circle_m(*here, network.lon[node], network.lat[node])
        return bool(away_m[0] > _AT_DEPOT_M)

    def place(self, unit: Unit, rolling: bool = False) -> tuple[Depot, float]:
        """Where a unit was seen lately, else its depot; and for how long it has driven from there.

        One that is ``rolling`` has driven since it left or was seen, whichever is later.
        """
        began, start = unit.since, None
        left = rolling and unit.seen_at is not None and unit.seen_at >= unit.since
        if left or self.seen(unit):
            start = self._snapped(unit)
        if start is not None:
            began = max(unit.seen_at or 0, unit.since)
        elif (home := self.assets.depots.get(unit.depot)) is not None:
            start = Depot(unit.id, home.node, kind=unit.kind or home.kind, home=home.name)
        else:
            raise NoAdviceError("unknown_depot", f"{unit.id}: no depot is called {unit.depot!r}")
        driven_s = max(self.now - began, 0) / 1e6 if rolling else 0.0
        return replace(start, rolling=rolling), driven_s

    def _snapped(self, unit: Unit) -> Depot | None:
        """Where the way of a unit on the road begins; None where it is off all roads.

        One on a closed road leaves it by the nearer end: the other may be blocked.
        """
        assert unit.lon is not None
        assert unit.lat is not None
        stands = unit.speed_kmh is not None and unit.speed_kmh < _DRIVES_KMH
        heading = None if stands else unit.heading
        towards = None if self.location is None else (self.location.lon, self.location.lat)
        limit_m, snapper = self.assets.settings.city.snap_limit_m, self.assets.network.snapper
        place = unit.lon, unit.lat, heading, limit_m
        try:
            snap = snapper.vehicle(*place, towards)
            if snap.edge in self.closed:
                words = f"{unit.id} is on a closed road; it is taken to leave it"
                self.reasons.append(("closed_road", words))
                snap = snapper.vehicle(*place)
        except OffNetworkError:
            words = f"{unit.id} is off all roads; it is taken to be at {unit.depot}"
            self.reasons.append(("position_off_map", words))
            return None
        return Depot(unit.id, snap.node, True, unit.kind, unit.depot, snap.edge, snap.ahead)


def find_unit(units: Sequence[Unit], name: str | None) -> Unit | None:
    """The unit of an id; capitals matter only where two ids differ in nothing else."""
    known = {unit.id: unit for unit in units}
    meant = alike(name or "", known)
    return known[meant[0]] if len(meant) == 1 else None


def seen_fields(unit: Unit, now: int) -> dict[str, float | bool | None]:
    """Where a unit on the road starts, for the API."""
    assert unit.lon is not None
    assert unit.lat is not None
    age_s = round(unit.age_s(now) or 0.0, 1)
    return {"lon": round(unit.lon, 6), "lat": round(unit.lat, 6), "on_road": True, "age_s": age_s}
