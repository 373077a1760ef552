"""Fastest paths that work out few edges: the same as if all had been worked out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.learning.lower_level import LowerLevel, Routes, Rows, TrainingError
from ideal_dispatch.learning.trainer import Trainer
from tests.unit.learning.worlds import SMALL, gradient, town, trainer, trips

HEADS = ("polar", "plain")


class _Whole(LowerLevel):
    """The plain way: the times of all edges in the context of every trip, then its path."""

    def solve(self, model: Any, rows: Rows) -> tuple[Routes, Any]:
        times = model.all_times(self.contexts, model.edge_part().detach())[self.group[rows]]
        ends = self._trips.origin[rows], self._trips.destination[rows]
        paths = self._network.shortest_paths(times, *ends)
        seconds = [path.time_s(row) for path, row in zip(paths, times, strict=True)]
        start = np.cumsum([0, *map(len, paths)])
        return Routes(np.concatenate([path.edges for path in paths]), start), np.array(seconds)


def _network(turns: bool, nodes: int = 150, roads: int = 500) -> RoadNetwork:
    network = town(nodes=nodes, roads=roads)
    if not turns:
        return network
    rng = np.random.default_rng(1)
    start, leaving, _ = network.outgoing
    forbidden = []
    for edge in rng.choice(network.num_edges, 60, replace=False):
        after = leaving[start[network.head[edge]] : start[network.head[edge] + 1]]
        if after.size > 1:
            forbidden.append((int(edge), int(rng.choice(after))))
    return replace(network, forbidden_turns=tuple(forbidden))


def _made(network: RoadNetwork, head: Any, **changes: Any) -> Trainer:
    """A trainer whose contexts matter: its weights are far from where training starts."""
    table = trips(network, 120, distinct=100)
    shape = replace(SMALL, head=head, width=32)
    made = trainer(network, table, architecture=shape, dropout=0.0, **changes)
    with torch.no_grad():
        made.model.cross.out.weight.mul_(5.0 if head == "polar" else 1.0)
    return made


def _whole(made: Trainer) -> _Whole:
    return _Whole(made.data.network, made.data.trips, made.data.contexts)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("turns", [False, True])
def test_paths_are_those_under_the_times_of_all_edges(head: str, turns: bool) -> None:
    made = _made(_network(turns), head)
    assert len(made.lower_level.contexts) > 60
    rows = np.random.default_rng(0).permutation(120)[:90]
    routes, seconds = made.lower_level.solve(made.model, rows)
    expected, expected_s = _whole(made).solve(made.model, rows)
    np.testing.assert_array_equal(routes.start, expected.start)
    np.testing.assert_array_equal(routes.edges, expected.edges)
    np.testing.assert_allclose(seconds, expected_s, rtol=1e-13)
    free_flow = made.data.network.shortest_paths(
        made.data.network.free_flow_times_s, made.data.trips.origin, made.data.trips.destination
    )
    differ = [free_flow[row].edges.tolist() != routes.of(np.array([i]))[0].tolist()
              for i, row in enumerate(rows)]  # fmt: skip
    assert sum(differ) > 10, "times matter"


@pytest.mark.parametrize("head", HEADS)
def test_the_direction_of_a_step_is_the_same_to_the_bit(head: str) -> None:
    made = _made(_network(True), head, path_refreshes=0)
    made.direction(np.arange(64))
    own = gradient(made)
    made.lower_level = _whole(made)
    made.direction(np.arange(64))
    np.testing.assert_array_equal(gradient(made), own)
    assert np.linalg.norm(own) > 0


def test_edges_beyond_the_destination_are_not_worked_out() -> None:
    made = _made(_network(False), "polar")
    row, network, table = 3, made.data.network, made.data.trips
    routes, seconds = made.lower_level.solve(made.model, np.array([row]))
    times = made.model.all_times(
        made.lower_level.contexts[made.lower_level.group[[row]]], made.model.edge_part().detach()
    )[0]
    far = network.distances(times, int(table.origin[row]))[network.tail] > seconds[0]
    assert 0.1 < far.mean() < 1.0
    made.model.inputs[torch.from_numpy(np.flatnonzero(far))] = torch.nan  # whoever looks, fails
    again, again_s = made.lower_level.solve(made.model, np.array([row]))
    np.testing.assert_array_equal(again.edges, routes.edges)
    assert again_s == seconds
    near = np.flatnonzero(~far)
    made.model.inputs[torch.from_numpy(near)] = torch.nan
    with pytest.raises(TrainingError, match="learning_rate"):
        made.lower_level.solve(made.model, np.array([row]))


@pytest.mark.parametrize("head", HEADS)
def test_compiled_times_are_those_with_a_gradient(head: str) -> None:
    made = _made(_network(False), head)
    contexts, edges = made.lower_level.contexts, torch.arange(made.data.network.num_edges)
    whole = made.model.all_times(contexts, made.model.edge_part().detach())
    assert whole.shape == (len(contexts), len(edges))
    assert (whole.std(axis=0) / whole.mean(axis=0)).mean() > 0.01, "contexts matter"
    for number, context in enumerate(contexts[:5]):
        hidden = made.model.edge_part() + made.model.context_part(context[None])
        with torch.no_grad():
            expected = made.model.times(hidden, edges).numpy()
        np.testing.assert_allclose(whole[number], expected, rtol=2e-6)


def test_a_destination_without_a_way_is_named() -> None:
    network = town()
    made = trainer(network, trips(network))
    kept = network.head != 5  # no road leads to node 5
    cut = RoadNetwork.from_arrays(
        np.append(network.tail[kept], [5] * (~kept).sum()),
        np.append(network.head[kept], [0] * (~kept).sum()),
        network.length_m,
    )
    lower_level = LowerLevel(cut, made.data.trips, made.data.contexts)
    rows = np.flatnonzero(made.data.trips.destination == 5)
    with pytest.raises(UnreachableError, match="node 5"):
        lower_level.solve(made.model, rows)
