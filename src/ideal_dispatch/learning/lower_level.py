"""The lower level: the fastest path of every trip under the current times, or the one given."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import IdealError
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips

_TRIPS_AT_ONCE = 32
Rows = npt.NDArray[np.int64]


class TrainingError(IdealError):
    """Training cannot go on."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The edges of many paths in a row: path i is ``edges[start[i]:start[i+1]]``.

    A flow over many paths has a share of each of its edges, and seconds beside their times.
    """

    edges: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    shares: FloatArray | None = None
    beside_s: FloatArray | None = None

    def of(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The edges of the given paths, and for each edge the position of its path."""
        place, owner = self._places(rows)
        return self.edges[place], owner

    def shares_of(self, rows: Rows) -> FloatArray | None:
        """The share of each edge that :meth:`of` gives; None where all are whole."""
        return None if self.shares is None else self.shares[self._places(rows)[0]]

    def _places(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        counts = self.start[rows + 1] - self.start[rows]
        owner = np.repeat(np.arange(rows.size), counts)
        offset = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.start[rows][owner] + offset, owner


class _Contexts:
    """Contexts grouped: equal ones are evaluated once."""

    def __init__(self, inputs: FloatArray) -> None:
        distinct, group = np.unique(inputs.astype(np.float32), axis=0, return_inverse=True)
        self.contexts = torch.from_numpy(distinct)
        self.group: Rows = group.reshape(-1).astype(np.int64)

    def _by_context(self, rows: Rows) -> list[Rows]:
        """Positions in ``rows``, a few at once, those of one context together."""
        order = np.argsort(self.group[rows], kind="stable")
        return [order[i : i + _TRIPS_AT_ONCE] for i in range(0, rows.size, _TRIPS_AT_ONCE)]

    def _times(
        self, model: RepresentationNetwork, parts: torch.Tensor, rows: Rows
    ) -> tuple[FloatArray, Rows]:
        """Times of all edges in the contexts of ``rows``, and which of them each row has."""
        distinct, inverse = np.unique(self.group[rows], return_inverse=True)
        times = model.all_times(self.contexts[distinct], parts)
        if not np.isfinite(times).all():  # infinite ones would look like closed roads
            raise TrainingError("training diverged: times are not finite; lower learning_rate")
        return times, inverse


class GivenRoutes(_Contexts):
    """Trips whose paths are known: nothing is solved, only their times are predicted."""

    def __init__(self, routes: Routes, inputs: FloatArray) -> None:
        super().__init__(inputs)
        self._routes = routes

    def solve(self, model: RepresentationNetwork, rows: Rows) -> tuple[Routes, FloatArray]:
        """The given paths of the trips in ``rows``, and their seconds."""
        seconds = np.empty(rows.size)
        parts = model.edge_part().detach()
        for chunk in self._by_context(rows):
            times, inverse = self._times(model, parts, rows[chunk])
            edges, owner = self._routes.of(rows[chunk])
            seconds[chunk] = np.bincount(
                owner, weights=times[inverse[owner], edges], minlength=chunk.size
            )
        edges, owner = self._routes.of(rows)
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=rows.size))])
        return Routes(edges, start), seconds


class LowerLevel(_Contexts):
    """Trips of which only the ends are known: each takes the fastest path of its context."""

    def __init__(self, network: RoadNetwork, trips: Trips, inputs: FloatArray) -> None:
        super().__init__(inputs)
        self._network, self._trips = network, trips

    def solve(self, model: RepresentationNetwork, rows: Rows) -> tuple[Routes, FloatArray]:
        """Canonical fastest paths of the trips in ``rows``, and their seconds."""
        edges: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)] * rows.size
        seconds = np.empty(rows.size)
        parts = model.edge_part().detach()

        def solve(chunk: Rows) -> None:
            own = rows[chunk]
            times, inverse = self._times(model, parts, own)
            paths = self._network.shortest_paths(
                times[inverse], self._trips.origin[own], self._trips.destination[own], threads=1
            )
            for position, path, row in zip(chunk, paths, inverse, strict=True):
                edges[position] = path.edges
                seconds[position] = times[row, path.edges].sum()

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(solve, self._by_context(rows)))
        start = np.concatenate([[0], np.cumsum([part.size for part in edges])])
        whole = np.concatenate(edges) if edges else np.empty(0, np.int32)
        return Routes(whole.astype(np.int64), start.astype(np.int64)), seconds
