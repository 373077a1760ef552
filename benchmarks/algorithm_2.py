"""Algorithm 2: one step beside the count of Proposition 4; depots in pairs or all at once.

"As printed" prices every edge, searches by Dijkstra and solves Theorem 3. Our step prices
only the edges that a search looks at which nominal times to the call guide; those are found
once a call.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.networks import smooth_embeddings, street_grid
from benchmarks.timing import human, race
from ideal_dispatch import ScenarioSet, minimise_linear, optimistic_gap, pairwise_gap
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.gap import dca
from ideal_dispatch.gap.problem import GapProblem

# edges and dimensions
SIZES = ((2_500, 16), (10_000, 16), (30_000, 16), (100_000, 16))
DIMENSIONS = ((30_000, 8), (30_000, 16), (30_000, 32), (30_000, 64))

_ACCURACY = 1e12  # the interval of Theorem 3 by the accuracy of its root
_RADIUS = 0.1
_WIDER = 0.3
_LIMIT_S = 0.2
_SAME_S = 1e-3

Step = tuple[GapProblem, FloatArray]
"""A question and a metric to take a step from."""


def operations(nodes: int, edges: int, dimension: int) -> float:
    """|E| d² + |V| log |V| + d³ + d log log(Δ/ε), the count of Proposition 4, logarithms of 2."""
    root = dimension * np.log2(np.log2(_ACCURACY))
    return float(edges * dimension**2 + nodes * np.log2(nodes) + dimension**3 + root)


def one_step(
    console: Console, cases: Sequence[tuple[int, int]], calls: int = 8, seconds: float = 1.0
) -> None:
    """The time of one step for each number of edges and dimension."""
    table = Table(title=f"One step of Algorithm 2, ρ = {_RADIUS}, two depots, calls anywhere")
    for column in ("edges", "d", "Proposition 4", "as printed", "ns an operation", "ours",
                   "ns an operation", "ours, once a call"):  # fmt: skip
        table.add_column(column, justify="right")
    for size, dimension in cases:
        asked = _steps(size, dimension, calls)
        network = asked[0][0].network
        times = race(
            {
                "as printed": partial(_as_printed, asked),
                "ours": partial(_ours, [(p.arrays, x, np.linalg.eigvalsh(x)[0]) for p, x in asked]),
                "once": partial(_asked_again, asked),
            },
            seconds=seconds,
        )
        count = operations(network.num_nodes, network.num_edges, dimension)
        row = [f"{network.num_edges:,}", str(dimension), f"{count:,.0f}"]
        for name in ("as printed", "ours"):
            row += [human(times[name] / calls), f"{1e9 * times[name] / calls / count:.3f}"]
        table.add_row(*row, human(times["once"] / calls))
    console.print(table)


def _steps(size: int, dimension: int, calls: int) -> list[Step]:
    """Random calls, each with the second metric of its search: the first is the identity."""
    network = street_grid(size)
    scenarios = ScenarioSet(smooth_embeddings(network, dimension), _RADIUS)
    rng = np.random.default_rng(0)
    found: list[Step] = []
    while len(found) < calls:
        *depots, node = rng.choice(network.num_nodes, 3, replace=False).tolist()
        disturbed = scenarios.nominal_times * rng.lognormal(0, 0.2, network.num_edges)
        primary = network.shortest_path(disturbed, depots, node)
        problem = GapProblem.ask(network, scenarios, depots, node, primary)
        steps = dca.traced(problem, rng, restarts=False)
        if len(steps) > 1:
            found.append((problem, steps[1].metric.copy()))
    return found


def _as_printed(asked: Sequence[Step]) -> None:
    for problem, metric in asked:
        times = problem.scenarios.times(metric)
        path = problem.network.shortest_path(times, problem.depots.tolist(), problem.destination)
        direction = problem.scenarios.path_matrix(path) - problem.primary_matrix
        minimise_linear(direction, problem.scenarios.radius)


def _ours(asked: Sequence[tuple[tuple[object, ...], FloatArray, float]]) -> None:
    for arrays, metric, smallest in asked:
        dca.iterate(arrays, metric, smallest, dca.NO_PATH, False)


def _asked_again(asked: Sequence[Step]) -> None:
    for one, _ in asked:
        GapProblem.ask(
            one.network, one.scenarios, one.depots.tolist(), one.destination, one.primary
        )


def depot_pairs(console: Console, calls: int = 150) -> None:
    """Three depots at once and in pairs: Algorithm 2's estimates, and the exact gap."""
    city = harbour_city()
    assert city.model is not None
    at = datetime.fromisoformat("2025-01-24T08:16:00+08:00")
    forecast = city.model.scenario_set(city.calendar.context(at), city.network)
    table = Table(title=f"Port Almery with a third depot anywhere, {calls} random calls")
    for column in ("ρ", "pairs larger", "by, mean", "by, most", "pairs smaller", "by, most",
                   "exact gaps", "that differ", "at once", "in pairs"):  # fmt: skip
        table.add_column(column, justify="right")
    for radius in (forecast.radius, _WIDER):
        scenarios = ScenarioSet(forecast.embeddings, radius)
        rng = np.random.default_rng(0)
        more_s, exact_s, taken = [], [], []
        for number in range(calls):
            third, node = rng.choice(city.network.num_nodes, 2, replace=False).tolist()
            depots = [*(depot.node for depot in city.depots), third]
            disturbed = rng.lognormal(0, 0.2, city.network.num_edges) if number % 2 else 1.0
            times = scenarios.nominal_times * disturbed
            primary = city.network.shortest_path(times, depots, node)
            question = (city.network, scenarios, depots, node, primary)
            start = time.perf_counter()
            together = optimistic_gap(*question, method="dca", seed=number)
            middle = time.perf_counter()
            apart = pairwise_gap(*question, method="dca", seed=number)
            taken.append((middle - start, time.perf_counter() - middle))
            more_s.append(apart.lower_s - together.lower_s)
            proved = optimistic_gap(*question, time_limit_s=_LIMIT_S)
            in_pairs = pairwise_gap(*question, time_limit_s=_LIMIT_S)
            if proved.status == in_pairs.status == "exact":
                exact_s.append(in_pairs.lower_s - proved.lower_s)
        more = np.array(more_s)
        larger, smaller = more[more > _SAME_S], -more[more < -_SAME_S]
        table.add_row(
            f"{radius:.3f}",
            str(larger.size),
            f"{larger.mean():.1f} s" if larger.size else "–",
            f"{larger.max(initial=0.0):.1f} s",
            str(smaller.size),
            f"{smaller.max(initial=0.0):.1f} s",
            str(len(exact_s)),
            str((np.abs(exact_s) > _SAME_S).sum()),
            *map(human, np.median(taken, axis=0)),
        )
    console.print(table)


def run(console: Console) -> None:
    one_step(console, SIZES)
    one_step(console, DIMENSIONS)
    depot_pairs(console)
