"""The target radius of a past trip: how far the metric must move to explain its duration.

Symbols: ``X`` metric, ``t`` observed time, ``t̂`` nominal time, ``h(X)`` time of
the fastest path under X, ``G`` path matrix, ``μ ≥ 0`` one multiplier per path,
``M = Σ μG`` with eigenvalues ``m``, ``g`` the dual function. By weak duality

    g(μ) = log det(I − M) + t Σμ ≤ ρ ≤ D(sX, I),    X = (I − M)⁻¹, s = t / h(X),

for every μ ≥ 0 with M ≺ I: the left end needs no more than the paths in M, and sX
is feasible as h(sX) = t. Both are computed from small differences, as

    g(μ) = Σ μ (t − tr G) − Σ κ(−m),    X − I = XM,

so that a trip a hair above its nominal time has a radius with digits.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, frozen, non_negative, read_only, whole_number
from ideal_dispatch.errors import CertificateError, InputError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Source, source_node
from ideal_dispatch.scenarios.burg import burg_divergence
from ideal_dispatch.scenarios.cutting_planes import (
    attained_divergence,
    cutting_planes,
    dual_bound,
    fill_cut,
)
from ideal_dispatch.scenarios.scenario_set import ScenarioSet

_EPSILON = float(np.finfo(np.float64).eps)
_AGREEMENT = 1e-9  # relative difference of two honest computations of one bound
_MOST_CUTS = 10_000
_FARTHEST = 1e9  # stretch beyond which only the scale of metric and bounds grows


@dataclass(frozen=True, slots=True, eq=False)
class TargetRadius:
    """The smallest Burg radius whose scenarios explain an observed travel time.

    The radius lies between ``lower``, which ``multipliers`` of ``paths`` prove,
    and ``upper``, which ``metric`` attains: under it no path is faster than the
    observed time. Both are zero when the nominal time is no shorter than that,
    and infinite when no metric helps, because a path has only zero embeddings;
    ``paths`` then holds that path, its multiplier is infinite and ``metric`` is
    the identity. ``cuts`` counts the paths looked at, ``iterations`` the steps
    of Newton's method.
    """

    lower: float
    upper: float
    metric: FloatArray
    multipliers: FloatArray
    paths: tuple[Path, ...]
    cuts: int
    iterations: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", frozen(self.metric))
        object.__setattr__(self, "multipliers", frozen(self.multipliers))

    @property
    def relative_gap(self) -> float:
        """(upper − lower) / upper; zero where both are zero or infinite."""
        return 0.0 if self.lower == self.upper else (self.upper - self.lower) / self.upper

    def verify(
        self,
        network: RoadNetwork,
        embeddings: npt.ArrayLike,
        origin: Source,
        destination: int,
        observed_s: float,
    ) -> None:
        """Recompute both bounds from the certificate; :class:`CertificateError` on any lie."""
        observed = non_negative(observed_s, "observed time", seconds=True)
        scenarios = _checked_scenarios(network, embeddings)
        ends = (source_node(origin), destination)
        for path in (network.path(given.edges, given.origin) for given in self.paths):
            if (path.origin, path.destination) != ends:
                raise CertificateError(
                    f"target radius: {path} of its certificate joins other nodes"
                )
            if network.forbidden_turn(path) is not None:
                raise CertificateError(
                    f"target radius: {path} of its certificate makes a forbidden turn"
                )
        lower = _proved(scenarios, self.paths, self.multipliers, observed)
        if not _agree(self.lower, lower):
            raise CertificateError(f"target radius: lower is {self.lower}, its paths prove {lower}")
        upper = math.inf if lower == math.inf else burg_divergence(self.metric)
        if not _agree(self.upper, upper):
            raise CertificateError(
                f"target radius: upper is {self.upper}, its metric attains {upper}"
            )
        if upper < math.inf:
            times = scenarios.times(self.metric)
            path = network.shortest_path(times, origin, destination)
            rounding = _EPSILON * (len(path) + scenarios.dimension)
            if path.time_s(times) < observed * (1.0 - rounding):
                raise CertificateError(
                    f"target radius: under its metric the trip takes {path.time_s(times)} s, "
                    f"less than the observed {observed} s"
                )


def target_radius(
    network: RoadNetwork,
    embeddings: npt.ArrayLike,
    origin: Source,
    destination: int,
    observed_s: float,
    *,
    tolerance: float = 1e-8,
    most_cuts: int = 200,
) -> TargetRadius:
    """Bounds on ρ = min D(X, I) over metrics X under which no path beats ``observed_s``.

    [IDEAL] equation 14. Zero when the nominal time is no shorter than the
    observed one; so a trip that ends where it starts has radius zero if it took
    no time, and an infinite one otherwise. The bounds allow for the rounding of
    path times, and so stay apart when the observed time exceeds the nominal one
    by less than about 1e-6 of it. Paths that make a forbidden turn do not count.

    Unlike the paper, which hands its dual program (Proposition 2) to an
    interior-point solver, paths enter one by one: the dual function of the paths
    so far is maximised by Newton's method, the fastest path under its metric is
    the next cut, until upper − lower ≤ ``tolerance`` · upper, no path violates, or
    ``most_cuts`` are made; the interval returned holds ρ in each case.

    >>> network = RoadNetwork.from_arrays([0, 0], [1, 1], [100.0, 120.0])
    >>> radius = target_radius(network, [[3.0, 0.0], [0.0, 3.5]], 0, 1, observed_s=18.0)
    >>> radius.metric.round(4)
    array([[2.    , 0.    ],
           [0.    , 1.4694]])
    >>> round(radius.lower, 6), round(radius.upper, 6), radius.cuts
    (0.391395, 0.391395, 2)
    """
    if not (isinstance(tolerance, (int, float)) and tolerance >= 0.0):
        raise InputError(f"tolerance {tolerance!r}: it must be zero or more")
    if not 1 <= whole_number(most_cuts, "most_cuts") <= _MOST_CUTS:
        raise InputError(f"most_cuts {most_cuts}: it must be from 1 to {_MOST_CUTS:,}")
    observed = non_negative(observed_s, "observed time", seconds=True)
    scenarios = _checked_scenarios(network, embeddings)
    unrolled, edge = network.unrolled(destination)
    if edge is not None:
        network.shortest_path(scenarios.nominal_times, origin, destination)  # checks both ends
        found = target_radius(
            unrolled, scenarios.embeddings[edge], origin, destination, observed,
            tolerance=tolerance, most_cuts=most_cuts,
        )  # fmt: skip
        driven = (replace(path, edges=edge[path.edges]) for path in found.paths)
        return replace(found, paths=tuple(driven))
    network = unrolled
    to_target = network.distances_to(scenarios.nominal_times, destination)
    path = network.shortest_path(
        scenarios.nominal_times, origin, destination, potential_s=to_target
    )
    nominal = path.time_s(scenarios.nominal_times)
    identity = np.eye(scenarios.dimension)
    if observed <= max(nominal, to_target[path.origin]):
        return TargetRadius(0.0, 0.0, identity, np.empty(0), (), 0, 0)
    if nominal == 0.0 or observed / nominal == math.inf:
        return TargetRadius(math.inf, math.inf, identity, np.array([math.inf]), (path,), 1, 0)
    reached = min(observed, _FARTHEST * nominal)
    roads = (*network.outgoing, scenarios.embeddings, scenarios.nominal_times, to_target)
    metric, multipliers, edges, ends, iterations = cutting_planes(
        roads, path.edges, path.origin, destination, reached, nominal, tolerance, most_cuts,
    )  # fmt: skip
    if reached < observed:
        metric *= observed / reached
    active = np.flatnonzero(multipliers)
    starts = np.concatenate(([0], ends[:-1]))
    paths = tuple(Path(edges[starts[j] : ends[j]], path.origin, path.destination) for j in active)
    multipliers = multipliers[active] / nominal
    lower = _proved(scenarios, paths, multipliers, observed)
    upper = float(attained_divergence(metric))
    return TargetRadius(min(lower, upper), upper, metric, multipliers, paths, ends.size, iterations)


def _proved(
    scenarios: ScenarioSet, paths: tuple[Path, ...], multipliers: FloatArray, observed: float
) -> float:
    """The lower bound that the paths prove with these multipliers, in 1/s."""
    weights = read_only(multipliers, np.float64, (len(paths),), "multipliers")
    if not (weights >= 0.0).all():
        raise CertificateError("target radius: multipliers must be zero or positive")
    if not paths or observed == 0.0:
        return 0.0
    times = [path.time_s(scenarios.nominal_times) for path in paths]
    if min(times) == 0.0 or observed / min(times) == math.inf:
        return math.inf
    if not np.isfinite(weights).all():
        raise CertificateError("target radius: an infinite multiplier needs a path of no time")
    size = scenarios.dimension
    matrices, excess = np.empty((len(paths), size, size)), np.empty(len(paths))
    for j, path in enumerate(paths):
        excess[j] = fill_cut(scenarios.embeddings, path.edges, observed, times[0], matrices[j])
    longest = max(map(len, paths))
    bound, _ = dual_bound(matrices, excess, weights * times[0], observed / times[0], longest)
    return max(float(bound), 0.0)


def _agree(claimed: float, found: float) -> bool:
    return claimed == found or abs(claimed - found) <= _AGREEMENT * abs(found) < math.inf


def _checked_scenarios(network: RoadNetwork, embeddings: npt.ArrayLike) -> ScenarioSet:
    scenarios = ScenarioSet(embeddings, 0.0)  # type: ignore[arg-type]
    if scenarios.num_edges != network.num_edges:
        raise InputError(
            f"embeddings: expected one row for each of {network.num_edges} edges, "
            f"got {scenarios.num_edges}"
        )
    return scenarios
