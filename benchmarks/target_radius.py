"""Target radii beside SCS, which solves the paper's dual program through CVXPY.

One trip each: from a depot to a random node, observed 5 to 60 % slower than
nominal. SCS gets the program of Proposition 2 and stops at relative and absolute
residuals of 1e-6, where its values agree with ours to about 1e-8; its time is the
solver's own, without CVXPY's compilation, ours the whole call with its checks.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import cvxpy as untyped_cvxpy
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import coo_array

from benchmarks.timing import human, race
from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.scenarios.target_radius import target_radius

cvxpy: Any = untyped_cvxpy
DIMENSION = 16
TRIPS, SOLVER_TRIPS = 100, 15
SOLVER_SECONDS = 60.0
Trip = tuple[int, int, float]


def smooth_embeddings(network: RoadNetwork, rng: np.random.Generator) -> FloatArray:
    """Directions that turn slowly over the map, with free-flow times as squared lengths."""
    place = np.column_stack([network.lon, network.lat])
    place = (place[network.tail] + place[network.head]) / 2.0
    place = (place - place.mean(axis=0)) / place.std(axis=0)
    waves = rng.normal(0.0, 1.5, (2, DIMENSION))
    directions = np.cos(place @ waves + rng.uniform(0.0, 2.0 * np.pi, DIMENSION))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    embeddings: FloatArray = directions * np.sqrt(network.free_flow_times_s)[:, None]
    return embeddings


def _trips(network: RoadNetwork, depots: list[int], rng: np.random.Generator) -> Iterator[Trip]:
    times = [network.distances(network.free_flow_times_s, depot) for depot in depots]
    while True:
        depot, node = int(rng.integers(len(depots))), int(rng.integers(network.num_nodes))
        nominal = float(times[depot][node])
        if 0.0 < nominal < np.inf:
            yield depots[depot], node, nominal * rng.uniform(1.05, 1.6)


def _around(network: RoadNetwork, centre: int, num_nodes: int) -> tuple[RoadNetwork, Any, int]:
    """The nodes soonest reached from the centre and back, the edges kept, its new number."""
    times = network.free_flow_times_s
    reach = network.distances(times, centre) + network.distances_to(times, centre)
    inside = np.zeros(network.num_nodes, bool)
    inside[np.argsort(reach)[:num_nodes]] = True
    kept = np.flatnonzero(inside[network.tail] & inside[network.head])
    number = np.cumsum(inside) - 1
    part = RoadNetwork.from_arrays(
        number[network.tail[kept]], number[network.head[kept]], network.length_m[kept],
        network.lon[inside], network.lat[inside], speed_kmh=network.speed_kmh[kept],
    )  # fmt: skip
    return part, kept, int(number[centre])


def _solver(network: RoadNetwork, embeddings: FloatArray, trip: Trip) -> tuple[float, float, str]:
    """Seconds, value and status of SCS on the program of Proposition 2."""
    origin, destination, observed = trip
    nodes, edges = network.num_nodes, network.num_edges
    ends = np.concatenate((network.tail, network.head))
    signs = np.repeat([1.0, -1.0], edges)
    incidence = coo_array((signs, (ends, np.tile(np.arange(edges), 2))), shape=(nodes, edges))
    supply = np.zeros(nodes)
    supply[origin], supply[destination] = 1.0, -1.0
    metric = cvxpy.Variable((DIMENSION, DIMENSION), PSD=True)
    potential, surplus = cvxpy.Variable(nodes), cvxpy.Variable(edges, nonneg=True)
    outer = np.einsum("ei,ej->eij", embeddings, embeddings).reshape(edges, -1)
    divergence = cvxpy.trace(metric) - cvxpy.log_det(metric) - DIMENSION
    problem = cvxpy.Problem(
        cvxpy.Minimize(divergence),
        [
            incidence.T @ potential - surplus <= outer @ cvxpy.vec(metric, order="C"),
            supply @ potential - cvxpy.sum(surplus) >= observed,
        ],
    )
    start = perf_counter()
    problem.solve(
        solver="SCS", eps_abs=1e-6, eps_rel=1e-6, max_iters=10**6,
        time_limit_secs=SOLVER_SECONDS,
    )  # fmt: skip
    seconds = problem.solver_stats.solve_time or perf_counter() - start
    return seconds, float(problem.value), problem.status


def run(console: Console, trips: int = TRIPS, solver_trips: int = SOLVER_TRIPS) -> None:
    """Print one table; the solver takes the first trips, and the ratio is the median over those."""
    city = harbour_city()
    rng = np.random.default_rng(1)
    embeddings = smooth_embeddings(city.network, rng)
    depots = [depot.node for depot in city.depots]
    part, kept, centre = _around(city.network, depots[0], 200)
    table = Table(title=f"Target radius of a trip, d = {DIMENSION}: median time")
    for column in ("network", "edges", "ours", "our gap", "SCS", "values apart", "ratio"):
        table.add_column(column, justify="left" if column == "network" else "right")
    for name, network, rows, origins in (
        ("around a depot", part, embeddings[kept], [centre]),
        ("whole city", city.network, embeddings, depots),
    ):
        taken = list(islice(_trips(network, origins, rng), trips))
        ours, gaps = [], []
        for trip in taken:
            call = partial(target_radius, network, rows, *trip)
            ours.append(race({"ours": call}, seconds=0.02)["ours"])
            gaps.append(target_radius(network, rows, *trip).relative_gap)
        found = []
        for trip in taken[:solver_trips]:
            seconds, value, status = _solver(network, rows, trip)
            off = abs(value / target_radius(network, rows, *trip).upper - 1.0)
            found.append((seconds, off, status))
        theirs = median(seconds for seconds, *_ in found)
        ratio = median(seconds / own for (seconds, *_), own in zip(found, ours, strict=False))
        stopped = sum(status != cvxpy.OPTIMAL for *_, status in found)
        note = f" ({stopped} of {len(found)} cut off)" if stopped else ""
        table.add_row(
            name, f"{network.num_edges:,}", human(median(ours)), f"{max(gaps):.0e}",
            human(theirs) + note, f"{median(off for _, off, _ in found):.0e}",
            f"{ratio:,.0f}×",
        )  # fmt: skip
    console.print(table)
