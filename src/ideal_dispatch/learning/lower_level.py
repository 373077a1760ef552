"""The lower level: the fastest path of every trip under the current times."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import FloatArray, first_where
from ideal_dispatch.compiled import plain
from ideal_dispatch.errors import IdealError, UnreachableError
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level_kernels import fastest_paths
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

_TRIPS_AT_ONCE = 32
Rows = npt.NDArray[np.int64]


class TrainingError(IdealError):
    """Training cannot go on."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The edges of many paths in a row: path i is ``edges[start[i]:start[i+1]]``."""

    edges: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]

    def of(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The edges of the given paths, and for each edge the position of its path."""
        counts = self.start[rows + 1] - self.start[rows]
        owner = np.repeat(np.arange(rows.size), counts)
        offset = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.edges[self.start[rows][owner] + offset], owner


class LowerLevel:
    """Trips of which only the ends are known: each takes the fastest path of its context.

    Equal contexts are evaluated once. The time of an edge is worked out when a search first
    looks at it: those farther from the origin than the destination never matter.
    """

    def __init__(self, network: RoadNetwork, trips: Trips, inputs: FloatArray) -> None:
        self._network, self._trips = network, trips
        distinct, group = np.unique(inputs.astype(np.float32), axis=0, return_inverse=True)
        self.contexts = torch.from_numpy(distinct)
        self.group: Rows = group.reshape(-1).astype(np.int64)

    def solve(self, model: RepresentationNetwork, rows: Rows) -> tuple[Routes, FloatArray]:
        """Canonical fastest paths of the trips in ``rows``, and their seconds."""
        graph, trips = self._network.turn_graph, self._trips
        roads = plain((graph.out, graph.into, graph.edge))
        times = plain(model.edge_times(model.edge_part().detach()))
        contexts = model.context_rows(self.contexts)
        edges: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)] * rows.size
        seconds = np.empty(rows.size)

        def solve(chunk: Rows) -> None:
            own = rows[chunk]
            origin, target = trips.origin[own], graph.arrival[trips.destination[own]]
            arcs = np.empty((own.size, graph.node.size), np.int32)
            counts, found_s = np.empty(own.size, np.int64), np.empty(own.size)
            fastest_paths(
                roads, times, contexts, self.group[own], origin, target, arcs, counts, found_s
            )
            seconds[chunk] = found_s
            for position, row, count in zip(chunk, arcs, counts, strict=True):
                edges[position] = graph.edges(row[row.size - count :].copy())

        # trips of one context together: they share what was worked out
        order = np.argsort(self.group[rows], kind="stable")
        chunks = [order[i : i + _TRIPS_AT_ONCE] for i in range(0, rows.size, _TRIPS_AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(solve, chunks))
        lost = first_where(seconds == np.inf)
        if lost is not None:
            ends = trips.origin[rows[lost]], trips.destination[rows[lost]]
            raise UnreachableError("node {1} cannot be reached from node {0}".format(*ends))
        start = np.concatenate([[0], np.cumsum([part.size for part in edges])])
        whole = np.concatenate(edges) if edges else np.empty(0, np.int32)
        return Routes(whole.astype(np.int64), start.astype(np.int64)), finite(seconds)


def finite(seconds: FloatArray) -> FloatArray:
    """The seconds, or an error where one is no number: it would look like a closed road."""
    if not np.isfinite(seconds).all():
        raise TrainingError("training diverged: times are not finite; lower learning_rate")
    return seconds
