"""The optimistic gap: speed of the same DCA beside other implementations, quality, growth.

Embeddings are smooth random ones (see :func:`smooth_embeddings`), or of trained
models: on the embedded city one of its synthetic trips, elsewhere one of attributes
learned from the taxi trips of Manhattan. Half of the primaries are the model's own
fastest path, half the fastest under disturbed times.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.city_trips import city_trips
from benchmarks.manhattan_trips import manhattan
from benchmarks.networks import smooth_embeddings, street_grid
from benchmarks.timing import human, race
from ideal_dispatch import Model, Path, RoadNetwork, ScenarioSet, optimistic_gap
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.gap import dca
from ideal_dispatch.gap.optimistic_gap import Method
from ideal_dispatch.gap.problem import GapProblem
from ideal_dispatch.learning import TrainParams, fit
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.depot_table import read_depots

RADII = (0.01, 0.05, 0.1, 0.3, 1.0)
DIMENSIONS = (8, 16, 32)
THRESHOLDS_S = (15.0, 30.0, 60.0, 120.0)
DEADLINE_S = 0.02
METHODS: tuple[Method, ...] = ("dca", "multistart", "certified")
SHARED = FilePath(__file__).resolve().parent.parent.parent / "shared" / "data"

_EVENING = np.full(27, np.nan)
_EVENING[5:13] = 18, 0, 0, 0, 0, 1, 0, 0  # six on a Friday, everything else unknown

Question = tuple[RoadNetwork, ScenarioSet, list[int], int, Path]


def questions(
    network: RoadNetwork, depots: list[int], scenarios: ScenarioSet, count: int, seed: int = 0
) -> Iterator[Question]:
    """Calls at random nodes."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        destination = int(rng.integers(network.num_nodes))
        disturbance = rng.lognormal(0, 0.2, network.num_edges) if i % 2 else 1.0
        times = scenarios.nominal_times * disturbance
        primary = network.shortest_path(times, depots, destination)
        yield network, scenarios, depots, destination, primary


# --- the same DCA, written with other libraries -------------------------------------


def _brent_metric(direction: Any, radius: float) -> Any:
    """Theorem 3 by a textbook root search on the paper's interval."""
    values, vectors = np.linalg.eigh(direction)
    low = max(0.0, -values[0])
    high = (-values[0] + np.sqrt(values[0] ** 2 + 4 * (values**2).sum() / radius)) / 2

    def excess(gamma: float) -> float:
        x = gamma / (values + gamma)
        return float((x - np.log(x) - 1).sum() - radius)

    gamma = brentq(excess, low + 1e-12 * high, high * (1 + 1e-12), xtol=1e-12, rtol=1e-12)
    return (vectors * (gamma / (values + gamma))) @ vectors.T


def _plain_dca(question: Question, fastest: Callable[[Any], list[int]]) -> float:
    _, scenarios, _, _, primary = question
    primary_matrix = scenarios.path_matrix(primary)
    metric = np.eye(scenarios.dimension)
    before: list[int] | None = None
    for _ in range(dca.MOST_STEPS):
        edges = fastest(((scenarios.embeddings @ metric) * scenarios.embeddings).sum(axis=1))
        direction = scenarios.path_matrix(np.array(edges, np.int32)) - primary_matrix
        if not direction.any():
            return 0.0
        if edges == before:  # as ours: the same path leads to the same metric, W_k = 0
            return -float(np.sum(direction * metric))
        before = edges
        following = _brent_metric(direction, scenarios.radius)
        decrease = float(np.sum(direction * (metric - following)))
        metric = following
        if decrease <= dca.TOLERANCE_S:
            break
    edges = fastest(((scenarios.embeddings @ metric) * scenarios.embeddings).sum(axis=1))
    chosen = scenarios.path_matrix(np.array(edges, np.int32))
    return float(np.sum((primary_matrix - chosen) * metric))


class _Others:
    """Fastest paths by scipy and networkx; of parallel edges the quickest counts."""

    def __init__(self, network: RoadNetwork) -> None:
        self._size = network.num_nodes
        keys = network.tail.astype(np.int64) * self._size + network.head
        self._order = np.argsort(keys, kind="stable")
        pairs, self._starts = np.unique(keys[self._order], return_index=True)
        tail, head = np.divmod(pairs, self._size)
        self._matrix = csr_array((np.ones(pairs.size), (tail, head)), shape=(self._size,) * 2)
        self._graph = nx.MultiDiGraph()
        self._parallel: dict[tuple[int, int], list[int]] = {}
        for edge, ends in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
            self._graph.add_edge(*ends, edge)
            self._parallel.setdefault(ends, []).append(edge)

    def by_scipy(self, depots: list[int], destination: int, times: Any) -> list[int]:
        self._matrix.data = np.minimum.reduceat(times[self._order], self._starts)
        search: Any = dijkstra
        _, before, _ = search(self._matrix, indices=depots, return_predecessors=True, min_only=True)
        nodes = [destination]
        while before[nodes[-1]] >= 0:
            nodes.append(int(before[nodes[-1]]))
        return self._edges(nodes[::-1], times)

    def by_networkx(self, depots: list[int], destination: int, times: Any) -> list[int]:
        listed = times.tolist()

        def weight(u: int, v: int, parallel: Any) -> float:
            return float(min(listed[e] for e in parallel))

        _, nodes = nx.multi_source_dijkstra(self._graph, set(depots), destination, weight=weight)
        return self._edges(nodes, times)

    def _edges(self, nodes: list[int], times: Any) -> list[int]:
        return [min(self._parallel[pair], key=times.__getitem__) for pair in pairwise(nodes)]


def speed(console: Console) -> None:
    """Same-answer DCA, backward search for the potentials included."""
    city = harbour_city()
    depots = [depot.node for depot in city.depots]
    scenarios = ScenarioSet(smooth_embeddings(city.network, 16), 0.1)
    others = _Others(city.network)
    cases = [q for q in questions(city.network, depots, scenarios, 40) if _moves(q)][:12]

    def ours() -> list[float]:
        rng = np.random.default_rng(0)
        return [dca.estimate(GapProblem.ask(*q), rng, restarts=False).gap_s for q in cases]

    def theirs(name: str) -> list[float]:
        search = getattr(others, name)
        return [_plain_dca(q, partial(search, q[2], q[3])) for q in cases]

    np.testing.assert_allclose(ours(), theirs("by_scipy"), atol=1e-4)
    np.testing.assert_allclose(ours(), theirs("by_networkx"), atol=1e-4)
    times = race(
        {"ours": ours, "scipy + Brent": partial(theirs, "by_scipy"),
         "networkx + Brent": partial(theirs, "by_networkx")},
        seconds=2.0,
    )  # fmt: skip
    table = Table(title="Same DCA, 2,541 edges, d = 16: median per decision")
    for column in ("implementation", "time", "ratio"):
        table.add_column(column, justify="left" if column == "implementation" else "right")
    for name, seconds in times.items():
        table.add_row(name, human(seconds / len(cases)), f"{seconds / times['ours']:.1f}×")
    console.print(table)


def _moves(question: Question) -> bool:
    problem = GapProblem.ask(*question)
    return len(dca.traced(problem, np.random.default_rng(0), restarts=False)) > 1


# --- quality --------------------------------------------------------------------------


def networks() -> dict[str, tuple[RoadNetwork, list[int]]]:
    """The embedded city and, where their data is here, two real ones."""
    city = harbour_city()
    found = {"Port Almery": (city.network, [depot.node for depot in city.depots])}
    if not SHARED.is_dir():
        return found
    lower = read_network(
        SHARED / "manhattan/manhattan_osm_20190115.osm.zip", box=(-74.02, 40.70, -73.97, 40.745)
    )
    stations, _ = read_depots(SHARED / "manhattan/manhattan_ems_stations.csv", lower)
    found["lower Manhattan"] = (lower, [depot.node for depot in stations])
    island = read_network(
        SHARED / "hong_kong/irn_nw_hk_island_edges.csv",
        nodes=SHARED / "hong_kong/irn_nw_hk_island_nodes.csv",
    )
    stations, _ = read_depots(SHARED / "hong_kong/hk_ambulance_depots.csv", island)
    found["NW Hong Kong Island"] = (island, [depot.node for depot in stations])
    return found


def quality(console: Console, calls: int = 12, exact_limit_s: float = 0.5) -> None:
    """How much of the exact gap each method finds, and how fast decisions are proved."""
    table = Table(title=f"Quality, {calls} calls a row, {len(THRESHOLDS_S)} thresholds each")
    columns = ("network", "embeddings", "d", "ρ", "exact", "DCA", "restarts", "multistart",
               "proved", "in 20 ms", "median", "p90", "p99", "max ms")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for dimension in DIMENSIONS:
        models = _models(dimension)
        for name, (network, depots) in networks().items():
            kinds = {"smooth": smooth_embeddings(network, dimension)}
            if name in models:
                kinds["trained"] = models[name].forecast(_EVENING, network).embeddings
            for kind, embeddings in kinds.items():
                for radius in RADII:
                    scenarios = ScenarioSet(embeddings, radius)
                    row = _quality_row(network, depots, scenarios, calls, exact_limit_s)
                    table.add_row(name, kind, str(dimension), f"{radius:g}", *row)
    console.print(table)


def _models(dimension: int) -> dict[str, Model]:
    """Quickly trained models by the name of the network they speak about."""
    params = TrainParams(epochs=8).with_architecture(dimension=dimension)
    found: dict[str, Model] = {"Port Almery": fit(*city_trips(), params=params)}
    if SHARED.is_dir():
        taxis = fit(
            *manhattan(SHARED / "manhattan"), params=params.with_architecture(features="attributes")
        )
        found |= {"lower Manhattan": taxis, "NW Hong Kong Island": taxis}
    return found


def _quality_row(
    network: RoadNetwork, depots: list[int], scenarios: ScenarioSet, calls: int, limit_s: float
) -> list[str]:
    shares: dict[str, list[float]] = {"plain": [], "restarts": [], "multistart": []}
    closed, proved, seconds = 0, [], []
    for question in questions(network, depots, scenarios, calls):
        exact = optimistic_gap(*question, time_limit_s=limit_s)
        closed += exact.status == "exact"
        if exact.status == "exact" and exact.lower_s > 1e-3:
            plain = dca.estimate(
                GapProblem.ask(*question), np.random.default_rng(0), restarts=False
            )
            shares["plain"].append(plain.gap_s / exact.lower_s)
            random = optimistic_gap(*question, method="dca")
            shares["restarts"].append(random.lower_s / exact.lower_s)
            starts = optimistic_gap(*question, method="multistart")
            shares["multistart"].append(starts.lower_s / exact.lower_s)
        for threshold_s in THRESHOLDS_S:
            start = time.perf_counter()
            decided = optimistic_gap(*question, threshold_s=threshold_s, time_limit_s=limit_s)
            seconds.append(time.perf_counter() - start)
            proved.append(decided.worth_sending is not None)
    quick = np.mean(np.array(proved) & (np.array(seconds) <= DEADLINE_S))
    percentiles = [f"{1000 * np.percentile(seconds, q):.1f}" for q in (50, 90, 99, 100)]
    return [
        f"{closed / calls:.0%}",
        *(f"{np.mean(values):.1%}" if values else "–" for values in shares.values()),
        f"{np.mean(proved):.1%}",
        f"{quick:.1%}",
        *percentiles,
    ]


# --- growth ---------------------------------------------------------------------------


def growth(console: Console, calls: int = 10) -> None:
    """How the cost of one decision grows with the network."""
    table = Table(title="Growth, d = 16, ρ = 0.1, threshold 60 s, calls 8 minutes away")
    for column in ("edges", "dca", "multistart", "certified", "proved"):
        table.add_column(column, justify="right")
    curves: dict[int, dict[Method, float]] = {}
    for size in (2_500, 10_000, 30_000, 100_000, 300_000):
        network = street_grid(size)
        scenarios = ScenarioSet(smooth_embeddings(network, 16), 0.1)
        middle = int(network.snap(float(network.lon.mean()), float(network.lat.mean())).node)
        reach = network.distances(scenarios.nominal_times, middle)
        rng = np.random.default_rng(0)
        near = np.flatnonzero((reach > 200) & (reach < 600))
        depots = [middle, int(rng.choice(near))]
        medians: dict[Method, float] = {}
        proved = []
        for method in METHODS:
            seconds = []
            for destination in rng.choice(near, calls):
                times = scenarios.nominal_times * rng.lognormal(0, 0.2, network.num_edges)
                primary = network.shortest_path(times, depots, int(destination))
                start = time.perf_counter()
                gap = optimistic_gap(
                    network, scenarios, depots, int(destination), primary, method=method,
                    threshold_s=60.0, time_limit_s=2.0,
                )  # fmt: skip
                seconds.append(time.perf_counter() - start)
                if method == "certified":
                    proved.append(gap.worth_sending is not None)
            medians[method] = float(np.median(seconds))
        curves[network.num_edges] = medians
        table.add_row(
            f"{network.num_edges:,}",
            *(human(s) for s in medians.values()),
            f"{np.mean(proved):.0%}",
        )
    console.print(table)
    _plot(curves, FilePath("out/bench/gap_growth.png"))
    console.print("wrote out/bench/gap_growth.png")


def _plot(curves: dict[int, dict[Method, float]], target: FilePath) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for method, colour in zip(METHODS, ("#56B4E9", "#E69F00", "#009E73"), strict=True):
        times = [1000 * medians[method] for medians in curves.values()]
        axes.loglog(list(curves), times, marker="o", color=colour, label=method)
    axes.axhline(20, color="#888888", linewidth=0.8, linestyle=":")
    axes.annotate("20 ms", (min(curves), 21), fontsize=8, color="#666666")
    axes.set_xlabel("directed edges")
    axes.set_ylabel("median milliseconds per decision")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)


def run(console: Console) -> None:
    speed(console)
    quality(console)
    growth(console)
