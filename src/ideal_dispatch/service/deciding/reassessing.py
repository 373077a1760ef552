"""A running dispatch, looked at again: when both units arrive, from where they are now."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch import Incident, Readiness, Situation
from ideal_dispatch.dispatch.arrival import rolling, waiting
from ideal_dispatch.dispatch.candidate import drivable_s, together
from ideal_dispatch.dispatch.reassessment import (
    ARRIVED,
    LOST,
    ReasonCode,
    Reassessment,
    UnitProgress,
    away_s,
    reassess,
)
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.errors import IdealError, NoRouteError
from ideal_dispatch.network import Depot
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.assets import Assets, Closed
from ideal_dispatch.service.deciding.live_traffic import TrafficQuery
from ideal_dispatch.service.deciding.starts import UnitStarts, seen_fields
from ideal_dispatch.service.requests import Location, RecommendationRequest
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_LONG_S = 60.0  # a red light on a shorter way says nothing of the traffic


@dataclass(frozen=True, slots=True)
class FollowedUnit:
    """A unit of a running dispatch, how it gets on, and how long ago it was sent."""

    unit: Unit
    state: Literal["waiting", "en_route", "arrived", "lost"]
    sent_ago_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """A running dispatch to be looked at again.

    ``second`` is None where it was stood down or lost: ``free`` are units that could go. The
    second was to cost ``cost_lives`` for an absence of ``hold_s``; ``last`` is what was said
    before. ``traffic`` are, by unit, the seconds of its way that the live router and the forecast
    said at the call.
    """

    call_id: str
    location: Location
    first: FollowedUnit
    second: FollowedUnit | None
    free: tuple[Unit, ...] = ()
    cost_lives: float | None = None
    hold_s: float | None = None
    last: Mapping[str, Any] | None = None
    traffic: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def looked_at(
    assets: Assets, followed: Followed, closures: Sequence[Closed], weather: Weather, now: int
) -> dict[str, Any] | None:
    """What is ``said`` of a dispatch now, and where its units were taken to be (``starts``).

    None where nothing can be said. No live router is asked.
    """
    try:
        return _Look(assets, followed, tuple(closures), weather, now).said()
    except IdealError as error:
        log.info("call %s: not reassessed: %s", followed.call_id, error)
        return None


@dataclass(frozen=True)
class _Look:
    """One look at a dispatch."""

    assets: Assets
    followed: Followed
    closures: tuple[Closed, ...]
    weather: Weather
    now: int

    @cached_property
    def starts(self) -> UnitStarts:
        place, closed = self.followed.location, self.assets.roads(self.closures).closed
        return UnitStarts(self.assets, self.now, place, closed)

    def said(self, *remarks: ReasonCode) -> dict[str, Any]:
        """What is said; where only closed roads lead to the scene, units drive them."""
        followed, first, second = self.followed, self.followed.first, self.followed.second
        situation, at = None, 0
        if second is not None:
            situation = self._drives([self._place(second)[0]], [1])
        comes = situation is not None and situation.stations[0].quote is not None
        idle = second is None or not (comes or first.state == "arrived")
        if idle:
            second, situation, at = self._best_free()
        if situation is None and self.closures and first.state != "arrived":
            return replace(self, closures=()).said(ReasonCode("behind_closed_roads"))
        rule = getattr(self.assets.policy, "threshold", None)
        curve = getattr(self.assets.policy, "curve", None)
        one, two = self._progress(first, situation, -1), LOST
        share, cost = 0.0, 0.0
        if second is not None and situation is not None:
            two = self._progress(second, situation, at, idle)
            quotes = (situation.stations[-1].quote, situation.stations[at].quote)
            drives = [(each.path, each.duration_s) for each in quotes if each is not None]
            if len(drives) == 2:
                share = together(situation.network, *drives[0], *drives[1])
            hour = situation.context.at.hour
            cost = self._cost(rule, second.unit, away_s(one, two, share), hour)
        said = reassess(
            one,
            two,
            before_s=first.sent_ago_s,
            curve=curve if isinstance(curve, SurvivalCurve) else CURVES[USUAL_CURVE],
            cost_lives=cost,
            arrest_chance=getattr(rule, "arrest_chance", 1.0),
            by_price=getattr(rule, "recall", "") == "worth",
            last=None if followed.last is None else Reassessment(reasons=(), **followed.last),
            together=share,
        )
        reasons, starts = [*said.reasons, *remarks], list[dict[str, Any]]()
        network = self.assets.network
        other = "other_not_seen" if idle else "second_not_seen"
        for code, each, roams in (("first_not_seen", first, False), (other, second, idle)):
            if each is None:
                continue
            unit, age_s, place = each.unit, each.unit.age_s(self.now), self._place(each)[0]
            moves = each.state == "en_route" or (roams and unit.status == "available")
            if moves and age_s is not None and not self.starts.seen(unit):
                reasons.append(ReasonCode(code, {"minutes": round(age_s / 60.0)}))
            lon, lat = (float(of[place.node]) for of in (network.lon, network.lat))
            home = {"lon": lon, "lat": lat, "on_road": False, "age_s": None}
            start = seen_fields(unit, self.now) if place.on_road else home
            about = {"unit": unit.id, "depot": unit.depot, "state": each.state}
            starts.append({**about, "start": start})
        said = replace(said, reasons=tuple(reasons))
        goes = None if second is None else {"unit": second.unit.id, "depot": second.unit.depot}
        return {"said": {**asdict(said), "reason": said.reason, "second": goes}, "starts": starts}

    def _best_free(self) -> tuple[FollowedUnit | None, Situation | None, int]:
        """The free unit that would arrive first if it were sent now, and its start."""
        followed = self.followed
        units = {one.id: one for one in followed.free if one.id != followed.first.unit.id}
        call = RecommendationRequest(call_id=followed.call_id, location=followed.location)
        ready, _ = self.starts.read(call, tuple(units.values()))
        situation = self._drives(ready.depots, ready.units or ())
        best, first_s, start = None, math.inf, -1
        for at, ids in enumerate(ready.ids or ()):  # the last of the situation is the first unit
            if situation is not None and at in situation.available:
                one = FollowedUnit(units[ids[0]], "waiting", 0.0)
                arrives_s = self._progress(one, situation, at, idle=True).expected_s or 0.0
                if arrives_s < first_s:
                    best, first_s, start = one, arrives_s, at
        return best, situation, start

    def _drives(self, starts: Sequence[Depot], free: Sequence[int]) -> Situation | None:
        """The drives from these starts and, as the last, of the first; None where there is none.

        Each is forecast, times the ratio of router and forecast at the call: the unit's own, or
        that of all together where its own is not known or its drive was short.
        """
        place, assets, traffic = self.followed.location, self.assets, self.followed.traffic
        node = assets.network.snap(place.lon, place.lat, assets.settings.city.snap_limit_m).node
        incident = Incident(self.followed.call_id, node, moment(self.now))
        ready = Readiness((*starts, self._place(self.followed.first)[0]), (*free, 1))
        network = assets.roads(self.closures)
        context = assets.calendar.context(incident.at, self.weather)
        query = TrafficQuery(network, incident, context, ready, alternatives=False)
        try:
            situation = assets.traffic.look(query, None)
        except NoRouteError:
            return None
        total_s = sum(one["forecast_s"] for one in traffic.values())
        if situation.forecast is None or total_s <= 0.0:
            return situation
        usual = sum(one["router_s"] for one in traffic.values()) / total_s
        stations = []
        for station in situation.stations:
            one, quote, ratio = traffic.get(station.depot.name), station.quote, usual
            if one is not None and one["forecast_s"] >= _LONG_S:
                ratio = one["router_s"] / one["forecast_s"]
            if quote is not None:
                quote = replace(quote, duration_s=ratio * quote.duration_s)
            stations.append(replace(station, quote=quote))
        return replace(situation, stations=tuple(stations), forecast=None)

    def _place(self, one: FollowedUnit) -> tuple[Depot, float]:
        return self.starts.place(one.unit, rolling=one.state == "en_route")

    def _progress(
        self, one: FollowedUnit, situation: Situation | None, at: int, idle: bool = False
    ) -> UnitProgress:
        """A unit and its arrival; it is lost where no road leads there any more."""
        if one.state == "arrived":
            return ARRIVED
        station = None if situation is None else situation.stations[at]
        if situation is None or station is None or station.quote is None or one.state == "lost":
            return LOST
        drive_s = drivable_s(situation.network, station.quote.path, station.quote.duration_s)
        traits, model = situation.traits(at), self.assets.responses
        if one.state == "en_route":
            arrival = rolling(model, drive_s, self._place(one)[1], **traits)
        else:
            arrival = waiting(model, drive_s, one.sent_ago_s, **traits)
        return UnitProgress("ready" if idle else "under_way", arrival)

    def _cost(self, rule: Any, unit: Unit, hold_s: float | None, hour: int) -> float:
        """What the others lose while a unit is away for so long: of a fixed cost its share."""
        followed = self.followed
        if hold_s is None:
            return 0.0
        if isinstance(rule, PricedThreshold):
            others = Counter(one.depot for one in followed.free if one.id != unit.id)
            return rule.cost_of(others, unit.depot, hold_s, hour)
        if followed.cost_lives is None or not followed.hold_s:
            return 0.0
        share = hold_s / followed.hold_s
        return followed.cost_lives * share if math.isfinite(share) else 0.0
