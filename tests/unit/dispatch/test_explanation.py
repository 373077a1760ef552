"""The explanation is of the ambulance that is advised, in seconds by road."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.dispatch import Decision, Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.candidate import longest_roads, overlap, routed
from ideal_dispatch.dispatch.policies import Ideal, RouterDual
from ideal_dispatch.dispatch.situation import ForecastRouter
from ideal_dispatch.gap.explanation import RoadComparison
from ideal_dispatch.network.path import roads
from tests.unit.dispatch.worlds import random_model, situation


def city_decisions() -> list[tuple[Situation, Decision]]:
    """Many calls of the embedded city, decided by what comes with it, the primary as sent."""
    city = harbour_city()
    model = city.model
    assert model is not None
    policy = Ideal(model, city.responses, method="multistart")
    at = datetime.fromisoformat("2023-05-08T08:10+08:00")
    context = Calendar(city.time_zone, city.country).context(at)
    router, made = ForecastRouter(model, city.network, context), []
    for node in range(5, city.network.num_nodes, 23):
        incident = Incident(f"call {node}", node, at)
        for sent in (None, 0, 1):
            call = observe(router, city.network, incident, context, Readiness(city.depots))
            if sent is not None:
                ready = Readiness(city.depots, sent=routed(call, sent))
                call = observe(router, city.network, incident, context, ready)
            made.append((call, policy.decide(call, np.random.default_rng(0))))
    return made


def test_the_roads_are_those_of_primary_and_second() -> None:
    other_ways = unnamed = 0
    for call, made in city_decisions():
        explained = made.explain()
        assert made.gap is not None
        if made.second is None:
            assert explained.roads is None
            continue
        ways, network = explained.roads, call.network
        assert ways is not None
        first, second = made.primary.path, made.second.path
        both = set(first.edges.tolist()) & set(second.edges.tolist())
        for parts, path, shared in (
            (ways.shared, first, True), (ways.primary_only, first, False),
            (ways.second_only, second, False),
        ):  # fmt: skip
            edges = [edge for edge in path.edges.tolist() if (edge in both) == shared]
            names = {network.name[edge] for edge in edges} - {""}
            assert {part.name for part in parts if not part.name.startswith("an un")} == names
            metres = sum(part.length_m for part in parts)
            assert metres == pytest.approx(network.length_m[edges].sum())
            unnamed += any(part.name == "an unnamed service road" for part in parts)
        part_of_way = overlap(network, first, second)
        assert ways.shared_m == pytest.approx(part_of_way * second.length_m(network))
        assert made.outlook is not None
        now_s = made.outlook.scenarios.nominal_times
        lead_s = first.time_s(now_s) - second.time_s(now_s)
        assert sum(seconds for _, seconds in ways.advantage_s) == pytest.approx(lead_s)
        alike = made.gap.secondary in (first, second)
        assert (explained.other_way is None) == (alike or abs(made.gap.lower_s) < 0.5)
        assert (f" {explained.other_way}." in str(explained)) == (explained.other_way is not None)
        slow = {road.name for road in explained.stressed}
        assert slow <= {name for path in (first, second) for name, _ in roads(network, path)}
        other_ways += explained.other_way is not None
    assert other_ways > 10, "else nothing was shown: the gap's way is often another one"
    assert unnamed > 5


def test_another_way_is_told_by_roads_that_the_second_does_not_drive() -> None:
    for call, made in city_decisions():
        other, second = made.explain().other_way, made.second
        if other is not None and second is not None:
            same_depot = call.stations[second.station].depot.name == other.depot
            own = tuple(longest_roads(call.network, second.path))
            assert not (same_depot and other.roads == own)


def test_roads_without_a_name_are_described_and_never_the_same() -> None:
    network = RoadNetwork.from_arrays(
        [0, 1, 0, 2, 3], [1, 4, 2, 3, 4], [100.0, 200.0, 300.0, 400.0, 500.0],
        name=["", "Mill Lane", "", "", "Mill Lane"],
        road_class=["residential", "residential", "residential", "motorway_link", "primary"],
    )  # fmt: skip
    first, second = network.path([0, 1]), network.path([2, 3, 4])
    ways = RoadComparison.of(network, first, second, np.array([10.0, 20.0, 30.0, 40.0, 50.0]))
    assert ways.shared == ()
    assert dict(ways.advantage_s[:1]) == {"an unnamed slip road": -40.0}
    assert ways.advantage_s[1:] == (
        ("Mill Lane", -30.0), ("an unnamed residential road", -30.0),
        ("an unnamed residential road", 10.0),
    )  # fmt: skip
    assert "share 0.0 km" in str(ways)
    assert "same roads" not in str(ways)


def test_a_road_without_a_name_is_one_until_another_comes() -> None:
    network = RoadNetwork.from_arrays(
        range(5), range(1, 6), [100.0] * 5, name=["", "", "High Street", "", ""],
        road_class=["service", "service", "primary", "service", "living_street"],
    )  # fmt: skip
    assert roads(network, network.path(range(5))) == [
        ("an unnamed service road", 1), ("an unnamed service road", 1), ("High Street", 0),
        ("an unnamed service road", 2), ("an unnamed living street", 3),
    ]  # fmt: skip


def test_a_decision_without_a_gap_is_explained_by_its_ways(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    made = RouterDual().decide(call, np.random.default_rng(0))
    explained = made.explain()
    assert made.second is not None
    assert explained.roads is not None
    assert call.router_times_s is not None
    lead_s = made.primary.path.time_s(call.router_times_s)
    lead_s -= made.second.path.time_s(call.router_times_s)
    assert sum(seconds for _, seconds in explained.roads.advantage_s) == pytest.approx(lead_s)
    assert str(explained) == f"{explained.roads}\nSeconds by road are in the traffic of now."


def test_it_says_whose_seconds_by_road_these_are(grid: RoadNetwork) -> None:
    live, rng = situation(grid, 65), np.random.default_rng(0)
    quotes_only = replace(live, router_times_s=None)
    model = random_model(grid)
    own = replace(quotes_only, forecast=model.forecast(live.context, grid))
    policy = Ideal(model, method="multistart")
    for call, decider, whose, words in (
        (live, policy, "router", "in the traffic of now"),
        (quotes_only, policy, "forecast", "by the forecast"),
        (own, RouterDual(), "forecast", "by the forecast"),
        (quotes_only, RouterDual(), "free_flow", "on empty roads"),
    ):
        explained = decider.decide(call, rng).explain()
        assert explained.times_from == whose
        assert f"Seconds by road are {words}." in str(explained)
