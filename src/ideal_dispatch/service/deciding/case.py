"""A call as far as it is known here: where it is, who could go, who was sent, the weather."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.dispatch import Assignment, Incident, Readiness
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.roads import closure_remarks
from ideal_dispatch.service.deciding.starts import NoAdviceError, Starts
from ideal_dispatch.service.messages import AssignedPrimary, Call, KnownWeather, Picture
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

if TYPE_CHECKING:
    from ideal_dispatch.service.deciding.assets import Assets

_TIMES, _MORE_M = 2.0, 5000.0  # a line may have so many times the shortest way, and more


@dataclass(frozen=True, slots=True)
class CallAsRead:
    """What is known about a call at this moment, before any router is asked.

    The node of the incident is ``snapped_m`` away from the reported place. ``alternatives`` says
    whether a depot's other route is wanted also where other depots have one. ``weather_s`` and
    ``units_s`` are ages, None where not known. ``network`` has the roads that are open.
    """

    incident: Incident
    ready: Readiness
    weather: Weather
    network: RoadNetwork
    starts: Starts | None = None
    alternatives: bool = True
    snapped_m: float = 0.0
    units_s: float | None = None
    weather_s: float | None = None


class CallReader:
    """Reads calls against what is known about the city; may be asked from many threads."""

    def __init__(self, assets: "Assets", settings: ServiceSettings) -> None:
        self._assets, self._settings = assets, settings
        # a policy that does not say which seconds it considers may consider them all
        self._alternatives = "alternative" in getattr(assets.policy, "seconds", ("alternative",))

    def read(
        self, call: Call, picture: Picture, polled: KnownWeather, reasons: list[Reason]
    ) -> CallAsRead:
        """The call as read, or a NoAdviceError; ``reasons`` get what is less than it could be."""
        now, city, place = moment(picture.now), self._settings.city, call.location
        self._check_moment(call, now, reasons)
        snap = self._assets.network.snap(place.lon, place.lat, city.snap_limit_m)
        if place.accuracy_m is not None and place.accuracy_m > city.accuracy_limit_m:
            words = f"the location is known to {place.accuracy_m:.0f} m only"
            reasons.append(("location_uncertain", words))
        if not picture.units:
            raise NoAdviceError(
                "units_unknown",
                "no unit has been reported; report units with PUT /v1/units, one by one or as the "
                "number free at each depot",
            )
        starts = self._assets.starts.read(call, picture, reasons)
        if starts.promised:
            reasons.append(("last_unit_promised", starts.promised))
        units_s = max(picture.now - max(unit.told_at for unit in picture.units), 0) / 1e6
        if units_s > self._settings.units.stale_s:
            words = f"there has been no news of any unit for {units_s / 60:.0f} min"
            reasons.append(("units_stale", words))
        weather, weather_s = self._weather_of(call, polled, now, reasons)
        path = self._path(call.primary, starts, snap.node, reasons)
        if starts.sent is None and not any(starts.units):
            if starts.promised:
                raise NoAdviceError("last_unit_promised", starts.promised)
            raise NoAdviceError("no_unit", "no unit is free")
        sent_unit = "" if call.primary is None else call.primary.unit or ""
        ready = Readiness(
            starts.depots,
            [len(units) for units in starts.units],
            None if self._assets.region is None else int(self._assets.region[snap.node]),
            starts.sent if starts.sent is None or path is None else Assignment(starts.sent, path),
            starts.sent_ago_s,
            starts.elsewhere,
            starts.driven_s,
            sent_unit if starts.first is None else starts.first.id,
            [[unit.id for unit in units] for units in starts.units],
        )
        network = self._assets.roads.open(picture.closures)
        if picture.closures:
            remarks, refusal = closure_remarks(ready, snap.node, network, picture.closures)
            reasons.extend(remarks)
            if refusal:
                raise NoAdviceError("unreachable", refusal)
        incident = Incident(call.call_id, snap.node, now)
        return CallAsRead(
            incident, ready, weather, network, starts, self._alternatives, snap.distance_m,
            units_s, weather_s,
        )  # fmt: skip

    def silence(self, read: CallAsRead, units: list[Unit | None], now: int) -> list[Reason]:
        """Which of the units that a decision rests on have been silent for too long.

        One that never reports its position reports only what changes: its silence means nothing.
        """
        stale_s = self._settings.units.stale_s
        if (read.units_s or 0.0) > stale_s:
            return []  # there is no news of any unit: that is said
        silent = [
            f"there has been no news of {unit.id} for {(now - unit.told_at) / 60e6:.0f} min"
            for unit in units
            if unit is not None and (unit.anonymous or unit.seen_at is not None)
            and now - unit.told_at > stale_s * 1e6
        ]  # fmt: skip
        return [("units_stale", "; ".join(silent))] if silent else []

    def _check_moment(self, call: Call, now: datetime, reasons: list[Reason]) -> None:
        """Advice is for now: not for a call of an hour ago, nor of tomorrow."""
        age_s = (now - call.received_at).total_seconds()
        limits = self._settings.server
        if age_s > limits.oldest_call_s:
            raise NoAdviceError(
                "call_too_old",
                f"the call came in {age_s / 60:.0f} min ago, advice is given for "
                f"{limits.oldest_call_s / 60:.0f} min; check that calls are not held up",
            )
        if -age_s > limits.clock_skew_s:
            raise NoAdviceError(
                "call_in_future",
                f"received_at is {-age_s:.0f} s ahead of the clock here; check both clocks",
            )
        if age_s < -5.0:
            reasons.append(("clock_skew", f"received_at is {-age_s:.0f} s ahead of the clock here"))

    def _weather_of(
        self, call: Call, polled: KnownWeather, now: datetime, reasons: list[Reason]
    ) -> tuple[Weather, float | None]:
        if call.weather is not None:
            known = {name: value for name, value in call.weather.items() if value is not None}
            given = {name: WeatherValue(value, "request", "", now) for name, value in known.items()}
            weather = replace(polled.weather, **given)
            if len(given) == len(WEATHER_VARIABLES):
                return weather, 0.0  # what is wrong with our own does not matter then
            polled = replace(polled, weather=weather, age_s=oldest_s(weather, now))
        if polled.stale:
            reasons.append(("weather_stale", "weather values too old to use are left out"))
        if polled.problem:
            reasons.append(("weather_unavailable", f"weather: {polled.problem}"))
        return polled.weather, polled.age_s

    def _path(
        self, primary: AssignedPrimary | None, starts: Starts, node: int, reasons: list[Reason]
    ) -> Path | None:
        """The path that the CAD reports for its primary, if it can be used."""
        if primary is None or starts.sent is None:
            return None
        network, start = self._assets.network, starts.depots[starts.sent]
        try:
            if primary.polyline is not None:
                return self._laid(primary.polyline, start, node)
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

    def _laid(self, polyline: str, start: Depot, node: int) -> Path:
        """A line on the network, from a depot, or from where a unit is on an edge."""
        from ideal_dispatch.traffic.foreign_route import decode_polyline, laid_on

        network, points, origin = self._assets.network, decode_polyline(polyline), start.node
        if start.edge is not None:
            origin = int(network.tail[start.edge])
            points = np.vstack([[network.lon[origin], network.lat[origin]], points])
        # laying it takes time by its length, not by its points
        line_m = float(np.hypot(*np.diff(network.snapper.plane.to_metres(points), axis=0).T).sum())
        way_m = network.shortest_path(network.length_m, origin, node).length_m(network)
        if line_m > _TIMES * way_m + _MORE_M:
            raise InputError(
                f"its line is {line_m / 1000:,.1f} km long, the shortest way {way_m / 1000:,.1f} "
                "km; send the planned route, no noisy trace"
            )
        path = laid_on(network, points, origin, node)
        if start.edge is None:
            return path
        if not len(path) or path.edges[0] != start.edge:
            raise InputError("it does not lead on along the road that the unit is on")
        return network.path(path.edges[1:], start.node)


def oldest_s(weather: Weather, at: datetime) -> float | None:
    """How old the oldest known value is at a moment."""
    ages = [value.age(at) for value in weather if value.known]
    known = [age.total_seconds() for age in ages if age is not None]
    return max(max(known), 0.0) if known else None
