"""Map matching measured: ours, a corridor shortest path and leuvenmapmatching.

True paths are shortest under perturbed times, half of them through a random
waypoint; their drawings are disturbed in the ways other routers' maps differ.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path as FilePath

import numpy as np
import shapely
from rich.console import Console
from rich.table import Table

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import IdealError
from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.road_network import RoadNetwork

DATA = FilePath(__file__).resolve().parents[1].parent / "shared" / "data"


# --- networks -------------------------------------------------------------------


def manhattan() -> RoadNetwork:
    folder = DATA / "manhattan"
    return read_network(
        folder / "manhattan_osm_edges.csv.gz", nodes=folder / "manhattan_osm_nodes.csv",
        directed=True, simplify=False,
    )  # fmt: skip


def hong_kong() -> RoadNetwork:
    edges, nodes = (DATA / f"hong_kong/irn_nw_hk_island_{kind}.csv" for kind in ("edges", "nodes"))
    return read_network(edges, nodes=nodes, simplify=False)


# --- true paths and their drawings ----------------------------------------------


def true_paths(network: RoadNetwork, count: int, rng: np.random.Generator) -> list[Path]:
    """Paths of 1 to 10 km; every second one goes through a random waypoint."""
    paths: list[Path] = []
    while len(paths) < count:
        times_s = network.length_m * np.exp(rng.normal(0.0, 0.5, network.num_edges))
        stops = rng.choice(network.num_nodes, 2 + len(paths) % 2, replace=False).tolist()
        try:
            legs = [network.shortest_path(times_s, a, b) for a, b in pairwise(stops)]
        except IdealError:
            continue
        path = network.path(np.concatenate([leg.edges for leg in legs]))
        if 1000 <= path.length_m(network) <= 10_000:
            paths.append(path)
    return paths


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How a drawing differs from the true path; ``noise_m`` is smooth offset and jitter."""

    name: str
    spacing_m: float = 30.0
    noise_m: float = 0.0
    shift_m: float = 0.0
    gap: bool = False
    off_network: bool = False
    ends: bool = False

    def draw(self, network: RoadNetwork, path: Path, rng: np.random.Generator) -> FloatArray:
        """The drawing in local metres."""
        line = shapely.LineString(network.snapper.plane.to_metres(path.coordinates(network)))
        start_m, stop_m = 0.0, line.length
        if self.ends:  # routers start and end at doors, not at junctions
            start_m, stop_m = rng.uniform(0, 60), line.length - rng.uniform(0, 60)
        along = np.append(np.arange(start_m, stop_m, self.spacing_m), stop_m)
        points: FloatArray = shapely.get_coordinates(shapely.line_interpolate_point(line, along))
        if self.noise_m:
            knots = np.arange(0.0, line.length + 300.0, 300.0)
            for axis in (0, 1):
                smooth = np.interp(along, knots, rng.normal(0, self.noise_m, knots.size))
                points[:, axis] += 0.9 * smooth + rng.normal(0, 0.44 * self.noise_m, along.size)
        if self.shift_m:
            angle = rng.uniform(0, 2 * np.pi)
            points += self.shift_m * np.array([np.cos(angle), np.sin(angle)])
        middle = rng.uniform(0.2, 0.8) * line.length
        if self.gap:
            width = rng.uniform(200, 500)
            points = points[np.abs(along - middle) > width / 2]
        if self.off_network:
            away = np.abs(along - middle) <= 150
            direction = points[np.argmax(along > middle)] - points[np.argmax(along > middle) - 1]
            side = np.array([-direction[1], direction[0]]) / max(np.hypot(*direction), 1e-9)
            points[away] += rng.uniform(80, 150) * rng.choice([-1, 1]) * side
        return points


DISTURBANCES = (
    Disturbance("clean, 10 m", 10.0),
    Disturbance("clean, 50 m", 50.0),
    Disturbance("clean, 150 m", 150.0),
    Disturbance("noise 5 m, 10 m", 10.0, noise_m=5.0),
    Disturbance("noise 15 m, 10 m", 10.0, noise_m=15.0),
    Disturbance("noise 15 m, 50 m", 50.0, noise_m=15.0),
    Disturbance("noise 15 m, 150 m", 150.0, noise_m=15.0),
    Disturbance("noise 30 m, 30 m", noise_m=30.0),
    Disturbance("shift 10 m", noise_m=3.0, shift_m=10.0),
    Disturbance("ends mid-block", noise_m=5.0, ends=True),
    Disturbance("gap", noise_m=5.0, gap=True),
    Disturbance("off network", noise_m=5.0, off_network=True),
)


# --- methods --------------------------------------------------------------------

Matcher = Callable[[FloatArray, Path], IntArray]
"""From a drawing in degrees and the true path (for its ends) to edges."""


def ours(network: RoadNetwork) -> Matcher:
    def match(lonlat: FloatArray, truth: Path) -> IntArray:
        return match_route(network, lonlat, truth.origin, truth.destination).path.edges

    return match


def ours_free(network: RoadNetwork) -> Matcher:
    def match(lonlat: FloatArray, truth: Path) -> IntArray:
        return match_route(network, lonlat).path.edges

    return match


def corridor(network: RoadNetwork, sigma_m: float = 15.0) -> Matcher:
    """One shortest path with costs length · (1 + (distance to the drawing / σ)²)."""
    middles = shapely.line_interpolate_point(network.snapper.edge_lines, 0.5, normalized=True)

    def match(lonlat: FloatArray, truth: Path) -> IntArray:
        line = shapely.LineString(network.snapper.plane.to_metres(lonlat))
        shapely.prepare(line)
        cost = network.length_m * (1 + (shapely.distance(middles, line) / sigma_m) ** 2)
        return network.shortest_path(cost, truth.origin, truth.destination).edges

    return match


def leuven(network: RoadNetwork) -> Matcher:
    """DistanceMatcher over straight pieces; edges with geometry are split at its points."""
    from leuvenmapmatching.map.inmem import InMemMap
    from leuvenmapmatching.matcher.distance import DistanceMatcher

    logging.getLogger("be.kuleuven.cs.dtai.mapmatching").setLevel(logging.ERROR)
    plane = network.snapper.plane
    places = plane.to_metres(np.column_stack([network.lon, network.lat])).tolist()
    graph: dict[int, tuple[tuple[float, float], list[int]]] = {
        node: ((y, x), []) for node, (x, y) in enumerate(places)
    }
    edge_of: dict[tuple[int, int], int] = {}
    for edge in range(network.num_edges):
        labels = [int(network.tail[edge])]
        for x, y in plane.to_metres(network.polyline(edge)[1:-1]).tolist():
            labels.append(len(graph))
            graph[labels[-1]] = ((y, x), [])
        labels.append(int(network.head[edge]))
        for a, b in pairwise(labels):
            if (a, b) not in edge_of:
                edge_of[a, b] = edge
                graph[a][1].append(b)
    streets = InMemMap("streets", use_latlon=False, graph=graph)

    def match(lonlat: FloatArray, truth: Path) -> IntArray:
        matcher = DistanceMatcher(
            streets, max_dist=100, max_dist_init=100, obs_noise=15, obs_noise_ne=30,
            dist_noise=30, max_lattice_width=10, non_emitting_states=True,
        )  # fmt: skip
        points = plane.to_metres(lonlat)
        matcher.match([(y, x) for x, y in points.tolist()], unique=True)
        nodes = matcher.path_pred_onlynodes
        edges = [edge_of[piece] for piece in pairwise(nodes) if piece in edge_of]
        once = [e for i, e in enumerate(edges) if i == 0 or e != edges[i - 1]]
        return np.array(once, np.int32)

    return match


# --- scores ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """One drawing matched; ``f1`` weighs edges by length."""

    f1: float
    exact: bool
    connected: bool
    time_ms: float


def same_drawing(network: RoadNetwork) -> IntArray:
    """The smallest edge with the same ends and drawing: no method can tell such edges apart."""
    first: dict[tuple[int, int, bytes], int] = {}
    ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    keys = [(*pair, network.polyline(edge).tobytes()) for edge, pair in enumerate(ends)]
    return np.array([first.setdefault(key, edge) for edge, key in enumerate(keys)], np.int32)


def score(
    network: RoadNetwork, twins: IntArray, truth: Path, edges: IntArray, time_ms: float
) -> Score:
    wanted, got = Counter(twins[truth.edges].tolist()), Counter(twins[edges].tolist())
    common_m = sum(network.length_m[e] * n for e, n in (wanted & got).items())
    total_m = sum(network.length_m[e] * n for e, n in (wanted + got).items())
    joined = bool((network.head[edges[:-1]] == network.tail[edges[1:]]).all())
    whole = joined and edges.size > 0 and int(network.head[edges[-1]]) == truth.destination
    return Score(
        f1=float(2 * common_m / total_m),
        exact=np.array_equal(twins[truth.edges], twins[edges]),
        connected=whole and int(network.tail[edges[0]]) == truth.origin,
        time_ms=time_ms,
    )


def measure(
    network: RoadNetwork, methods: dict[str, Matcher], paths: list[Path], seed: int
) -> dict[tuple[str, str], list[Score]]:
    """Scores by disturbance and method; every method sees the same drawings."""
    twins = same_drawing(network)
    results: dict[tuple[str, str], list[Score]] = {}
    for disturbance in DISTURBANCES:
        rng = np.random.default_rng(seed)
        for truth in paths:
            drawing = network.snapper.plane.to_degrees(disturbance.draw(network, truth, rng))
            for name, match in methods.items():
                started = time.perf_counter()
                edges = match(drawing, truth)
                time_ms = (time.perf_counter() - started) * 1000
                row = results.setdefault((disturbance.name, name), [])
                row.append(score(network, twins, truth, edges, time_ms))
    return results


def table(title: str, results: dict[tuple[str, str], list[Score]]) -> Table:
    result = Table(title=title)
    result.add_column("drawing")
    result.add_column("method")
    for column in ("F1", "exact", "end to end", "ms median", "ms p90"):
        result.add_column(column, justify="right")
    pooled: dict[tuple[str, str], list[Score]] = {}
    for (_, method), scores in results.items():
        pooled.setdefault(("all", method), []).extend(scores)
    before = ""
    for (drawing, method), scores in (results | pooled).items():
        if drawing != before:
            result.add_section()
        times_ms = [s.time_ms for s in scores]
        result.add_row(
            drawing if drawing != before else "",
            method,
            f"{np.mean([s.f1 for s in scores]):.3f}",
            f"{np.mean([s.exact for s in scores]):.0%}",
            f"{np.mean([s.connected for s in scores]):.0%}",
            f"{np.median(times_ms):.1f}",
            f"{np.quantile(times_ms, 0.9):.1f}",
        )
        before = drawing
    return result


def run(console: Console, num_paths: int = 30, library_paths: int = 6, seed: int = 1) -> None:
    """Print two tables a city: few paths for all methods, more for our own."""
    if not DATA.is_dir():
        console.print("No data: this benchmark reads ../shared/data beside the repository.")
        return
    for city, build in (("Manhattan", manhattan), ("Hong Kong NW", hong_kong)):
        network = build()
        paths = true_paths(network, num_paths, np.random.default_rng(seed))
        own = {"ours": ours(network), "ours, free ends": ours_free(network)}
        own["corridor"] = corridor(network)
        coordinates = paths[0].coordinates(network)
        for match in own.values():  # compile and index before the clock runs
            match(coordinates, paths[0])
        few = paths[:library_paths]
        both = measure(network, own | {"leuven": leuven(network)}, few, seed)
        console.print(table(f"{city}, {len(few)} paths, all methods", both))
        console.print(table(f"{city}, {len(paths)} paths", measure(network, own, paths, seed)))
