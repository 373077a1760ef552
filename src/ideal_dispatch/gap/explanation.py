"""Two paths and a gap for people: which roads differ, and by how many seconds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.gap.optimistic_gap import OptimisticGap
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.path import Road, roads
from ideal_dispatch.scenarios import ScenarioSet

_SHOWN = 5
_SLOWER = 1.01  # a road that is slower by less is not worth a word
_SPOKEN_S = 0.5  # a smaller gap would be told as 0 s

_Pieces = list[tuple[Road, int, float]]
"""Edges with the road that each belongs to, and the share of it that is driven."""


@dataclass(frozen=True, slots=True)
class RoadShare:
    """One road on one of two paths, or on both: its metres and seconds there."""

    name: str
    length_m: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Stress:
    """A road that is slower in the scenario of a gap, and how it goes along with the worst one."""

    name: str
    slowdown: float
    correlation: float


@dataclass(frozen=True, slots=True)
class RoadComparison:
    """Two paths road by road, longest first: what both drive, and what one of them drives alone.

    ``advantage_s`` gives each road's part of the second's lead, largest first: seconds it
    avoids (positive) or takes on (negative). Parts of a road that has a name add up; a
    road without one is never the same as another.
    """

    shared: tuple[RoadShare, ...]
    primary_only: tuple[RoadShare, ...]
    second_only: tuple[RoadShare, ...]
    advantage_s: tuple[tuple[str, float], ...]

    @classmethod
    def of(
        cls,
        network: RoadNetwork,
        primary: Path,
        second: Path,
        times_s: FloatArray,
        starts: tuple[Depot, Depot] | None = None,
    ) -> "RoadComparison":
        """Both paths by the seconds of every edge; units may start on one, and drive its rest."""
        begun = starts or (None, None)
        first, other = (
            _pieces(network, path, start)
            for path, start in zip((primary, second), begun, strict=True)
        )
        shared, first_alone = _split(first, other)
        _, other_alone = _split(other, first)
        lead: dict[tuple[Road, float], float] = {}
        for sign, alone in ((1.0, first_alone), (-1.0, other_alone)):
            for road, edge, share in alone:
                part = road, 0.0 if road[1] == 0 else sign
                lead[part] = lead.get(part, 0.0) + sign * share * float(times_s[edge])
        ranked = sorted(lead.items(), key=lambda item: (-abs(item[1]), item[0]))
        return cls(
            _longest_first(network, times_s, shared),
            _longest_first(network, times_s, first_alone),
            _longest_first(network, times_s, other_alone),
            tuple((road[0], seconds) for (road, _), seconds in ranked),
        )

    @property
    def shared_m(self) -> float:
        """Metres that both drive."""
        return sum(road.length_m for road in self.shared)

    def __str__(self) -> str:
        apart = self.primary_only or self.second_only
        lines = [] if apart else ["Both would drive the same roads."]
        lines.append(f"The two ways share {self.shared_m / 1000:.1f} km.")
        for name, seconds in self.advantage_s[:_SHOWN]:
            verb = "avoids" if seconds > 0 else "takes on"
            lines.append(f"  {verb} {abs(seconds):.0f} s on {name}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class GapExplanation:
    """A gap, the primary's path beside the gap's in the scenario that attains it, and its roads.

    Here ``roads.advantage_s`` adds up to the lower end of the gap.
    """

    gap: OptimisticGap
    roads: RoadComparison
    stressed: tuple[Stress, ...]

    def __str__(self) -> str:
        there = [] if len(self.gap.secondary) else ["The second ambulance is there already."]
        return "\n".join([told(self.gap), *there, str(self.roads), *slow_together(self.stressed)])


def explain_gap(
    gap: OptimisticGap, network: RoadNetwork, scenarios: ScenarioSet, primary: Path
) -> GapExplanation:
    """The gap in roads and seconds.

    A policy may advise another second ambulance than the gap's: that one is explained by
    :meth:`ideal_dispatch.dispatch.Decision.explain`.
    """
    compared = RoadComparison.of(network, primary, gap.secondary, scenarios.times(gap.metric))
    slow = stressed(gap, network, scenarios, (primary, gap.secondary))
    return GapExplanation(gap, compared, slow)


def told(gap: OptimisticGap) -> str:
    """The gap in sentences."""
    exact, seconds = gap.status == "exact", f"{abs(gap.lower_s):.0f} s"
    if none_sooner(gap):
        found = "allows no other way" if exact else "was not found to allow any other way"
        lines = [f"Optimistic gap: the scenario set of drives {found} that is sooner."]
    else:
        when = "sooner" if gap.lower_s > 0 else "later"
        words = f"the scenario set of drives allows a second ambulance that is {seconds} {when}"
        lines = [f"Optimistic gap: {words}.", *["This is exact for the scenario set."] * exact]
    if gap.worth_sending is not None and gap.threshold_s is not None:
        side = "more" if gap.worth_sending else "not more"
        lines.append(f"Proved: {side} than the threshold of {gap.threshold_s:.0f} s.")
    elif gap.status == "open":
        most = f"more than {gap.upper_s:.0f} s sooner"
        if gap.upper_s < 0:
            most = f"less than {-gap.upper_s:.0f} s later"
        lines.append(f"It is proved only that none could be {most}.")
    return "\n".join(lines)


def none_sooner(gap: OptimisticGap) -> bool:
    """Whether the gap is zero seconds when rounded: there is no better way to speak of."""
    return abs(gap.lower_s) < _SPOKEN_S


def slow_together(found: tuple[Stress, ...]) -> list[str]:
    """The roads that slow down most, in a sentence; none where no road does."""
    names = ", ".join(f"{road.name} (×{road.slowdown:.2f})" for road in found[:3])
    words = "In the scenario of the largest advantage these slow down together"
    return [f"{words}: {names}."] if names else []


def stressed(
    gap: OptimisticGap, network: RoadNetwork, scenarios: ScenarioSet, paths: Iterable[Path]
) -> tuple[Stress, ...]:
    """The roads of some paths that slow down most in the scenario of a gap, the worst first.

    A road stands for its edges: the correlation of two sums of edge times follows from
    their path matrices as of two edges from their embeddings.
    """
    edges_of: dict[tuple[Road, int], set[int]] = {}
    for number, path in enumerate(paths):
        for road, edge in zip(roads(network, path), path.edges.tolist(), strict=True):
            edges_of.setdefault((road, 0 if road[1] == 0 else number), set()).add(edge)
    driven = sorted(set().union(*edges_of.values()))
    scenario_s = dict(zip(driven, scenarios.times(gap.metric, driven).tolist(), strict=True))
    nominal_s = dict(zip(driven, scenarios.nominal_times[driven].tolist(), strict=True))
    found = []
    for (road, _), edges in edges_of.items():
        usual_s = sum(nominal_s[edge] for edge in edges)
        slowdown = sum(scenario_s[edge] for edge in edges) / usual_s if usual_s else 1.0
        found.append((slowdown, road[0], sorted(edges)))
    slower = (one for one in found if one[0] > _SLOWER)
    worst = sorted(slower, key=lambda one: (-one[0], one[1]))[:_SHOWN]
    if not worst:
        return ()
    rows = [scenarios.embeddings[there] for _, _, there in worst]
    matrices = np.array([row.T @ row for row in rows]).reshape(len(worst), -1)
    inner = matrices @ matrices.T
    norms = np.sqrt(inner.diagonal() * inner[0, 0])
    correlation = np.divide(inner[0], norms, out=np.zeros_like(norms), where=norms > 0.0)
    return tuple(
        Stress(name, slowdown, together)
        for (slowdown, name, _), together in zip(worst, correlation.tolist(), strict=True)
    )


def _pieces(network: RoadNetwork, path: Path, start: Depot | None) -> _Pieces:
    """What is driven: the rest of the edge that it starts on, and the edges of its path."""
    shares = np.ones(len(path))
    if start is not None and start.edge is not None:
        edges, shares = np.insert(path.edges, 0, start.edge), np.insert(shares, 0, start.ahead)
        path = replace(path, edges=edges)
    return list(zip(roads(network, path), path.edges.tolist(), shares.tolist(), strict=True))


def _split(pieces: _Pieces, other: _Pieces) -> tuple[_Pieces, _Pieces]:
    """Whole edges that the other drives too, each as often as it does, and all else."""
    left = Counter(edge for _, edge, share in other if share == 1.0)
    both: _Pieces = []
    alone: _Pieces = []
    for road, edge, share in pieces:
        shared = share == 1.0 and left[edge] > 0
        (both if shared else alone).append((road, edge, share))
        left[edge] -= shared
    return both, alone


def _longest_first(
    network: RoadNetwork, times_s: FloatArray, pieces: _Pieces
) -> tuple[RoadShare, ...]:
    totals: dict[Road, tuple[float, float]] = {}
    for road, edge, share in pieces:
        length_m, seconds = totals.get(road, (0.0, 0.0))
        length_m += share * float(network.length_m[edge])
        totals[road] = length_m, seconds + share * float(times_s[edge])
    shares = [RoadShare(road[0], *part) for road, part in totals.items()]
    return tuple(sorted(shares, key=lambda road: (-road.length_m, road.name)))
