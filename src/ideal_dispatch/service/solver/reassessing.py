"""A running dispatch, looked at again: what is left of both responses, from where units are."""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch import Incident, Readiness, Situation
from ideal_dispatch.dispatch.path_pair import unshared_s
from ideal_dispatch.dispatch.priced_threshold import PricedThreshold
from ideal_dispatch.dispatch.reassessment import (
    ARRIVED,
    LOST,
    Going,
    Reassessment,
    Why,
    away_s,
    ready,
    reassess,
    seen_driving,
    turning_out,
    unseen_driving,
)
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, SurvivalCurve
from ideal_dispatch.errors import IdealError, NoRouteError
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot
from ideal_dispatch.service import clock
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.closures import Roads, closed_edges
from ideal_dispatch.service.solver.messages import Followed, FollowedUnit, KnownUnit
from ideal_dispatch.service.solver.starts import UnitStarts, start_fields

if TYPE_CHECKING:
    from ideal_dispatch.service.solver.assets import Assets

log = logging.getLogger(__name__)

_LONG_S = 60.0  # a red light on a shorter way says nothing of the traffic


class Reassesser:
    """Looks at running dispatches of one city."""

    def __init__(
        self, assets: "Assets", settings: ServiceSettings, starts: UnitStarts, roads: Roads
    ) -> None:
        self._assets, self._starts, self._roads = assets, starts, roads
        self._limit_m = settings.city.snap_limit_m
        self._stations = {depot.name: depot for depot in assets.depots}
        policy: Any = assets.policy
        self._threshold = getattr(policy, "threshold", None)
        gain = getattr(policy, "gain", None)
        self._model = gain if isinstance(gain, ResponseModel) else ResponseModel.published()
        curve = getattr(policy, "curve", None)
        self._curve = curve if isinstance(curve, SurvivalCurve) else CURVES[USUAL_CURVE]

    def reassess(self, dispatch: Followed, weather: Weather) -> dict[str, Any] | None:
        """What is ``said`` of the dispatch now, and from what; None where nothing can be said.

        ``starts`` are where the first and the second were taken to be, ``closures`` the ids of
        those in force, ``versions`` the checksums of all that decides.
        """
        try:
            said, starts = self._assessed(dispatch, weather)
        except IdealError as error:
            log.info("call %s: not looked at again: %s", dispatch.call_id, error)
            return None
        return {
            "said": said,
            "starts": starts,
            "closures": [one.id for one in dispatch.closures],
            "versions": self._versions,
        }

    @cached_property
    def _versions(self) -> dict[str, str]:
        return self._assets.checksums

    def _assessed(
        self, dispatch: Followed, weather: Weather, *remarks: Why
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What is said, and the starts of the units; of the first alone where no other could go.

        Where only closed roads lead there, units drive them: the road at a scene is often closed.
        """
        first, second, at, idle = dispatch.first, dispatch.second, 0, False
        situation = None
        if second is not None:
            situation = self._look(dispatch, [self._start(second, dispatch)], [1], weather)
        comes = situation is not None and situation.stations[0].quote is not None
        if second is None or not (comes or first.state == "arrived"):
            second, situation, at = self._best_free(dispatch, weather)
            idle = True
        if situation is None and dispatch.closures and first.state != "arrived":
            opened = replace(dispatch, closures=())
            return self._assessed(opened, weather, Why("behind_closed_roads"))
        one = self._going(first, situation, -1, False)
        two, together, cost = LOST, 0.0, 0.0
        if second is not None and situation is not None:
            two = self._going(second, situation, at, idle)
            together = self._together(situation, -1, at)
            hold_s, hour = away_s(one, two, together), situation.context.at.hour
            cost = self._cost(dispatch, second.unit, hold_s, hour)
        said = reassess(
            one,
            two,
            before_s=dispatch.sent_ago_s,
            curve=self._curve,
            cost_lives=cost,
            arrest_chance=getattr(self._threshold, "arrest_chance", 1.0),
            by_price=getattr(self._threshold, "recall", "") == "worth",
            last=None if dispatch.last is None else Reassessment(reasons=(), **dispatch.last),
            together=together,
        )
        also = [*remarks, *self._unseen("first_not_seen", first)]
        if second is not None:
            also += self._unseen("other_not_seen" if idle else "second_not_seen", second, idle)
        said = replace(said, reasons=(*said.reasons, *also))
        going = [first] if second is None else [first, second]
        starts = [self._told(each, dispatch) for each in going]
        named = {name: starts[-1][name] for name in ("unit", "depot")} if second else None
        return {
            **asdict(said),
            "reason": said.reason,
            "reasons": [asdict(one) for one in said.reasons],
            "second": named,
        }, starts

    def _best_free(
        self, dispatch: Followed, weather: Weather
    ) -> tuple[FollowedUnit | None, Situation | None, int]:
        """The free unit that would be there first, if one were sent now, and its start."""
        others = [one for one in dispatch.fleet if one.id != dispatch.first.unit.id]
        closed = closed_edges(dispatch.closures)
        starts = self._starts.read(others, dispatch.location, None, None, [], closed)
        situation = self._look(dispatch, starts.depots, starts.free, weather)
        count = len(starts.depots)
        free = [] if situation is None else [n for n in situation.available if n < count]
        if situation is None or not free:
            return None, situation, -1
        best = min(free, key=lambda n: situation.quote(n).duration_s)
        unit = starts.second(best, -1)
        assert unit is not None
        return FollowedUnit(unit, "waiting", 0.0, 0.0), situation, best

    def _look(
        self, dispatch: Followed, starts: Sequence[Depot], free: Sequence[int], weather: Weather
    ) -> Situation | None:
        """The ways from these starts and, as the last, of the first; None where there is none."""
        scene = dispatch.location
        node = self._assets.network.snap(scene.lon, scene.lat, self._limit_m).node
        incident = Incident(dispatch.call_id, node, clock.now())
        who = Readiness((*starts, self._start(dispatch.first, dispatch)), (*free, 1))
        network = self._roads.open(dispatch.closures) if dispatch.closures else None
        case = Case(incident, who, weather, alternatives=False, network=network)
        try:
            return _in_traffic(self._assets.traffic.follow(case), dispatch.traffic)
        except NoRouteError:
            return None

    def _unseen(self, code: str, one: FollowedUnit, idle: bool = False) -> Iterator[Why]:
        """That a unit on the road was last seen too long ago."""
        unit = one.unit
        lost_sight = unit.place is not None and not self._starts.seen(unit)
        if lost_sight and (idle or one.state == "en_route"):
            yield Why(code, {"minutes": round((unit.age_s or 0.0) / 60.0)})

    def _start(self, one: FollowedUnit, dispatch: Followed) -> Depot:
        """Where a unit is or was last seen on the road, or its station."""
        unit = one.unit
        known = self._starts.seen(unit) or (one.state == "en_route" and unit.place is not None)
        closed = closed_edges(dispatch.closures)
        placed = self._starts.placed(unit, [], dispatch.location, closed) if known else None
        if placed is not None:
            return placed
        home = self._stations.get(unit.station)
        if home is None:
            raise IdealError(f"no depot is called {unit.station!r}")
        return Depot(unit.id, home.node, False, unit.kind or home.kind, home=unit.station)

    def _told(self, one: FollowedUnit, dispatch: Followed) -> dict[str, Any]:
        """A unit for the record: what it does, and where it was taken to be."""
        place = start_fields(self._assets.network, self._start(one, dispatch), one.unit)
        return {
            "unit": one.unit.id, "depot": one.unit.station, "state": one.state, "start": place,
        }  # fmt: skip

    def _going(
        self, one: FollowedUnit, situation: Situation | None, start: int, idle: bool
    ) -> Going:
        """What is left of a unit's response; it is lost where no road leads there any more."""
        if one.state == "arrived":
            return ARRIVED
        station = None if situation is None else situation.stations[start]
        if situation is None or station is None or station.quote is None or one.state == "lost":
            return LOST
        drive_s, on_road = station.quote.duration_s, station.depot.on_road
        who: Mapping[str, Any] = {
            "station": one.unit.station, "hour": situation.context.at.hour,
            "kind": one.unit.kind, "quoted": situation.forecast is None,
        }  # fmt: skip
        if idle:
            return ready(self._model, drive_s, on_road=on_road, **who)
        if one.state != "en_route":
            return turning_out(self._model, drive_s, one.sent_ago_s, on_road=on_road, **who)
        if on_road and self._starts.seen(one.unit):
            return seen_driving(self._model, drive_s, **who)
        if on_road:  # it has driven on since
            return unseen_driving(self._model, drive_s, one.unit.age_s or 0.0, **who)
        return unseen_driving(self._model, drive_s, one.since_s, **who)

    def _together(self, situation: Situation, first: int, second: int) -> float:
        """The share of both ways on the same roads."""
        one, two = (situation.stations[n].quote for n in (first, second))
        if one is None or two is None:
            return 0.0
        total_s = one.duration_s + two.duration_s
        alone_s = unshared_s(situation.network, one.path, one.duration_s, two.path, two.duration_s)
        return min(max(1.0 - alone_s / total_s, 0.0), 1.0) if total_s > 0.0 else 1.0

    def _cost(self, dispatch: Followed, unit: KnownUnit, hold_s: float | None, hour: int) -> float:
        """What the others lose while a unit is away for so long, be it free or on its way.

        A fixed cost was for the whole absence that was expected at the call: what is left of it
        costs its share.
        """
        if hold_s is None:
            return 0.0
        if isinstance(self._threshold, PricedThreshold):
            others = Counter(dispatch.free) - Counter([unit.station] * unit.free)
            return self._threshold.cost_of(others, unit.station, hold_s, hour)
        if dispatch.cost_lives is None or not dispatch.hold_s:
            return 0.0
        share = hold_s / dispatch.hold_s
        return dispatch.cost_lives * share if math.isfinite(share) else 0.0


def _in_traffic(situation: Situation, traffic: Mapping[str, Mapping[str, float]]) -> Situation:
    """The forecast's times as many times as long as the live router's were at the call.

    A unit's own ratio counts; for one that the router was not asked about, or whose way was short,
    that of all together.
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
