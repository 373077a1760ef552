"""A call as far as it is known here: where it is, who is free, who was sent, the weather."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Incident, Readiness
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.service import clock
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.closures import closed_edges
from ideal_dispatch.service.solver.depot_names import DepotNames, named
from ideal_dispatch.service.solver.messages import Call, KnownUnits, KnownWeather, Sent
from ideal_dispatch.service.solver.starts import Starts, UnitStarts, counted

if TYPE_CHECKING:
    from ideal_dispatch.dispatch import Decision
    from ideal_dispatch.service.solver.assets import Assets

_TIMES, _MORE_M = 2.0, 5000.0  # a line may have so many times the shortest way, and more


class NoAdviceError(IdealError):
    """There is nothing to advise; the code says why."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class Case:
    """What is known about a call at this moment, before any router is asked.

    The node of the incident is ``snapped_m`` away from the place told. ``alternatives``
    says whether a depot's other route is wanted also where other depots have one.
    ``weather_s`` and ``units_s`` are ages, None where not known. ``network`` is the one that
    closures leave, None where nothing is closed.
    """

    incident: Incident
    ready: Readiness
    weather: Weather
    starts: Starts | None = None
    alternatives: bool = True
    snapped_m: float = 0.0
    units_s: float | None = None
    weather_s: float | None = None
    network: RoadNetwork | None = None


class CaseReader:
    """Reads calls against what is known about the city. May be asked from many threads."""

    def __init__(self, assets: "Assets", settings: ServiceSettings) -> None:
        self._assets, self._settings, self._clock = assets, settings, clock.now
        self._stations = {depot.name: n for n, depot in enumerate(assets.depots)}
        self.unit_starts = UnitStarts(
            assets.network, assets.depots, settings.units, settings.city.snap_limit_m
        )
        self._names = DepotNames(self._stations, settings.city.aliases)
        # a policy that does not say which seconds it considers may consider them all
        self._alternatives = "alternative" in getattr(assets.policy, "seconds", ("alternative",))

    def read(
        self, call: Call, known: KnownUnits, polled: KnownWeather, reasons: list[Reason]
    ) -> Case:
        """The case, with reasons for what is less than it could be, or a NoAdviceError."""
        now, city, place = self._clock(), self._settings.city, call.location
        self._check_moment(call, now, reasons)
        snap = self._assets.network.snap(place.lon, place.lat, city.snap_limit_m)
        if place.accuracy_m is not None and place.accuracy_m > city.accuracy_limit_m:
            words = f"the location is known to {place.accuracy_m:.0f} m only"
            reasons.append(("location_uncertain", words))
        starts = self._starts(call, known, reasons)
        sent, promised = starts.sent, starts.promised
        if promised:
            reasons.append(("last_unit_promised", promised))
        units_s = known.age_s if call.depots is None or known.fleet is not None else 0.0
        weather, weather_s = self._weather_of(call, polled, now, reasons)
        path = self._path(call.primary, starts, snap.node, reasons)
        if sent is None and not any(starts.free):
            if promised:
                raise NoAdviceError("last_unit_promised", promised)
            raise NoAdviceError("no_unit", "no depot is known to have a free unit")
        first = sent if sent is None or path is None else Assignment(sent, path)
        ago_s = max((now - call.received_at).total_seconds(), 0.0)
        going = starts.first
        if going is not None and not going.waiting and self.unit_starts.seen(going):
            ago_s = going.age_s or 0.0  # its way begins where it was seen then
        region = None if self._assets.region is None else int(self._assets.region[snap.node])
        ready = Readiness(starts.depots, starts.free, region, first, ago_s, starts.elsewhere)
        incident, more = Incident(call.call_id, snap.node, now), self._alternatives
        return Case(incident, ready, weather, starts, more, snap.distance_m, units_s, weather_s)

    def _starts(self, call: Call, known: KnownUnits, reasons: list[Reason]) -> Starts:
        """Where ambulances can start: at depots, by counts, or where their units are."""
        unit = None if call.primary is None else call.primary.unit
        told = None if known.fleet is None or unit is None else unit.casefold()
        if told is not None and any(one.id.casefold() == told for one in known.fleet or ()):
            sent = None  # the unit itself says where it is
        else:
            sent = self._station(call.primary)
        if known.fleet is None:
            units = self._units(call, sent, known, reasons)
            promised = self._without_promised(known, units)
            return counted(self._assets.depots, units, sent, promised)
        if call.depots is not None:
            words = "units are told one by one: the counts of the call are left aside"
            reasons.append(("depots_ignored", words))
        if known.age_s is not None and known.age_s > self._settings.units.stale_s:
            words = f"there has been no news of any unit for {known.age_s / 60:.0f} min"
            reasons.append(("units_stale", words))
        closed = closed_edges(call.closures)
        return self.unit_starts.read(known.fleet, call.location, unit, sent, reasons, closed)

    def silence(self, case: Case, decision: "Decision") -> list[Reason]:
        """Where there is no news of a unit on which the decision rests."""
        stale_s, first = self._settings.units.stale_s, decision.primary.station
        if case.starts is None or (case.units_s or 0.0) > stale_s:
            return []  # there is none of any unit: that is said
        units = [case.starts.primary(first)]
        if decision.second is not None:
            units.append(case.starts.second(decision.second.station, first))
        words = "; ".join(
            f"there has been no news of {one.id} for {one.silent_s / 60:.0f} min"
            for one in units
            if one is not None and one.silent_s > stale_s
        )
        return [("units_stale", words)] if words else []

    def _check_moment(self, call: Call, now: datetime, reasons: list[Reason]) -> None:
        """An advice is for now: not for a call of an hour ago, nor of tomorrow."""
        age_s = (now - call.received_at).total_seconds()
        limits = self._settings.server
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

    # --- units ------------------------------------------------------------------

    def _units(
        self, call: Call, sent: int | None, known: KnownUnits, reasons: list[Reason]
    ) -> list[int]:
        if call.depots is None:
            return self._told_units(call, sent, known, reasons)
        units = [0] * len(self._assets.depots)
        for name, free in call.depots:
            try:
                units[self._stations[self._names.find(name)]] += free
            except InputError as error:
                reasons.append(("unknown_depot", str(error)))
        return units

    def _told_units(
        self, call: Call, sent: int | None, known: KnownUnits, reasons: list[Reason]
    ) -> list[int]:
        table = self._settings.units
        if known.age_s is not None and known.age_s > table.stale_s:
            words = f"free units were last told {known.age_s / 60:.0f} min ago"
            reasons.append(("units_stale", words))
        untold = [name for name in self._stations if name not in known.units]
        if untold:
            words = f"nobody told free units of {named(untold)}; {table.default} each are assumed"
            reasons.append(("units_unknown", words))
        units = [known.units.get(name, table.default) for name in self._stations]
        if sent is None or units[sent] == 0:
            return units
        depot = self._assets.depots[sent].name
        told_at = known.told_at.get(depot)
        if told_at is None or told_at < call.received_at:  # the primary was free then
            units[sent] -= 1
            count = "no count was told" if told_at is None else "the count is older than the call"
            reasons.append(("units_assumed", f"{depot}: {count}; the primary is taken off it"))
        return units

    def _without_promised(self, known: KnownUnits, units: list[int]) -> str:
        """Take off what is promised to other calls; where none is left, in words."""
        words = []
        for depot, calls in known.promised.items():
            station = self._stations.get(depot)
            if station is None or units[station] == 0:
                continue
            units[station] = max(units[station] - len(calls), 0)
            if units[station] == 0:
                words.append(f"the last unit of {depot} is promised to call {calls[-1]}")
        return "; ".join(words)

    # --- weather ----------------------------------------------------------------

    def _weather_of(
        self, call: Call, polled: KnownWeather, now: datetime, reasons: list[Reason]
    ) -> tuple[Weather, float | None]:
        if call.weather is not None:
            told = {k: v for k, v in call.weather.items() if v is not None}
            given = {name: WeatherValue(v, "request", "", now) for name, v in told.items()}
            weather = replace(polled.weather, **given)
            if len(given) == len(WEATHER_VARIABLES):
                return weather, 0.0  # what is wrong with our own does not matter then
            polled = replace(polled, weather=weather, age_s=oldest_s(weather, now))
        if polled.stale:
            reasons.append(("weather_stale", "weather values too old to use are left out"))
        if polled.problem:
            reasons.append(("weather_unavailable", f"weather: {polled.problem}"))
        return polled.weather, polled.age_s

    # --- the ambulance that was sent --------------------------------------------

    def _station(self, primary: Sent | None) -> int | None:
        """The station of the ambulance that was sent."""
        if primary is None:
            return None
        if primary.depot is None:
            words = f"unit {primary.unit} is not known; tell of it, or name its depot"
            raise NoAdviceError("unknown_unit", words)
        try:
            return self._stations[self._names.find(primary.depot)]
        except InputError as error:
            raise NoAdviceError("unknown_depot", str(error)) from None

    def _path(
        self, primary: Sent | None, starts: Starts, node: int, reasons: list[Reason]
    ) -> Path | None:
        """The path of the ambulance that was sent, if one was told that can be used."""
        if primary is None or starts.sent is None:
            return None
        network, start = self._assets.network, starts.depots[starts.sent]
        origin = start.node
        try:
            if primary.polyline is not None:
                return self._laid(primary.polyline, start, node)
            if primary.edges is not None:
                own = 1 if primary.edges and primary.edges[0] == start.edge else 0  # it is on that
                path = network.path(np.array(primary.edges[own:], np.int64), origin)
                if path.destination != node:
                    raise InputError(f"it ends at node {path.destination}, not at node {node}")
                return path
        except (IdealError, OverflowError) as error:
            why = error if isinstance(error, IdealError) else "an edge number is far too large"
            words = f"the primary's path cannot be used ({why}); the router's is assumed"
            reasons.append(("primary_path_unknown", words))
        return None

    def _laid(self, polyline: str, start: Depot, node: int) -> Path:
        """A told line on the network, from a depot, or from where a unit is on an edge."""
        from ideal_dispatch.traffic.foreign_route import decode_polyline, laid_on

        network, points, origin = self._assets.network, decode_polyline(polyline), start.node
        if start.edge is not None:
            origin = int(network.tail[start.edge])
            points = np.vstack([[network.lon[origin], network.lat[origin]], points])
        self._check_length(points, origin, node)
        path = laid_on(network, points, origin, node)
        if start.edge is None:
            return path
        if not len(path) or path.edges[0] != start.edge:
            raise InputError("it does not lead on along the road that the unit is on")
        return network.path(path.edges[1:], start.node)

    def _check_length(self, points: FloatArray, origin: int, destination: int) -> None:
        """Refuse what is no route: laying it takes time by its length, not by its points."""
        network = self._assets.network
        metres = network.snapper.plane.to_metres(points)
        line_m = float(np.hypot(*np.diff(metres, axis=0).T).sum())
        way_m = network.shortest_path(network.length_m, origin, destination).length_m(network)
        if line_m > _TIMES * way_m + _MORE_M:
            raise InputError(
                f"its line is {line_m / 1000:,.1f} km long, the shortest way {way_m / 1000:,.1f} "
                "km; send the planned route, no noisy trace"
            )


def oldest_s(weather: Weather, at: datetime) -> float | None:
    """How old the oldest known value is at a moment."""
    ages = [value.age(at) for value in weather if value.known]
    known = [age.total_seconds() for age in ages if age is not None]
    return max(max(known), 0.0) if known else None
