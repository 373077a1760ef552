"""Advice for one city, from a call and its units: no HTTP and no database in here."""

import gzip
import json
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Incident
from ideal_dispatch.dispatch.answer import Answer, EdgeLines, Reason
from ideal_dispatch.dispatch.decision import Policy, decided
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, InputError, OffNetworkError, UnreachableError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.geojson import streets
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.assets import Assets, Closed, load_assets
from ideal_dispatch.service.deciding.live_traffic import TrafficQuery
from ideal_dispatch.service.deciding.starts import NoAdviceError, UnitStarts, find_unit, seen_fields
from ideal_dispatch.service.deciding.weather import KnownWeather, oldest_s
from ideal_dispatch.service.requests import Primary, RecommendationRequest
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_SHARE = 0.5  # of the time that is left, for the router, and then for the search of the gap
_LEAST_SEARCH_S = 0.01
_AGES = ("traffic_s", "weather_s", "units_s")
_PATIENCE_S = 60.0  # of a rehearsal, where nothing is compiled yet
_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long
_PLACES = 50  # that are looked at to find one


@dataclass(frozen=True, slots=True)
class Picture:
    """What the database holds at one moment, ``now`` in microseconds, for one decision.

    ``units`` are all units, whatever they do. ``closures`` are those in force.
    """

    now: int
    units: tuple[Unit, ...]
    closures: tuple[Closed, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What was decided about a call, before it is on record.

    ``fields`` are those of the API. ``primary`` is the unit that goes first, where one is known,
    and ``chosen`` says that we chose it. ``second`` is the unit to send, None where none goes.
    It ``needs`` the units that it chose to be free still when it is recorded.
    """

    fields: Mapping[str, Any]
    primary: str | None = None
    chosen: bool = False
    second: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        found: str = self.fields["decision"]
        return found


class Adviser:
    """Advice for one city; may be asked from many threads."""

    def __init__(self, assets: Assets) -> None:
        self.assets, self._lines = assets, EdgeLines(assets.network)

    def advise(
        self, call: RecommendationRequest, picture: Picture, weather: KnownWeather, due: float
    ) -> Advice:
        """The advice; ``due`` is a moment of :func:`time.monotonic`.

        Whatever goes wrong becomes a ``no_advice`` that says so.
        """
        reasons: list[Reason] = []
        try:
            return self._advised(call, picture, weather, due, reasons)
        except NoAdviceError as error:
            why = error.code, str(error)
        except (OffNetworkError, UnreachableError) as error:
            code = "off_map" if isinstance(error, OffNetworkError) else "unreachable"
            why = code, str(error)
        except IdealError as error:
            log.warning("call %s: %s", call.call_id, error, exc_info=error.__cause__)
            why = "not_decided", str(error)
        except (Exception, SystemExit) as error:  # a surprise must not reach the caller as silence
            log.exception("call %s: unexpected", call.call_id)
            words = f"a fault of this program ({type(error).__name__}); it was logged"
            why = "internal_error", words
        first = None if call.primary is None else find_unit(picture.units, call.primary.unit)
        return no_advice(call, [why, *reasons], picture.closures, first)

    def _advised(
        self,
        call: RecommendationRequest,
        picture: Picture,
        known: KnownWeather,
        due: float,
        reasons: list[Reason],
    ) -> Advice:
        assets, settings, now = self.assets, self.assets.settings, moment(picture.now)
        age_s = (now - (call.received_at or now)).total_seconds()
        if age_s > settings.server.oldest_call_s:  # advice is for now
            raise NoAdviceError(
                "call_too_old",
                f"the call came in {age_s / 60:.0f} min ago, advice is given for "
                f"{settings.server.oldest_call_s / 60:.0f} min; check that calls are not held up",
            )
        ahead = f"received_at is {-age_s:.0f} s ahead of the clock here"
        if -age_s > settings.server.clock_skew_s:
            raise NoAdviceError("call_in_future", f"{ahead}; check both clocks")
        if age_s < -5.0:
            reasons.append(("clock_skew", ahead))
        place, city = call.location, settings.city
        snap = assets.network.snap(place.lon, place.lat, city.snap_limit_m)
        if place.accuracy_m is not None and place.accuracy_m > city.accuracy_limit_m:
            words = f"the location is known to {place.accuracy_m:.0f} m only"
            reasons.append(("location_uncertain", words))

        # who could go
        if not picture.units:
            raise NoAdviceError(
                "units_unknown",
                "no unit has been reported; report units with PUT /v1/units, one by one or as the "
                "number free at each depot",
            )
        network = assets.roads(picture.closures)
        starts = UnitStarts(assets, picture.now, place, network.closed, reasons)
        ready, assumed = starts.read(call, picture.units)
        stale_s, newest = settings.units.stale_s, max(unit.told_at for unit in picture.units)
        units_s = max(picture.now - newest, 0) / 1e6
        if units_s > stale_s:
            words = f"there has been no news of any unit for {units_s / 60:.0f} min"
            reasons.append(("units_stale", words))
        if call.primary is not None and isinstance(ready.sent, int):
            start = ready.depots[ready.sent]
            path = _primary_path(assets.network, call.primary, start, snap.node, reasons)
            if path is not None:
                ready = replace(ready, sent=Assignment(ready.sent, path))
        elif not any(ready.ids or ()):
            held = (one for one in reasons if one[0] == "last_unit_promised")
            raise NoAdviceError(*next(held, ("no_unit", "no unit is free")))
        if assets.region is not None:
            ready = replace(ready, region=int(assets.region[snap.node]))

        # the situation, and the decision
        weather = Weather()
        if call.context is not None and call.context.weather is not None:
            values = call.context.weather.model_dump(exclude_none=True)
            given = {name: WeatherValue(one, "request", "", now) for name, one in values.items()}
            weather = Weather(**given)
        if not all(value.known for value in weather):  # else what our own lacks does not matter
            weather = weather.completed_by(known.weather)
            reasons += known.doubts
        incident = Incident(call.call_id, snap.node, now)
        context = assets.calendar.context(now, weather)
        # a policy that does not say which seconds it considers may consider them all
        others = "alternative" in getattr(assets.policy, "seconds", ("alternative",))
        query = TrafficQuery(network, incident, context, ready, others)
        if picture.closures:
            _check_closures(query, picture.closures, reasons)
        wait_s = min(settings.traffic.wait_s, _SHARE * (due - time.monotonic()))
        situation = assets.traffic.look(query, max(wait_s, 0.0))
        reasons += situation.reasons
        policy = self._policy(call, due)
        # each call has its own draws, the same whenever it is asked
        rng = np.random.default_rng([*call.call_id.encode("utf-8", "surrogatepass")])
        decision = decided(policy, situation, rng)
        answer = Answer.of(
            decision, getattr(policy, "threshold", None), reasons, assets.responses,
            asked_threshold=call.threshold_s is not None,
        )  # fmt: skip

        # the units of the decision
        units, chosen = {unit.id: unit for unit in picture.units}, call.primary is None
        first, second = (units.get(id_ or "") for id_ in answer.units)
        doubts, quiet = list[Reason](), list[str]()
        for unit in (one for one in (first, second) if one is not None):
            silent_s = (picture.now - unit.told_at) / 1e6
            # one that never reports its position reports only what changes
            if silent_s > stale_s >= units_s and (unit.anonymous or unit.seen_at is not None):
                quiet.append(f"there has been no news of {unit.id} for {silent_s / 60:.0f} min")
            if unit.call_id not in (None, call.call_id) and (chosen or unit is not first):
                doing = unit.status.replace("_", " ")
                words = f"{unit.id} is reported {doing} for call {unit.call_id}; it counts as free"
                doubts.append(("other_call", words))
        if quiet:
            doubts.append(("units_stale", "; ".join(quiet)))
        answer = replace(answer, reasons=(*answer.reasons, *doubts))
        if answer.advice != "send_second":
            second = None

        made = answer.to_dict(self._lines)
        for row in (made["primary"], made["second"], *made["considered"]):
            if row is not None and (seen := units.get(row["unit"])) is not None:
                row["kind"] = seen.kind or row["kind"]
                if row["start"]["on_road"]:
                    row["start"] = seen_fields(seen, picture.now)
        made["location"] |= {
            "lon": place.lon, "lat": place.lat, "snapped_m": round(snap.distance_m, 1),
        }  # fmt: skip
        weather_s, seen_in = oldest_s(weather, now), situation.context
        if weather_s is None:  # by the situation's own clock, which may be a recording's
            weather_s = oldest_s(seen_in.weather, seen_in.at)
        ages = zip(_AGES, (situation.traffic_age_s, weather_s, units_s), strict=True)
        made["made_with"] = {
            "policy": policy.name,
            "ages": {name: None if age is None else round(age, 1) for name, age in ages},
            "closures": [one.id for one in picture.closures],
        }
        ids = [None if unit is None else unit.id for unit in (first, second)]
        ours = ids if chosen or assumed else ids[1:]  # what the CAD sends, it sends
        return Advice(made, ids[0], chosen, ids[1], tuple(id_ for id_ in ours if id_ is not None))

    def _policy(self, call: RecommendationRequest, due: float) -> Policy:
        """The policy with the threshold of the call, and no more time than there is."""
        policy: Any = self.assets.policy
        known = [field.name for field in fields(policy)] if is_dataclass(policy) else []
        changes: dict[str, Any] = {}
        if "time_limit_s" in known:
            left_s = max(_SHARE * (due - time.monotonic()), _LEAST_SEARCH_S)
            changes["time_limit_s"] = min(policy.time_limit_s or left_s, left_s)
        if call.threshold_s is not None:
            if "threshold" not in known:
                raise IdealError(f"policy {policy.name} takes no threshold from a call")
            changes["threshold"] = ConstantThreshold(call.threshold_s)
        return cast(Policy, replace(policy, **changes) if changes else policy)


def no_advice(
    call: RecommendationRequest,
    reasons: Sequence[Reason],
    closures: Sequence[Closed] = (),
    first: Unit | None = None,
) -> Advice:
    """No advice, and why: the first reason is the cause; ``first`` is the CAD's primary."""
    made = Answer.none(reasons[0], reasons[1:]).to_dict()
    made["location"] |= {"lon": call.location.lon, "lat": call.location.lat}
    made["made_with"] = {
        "policy": "", "ages": dict.fromkeys(_AGES), "closures": [one.id for one in closures],
    }  # fmt: skip
    return Advice(made, None if first is None else first.id)


def _check_closures(query: TrafficQuery, closures: Sequence[Closed], reasons: list[Reason]) -> None:
    """Say which closed roads are driven, or refuse where no unit gets there without."""
    ready, network, node = query.ready, query.network, query.incident.node
    if isinstance(ready.sent, Assignment):
        path, words = ready.sent.path, "the primary's path as reported leads over"
    else:
        numbers = ready.asked if ready.sent is None else [ready.sent]
        depots = [ready.depots[number] for number in numbers]
        with suppress(UnreachableError):
            network.shortest_path(network.free_flow_times_s, depots, node)
            return
        path = network.opened.shortest_path(network.free_flow_times_s, depots, node)
        who = ready.sent_unit or f"the unit of {depots[0].home or depots[0].name}"
        who = "no unit reaches" if ready.sent is None else f"{who} does not reach"
        words = f"{who} the incident without"
    driven = frozenset(path.edges.tolist())
    over = [one for one in closures if not driven.isdisjoint(one.edges)]
    if over:
        names = ", ".join(dict.fromkeys(one.reason or f"closure {one.id}" for one in over))
        words = f"{words} closed {'roads' if len(over) > 1 else 'road'} ({names})"
        if not isinstance(ready.sent, Assignment):
            raise NoAdviceError("unreachable", words)
        reasons.append(("closed_road", words))


def _primary_path(
    network: RoadNetwork, primary: Primary, start: Depot, node: int, reasons: list[Reason]
) -> Path | None:
    """The path that the CAD reports for its primary, if it can be used."""
    from ideal_dispatch.traffic.foreign_route import decode_polyline, laid_from

    try:
        if primary.polyline is not None:
            return laid_from(network, decode_polyline(primary.polyline), start, node)
        if primary.edges is not None:
            own = 1 if primary.edges and primary.edges[0] == start.edge else 0  # it is on that
            path = network.path(np.array(primary.edges[own:], np.int64), start.node)
            if path.destination != node:
                raise InputError(f"it ends at node {path.destination}, not at node {node}")
            return path
    except (IdealError, OverflowError) as error:
        why = error if isinstance(error, IdealError) else "an edge number is far too large"
        words = f"the primary's path cannot be used ({why}); the router's is assumed"
        reasons.append(("primary_path_unknown", words))
    return None


class Engine:
    """Advice on one city and what else is asked of it; its parts may be asked from many threads.

    It is ``ready`` once what a call needs is loaded and compiled. ``depots`` are places (lon, lat)
    by name, ``bounds`` west, south, east and north, ``middle`` the mean of all junctions.
    """

    def __init__(self, assets: Assets) -> None:
        self.assets, self.adviser, self.ready = assets, Adviser(assets), False
        self.checksums = assets.checksums
        places = np.column_stack([assets.network.lon, assets.network.lat]).round(6)
        self.depots = {name: places[one.node].tolist() for name, one in assets.depots.items()}
        self.bounds = [*places.min(axis=0).tolist(), *places.max(axis=0).tolist()]
        self.middle = float(places[:, 0].mean()), float(places[:, 1].mean())

    @classmethod
    def load(cls, settings: ServiceSettings) -> "Engine":
        """What the settings name, or one line on what is wrong with them."""
        return cls(load_assets(settings))

    def start(self) -> None:
        """Warm up in the background."""
        threading.Thread(target=self.warm_up, name="warm-up", daemon=True).start()

    def warm_up(self) -> None:
        """Load and compile what a call needs, by advice on an invented call."""
        from ideal_dispatch.gap.warm_up import warm_up

        now, due = round(time.time() * 1e6), time.monotonic() + _PATIENCE_S
        units = [Unit(f"{name} #1", name, "at_station", now, now, now) for name in self.depots]
        try:
            call = RecommendationRequest.model_validate(self.invented_call(0, now))
            made = self.adviser.advise(call, Picture(now, tuple(units)), KnownWeather(), due)
            if made.decision == "no_advice":
                log.error("the rehearsal gives no advice: %s", made.fields["headline"])
            self.ready = True
            warm_up()  # kernels that only some calls need
        except Exception:
            log.exception("kernels cannot be compiled")
            self.ready = True

    def road_map(self) -> bytes:
        """The roads for a map, as packed GeoJSON."""
        document = json.dumps(
            streets(self.assets.network), separators=(",", ":"), ensure_ascii=False
        )
        return gzip.compress(document.encode(), 6, mtime=0)

    def cover(
        self, free: Sequence[Unit], closures: Sequence[Closed], now: int
    ) -> dict[str, float | None] | None:
        """Within how many seconds these units reach half of all junctions, and nine of ten.

        Junctions count that can be reached if no road is closed. None without units.
        """
        units, starts, times_s = UnitStarts(self.assets, now), list[Depot](), self._usual_times_s
        for unit in free:
            with suppress(NoAdviceError):  # its depot is not known
                starts.append(units.place(unit)[0])
        if not starts:
            return None
        reached = np.isfinite(self.assets.network.distances(times_s, starts))
        drive_s = np.sort(self.assets.roads(closures).distances(times_s, starts)[reached])
        within_s = [float(drive_s[math.ceil(share * drive_s.size) - 1]) for share in (0.5, 0.9)]
        median_s, p90_s = (limit_s if math.isfinite(limit_s) else None for limit_s in within_s)
        return {"median_s": median_s, "p90_s": p90_s}

    @cached_property
    def _usual_times_s(self) -> FloatArray:
        """Times of roads in an average context."""
        model = self.assets.model
        average = np.full(len(model.encoding.columns), np.nan)
        return model.forecast(average, self.assets.network).nominal_times

    def invented_call(self, number: int, now: int) -> dict[str, Any]:
        """A call received now, where depots compete; most name the nearest depot."""
        network, at, rng = self.assets.network, moment(now), np.random.default_rng()
        depots = [depot.node for depot in self.assets.depots.values()]
        for _ in range(_PLACES):
            node = int(rng.integers(network.num_nodes))
            drives_s = network.distances_to(network.free_flow_times_s, node)[depots]
            first_s, second_s = np.sort(drives_s)[:2]
            if first_s > 60.0 and second_s < _CONTESTED * first_s:
                break
        off = rng.normal(0, 1e-4, 2)
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        nearest = list(self.assets.depots)[int(drives_s.argmin())]
        return {
            "call_id": f"SIM-{at:%H%M%S}-{number:03d}",
            "received_at": at,
            "location": {
                "lon": round(float(network.lon[node] + off[0]), 6),
                "lat": round(float(network.lat[node] + off[1]), 6),
            },
            "primary": None if rng.random() < 0.15 else {"depot": nearest},
            "note": min(streets, default=None),
        }
