"""One training step on a batch of 64 trips beside other ways to solve the lower level.

All take the same step: the fastest path of every trip, the Huber loss of the trip
times, gradients of all weights. Ours works out ψ on the edges that a search looks at,
the others on all. "PyEPO" is its ``optModel`` contract, one ``setObj`` and ``solve``
per trip with networkx inside, its ``negativeIdentity`` module and the dense cost
matrix it works on; "scipy" is our sparse gradient with scipy's Dijkstra per trip. SPO+
and Fenchel–Young, PyEPO's best-known losses, need the true path, which nobody has seen
here. The smoothed lower level of the paper's Remark 1 solves a quadratic program per
trip; its loss differs.
"""

import tempfile
import time
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import networkx as nx
import numpy as np
import torch
from pyepo.func import negativeIdentity
from pyepo.model.opt import optModel
from rich.console import Console
from rich.table import Table
from scipy.sparse import csgraph, csr_array

from benchmarks.city_trips import city_trips
from benchmarks.timing import human, race
from ideal_dispatch import Model, RoadNetwork, Trips
from ideal_dispatch.learning import TrainParams, fit, split
from ideal_dispatch.learning.lower_level import LowerLevel, Routes
from ideal_dispatch.learning.trainer import Trainer, losses
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.records.responses import Responses
from workshop.smoothed_level import SmoothedTrainer

BATCH = 64
LONDON = FilePath(__file__).resolve().parents[1].parent / "shared" / "data" / "london"
dijkstra: Any = csgraph.dijkstra


def run(console: Console) -> None:
    torch.set_num_threads(1)
    network, trips = city_trips()
    _steps(console, network, trips)
    _whole(console, network, trips)
    _city_scale(console)


def _steps(console: Console, network: RoadNetwork, trips: Trips) -> None:
    parts = split(trips, seed=0)
    every_batch = TrainParams(path_refreshes=0, trip_constant=False)
    data = TrainingData.prepare(network, trips, parts, every_batch)
    rows = parts.train[:BATCH]
    exact = Trainer(data, every_batch)
    cached = Trainer(data, TrainParams(trip_constant=False))
    cached.renew_paths()
    scipy_trainer = Trainer(data, every_batch)
    scipy_trainer.lower_level = _ScipyLowerLevel(data)
    pyepo = _PyEpo(data)
    contenders: dict[str, Callable[[], float]] = {
        "ours, paths kept": lambda: cached.direction(rows),
        "ours, paths solved for the batch": lambda: exact.direction(rows),
        "scipy per trip": lambda: scipy_trainer.direction(rows),
        "PyEPO with networkx": lambda: pyepo.step(rows, every_batch),
    }
    values = {name: call() for name, call in contenders.items()}
    assert np.allclose(list(values.values()), values["ours, paths solved for the batch"], rtol=1e-4)
    smoothed = SmoothedTrainer(data, every_batch, gamma_s=1.0)
    contenders["Remark 1, smoothed by γ = 1 s"] = lambda: smoothed.direction(rows)
    times = race(contenders, seconds=4.0)
    table = Table(title=f"One step, {BATCH} trips, {network.num_edges:,} edges, d = 16")
    for column in ("", "per step", "trips/s", "× ours"):
        table.add_column(column, justify="right" if column else "left")
    for name, seconds in times.items():
        ratio = seconds / times["ours, paths solved for the batch"]
        table.add_row(name, human(seconds), f"{BATCH / seconds:,.0f}", f"{ratio:.2f}")
    console.print(table)


def _whole(console: Console, network: RoadNetwork, trips: Trips) -> None:
    """A whole training, then load and forecast."""
    started = time.perf_counter()
    marks: dict[str, float] = {}
    result = fit(
        network, trips, parts=split(trips, seed=0),
        watch=lambda now: marks.update({now.stage: time.perf_counter() - started}),
    )  # fmt: skip
    total = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        result.model.save(folder)
        rows = iter(np.tile(trips.contexts, (100, 1)))
        model = Model.load(folder)
        model.forecast(next(rows), network)
        times = race(
            {
                "load": lambda: Model.load(folder),
                "forecast": lambda: model.forecast(next(rows), network).scenario_set,
            }
        )
    table = Table(title=f"{len(trips):,} trips, {network.num_edges:,} edges, 24 epochs")
    for column in ("", "time"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("training", human(marks["training"]))
    table.add_row("target radii of all trips", human(marks["target radii"] - marks["training"]))
    table.add_row("whole, with radius network and calibration", human(total))
    table.add_row("model load", human(times["load"]))
    table.add_row("one forecast after load", human(times["forecast"]))
    console.print(table)


def _city_scale(console: Console) -> None:
    """A whole training on the streets of London, from its fire engines' log of five months."""
    if not LONDON.is_dir():
        console.print("No data for training at city scale: it reads ../shared/data/london.")
        return
    roads, junctions = (LONDON / f"london_osm_{name}.csv.gz" for name in ("edges", "nodes"))
    network = read_network(roads, nodes=junctions, directed=True)
    log = Responses.read(
        LONDON / "lfb_incidents_2023_01_to_08.csv.gz",
        "london",
        stations=LONDON / "lfb_stations.csv",
    )
    trips = log.until(date(2023, 6, 1)).trips(network)[0]
    marks: dict[str, tuple[float, float]] = {}

    def mark(stage: str) -> None:
        marks[stage] = time.perf_counter(), time.process_time()

    data = TrainingData.prepare(network, trips, split(trips, seed=0, by="day"), TrainParams())
    count = len(LowerLevel(network, trips, data.contexts).contexts)
    mark("")
    fit(network, trips, watch=lambda now: mark(now.stage))
    mark("all")
    table = Table(
        title=f"London, {len(trips):,} trips in {count:,} contexts, {network.num_edges:,} edges"
    )
    for column in ("", "time", "processor time"):
        table.add_column(column, justify="right" if column else "left")
    for name, first, last in (
        ("training", "", "training"),
        ("target radii of all trips", "training", "target radii"),
        ("whole, with radius network and calibration", "", "all"),
    ):
        table.add_row(name, *(human(b - a) for a, b in zip(marks[first], marks[last], strict=True)))
    console.print(table)


class _ScipyLowerLevel(LowerLevel):
    """The same lower level with scipy's Dijkstra, a trip at a time."""

    def __init__(self, data: TrainingData) -> None:
        super().__init__(data.network, data.trips, data.contexts)
        network = data.network
        size = network.num_nodes
        cheapest = np.unique(np.column_stack([network.tail, network.head]), axis=0)
        assert len(cheapest) == network.num_edges, "no parallel edges in the embedded city"
        numbered = csr_array(
            (np.arange(network.num_edges) + 1.0, (network.tail, network.head)), shape=(size, size)
        )
        self._slot, self._matrix = numbered.data.astype(int) - 1, numbered
        self._edge = {(int(a), int(b)): e for e, (a, b) in
                      enumerate(zip(network.tail, network.head, strict=True))}  # fmt: skip

    def solve(self, model: Any, rows: Any) -> tuple[Routes, Any]:
        parts, edges, seconds = model.edge_part().detach(), [], []
        for row in rows:
            times = model.all_times(self.contexts[self.group[row]][None], parts)[0]
            self._matrix.data = times[self._slot]
            origin, node = int(self._trips.origin[row]), int(self._trips.destination[row])
            before = dijkstra(self._matrix, indices=origin, return_predecessors=True)[1]
            path = []
            while node != origin:
                path.append(self._edge[int(before[node]), node])
                node = int(before[node])
            edges.append(np.array(path[::-1]))
            seconds.append(times[edges[-1]].sum())
        start = np.concatenate([[0], np.cumsum([len(path) for path in edges])])
        return Routes(np.concatenate(edges), start), np.array(seconds)


class _Streets(optModel):
    """PyEPO's contract; origin and destination ride at the end of the costs."""

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        super().__init__()

    def _getModel(self) -> Any:  # noqa: N802
        graph = nx.DiGraph()
        pairs = list(zip(self._network.tail.tolist(), self._network.head.tolist(), strict=True))
        graph.add_edges_from((a, b, {"edge": e}) for e, (a, b) in enumerate(pairs))
        self._data = [graph.edges[pair] for pair in pairs]
        return graph, list(range(len(pairs)))

    @property
    def num_cost(self) -> int:
        return self._network.num_edges + 2

    def setObj(self, c: Any) -> None:  # noqa: N802
        self._ends = int(c[-2]), int(c[-1])
        for data, cost in zip(self._data, c.tolist(), strict=False):
            data["cost"] = cost

    def solve(self) -> Any:
        nodes = nx.bidirectional_dijkstra(self._model, *self._ends, weight="cost")[1]
        chosen = np.zeros(self.num_cost, np.float32)
        for pair in pairwise(nodes):
            chosen[self._model.edges[pair]["edge"]] = 1
        return chosen, 0.0


class _PyEpo:
    """The same step with a dense cost matrix through PyEPO's module."""

    def __init__(self, data: TrainingData) -> None:
        self._trainer = Trainer(data, TrainParams(path_refreshes=0, trip_constant=False))
        self.data = data
        self._module = negativeIdentity(_Streets(data.network), processes=1)

    def step(self, rows: Any, params: TrainParams) -> float:
        model, data = self._trainer.model, self.data
        model.zero_grad()
        contexts = torch.tensor(data.contexts[rows], dtype=torch.float32)
        hidden = model.context_part(contexts)[:, None] + model.edge_part()
        costs = model.times(hidden, torch.arange(len(model.base_s)))
        ends = np.column_stack([data.trips.origin[rows], data.trips.destination[rows]])
        whole = torch.cat([costs, torch.tensor(ends, dtype=torch.float32)], dim=1)
        chosen = self._module(whole)[:, :-2].detach()
        observed = torch.tensor(data.trips.observed_s[rows], dtype=torch.float32)
        mean_s = float(data.trips.observed_s[data.train].mean())
        value = losses(params, (costs * chosen).sum(dim=1), observed, mean_s).mean()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())
