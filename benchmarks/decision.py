"""One whole decision: forecast of the hour, quotes of all candidates, gap, worth.

Every call is at another hour than the one before, so that nothing is left over from it.
The model is trained for one epoch: what it says does not matter for how long it takes.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.networks import street_grid
from benchmarks.timing import human
from ideal_dispatch import Calendar, Model, RoadNetwork, Trips, decide
from ideal_dispatch.cities import City
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.learning import TrainParams, fit
from ideal_dispatch.network import Depot
from ideal_dispatch.network.readers import read_network

LONDON = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "london"
CANDIDATES = (2, 3, 5)
CALLS = 40
_EDGES = (2_500, 10_000, 40_000)
_TRIPS = 64
_ZONE = ZoneInfo("Europe/London")
_FIRST = datetime(2023, 5, 8, tzinfo=_ZONE)


def run(console: Console) -> None:
    """Median and 90th percentile of a decision, by size of network and number of candidates."""
    networks = {f"grid, {edges:,} edges": street_grid(edges) for edges in _EDGES}
    if LONDON.is_dir():
        roads, junctions = (LONDON / f"london_osm_{name}.csv.gz" for name in ("edges", "nodes"))
        network = read_network(roads, nodes=junctions, directed=True)
        networks[f"London, {network.num_edges:,} edges"] = network
    else:
        console.print("No decision on London: it reads ../shared/data/london.")
    table = Table(title=f"One whole decision, {CALLS} calls at different hours")
    for column in ("network", "candidates", "median", "90 %", "slowest"):
        table.add_column(column, justify="left" if column == "network" else "right")
    for name, network in networks.items():
        model = untaught_model(network)
        for count in CANDIDATES:
            times = decision_times_s(network, model, count)
            spread = np.quantile(times, (0.5, 0.9, 1.0)).tolist()
            table.add_row(name, str(count), *map(human, spread))
    console.print(table)


def untaught_model(network: RoadNetwork) -> Model:
    """A model that has gone once over a few made-up trips."""
    rng = np.random.default_rng(0)
    origin, destination = rng.integers(network.num_nodes, size=(2, _TRIPS))
    times_s = network.free_flow_times_s
    paths = network.shortest_paths(times_s, origin, destination)
    calendar = Calendar(str(_ZONE), "GB")
    hours = [_FIRST + timedelta(hours=int(h)) for h in rng.integers(0, 24 * 28, _TRIPS)]
    encoding = ContextEncoding()
    trips = Trips(
        origin.astype(np.int32),
        destination.astype(np.int32),
        np.array([60.0 + 1.3 * path.time_s(times_s) for path in paths]),
        encoding.encode([calendar.context(at) for at in hours]),
    )
    return fit(network, trips, params=TrainParams(epochs=1))


def decision_times_s(
    network: RoadNetwork, model: Model, candidates: int, calls: int = CALLS
) -> Sequence[float]:
    """Seconds of every decision; the first, which compiles and fills caches, does not count."""
    rng = np.random.default_rng(1)
    scenes = rng.integers(network.num_nodes, size=calls + 1)
    found = []
    for number, scene in enumerate(scenes.tolist()):
        city = City(
            "bench", network, _depots_near(network, scene, candidates, rng), str(_ZONE), "GB"
        )
        object.__setattr__(city, "model", model)
        at = _FIRST + timedelta(hours=7 * number)
        begun = time.perf_counter()
        decide(city.call(node=scene, at=at), model=model)
        found.append(time.perf_counter() - begun)
    return found[1:]


def _depots_near(
    network: RoadNetwork, scene: int, count: int, rng: np.random.Generator
) -> tuple[Depot, ...]:
    """Depots one to four kilometres from the scene, or as near as the network has them."""
    far_m = 111_195 * np.hypot(
        (network.lon - network.lon[scene]) * np.cos(np.radians(network.lat[scene])),
        network.lat - network.lat[scene],
    )
    inside = np.flatnonzero((far_m > 1000) & (far_m < 4000))
    if inside.size < count:
        inside = np.argsort(far_m)[-max(count, network.num_nodes // 2) :]
    chosen = rng.choice(inside, count, replace=False).tolist()
    return tuple(Depot(f"D{number}", node) for number, node in enumerate(chosen))
