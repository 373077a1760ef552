import numpy as np
import pytest

from benchmarks.networks import smooth_embeddings
from ideal_dispatch import RoadNetwork, ScenarioSet, explain_gap, optimistic_gap
from ideal_dispatch.cities import harbour_city


def test_seconds_by_road_add_up() -> None:
    city = harbour_city()
    scenarios = ScenarioSet(smooth_embeddings(city.network, 8), 0.1)
    for destination in (200, 700, 1100):
        primary = city.network.shortest_path(scenarios.nominal_times, city.depots, destination)
        gap = optimistic_gap(city.network, scenarios, city.depots, destination, primary)
        story = explain_gap(gap, city.network, scenarios, primary)
        assert sum(seconds for _, seconds in story.roads.advantage_s) == pytest.approx(gap.lower_s)
        parts = (story.roads.shared, story.roads.primary_only, story.roads.second_only)
        lengths = [sum(road.length_m for road in roads) for roads in parts]
        assert lengths[0] + lengths[1] == pytest.approx(primary.length_m(city.network))
        assert lengths[0] + lengths[2] == pytest.approx(gap.secondary.length_m(city.network))
        slowdowns = [road.slowdown for road in story.stressed]
        assert slowdowns == sorted(slowdowns, reverse=True)
        assert story.stressed[0].correlation == pytest.approx(1.0)
        text = str(story)
        assert f"{gap.lower_s:.0f} s sooner" in text
        assert "exact" in text


def test_what_is_said_of_each_kind_of_answer() -> None:
    network = RoadNetwork.from_arrays(
        [0, 0, 1], [2, 2, 2], [500.0, 700.0, 900.0], name=["High Street", "", "Mill Lane"]
    )
    scenarios = ScenarioSet(np.diag([10.0, 11.0, 12.0]), 0.2)
    primary = network.path([0])

    def told(**options: object) -> str:
        gap = optimistic_gap(network, scenarios, [0, 1], 2, primary, **options)  # type: ignore[arg-type]
        return str(explain_gap(gap, network, scenarios, primary))

    assert "avoids" in told()
    assert "High Street" in told()
    assert "an unnamed road" in told()
    assert "Proved: more than the threshold of 5 s" in told(threshold_s=5.0)
    assert "Proved: not more than the threshold of 90 s" in told(threshold_s=90.0)
    assert "It is proved only that none could be more than" in told(method="multistart")
    alone = optimistic_gap(network, ScenarioSet(np.ones((3, 1)), 0.0), [0], 2, primary)
    story = str(explain_gap(alone, network, ScenarioSet(np.ones((3, 1)), 0.0), primary))
    assert "Both would drive the same roads" in story
    assert story.startswith("Optimistic gap: ")
    assert "0 s" not in story


def test_a_primary_that_repeats_an_edge() -> None:
    network = RoadNetwork.from_arrays([0, 1, 1], [1, 0, 2], [100.0] * 3, name=["A", "A", "B"])
    scenarios = ScenarioSet(np.diag([2.0, 2.5, 3.0]), 0.1)
    primary = network.path([0, 1, 0, 2])
    gap = optimistic_gap(network, scenarios, [0], 2, primary)
    story = explain_gap(gap, network, scenarios, primary)
    assert sum(seconds for _, seconds in story.roads.advantage_s) == pytest.approx(gap.lower_s)


def test_nobody_else_can_be_as_quick() -> None:
    network = RoadNetwork.from_arrays([0, 1], [2, 2], [100.0] * 2)
    scenarios = ScenarioSet(np.diag([2.0, 9.0]), 0.01)
    gap = optimistic_gap(network, scenarios, [1], 2, network.path([0]))
    story = str(explain_gap(gap, network, scenarios, network.path([0])))
    assert f"{-gap.lower_s:.0f} s later" in story


def test_an_exact_answer_also_says_which_side_of_the_threshold() -> None:
    network = RoadNetwork.from_arrays([0, 0, 1], [2, 2, 2], [500.0, 700.0, 900.0])
    scenarios = ScenarioSet(np.diag([10.0, 11.0, 12.0]), 0.2)
    primary = network.path([0])
    gap = optimistic_gap(network, scenarios, [0, 1], 2, primary, threshold_s=5.0)
    text = str(explain_gap(gap, network, scenarios, primary))
    assert gap.status == "exact"
    assert "This is exact for the scenario set." in text
    assert "Proved: more than the threshold of 5 s." in text
