"""What a person can read off a gap: which roads differ, where the advantage comes from."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.gap.optimistic_gap import OptimisticGap
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.scenarios import ScenarioSet

_UNNAMED = "unnamed road"
_SHOWN = 5

_Totals = dict[str, list[float]]
"""Metres, nominal seconds and seconds in the scenario of each road."""


@dataclass(frozen=True, slots=True)
class RoadShare:
    """One road on one of the two paths, or on both.

    ``nominal_s`` and ``scenario_s`` are the seconds on it nominally and in the
    optimistic scenario; ``slowdown`` is their ratio.
    """

    name: str
    length_m: float
    nominal_s: float
    scenario_s: float

    @property
    def slowdown(self) -> float:
        return self.scenario_s / self.nominal_s if self.nominal_s else 1.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The two paths road by road, longest first, in the scenario that attains the gap.

    ``advantage_s`` gives each road's part of the gap: seconds the secondary
    avoids (positive) or takes on (negative); they add up to the lower end.
    ``stressed`` are the roads of both paths that slow down most together, with
    the correlation of their times with the most stressed one.
    """

    gap: OptimisticGap
    shared: tuple[RoadShare, ...]
    primary_only: tuple[RoadShare, ...]
    secondary_only: tuple[RoadShare, ...]
    advantage_s: tuple[tuple[str, float], ...]
    stressed: tuple[tuple[RoadShare, float], ...]

    def __str__(self) -> str:
        gap = self.gap
        when = f"{abs(gap.lower_s):.0f} s {'sooner' if gap.lower_s >= 0 else 'later at best'}"
        lines = [f"A second ambulance could plausibly arrive {when}."]
        if gap.status == "exact":
            lines.append("This is exact for the scenario set.")
        if gap.worth_sending is not None and gap.threshold_s is not None:
            side = "more" if gap.worth_sending else "not more"
            lines.append(f"Proved: {side} than the threshold of {gap.threshold_s:.0f} s.")
        elif gap.status == "open":
            lines.append(f"It is proved only that it is no more than {gap.upper_s:.0f} s.")
        if not len(gap.secondary):
            lines.append("The second ambulance is there already.")
        elif not self.secondary_only and not self.primary_only:
            lines.append("Both would drive the same roads.")
        shared_m = sum(road.length_m for road in self.shared)
        lines.append(f"The two ways share {shared_m / 1000:.1f} km.")
        for name, seconds in self.advantage_s[:_SHOWN]:
            verb = "avoids" if seconds > 0 else "takes on"
            lines.append(f"  {verb} {abs(seconds):.0f} s on {name}")
        slow = [road for road, _ in self.stressed if road.slowdown > 1.01]
        if slow:
            names = ", ".join(f"{road.name} (×{road.slowdown:.2f})" for road in slow[:3])
            lines.append(f"In that scenario these slow down together: {names}.")
        return "\n".join(lines)


def explain(
    gap: OptimisticGap, network: RoadNetwork, scenarios: ScenarioSet, primary: Path
) -> Explanation:
    """The gap in roads and seconds."""
    first, second = Counter(primary.edges.tolist()), Counter(gap.secondary.edges.tolist())
    either = sorted(first.keys() | second.keys())
    names = [network.name[edge] or _UNNAMED for edge in either]
    of_edge = zip(
        network.length_m[either].tolist(),
        scenarios.nominal_times[either].tolist(),
        scenarios.times(gap.metric, np.array(either, np.int32)).tolist(),
        strict=True,
    )
    groups: tuple[_Totals, ...] = ({}, {}, {}, {})
    for edge, name, (length_m, nominal_s, scenario_s) in zip(either, names, of_edge, strict=True):
        one, other = first[edge], second[edge]
        both = min(one, other)
        counts = both, one - both, other - both, max(one, other)
        for totals, count in zip(groups, counts, strict=True):
            for _ in range(count):  # mostly one: a path that comes back counts an edge twice
                part = totals.setdefault(name, [0.0, 0.0, 0.0])
                part[0] += length_m
                part[1] += nominal_s
                part[2] += scenario_s
    shared, primary_only, secondary_only, roads = map(_longest_first, groups)
    advantage: dict[str, float] = {}
    for sign, alone in ((1.0, primary_only), (-1.0, secondary_only)):
        for road in alone:
            advantage[road.name] = advantage.get(road.name, 0.0) + sign * road.scenario_s
    ranked = sorted(advantage.items(), key=lambda item: (-abs(item[1]), item[0]))
    return Explanation(
        gap,
        shared,
        primary_only,
        secondary_only,
        tuple(ranked),
        _stressed(scenarios, roads, either, names),
    )


def _longest_first(totals: _Totals) -> tuple[RoadShare, ...]:
    roads = [RoadShare(name, *part) for name, part in totals.items()]
    return tuple(sorted(roads, key=lambda road: (-road.length_m, road.name)))


def _stressed(
    scenarios: ScenarioSet, roads: tuple[RoadShare, ...], edges: list[int], names: list[str]
) -> tuple[tuple[RoadShare, float], ...]:
    """The roads that slow down most, with the correlation of their times with the first's.

    A road stands for its edges, which have its name: the correlation of two sums of edge
    times follows from their path matrices as of two edges from their embeddings.
    """
    ranked = sorted(roads, key=lambda road: (-road.slowdown, road.name))[:_SHOWN]
    if not ranked:
        return ()
    of_road: dict[str, list[int]] = {road.name: [] for road in ranked}
    for edge, name in zip(edges, names, strict=True):
        if name in of_road:
            of_road[name].append(edge)
    rows = [scenarios.embeddings[found] for found in of_road.values()]
    matrices = np.array([row.T @ row for row in rows]).reshape(len(ranked), -1)
    inner = matrices @ matrices.T
    norms = np.sqrt(inner.diagonal() * inner[0, 0])
    correlation = np.divide(inner[0], norms, out=np.zeros_like(norms), where=norms > 0.0)
    return tuple(zip(ranked, correlation.tolist(), strict=True))
