"""What a person can read off a gap: which roads differ, where the advantage comes from."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.gap.optimistic_gap import OptimisticGap
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.scenarios import ScenarioSet

_UNNAMED = "unnamed road"
_SHOWN = 5


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
    columns = (
        network.length_m[either],
        scenarios.nominal_times[either],
        scenarios.times(gap.metric, np.array(either, np.int32)),
    )
    of_edge = dict(zip(either, np.stack(columns, axis=1).tolist(), strict=True))

    def by_road(edges: Counter[int]) -> tuple[RoadShare, ...]:
        totals: dict[str, list[float]] = {}
        for edge in sorted(edges.elements()):
            part = totals.setdefault(network.name[edge] or _UNNAMED, [0.0, 0.0, 0.0])
            for i, value in enumerate(of_edge[edge]):
                part[i] += value
        roads = [RoadShare(name, *part) for name, part in totals.items()]
        return tuple(sorted(roads, key=lambda road: (-road.length_m, road.name)))

    primary_only, secondary_only = by_road(first - second), by_road(second - first)
    advantage: dict[str, float] = {}
    for sign, roads in ((1.0, primary_only), (-1.0, secondary_only)):
        for road in roads:
            advantage[road.name] = advantage.get(road.name, 0.0) + sign * road.scenario_s
    ranked = sorted(advantage.items(), key=lambda item: (-abs(item[1]), item[0]))
    return Explanation(
        gap,
        by_road(first & second),
        primary_only,
        secondary_only,
        tuple(ranked),
        _stressed(network, scenarios, by_road(first | second), either),
    )


def _stressed(
    network: RoadNetwork, scenarios: ScenarioSet, roads: tuple[RoadShare, ...], edges: list[int]
) -> tuple[tuple[RoadShare, float], ...]:
    """The roads that slow down most, with the correlation of their times with the first's.

    A road stands for its edges: the correlation of two sums of edge times follows
    from their path matrices as of two edges from their embeddings, and the inner
    product of two path matrices is the sum of (φᵀψ)² over all pairs of their edges.
    """
    ranked = sorted(roads, key=lambda road: (-road.slowdown, road.name))[:_SHOWN]
    if not ranked:
        return ()
    rows, names = scenarios.embeddings[edges], [network.name[edge] or _UNNAMED for edge in edges]
    belongs = np.array([[name == road.name for name in names] for road in ranked], np.float64)
    inner = belongs @ (rows @ rows.T) ** 2 @ belongs.T
    norms = np.sqrt(inner.diagonal() * inner[0, 0])
    correlation = np.divide(inner[0], norms, out=np.zeros_like(norms), where=norms > 0.0)
    return tuple(zip(ranked, correlation.tolist(), strict=True))
