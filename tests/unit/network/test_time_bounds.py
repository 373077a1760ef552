"""What can be driven: stated speeds, by class and limit."""

import json
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.time_bounds import TimeBounds


@pytest.fixture(scope="module")
def roads() -> RoadNetwork:
    """A kilometre each: a motorway, a street of 50 km/h, one of 100 km/h, one without a limit."""
    n = np.arange(4)
    return RoadNetwork.from_arrays(
        n, n + 1, np.full(4, 1000.0), speed_kmh=[110.0, 50.0, 100.0, np.nan],
        road_class=["motorway", "residential", "residential", "unclassified"],
    )  # fmt: skip


def test_bounds_are_stated_speeds(roads: RoadNetwork) -> None:
    bounds = TimeBounds().on(roads)
    np.testing.assert_allclose(3600 / bounds.least_s, [220, 110, 200, 140])
    np.testing.assert_allclose(bounds.greatest_s, 1200 + 180)
    np.testing.assert_allclose(bounds.expected_s[0], 1.5 * bounds.least_s)
    np.testing.assert_allclose(bounds.expected_s[1], bounds.greatest_s / 1.5)
    part = TimeBounds().on(roads, roads.path([1, 2]))
    np.testing.assert_array_equal(part.least_s, bounds.least_s[1:3])


def test_a_quarter_faster_than_free_flow_lies_inside(roads: RoadNetwork, grid: RoadNetwork) -> None:
    kmh = np.repeat([20.0, 50.0, 80.0, 100.0, 120.0, 140.0], len(ROAD_CLASSES))
    n = np.arange(kmh.size)
    every = RoadNetwork.from_arrays(
        n, n + 1, np.full(n.size, 150.0), speed_kmh=kmh, road_class=n % len(ROAD_CLASSES)
    )
    for network in (roads, grid, every):
        least, greatest = TimeBounds().on(network).expected_s
        assert (0.76 * network.free_flow_times_s > least).all()
        assert (3 * network.free_flow_times_s < greatest).all()


def test_times_are_held_and_said_to_be(roads: RoadNetwork) -> None:
    bounds = TimeBounds().on(roads)
    times = np.array([0.0, 72.0, 1e9, 50.0])
    held = bounds.held(times)
    np.testing.assert_allclose(held, [1.5 * 3600 / 220, 72.0, 920.0, 50.0])
    assert bounds.reached(held).tolist() == [True, False, True, False]


def test_what_a_manifest_keeps() -> None:
    bounds = TimeBounds(over_limit_kmh=40.0)
    plain = json.loads(json.dumps(bounds.as_dict()))
    assert plain["fastest_kmh"]["motorway"] == 180.0
    assert TimeBounds.from_dict(plain) == bounds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fastest_kmh": (100.0,)}, "fastest_kmh needs 14 speeds"),
        ({"margin": 1.0}, "margin 1.0: more than 1 and at most 10 is needed"),
        ({"over_limit": np.inf}, "over_limit inf: a finite number is needed"),
        ({"wait_s": -1.0}, "wait_s -1.0: 0 to 86400 is needed"),
        ({"over_limit_kmh": np.inf}, "over_limit_kmh inf: a finite number is needed"),
        ({"fastest_kmh": (1e9,) * 14}, "more than 0 and at most 10000 is needed"),
        ({"crawl_kmh": 60.0}, "crawl_kmh must lie well below every fastest_kmh"),
    ],
)
def test_bounds_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TimeBounds(**changes)
