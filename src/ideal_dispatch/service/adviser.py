"""From a request to an advice: no HTTP in here, and nothing that raises."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import numpy as np

from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Decision, Incident, Situation
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.scenario_gap import Outlook
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, InputError, OffNetworkError, UnreachableError
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.explanation import Explanation, explain
from ideal_dispatch.network import Path
from ideal_dispatch.service import answer
from ideal_dispatch.service.answer import Reason
from ideal_dispatch.service.assets import Assets
from ideal_dispatch.service.live_traffic import Asked, Seen
from ideal_dispatch.service.polling import KnownWeather
from ideal_dispatch.service.schemas import Primary, RecommendationRequest, WeatherIn
from ideal_dispatch.service.settings import ServiceSettings, finite
from ideal_dispatch.traffic import polyline

log = logging.getLogger(__name__)

_SEARCH_SHARE = 0.5  # of the time that is left, for the search of the gap
_LEAST_SEARCH_S = 0.01


class NoAdviceError(IdealError):
    """There is nothing to advise; the code says why."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """Free units by depot name, how old the oldest of that is, and when each was told."""

    units: Mapping[str, int]
    age_s: float | None
    told_at: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Watched(Ideal):
    """The policy, keeping what it looked at for the explanation."""

    looks: list[tuple[Outlook | None, OptimisticGap | None]] = field(default_factory=list)

    def look(
        self, situation: Situation, primary: Assignment, rng: np.random.Generator
    ) -> tuple[Outlook | None, OptimisticGap | None]:
        looked = Ideal.look(self, situation, primary, rng)
        self.looks.append(looked)
        return looked


class Adviser:
    """Advice for one city. May be asked from many threads."""

    def __init__(
        self,
        assets: Assets,
        settings: ServiceSettings,
        weather: Callable[[], KnownWeather],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.assets, self.settings = assets, settings
        self._weather, self._clock = weather, clock
        self._stations = {depot.name: n for n, depot in enumerate(assets.depots)}

    def advise(
        self, request: RecommendationRequest, known: KnownUnits, until: float
    ) -> dict[str, Any]:
        """The advice; ``until`` is the moment of :func:`time.monotonic` at which it is due.

        Whatever goes wrong becomes a ``no_advice`` that says so.
        """
        reasons: list[Reason] = []
        try:
            return self._advised(request, known, until, reasons)
        except NoAdviceError as error:
            reasons.insert(0, (error.code, str(error)))
        except OffNetworkError as error:
            reasons.insert(0, ("off_map", str(error)))
        except UnreachableError as error:
            reasons.insert(0, ("unreachable", str(error)))
        except IdealError as error:
            log.warning("call %s: %s", request.call_id, error)
            reasons.insert(0, ("not_decided", str(error)))
        except Exception as error:  # a surprise must not reach the caller as silence
            log.exception("call %s: unexpected", request.call_id)
            what = f"a fault of this program ({type(error).__name__}); it was logged"
            reasons.insert(0, ("internal_error", what))
        return answer.no_advice(request, reasons)

    def _advised(
        self,
        request: RecommendationRequest,
        known: KnownUnits,
        until: float,
        reasons: list[Reason],
    ) -> dict[str, Any]:
        now = self._clock()
        self._check_moment(request, now, reasons)
        network, place = self.assets.network, request.location
        snap = network.snap(place.lon, place.lat, self.settings.city.snap_limit_m)
        if place.accuracy_m is not None and place.accuracy_m > self.settings.city.accuracy_limit_m:
            words = f"the location is known to {place.accuracy_m:.0f} m only"
            reasons.append(("location_uncertain", words))
        units = self._units(request, known, reasons)
        weather, weather_s = self._weather_of(request, reasons)
        station, path = self._sent(request.primary, snap.node, reasons)
        if station is None and not any(units):
            raise NoAdviceError("no_unit", "no depot is known to have a free unit")
        incident = Incident(request.call_id, snap.node, now)
        wait_s = min(self.settings.traffic.wait_s, _SEARCH_SHARE * (until - time.monotonic()))
        asked = Asked(incident, self.assets.depots, units, weather, station, path, max(wait_s, 0.0))
        seen = self.assets.traffic.look(asked)
        reasons.extend(seen.reasons)
        return self._decided(request, known, until, reasons, seen, snap.distance_m, weather_s)

    # --- what is known ----------------------------------------------------------

    def _check_moment(
        self, request: RecommendationRequest, now: datetime, reasons: list[Reason]
    ) -> None:
        """An advice is for now: not for a call of an hour ago, nor of tomorrow."""
        age_s = (now - request.received_at).total_seconds()
        limits = self.settings.server
        if age_s > limits.oldest_call_s:
            raise NoAdviceError(
                "call_too_old",
                f"the call came in {age_s / 60:.0f} min ago, advice is given for "
                f"{limits.oldest_call_s / 60:.0f} min; check that the queue to here is not stuck",
            )
        if -age_s > limits.clock_skew_s:
            raise NoAdviceError(
                "call_in_future",
                f"received_at is {-age_s:.0f} s ahead of the clock here; check both clocks",
            )
        if age_s < -5.0:
            reasons.append(("clock_skew", f"received_at is {-age_s:.0f} s ahead of the clock here"))

    def _units(
        self, request: RecommendationRequest, known: KnownUnits, reasons: list[Reason]
    ) -> list[int]:
        if request.depots is None:
            stale_s = self.settings.units.stale_s
            if known.age_s is not None and known.age_s > stale_s:
                words = f"free units were last told {known.age_s / 60:.0f} min ago"
                reasons.append(("units_stale", words))
            default = self.settings.units.default
            units = [known.units.get(depot.name, default) for depot in self.assets.depots]
            self._without_sent(request, known, units, reasons)
            return units
        units = [0] * len(self.assets.depots)
        for told in request.depots:
            number = self._stations.get(told.name)
            if number is None:
                reasons.append(("unknown_depot", self.unknown_depot(told.name)))
            else:
                units[number] += told.units
        return units

    def _without_sent(
        self,
        request: RecommendationRequest,
        known: KnownUnits,
        units: list[int],
        reasons: list[Reason],
    ) -> None:
        """Take the primary off a count that was not told since the call: it was free then."""
        depot = None if request.primary is None else request.primary.depot
        station = None if depot is None else self._stations.get(depot)
        if depot is None or station is None or units[station] == 0:
            return
        told_at = known.told_at.get(depot)
        if told_at is None or told_at < request.received_at:
            units[station] -= 1
            count = "no count was told" if told_at is None else "the count is older than the call"
            reasons.append(("units_assumed", f"{depot}: {count}; the primary is taken off it"))

    def unknown_depot(self, name: str) -> str:
        """What to say about a depot that is none."""
        near = get_close_matches(name, self._stations, 1)
        names = list(self._stations)
        there = f"there are {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
        return f"no depot is called {name!r}; " + (f"did you mean {near[0]}?" if near else there)

    def _weather_of(
        self, request: RecommendationRequest, reasons: list[Reason]
    ) -> tuple[Weather, float | None]:
        polled = self._weather()
        given = None if request.context is None else request.context.weather
        if given is not None:
            now = self._clock()
            weather = _with(polled.weather, given, now)
            if None not in given.model_dump().values():
                return weather, 0.0  # what is wrong with our own does not matter then
            polled = replace(polled, weather=weather, age_s=_oldest_s(weather, now))
        if polled.stale:
            reasons.append(("weather_stale", "weather values too old to use are left out"))
        if polled.problem:
            reasons.append(("weather_unavailable", f"weather: {polled.problem}"))
        return polled.weather, polled.age_s

    def _sent(
        self, primary: Primary | None, node: int, reasons: list[Reason]
    ) -> tuple[int | None, Path | None]:
        """The station of the ambulance that was sent, and its path if it can be used."""
        if primary is None:
            return None, None
        station = self._stations.get(primary.depot)
        if station is None:
            raise NoAdviceError("unknown_depot", self.unknown_depot(primary.depot))
        if primary.edges is None and primary.polyline is None:
            return station, None
        try:
            return station, self._path(primary, self.assets.depots[station].node, node)
        except IdealError as error:
            words = f"the primary's path cannot be used ({error}); the router's is assumed"
            reasons.append(("primary_path_unknown", words))
            return station, None

    def _path(self, primary: Primary, origin: int, destination: int) -> Path:
        network = self.assets.network
        if primary.polyline is not None:
            from ideal_dispatch.traffic.foreign_route import laid_on

            points = polyline.decode(primary.polyline)
            return laid_on(network, points, origin, destination)
        assert primary.edges is not None
        try:
            edges = np.array(primary.edges, np.int64)
        except OverflowError:
            raise InputError("an edge number is far too large") from None
        path = network.path(edges, origin)
        if path.destination != destination:
            raise InputError(f"it ends at node {path.destination}, not at node {destination}")
        return path

    # --- what is decided --------------------------------------------------------

    def _decided(
        self,
        request: RecommendationRequest,
        known: KnownUnits,
        until: float,
        reasons: list[Reason],
        seen: Seen,
        snapped_m: float,
        weather_s: float | None,
    ) -> dict[str, Any]:
        situation, context = seen.situation, seen.situation.context
        policy = self._policy(request, until)
        decision = policy.decide(situation, np.random.default_rng(0))
        outlook, gap = policy.looks[-1] if policy.looks else (None, None)
        first, second = decision.primary, decision.second
        reasons.extend(_doubts(decision, outlook))
        explained = None
        if outlook is not None and gap is not None:
            explained = explain(gap, situation.network, outlook.scenarios, first.path)
        expected_s = {
            "primary_s": finite(decision.details.get("primary_s")),
            "second_s": finite(decision.details.get("second_s")),
        }
        kind = "send_second" if decision.send_second else "primary_only"
        names = [situation.stations[one.station].depot.name for one in (first, second or first)]
        primary = request.primary
        place = request.location
        rule = policy.threshold
        source = "configuration" if request.threshold_s is None else "request"
        words = rule.words(expected_s["primary_s"] or 0.0, situation.free_units)
        return {
            "decision": kind,
            "headline": answer.headline(kind, *names),
            "location": {
                "lon": place.lon, "lat": place.lat, "node": situation.incident.node,
                "snapped_m": round(snapped_m, 1),
            },
            "primary": {
                "depot": names[0],
                "unit": None if primary is None else primary.unit,
                "route": answer.route(situation.network, first.path, expected_s["primary_s"]),
                "chosen_by": "router" if primary is None else "cad",
            },
            "second": None if second is None else answer.second_part(
                situation, first, second, expected_s["second_s"]
            ),
            "gain_s": finite(decision.details.get("expected_gain_s")),
            "gain_survival": finite(decision.details.get("expected_survival_gain")),
            "gap": answer.gap_part(decision),
            "threshold": answer.threshold_part(decision, source, words),
            "radius": finite(decision.details.get("radius")),
            "nominal": expected_s,
            "explanation": self._explanation(situation, decision, outlook, explained),
            "degraded": answer.degraded(reasons),
            "data_ages": {
                "traffic_s": finite(seen.age_s),
                # by the situation's own clock, which may be a recording's
                "weather_s": _oldest_s(context.weather, context.at)
                if weather_s is None else weather_s,
                "units_s": 0.0 if request.depots is not None else known.age_s,
            },
        }  # fmt: skip

    def _policy(self, request: RecommendationRequest, until: float) -> _Watched:
        policy = self.assets.policy
        left_s = max(_SEARCH_SHARE * (until - time.monotonic()), _LEAST_SEARCH_S)
        limit_s = left_s if policy.time_limit_s is None else min(policy.time_limit_s, left_s)
        threshold = policy.threshold
        if request.threshold_s is not None:
            threshold = ConstantThreshold(request.threshold_s)
        same = {item.name: getattr(policy, item.name) for item in fields(Ideal)}
        return _Watched(**same | {"threshold": threshold, "time_limit_s": limit_s})

    def _explanation(
        self,
        situation: Situation,
        decision: Decision,
        outlook: Outlook | None,
        explained: Explanation | None,
    ) -> dict[str, Any]:
        lines = [f"{decision.reason}."]
        if explained is not None:
            lines.append(str(explained))
        roads: list[dict[str, Any]] = []
        times = situation.router_times_s
        if times is None and outlook is not None:
            times = outlook.scenarios.nominal_times
        if decision.second is not None and times is not None:
            roads = answer.road_seconds(
                situation.network, decision.primary.path, decision.second.path, times
            )
        return {"text": "\n".join(lines), "roads": roads, "stress": answer.stress(explained)}


def _doubts(decision: Decision, outlook: Outlook | None) -> list[Reason]:
    """What makes the numbers less certain than they look."""
    reasons: list[Reason] = []
    if outlook is not None and outlook.forecast.unusual:
        words = "; ".join(outlook.forecast.unusual)
        reasons.append(("unusual_context", f"unlike anything in training: {words}"))
    if outlook is not None and outlook.forecast.transferred:
        reasons.append(("other_network", "the model was trained on another network"))
    if decision.details.get("gap_status") == "open" and decision.details["gap_upper_s"] is None:
        reasons.append(("gap_open", "the search for the gap ran out of time"))
    return reasons


def _oldest_s(weather: Weather, at: datetime) -> float | None:
    """How old the oldest known value is at a moment."""
    ages = [value.age(at) for value in weather if value.known]
    known = [age.total_seconds() for age in ages if age is not None]
    return max(max(known), 0.0) if known else None


def _with(weather: Weather, given: WeatherIn, at: datetime) -> Weather:
    """The weather with what the caller knows in place of our own."""
    told = {
        name: WeatherValue(value, "request", "", at)
        for name in WEATHER_VARIABLES
        if (value := getattr(given, name)) is not None
    }
    own = {name: getattr(weather, name) for name in WEATHER_VARIABLES}
    return Weather(**own | told)
