"""Nobody knows a passage before it is over: from vehicles to quotes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, counted_by, encode
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.sumo.day import Passages, left_times_s
from tests.unit.traffic.small import CALENDAR, START

BIN_S, BINS, NOW_S = 60, 90, 40 * 60.0 + 30
NOW = START + timedelta(seconds=NOW_S)


def _passages(network: RoadNetwork) -> Passages:
    """Vehicles over an hour and a half, some of them for many minutes on one road."""
    rng = np.random.default_rng(0)
    edge = rng.integers(network.num_edges, size=20_000).astype(np.int32)
    enter_s = rng.uniform(0, BINS * BIN_S, edge.size)
    took_s = network.free_flow_times_s[edge] * rng.lognormal(1.0, 0.8, edge.size)
    return Passages(edge, enter_s, enter_s + took_s)


def _world(network: RoadNetwork, passages: Passages) -> ReplayedTraffic:
    """As a SUMO day is recorded."""
    times_s = left_times_s(passages, network.free_flow_times_s, 0.0, BINS, BIN_S)
    codes = encode(times_s, network)
    truth = counted_by("entry", codes, network, BIN_S)
    stretch = Stretch(START, codes, np.zeros((2, 5)), truth=truth)
    return ReplayedTraffic(RecordedTraffic(network, CALENDAR, BIN_S, (stretch,)))


def _later(passages: Passages) -> Passages:
    """Whoever is still on the road now leaves it much later."""
    under_way = passages.leave_s > NOW_S
    return replace(passages, leave_s=passages.leave_s + 200.0 * under_way)


def _sooner(passages: Passages) -> Passages:
    """Whoever is still on the road now leaves it the next moment, or soon after entering."""
    soonest = np.maximum(passages.enter_s, NOW_S) + 1e-3
    return replace(passages, leave_s=np.where(passages.leave_s > NOW_S, soonest, passages.leave_s))


def _gone(passages: Passages) -> Passages:
    """Whoever is still on the road now was never there."""
    over = passages.leave_s <= NOW_S
    return Passages(passages.edge[over], passages.enter_s[over], passages.leave_s[over])


@pytest.mark.parametrize("change", [_later, _sooner, _gone])
def test_passages_that_are_not_over_change_no_quote_but_the_truth(
    grid: RoadNetwork, change: Callable[[Passages], Passages]
) -> None:
    passages = _passages(grid)
    world, other = _world(grid, passages), _world(grid, change(passages))
    last = grid.num_nodes - 1
    np.testing.assert_array_equal(world.router_times(NOW), other.router_times(NOW))
    for node in range(0, last, 13):
        quote = world.quote(node, last, NOW)
        assert other.quote(node, last, NOW) == quote
        assert other.alternative(quote.path, NOW) == world.alternative(quote.path, NOW)
        assert other.way_on(node, last, NOW) == world.way_on(node, last, NOW)
    assert (world.realised_times(NOW) != other.realised_times(NOW)).any()
    before = NOW - timedelta(seconds=90)  # who entered then is still under way
    assert (world.realised_times(before) != other.realised_times(before)).any()


def test_passages_that_are_over_change_quotes(grid: RoadNetwork) -> None:
    """The test above can fail: one minute earlier is seen."""
    passages = _passages(grid)
    over = (passages.leave_s > NOW_S - 90) & (passages.leave_s <= NOW_S - 30)
    slower = replace(passages, enter_s=passages.enter_s - 300.0 * over)
    world, other = _world(grid, passages), _world(grid, slower)
    assert (world.router_times(NOW) != other.router_times(NOW)).any()
