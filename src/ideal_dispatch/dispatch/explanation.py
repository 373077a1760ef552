"""A decision explained: the way of the second ambulance that is advised, beside the primary's."""

from dataclasses import dataclass
from typing import Literal

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.scenario_gap import on_path
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.way import longest_roads
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.explanation import Stress, Ways, slow_together, stressed, told
from ideal_dispatch.network import Path

SecondsFrom = Literal["router", "forecast", "free_flow"]

_WHOSE: dict[SecondsFrom, str] = {
    "router": "Seconds by road are in the traffic of now.",
    "forecast": "Seconds by road are by the forecast.",
    "free_flow": "Seconds by road are on empty roads.",
}


@dataclass(frozen=True, slots=True)
class OtherWay:
    """The gap's way where that is another than the second's: its depot and its longest roads."""

    depot: str
    roads: tuple[str, ...]

    def __str__(self) -> str:
        by = f", by {', '.join(self.roads)}" if self.roads else ""
        return f"from {self.depot}{by}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The ways of primary and second by road, and what the gap says.

    ``ways`` is None where there is no second. ``seconds_from`` says whose seconds by
    road these are; those of a forecast need not add up to the quotes. ``stressed`` are
    roads of primary and second in the scenario of the gap.
    """

    ways: Ways | None
    seconds_from: SecondsFrom | None = None
    gap: OptimisticGap | None = None
    other_way: OtherWay | None = None
    stressed: tuple[Stress, ...] = ()

    def __str__(self) -> str:
        lines = [] if self.gap is None else [told(self.gap)]
        if self.other_way is not None:
            lines.append(
                f"The largest plausible advantage belongs to another way: {self.other_way}."
            )
        if self.ways is not None:
            lines.append(str(self.ways))
        if self.seconds_from is not None:
            lines.append(_WHOSE[self.seconds_from])
        return "\n".join([*lines, *slow_together(self.stressed)])


def explain(situation: Situation, decision: Decision) -> Explanation:
    """Why, by what was computed for the decision: nothing is searched again."""
    network, gap, outlook = situation.network, decision.gap, decision.outlook
    ways, seconds_from, paths = None, None, [decision.primary.path]
    if decision.second is not None:
        paths.append(decision.second.path)
        seconds_from, times_s = _edge_times(situation, decision)
        ways = Ways.of(network, paths[0], paths[1], times_s)
    if gap is None or outlook is None:
        return Explanation(ways, seconds_from)
    other = None if gap.secondary in paths[1:] else _other_way(situation, decision, gap.secondary)
    slow = stressed(gap, network, outlook.scenarios, paths)
    return Explanation(ways, seconds_from, gap, other, slow)


def _edge_times(situation: Situation, decision: Decision) -> tuple[SecondsFrom, FloatArray]:
    """Seconds of every edge: the router's, else the forecast's, else at free flow."""
    if situation.router_times_s is not None:
        return "router", situation.router_times_s
    if decision.outlook is not None:
        return "forecast", decision.outlook.scenarios.nominal_times
    if situation.forecast is not None:
        return "forecast", situation.forecast.nominal_times
    return "free_flow", situation.network.free_flow_times_s


def _other_way(situation: Situation, decision: Decision, path: Path) -> OtherWay:
    station = on_path(situation, decision.primary.station, path, 0).station
    depot = situation.stations[station].depot.name
    return OtherWay(depot, tuple(longest_roads(situation.network, path)))
