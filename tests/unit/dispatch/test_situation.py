from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from ideal_dispatch import Context, Depot, RoadNetwork
from ideal_dispatch.dispatch import (
    Assignment,
    Decision,
    Incident,
    Readiness,
    Situation,
    Station,
    observe,
)
from ideal_dispatch.dispatch.decision import by_score
from ideal_dispatch.dispatch.threshold import ALWAYS, ConstantThreshold
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import depots, moment, situation, world

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def test_what_a_dispatcher_sees(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (0, 1, 2, 1))
    traffic, at = world(grid), moment(grid)
    assert call.available == (1, 2, 3)
    assert call.free_units == 4
    assert call.stations[0].quote is None
    for number in call.available:
        expected = traffic.quote(call.stations[number].depot.node, 65, at)
        assert call.quote(number).path == expected.path
        assert call.quote(number).duration_s == expected.duration_s
    times = {number: call.quote(number).duration_s for number in call.available}
    assert call.fastest == min(times, key=lambda number: times[number])
    others = call.others(call.fastest)
    assert call.fastest not in others
    assert [times[n] for n in others] == sorted(times[n] for n in others)
    np.testing.assert_array_equal(call.router_times_s, traffic.router_times(at))


def test_who_may_go_second(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (1, 2, 0, 1))
    assert call.second_stations(0) == (1, 3)
    assert call.second_stations(1) == (0, 1, 3)
    assert call.second_stations(3) == (0, 1)


def test_a_depot_without_a_way_is_not_available() -> None:
    network = RoadNetwork.from_arrays([0, 2], [1, 1], [100.0, 100.0], num_nodes=4)

    class Streets:
        def quote(self, origin: int, destination: int, at: datetime) -> object:
            times = network.free_flow_times_s
            path = network.shortest_path(times, origin, destination)
            return replace(pattern, path=path, duration_s=path.time_s(times))

    from ideal_dispatch.traffic.source import RouteQuote

    pattern = RouteQuote(network.path([0]), 1.0, 1.0, 1.0, 1.0, NOW, 0.0)
    places = [Depot("A", 0), Depot("B", 3), Depot("C", 2)]
    source, context = Streets(), Context(NOW)
    seen = observe(source, network, Incident("x", 1, NOW), context, Readiness(places))  # type: ignore[arg-type]
    assert seen.available == (0, 2)
    assert seen.router_times_s is None
    with pytest.raises(InputError, match="has no route to the incident"):
        seen.quote(1)
    with pytest.raises(InputError, match="incident x: no depot has a free unit and a route"):
        observe(source, network, Incident("x", 3, NOW), context, Readiness(places[:1]))  # type: ignore[arg-type]


def test_alternatives_are_asked_for_where_wanted_or_where_nothing_else_is(
    grid: RoadNetwork,
) -> None:
    call = situation(grid)
    for units, alternatives, known in (
        ([2, 2], True, [True, True]),
        ([2, 2], False, [False, False]),
        ([2, 0], False, [True, False]),
    ):
        seen = observe(
            world(grid), grid, call.incident, call.context, Readiness(depots(2), units),
            alternatives=alternatives,
        )  # fmt: skip
        assert [one.alternative is not None for one in seen.stations] == known


def test_situations_that_cannot_be(grid: RoadNetwork) -> None:
    call = situation(grid)
    with pytest.raises(InputError, match="the route from depot D0 .* leads to node 65, not to"):
        replace(call, incident=Incident("x", 66, call.incident.at))
    with pytest.raises(InputError, match="region 5 is none of 2 stations"):
        replace(call, region=5)
    with pytest.raises(InputError, match="router times of 3 edges, there are"):
        replace(call, router_times_s=np.ones(3))
    with pytest.raises(InputError, match="-1 free units; zero or more"):
        Station(Depot("A", 0), -1, None)
    with pytest.raises(InputError, match="free units of 1 depots given, there are 2"):
        Readiness(depots(2), [1])
    with pytest.raises(InputError, match="no zone"):
        Incident("x", 1, datetime(2024, 1, 1))
    assert isinstance(replace(call, region=None), Situation)


def test_a_decision_by_score_in_words(grid: RoadNetwork) -> None:
    call = situation(grid)
    one, two = (Assignment(number, call.quote(number).path) for number in (0, 1))
    above = by_score("p", call, (one, two), 31.25, ConstantThreshold(30.0), "gap")
    assert above.send_second
    assert above.reason == "D0, and a second from D1: gap 31.25 s, above the threshold of 30 s"
    below = by_score("p", call, (one, two), 30.0, ConstantThreshold(30.0), "gap")
    assert not below.send_second
    assert below.reason == "D0 alone: gap 30 s, not above the threshold of 30 s"
    always = by_score("p", call, (one, two), -5.0, ALWAYS, "gap")
    assert always.send_second
    assert always.reason == "D0, and a second from D1: a second always goes"
    alone = by_score("p", call, (one, None), 99.0, ALWAYS, "gap")
    assert not alone.send_second
    assert "no other unit on another road" in alone.reason


def test_a_decision_that_cannot_be_logged(grid: RoadNetwork) -> None:
    call = situation(grid)
    one = Assignment(0, call.quote(0).path)
    with pytest.raises(InputError, match="policy p: score inf is not finite"):
        Decision("p", one, None, np.inf, 0.0, "")
    for threshold in (np.nan, np.inf):
        with pytest.raises(InputError, match="a number is needed, or minus infinity"):
            Decision("p", one, None, 0.0, threshold, "")
    made = Decision("p", one, None, 0.0, 0.0, "", {"a": 1})
    with pytest.raises(TypeError):
        made.facts["a"] = 2  # type: ignore[index]
