"""[IDEAL] Theorem 5: what a training step follows is an element of D_J.

Where every fastest path is unique, that element is the gradient of J, here
against central differences of an independent J; at a tie it is the gradient
along one of the tied paths, always the same one.
"""

from itertools import pairwise

import numpy as np
import pytest
import torch

from ideal_dispatch import RoadNetwork, Trips
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.lower_level import Rows
from ideal_dispatch.learning.trainer import Trainer
from tests.unit.learning.worlds import contexts, gradient, in_double, town, trainer, trips, weights

LOSSES = ("squared", "huber", "relative", "log")
HEADS = ("polar", "plain")
STEP = 1e-5


def _params(head: str, loss: str, **changes: object) -> TrainParams:
    shape = Architecture("attributes", head, dimension=3, width=4, hour_harmonics=1)  # type: ignore[arg-type]
    given = {"loss": loss, "huber_s": 60.0, "smoothness": 0.05, "path_refreshes": 0} | changes
    return TrainParams(shape, **given)  # type: ignore[arg-type]


def objective(made: Trainer, at: FloatArray, rows: Rows) -> tuple[float, list[bytes]]:
    """J at the given weights, from its definition, and the paths that attain it."""
    torch.nn.utils.vector_to_parameters(torch.from_numpy(at), made.model.parameters())
    params, data = made.params, made.data
    group = made.lower_level.group
    with torch.no_grad():
        times = made.model.all_times(made.lower_level.contexts, made.model.edge_part())
        static = made.model.representation().numpy()
    total, chosen = 0.0, []
    mean_s = data.trips.observed_s[data.train].mean()
    for i in rows.tolist():
        origin, destination = int(data.trips.origin[i]), int(data.trips.destination[i])
        path = data.network.shortest_path(times[group[i]], origin, destination)
        chosen.append(path.edges.tobytes())
        observed = data.trips.observed_s[i]
        predicted = path.time_s(times[group[i]]) + made.model.constant_s().item()
        error = (predicted - observed) / mean_s
        if params.loss == "relative":
            error *= mean_s / observed
        bend = params.huber_s / mean_s
        if params.loss == "log":
            error, bend = np.log(predicted / observed), params.huber_log
        bent = params.loss != "squared" and abs(error) > bend
        total += bend * (abs(error) - bend / 2) if bent else error**2 / 2
    return total / rows.size + params.smoothness * regulariser(data.network, static), chosen


def regulariser(network: RoadNetwork, static: FloatArray) -> float:
    """R(ϑ) as printed: the double sum over ordered pairs of different edges that share an end."""
    ends = [set(pair) for pair in zip(network.tail.tolist(), network.head.tolist(), strict=True)]
    unit = static / np.sqrt(network.length_m)[:, None]
    return float(
        sum(
            ((unit[a] - unit[b]) ** 2).sum()
            for a in range(len(ends))
            for b in range(len(ends))
            if a != b and ends[a] & ends[b]
        )
    )


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("loss", LOSSES)
def test_direction_is_the_gradient_where_paths_are_unique(head: str, loss: str) -> None:
    network = town(3)
    made = in_double(trainer(network, trips(network, 12, seed=1, distinct=4), _params(head, loss)))
    rows, start = np.arange(12), weights(made)
    value = made.direction(rows)
    direction = gradient(made)
    here, paths = objective(made, start, rows)
    assert value == pytest.approx(here, rel=1e-6)
    rng = np.random.default_rng(5)
    sizes = [parameter.numel() for parameter in made.model.parameters()]
    blocks = [np.ones(start.size)]
    for first, last in pairwise(np.concatenate([[0], np.cumsum(sizes)]).tolist()):
        blocks.append(np.zeros(start.size))
        blocks[-1][first:last] = 1.0  # every weight matrix and bias alone, too
    for block in blocks:
        along = block * rng.standard_normal(start.size)
        along /= np.linalg.norm(along)
        above, above_paths = objective(made, start + STEP * along, rows)
        below, below_paths = objective(made, start - STEP * along, rows)
        assert above_paths == paths == below_paths, "the test needs unique paths"
        slope = (above - below) / (2 * STEP)
        assert direction @ along == pytest.approx(slope, rel=1e-5, abs=1e-7)


def _two_ways(order: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[RoadNetwork, Trips, FloatArray]:
    """From 0 to 3 by 1 or by 2, on different roads of together equal length."""
    tail, head = np.array([0, 1, 0, 2]), np.array([1, 3, 2, 3])
    length = np.array([100.0, 230.0, 230.0, 100.0])
    kinds, keep = np.array([1, 5, 9, 11]), list(order)
    network = RoadNetwork.from_arrays(
        tail[keep], head[keep], length[keep], road_class=kinds[keep], lanes=[1, 2, 3, 4],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    table = Trips(
        np.array([0, 0]), np.array([3, 3]), np.array([40.0, 30.0]), contexts(2, rng)
    )  # fmt: skip
    return network, table, tail[keep]


def _at_tie(network: RoadNetwork, table: Trips, head: str, **changes: object) -> Trainer:
    """A trainer whose times are all free flow times one constant: the two ways tie exactly."""
    given = {"trip_constant": False} | changes
    made = in_double(trainer(network, table, _params(head, "squared", **given)))
    with torch.no_grad():
        made.model.cross.out.weight.zero_()
        made.model.cross.out.bias.fill_(0.7)
    return made


@pytest.mark.parametrize("head", HEADS)
def test_direction_at_a_tie_lies_in_the_hull_and_is_canonical(head: str) -> None:
    network, table, _ = _two_ways()
    made = _at_tie(network, table, head, smoothness=0.0)
    rows = np.arange(2)
    routes, seconds = made.lower_level.solve(made.model, rows)
    assert routes.of(rows)[0].tolist() == [0, 1, 0, 1], "the smaller edge index into node 3"
    fixed = []
    for path in ([0, 1], [2, 3]):
        made.optimiser.zero_grad()
        for i in rows:
            hidden = made.model.edge_part(torch.tensor(path)) + made.model.context_part(
                made.lower_level.contexts[[made.lower_level.group[i]]]
            )
            time = made.model.times(hidden, torch.tensor(path)).sum()
            assert float(time.detach()) == seconds[i], "an exact tie"
            mean_s = table.observed_s.mean()
            (((time - table.observed_s[i]) / mean_s) ** 2 / 2 / 2).backward()
        fixed.append(gradient(made))
    first, second = fixed
    assert np.linalg.norm(first - second) > 1e-3 * np.linalg.norm(first), "a real kink"
    made.direction(rows)
    chosen = gradient(made)
    np.testing.assert_allclose(chosen, first, rtol=1e-9, atol=1e-12)
    share = (chosen - second) @ (first - second) / ((first - second) ** 2).sum()
    assert -1e-9 <= share <= 1 + 1e-9
    np.testing.assert_allclose(chosen, share * first + (1 - share) * second, atol=1e-9)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_ties_are_broken_by_edge_indices_alone(order: tuple[int, ...]) -> None:
    network, table, tails = _two_ways(order)
    made = _at_tie(network, table, "polar")
    answers = []
    for rows in (np.array([0]), np.array([1]), np.array([1, 0]), np.array([0, 1])):
        routes, _ = made.lower_level.solve(made.model, rows)
        answers += [routes.of(np.array([i]))[0].tolist() for i in range(rows.size)]
    last = min(order.index(1), order.index(3))
    middle = int(tails[last])
    first = next(e for e in range(4) if network.tail[e] == 0 and network.head[e] == middle)
    assert answers == [[first, last]] * len(answers)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("smoothness", [0.0, 0.01])
def test_order_of_trips_in_a_batch_does_not_matter(head: str, smoothness: float) -> None:
    network = town(1)
    table = trips(network, 60, distinct=9)
    made = in_double(trainer(network, table, _params(head, "huber", smoothness=smoothness)))
    rng = np.random.default_rng(0)
    rows = rng.choice(60, 40, replace=False)
    value = made.direction(rows)
    direction = gradient(made)
    for _ in range(3):
        assert made.direction(rng.permutation(rows)) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient(made), direction, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("head", HEADS)
def test_a_batch_is_the_mean_of_its_trips_however_contexts_are_grouped(head: str) -> None:
    network = town(2)
    shared = trips(network, 24, distinct=3)
    made = in_double(trainer(network, shared, _params(head, "relative")))
    assert made.lower_level.contexts.shape[0] <= 3
    made.direction(np.arange(24))
    whole = gradient(made)
    singly = []
    for i in range(24):
        made.direction(np.array([i]))
        singly.append(gradient(made))
    np.testing.assert_allclose(whole, np.mean(singly, axis=0), rtol=1e-9, atol=1e-13)
    made.lower_level.contexts = made.lower_level.contexts[made.lower_level.group]
    made.lower_level.group = np.arange(24)  # every trip has a context of its own
    made.direction(np.arange(24))
    np.testing.assert_allclose(gradient(made), whole, rtol=1e-9, atol=1e-13)


def test_paths_kept_for_a_part_of_an_epoch_are_the_same_at_their_renewal() -> None:
    network = town(4)
    table = trips(network, 30)
    fresh = in_double(trainer(network, table, _params("polar", "huber")))
    kept = in_double(trainer(network, table, _params("polar", "huber", path_refreshes=2)))
    kept.renew_paths()
    rows = np.arange(3, 17)
    fresh.direction(rows)
    kept.direction(rows)
    np.testing.assert_allclose(gradient(kept), gradient(fresh), rtol=1e-12)
