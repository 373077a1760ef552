"""Units that start on an edge: what they have left of it counts in all that is computed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Depot, RoadNetwork
from ideal_dispatch.dispatch import Ideal, Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.candidate import (
    outlook_of,
    routed,
    situation_gap,
)
from ideal_dispatch.dispatch.situation import ForecastRouter
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.gap.explanation import RoadComparison
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.dispatch.worlds import (
    CALENDAR,
    depots,
    fleet_threshold,
    moment,
    random_model,
    situation,
    world,
)

NODE = 65


def on_edge(network: RoadNetwork, name: str, node: int, ahead: float, **more: Any) -> Depot:
    """A unit on the first edge that leads to a node."""
    edge = int(np.flatnonzero(network.head == node)[0])
    return Depot(name, node, True, home="D0", edge=edge, ahead=ahead, **more)


def look(network: RoadNetwork, starts: Sequence[Depot], source: Any = None) -> Situation:
    at = moment(network)
    return observe(
        source or world(network), network, Incident("call", NODE, at), CALENDAR.context(at),
        Readiness(starts, [1] * len(starts)),
    )  # fmt: skip


class Twice:
    """A router without times of edges: twice the time at free flow, and a red light."""

    def __init__(self, network: RoadNetwork, light_s: float = 0.0) -> None:
        self.network, self.light_s = network, light_s

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        times_s = 2.0 * self.network.free_flow_times_s
        path = self.network.shortest_path(times_s, origin, destination)
        seconds = path.time_s(times_s) + self.light_s
        return RouteQuote(path, seconds, 0.0, seconds, seconds, at, 0.0)


@pytest.mark.parametrize("ahead", [0.25, 1.0])
def test_the_rest_of_an_edge_takes_its_share_of_the_times_that_are_known(
    grid: RoadNetwork, ahead: float
) -> None:
    at_node, unit = Depot("A1", 11, True), on_edge(grid, "A1", 11, ahead)
    assert unit.edge is not None
    model = random_model(grid)
    context = CALENDAR.context(moment(grid))
    forecast = model.forecast(context, grid)
    for source, times_s in (
        (None, world(grid).router_times(moment(grid))),
        (ForecastRouter(model, grid, context), forecast.nominal_times),
        (Twice(grid), 2.0 * grid.free_flow_times_s),
    ):
        plain, seen = (
            look(grid, [one, *depots(1)], source).stations[0] for one in (at_node, unit)
        )  # fmt: skip
        assert plain.quote is not None
        assert seen.quote is not None
        assert seen.ahead_s == pytest.approx(ahead * times_s[unit.edge])
        assert seen.quote.duration_s == pytest.approx(plain.quote.duration_s + seen.ahead_s)
        assert seen.quote.path == plain.quote.path


def test_a_red_light_on_a_short_way_does_not_slow_down_the_rest_of_an_edge(
    grid: RoadNetwork,
) -> None:
    """As much slower as all quotes together: that of the unit near the scene says little."""
    near = int(grid.tail[np.flatnonzero(grid.head == NODE)[0]])
    unit = on_edge(grid, "A1", near, 1.0)
    (seen, *_) = look(grid, [unit, *depots(4)], Twice(grid, light_s=30.0)).stations
    assert seen.ahead_s < 4.0 * grid.free_flow_times_s[unit.edge]


@pytest.mark.parametrize("first", [0, 1])
def test_the_gap_counts_with_it_for_the_primary_and_the_second(
    grid: RoadNetwork, first: int
) -> None:
    starts = [on_edge(grid, "A1", 11, 0.9), on_edge(grid, "A2", 108, 0.4)]
    about, other = look(grid, starts), starts[1 - first]
    scenarios = (outlook := outlook_of(about, random_model(grid))).scenarios
    primary = routed(about, first)
    gap = situation_gap(about, outlook, primary, np.random.default_rng(0), "certified", None)
    assert gap is not None
    gap.verify(grid, scenarios, [other], NODE, primary.path, starts[first])
    times_s = scenarios.times(gap.metric)
    first_s = primary.path.time_s(times_s) + starts[first].ahead * times_s[starts[first].edge]
    second_s = gap.secondary.time_s(times_s) + other.ahead * times_s[other.edge]
    assert gap.lower_s == pytest.approx(first_s - second_s, abs=1e-6)


@pytest.mark.parametrize("ahead", [0.4, 1.0])
def test_the_explanation_has_it_among_the_roads(grid: RoadNetwork, ahead: float) -> None:
    """Also where the second begins with a road that the first drives as a whole."""
    first, times_s = on_edge(grid, "A1", 11, 0.9), grid.free_flow_times_s
    one = grid.shortest_path(times_s, first.node, NODE)
    edge = int(one.edges[2])
    starts = first, Depot("A2", int(grid.head[edge]), True, edge=edge, ahead=ahead)
    two = grid.shortest_path(times_s, starts[1].node, NODE)
    compared = RoadComparison.of(grid, one, two, times_s, starts)
    rests_s = [start.ahead * times_s[start.edge] for start in starts]
    lead_s = one.time_s(times_s) + rests_s[0] - two.time_s(times_s) - rests_s[1]
    assert sum(seconds for _, seconds in compared.advantage_s) == pytest.approx(lead_s)


def test_free_units_that_are_too_far_away_count_for_the_price(grid: RoadNetwork) -> None:
    few = situation(grid, units=(1, 1))
    many = replace(few, elsewhere={"D0": 2, "D1": 2, "D2": 3, "D3": 3})
    assert many.free_units == few.free_units + 10
    policy = Ideal(responses=ResponseModel.published(), threshold=fleet_threshold(grid))
    costs = [policy.decide(one, np.random.default_rng(0)).cost for one in (few, many)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[1].lives < costs[0].lives
