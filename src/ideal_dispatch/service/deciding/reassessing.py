"""A running dispatch, looked at again: when both units arrive, from where they are now."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch import Incident, Readiness, Situation
from ideal_dispatch.dispatch.arrival import UnitTraits, rolling, waiting
from ideal_dispatch.dispatch.candidate import drivable_s
from ideal_dispatch.dispatch.path_pair import unshared_s
from ideal_dispatch.dispatch.priced_threshold import PricedThreshold
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
from ideal_dispatch.errors import IdealError, NoRouteError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.assets import Assets
from ideal_dispatch.service.deciding.case import CallAsRead
from ideal_dispatch.service.deciding.roads import closed_by
from ideal_dispatch.service.deciding.starts import age_s, seen_fields
from ideal_dispatch.service.messages import Call, Closed, Followed, FollowedUnit, Picture
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_LONG_S = 60.0  # a red light on a shorter way says nothing of the traffic


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a dispatch: ``now``, with these closures and this weather."""

    followed: Followed
    closures: tuple[Closed, ...]
    weather: Weather
    now: int


class Reassesser:
    """Looks at running dispatches of one city; may be asked from many threads."""

    def __init__(self, assets: Assets, settings: ServiceSettings) -> None:
        self._assets, self._starts, self._roads = assets, assets.starts, assets.roads
        self._limit_m = settings.city.snap_limit_m
        self._threshold = getattr(assets.policy, "threshold", None)
        curve = getattr(assets.policy, "curve", None)
        self._curve = curve if isinstance(curve, SurvivalCurve) else CURVES[USUAL_CURVE]

    def reassess(
        self, followed: Followed, closures: Sequence[Closed], weather: Weather, now: int
    ) -> dict[str, Any] | None:
        """What is ``said`` of a dispatch now, and where its units were taken to be (``starts``).

        None where nothing can be said. No live router is asked.
        """
        try:
            return self._assessed(_Look(followed, tuple(closures), weather, now))
        except IdealError as error:
            log.info("call %s: not reassessed: %s", followed.call_id, error)
            return None

    def _assessed(self, look: _Look, *remarks: ReasonCode) -> dict[str, Any]:
        """What is said, of the first alone where no other unit could go.

        Where only closed roads lead there, units drive them: the road at a scene is often closed.
        """
        followed = look.followed
        first, second, at, idle = followed.first, followed.second, 0, False
        situation = None
        if second is not None:
            situation = self._drives(look, [self._place(second, look)[0]], [1])
        comes = situation is not None and situation.stations[0].quote is not None
        if second is None or not (comes or first.state == "arrived"):
            second, situation, at = self._best_free(look)
            idle = True
        if situation is None and look.closures and first.state != "arrived":
            opened = replace(look, closures=())
            return self._assessed(opened, ReasonCode("behind_closed_roads"))
        one, two = self._progress(first, look, situation, -1), LOST
        together, cost = 0.0, 0.0
        if second is not None and situation is not None:
            two = self._progress(second, look, situation, at, idle)
            together = _together(situation, -1, at)
            hold_s, hour = away_s(one, two, together), situation.context.at.hour
            cost = self._cost(followed, second.unit, hold_s, hour)
        said = reassess(
            one,
            two,
            before_s=followed.sent_ago_s,
            curve=self._curve,
            cost_lives=cost,
            arrest_chance=getattr(self._threshold, "arrest_chance", 1.0),
            by_price=getattr(self._threshold, "recall", "") == "worth",
            last=None if followed.last is None else Reassessment(reasons=(), **followed.last),
            together=together,
        )
        also = [*remarks, *self._unseen("first_not_seen", first, look)]
        if second is not None:
            code = "other_not_seen" if idle else "second_not_seen"
            also += self._unseen(code, second, look, idle)
        said = replace(said, reasons=(*said.reasons, *also))
        going = [first] if second is None else [first, second]
        return {
            "said": {
                **asdict(said),
                "reason": said.reason,
                "second": None if second is None else {
                    "unit": second.unit.id, "depot": second.unit.depot,
                },
            },
            "starts": [self._start_fields(each, look) for each in going],
        }  # fmt: skip

    def _best_free(self, look: _Look) -> tuple[FollowedUnit | None, Situation | None, int]:
        """The free unit that would arrive first if it were sent now, and its start."""
        followed = look.followed
        others = tuple(one for one in followed.free if one.id != followed.first.unit.id)
        call = Call(followed.call_id, moment(look.now), followed.location)
        starts = self._starts.read(call, Picture(look.now, others, look.closures), [])
        situation = self._drives(look, starts.depots, [len(units) for units in starts.units])
        found: list[tuple[float, int, FollowedUnit]] = []
        for at in () if situation is None else situation.available:
            if at < len(starts.units):  # the last is that of the first unit
                one = FollowedUnit(starts.units[at][0], "waiting", 0.0)
                arrives = self._progress(one, look, situation, at, idle=True).expected_s
                found.append((arrives or 0.0, at, one))
        if not found:
            return None, situation, -1
        _, at, best = min(found, key=lambda each: each[:2])
        return best, situation, at

    def _drives(
        self, look: _Look, starts: Sequence[Depot], free: Sequence[int]
    ) -> Situation | None:
        """The drives from these starts and, as the last, of the first; None where there is none."""
        place, followed = look.followed.location, look.followed
        node = self._assets.network.snap(place.lon, place.lat, self._limit_m).node
        incident = Incident(followed.call_id, node, moment(look.now))
        ready = Readiness((*starts, self._place(followed.first, look)[0]), (*free, 1))
        network: RoadNetwork = self._roads.open(look.closures)
        call = CallAsRead(incident, ready, look.weather, network, alternatives=False)
        try:
            return _in_traffic(self._assets.traffic.follow(call), followed.traffic)
        except NoRouteError:
            return None

    def _place(self, one: FollowedUnit, look: _Look) -> tuple[Depot, float]:
        drives, closed = one.state == "en_route", closed_by(look.closures)
        return self._starts.place(one.unit, look.now, drives, look.followed.location, closed, [])

    def _progress(
        self,
        one: FollowedUnit,
        look: _Look,
        situation: Situation | None,
        at: int,
        idle: bool = False,
    ) -> UnitProgress:
        """A unit and its arrival; it is lost where no road leads there any more."""
        if one.state == "arrived":
            return ARRIVED
        station = None if situation is None else situation.stations[at]
        if situation is None or station is None or station.quote is None or one.state == "lost":
            return LOST
        drive_s = drivable_s(situation.network, station.quote.path, station.quote.duration_s)
        traits = UnitTraits(
            station=one.unit.depot, hour=situation.context.at.hour,
            kind=one.unit.kind or station.depot.kind, on_road=station.depot.on_road,
            quoted=situation.forecast is None,
        )  # fmt: skip
        model = self._assets.responses
        if idle:
            return UnitProgress("ready", waiting(model, drive_s, **traits))
        if one.state == "en_route":
            driven_s = self._place(one, look)[1]
            return UnitProgress("under_way", rolling(model, drive_s, driven_s, **traits))
        return UnitProgress("under_way", waiting(model, drive_s, one.sent_ago_s, **traits))

    def _unseen(
        self, code: str, one: FollowedUnit, look: _Look, idle: bool = False
    ) -> list[ReasonCode]:
        """That a unit that should be on the road was last seen too long ago."""
        unit, age = one.unit, age_s(one.unit, look.now)
        matters = one.state == "en_route" or (idle and unit.status == "available")
        if not matters or age is None or self._starts.seen(unit, look.now):
            return []
        return [ReasonCode(code, {"minutes": round(age / 60.0)})]

    def _start_fields(self, one: FollowedUnit, look: _Look) -> dict[str, Any]:
        """A unit for the record: what it does, and where it was taken to be."""
        start, unit, network = self._place(one, look)[0], one.unit, self._assets.network
        at = {"lon": float(network.lon[start.node]), "lat": float(network.lat[start.node])}
        place = {**at, "on_road": False, "age_s": None}
        return {
            "unit": unit.id, "depot": unit.depot, "state": one.state,
            "start": seen_fields(unit, look.now) if start.on_road else place,
        }  # fmt: skip

    def _cost(self, followed: Followed, unit: Unit, hold_s: float | None, hour: int) -> float:
        """What the others lose while a unit is away for so long, be it free or on its way.

        A fixed cost was for the whole absence that was expected at the call: what is left of it
        costs its share.
        """
        if hold_s is None:
            return 0.0
        if isinstance(self._threshold, PricedThreshold):
            others = Counter(one.depot for one in followed.free if one.id != unit.id)
            return self._threshold.cost_of(others, unit.depot, hold_s, hour)
        if followed.cost_lives is None or not followed.hold_s:
            return 0.0
        share = hold_s / followed.hold_s
        return followed.cost_lives * share if math.isfinite(share) else 0.0


def _together(situation: Situation, first: int, second: int) -> float:
    """The share of both drives on the same roads."""
    one, two = (situation.stations[n].quote for n in (first, second))
    if one is None or two is None:
        return 0.0
    total_s = one.duration_s + two.duration_s
    alone_s = unshared_s(situation.network, one.path, one.duration_s, two.path, two.duration_s)
    return min(max(1.0 - alone_s / total_s, 0.0), 1.0) if total_s > 0.0 else 1.0


def _in_traffic(situation: Situation, traffic: Mapping[str, Mapping[str, float]]) -> Situation:
    """The forecast's drives as many times as long as the live router's were at the call.

    A unit's own ratio counts; for one that the router was not asked about, or whose drive was
    short, that of all together.
    """
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
