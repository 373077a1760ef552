"""A decision explained by road: the path of its second ambulance beside the primary's."""

from dataclasses import dataclass
from typing import Literal

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.path_pair import longest_roads
from ideal_dispatch.dispatch.scenario_gap import on_path
from ideal_dispatch.gap import OptimisticGap
from ideal_dispatch.gap.explanation import (
    RoadComparison,
    Stress,
    none_sooner,
    slow_together,
    stressed,
    told,
)

TimesFrom = Literal["router", "forecast", "free_flow"]

_WHOSE: dict[TimesFrom, str] = {
    "router": "Seconds by road are in the traffic of now.",
    "forecast": "Seconds by road are by the forecast.",
    "free_flow": "Seconds by road are on empty roads.",
}


@dataclass(frozen=True, slots=True)
class OtherWay:
    """The gap's path where the second takes another one: its depot and its longest roads.

    Where these would be the second's own, they are the longest that the second does not drive.
    """

    depot: str
    roads: tuple[str, ...]

    def __str__(self) -> str:
        by = f", by {', '.join(self.roads)}" if self.roads else ""
        return f"from {self.depot}{by}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The paths of primary and second by road, and what the gap says.

    ``roads`` is None where there is no second. ``times_from`` says whose seconds by
    road these are; those of a forecast need not add up to the quotes. ``other_way`` is the
    gap's path, if it is neither the primary's nor the second's and the gap is above zero.
    ``stressed`` are roads of primary and second in the scenario of the gap. ``gain_s`` is the
    expected gain, where one was computed.
    """

    roads: RoadComparison | None
    times_from: TimesFrom | None = None
    gap: OptimisticGap | None = None
    other_way: OtherWay | None = None
    stressed: tuple[Stress, ...] = ()
    gain_s: float | None = None

    def __str__(self) -> str:
        lines = [] if self.gap is None else [told(self.gap)]
        if self.gap is not None and none_sooner(self.gap) and self.gain_s is not None:
            lines.append(f"The expected gain of {self.gain_s:.1f} s counts chance beyond that set.")
        if self.other_way is not None:
            lines.append(f"The optimistic gap belongs to another way: {self.other_way}.")
        if self.roads is not None:
            lines.append(str(self.roads))
        if self.times_from is not None:
            lines.append(_WHOSE[self.times_from])
        return "\n".join([*lines, *slow_together(self.stressed)])


def explanation_of(decision: Decision) -> Explanation:
    """What :meth:`Decision.explain` gives."""
    situation, gap, outlook = decision.about, decision.gap, decision.outlook
    network = situation.network
    compared, times_from, paths = None, None, [decision.primary.path]
    with situation.trace.step("explanation"):
        if decision.second is not None:
            paths.append(decision.second.path)
            times_from, times_s = _edge_times(decision)
            starts = (
                situation.stations[decision.primary.station].depot,
                situation.stations[decision.second.station].depot,
            )
            compared = RoadComparison.of(network, paths[0], paths[1], times_s, starts)
        if gap is None or outlook is None:
            return Explanation(compared, times_from)
        named = none_sooner(gap) or gap.secondary in paths
        other = None if named else _other_way(decision, gap)
        slow = stressed(gap, network, outlook.scenarios, paths)
        gain_s = None if decision.worth is None else decision.worth.gain_s
        return Explanation(compared, times_from, gap, other, slow, gain_s)


def _edge_times(decision: Decision) -> tuple[TimesFrom, FloatArray]:
    """Seconds of every edge: the router's, else the forecast's, else at free flow."""
    situation = decision.about
    if situation.router_times_s is not None:
        return "router", situation.router_times_s
    if decision.outlook is not None:
        return "forecast", decision.outlook.scenarios.nominal_times
    if situation.forecast is not None:
        return "forecast", situation.forecast.nominal_times
    return "free_flow", situation.network.free_flow_times_s


def _other_way(decision: Decision, gap: OptimisticGap) -> OtherWay:
    situation = decision.about
    station = on_path(situation, decision.primary.station, gap.secondary, 0).station
    roads, second = longest_roads(situation.network, gap.secondary), decision.second
    if second is not None and roads == longest_roads(situation.network, second.path):
        roads = longest_roads(situation.network, gap.secondary, apart_from=second.path)
    return OtherWay(situation.stations[station].depot.name, tuple(roads))
