import math
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Situation
from ideal_dispatch.dispatch.policies import (
    Ideal,
    IntervalPolicy,
    RandomTrigger,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.time_bounds import TimeBounds
from tests.unit.dispatch.worlds import random_model, situation
from workshop.policies import (
    ROUTER_FEATURES,
    GapScored,
    QuoteDifference,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def promising(
    call: Situation, *promised: tuple[float, float, float], alternative_s: float | None = None
) -> Situation:
    """The call with other durations, optimistic and pessimistic times, station by station."""
    stations = []
    for station, (duration, low, high) in zip(call.stations, promised, strict=True):
        assert station.quote is not None
        assert station.alternative is not None
        other = replace(station.alternative, duration_s=alternative_s or 2 * duration)
        quote = replace(station.quote, duration_s=duration, optimistic_s=low, pessimistic_s=high)
        stations.append(replace(station, quote=quote, alternative=other))
    return replace(call, stations=tuple(stations))


@pytest.fixture
def three(grid: RoadNetwork) -> Situation:
    """Three depots: the second is fastest, the first could be very quick, the third is far."""
    call = situation(grid, 65, (2, 2, 2))
    return promising(call, (300.0, 200.0, 400.0), (250.0, 240.0, 290.0), (299.0, 290.0, 500.0))


def test_the_region_decides_unless_it_has_nobody(grid: RoadNetwork, three: Situation) -> None:
    decided = RegionPolicy().decide(replace(three, region=2), rng())
    assert (decided.primary.station, decided.second) == (2, None)
    assert decided.reason == "D2: its territory"
    empty = situation(grid, 65, (0, 2, 2), region=0)
    decided = RegionPolicy().decide(empty, rng())
    assert decided.primary.station == empty.fastest
    assert "the depot of the territory has no free unit" in decided.reason
    with pytest.raises(InputError, match="the territory of the call is not known"):
        RegionPolicy().decide(replace(three, region=None), rng())


def test_router_policies(three: Situation) -> None:
    single, dual = RouterPolicy().decide(three, rng()), RouterDual().decide(three, rng())
    for decided in (single, dual):
        assert decided.second is not None
        assert (decided.primary.station, decided.second.station) == (1, 2)
        assert decided.primary.follow == decided.second.follow == 0
        assert decided.primary.path == three.quote(1).path
    assert not single.send_second
    assert dual.send_second


def test_ranges_that_overlap(three: Situation) -> None:
    decided = IntervalPolicy(threshold=ConstantThreshold(89.0)).decide(three, rng())
    assert decided.second is not None
    assert decided.second.station == 0  # the least optimistic time, not the next shortest quote
    assert decided.score_s == 290.0 - 200.0
    assert decided.send_second
    assert not IntervalPolicy(threshold=ConstantThreshold(90.0)).decide(three, rng()).send_second


def test_a_router_without_ranges_is_taken_at_its_word(three: Situation) -> None:
    nan = math.nan
    call = promising(three, (300.0, nan, nan), (250.0, nan, nan), (299.0, nan, nan))
    decided = IntervalPolicy().decide(call, rng())
    assert decided.second is not None
    assert (decided.second.station, decided.score_s) == (2, 250.0 - 299.0)


def test_the_difference_of_quotes(three: Situation) -> None:
    decided = QuoteDifference(threshold=ConstantThreshold(-60.0)).decide(three, rng())
    assert decided.score_s == -(299.0 - 250.0)
    assert decided.send_second
    logged = dict(zip(ROUTER_FEATURES, decided.log_facts()["router_features"], strict=True))
    assert logged["difference_s"] == 49.0
    assert (logged["first_below_s"], logged["first_above_s"]) == (10.0, 40.0)
    assert (logged["second_below_s"], logged["second_above_s"]) == (9.0, 201.0)
    assert logged["first_m"] == pytest.approx(three.quote(1).path.length_m(three.network), abs=1e-3)
    assert logged["hour"] == pytest.approx(8 + 10 / 60, abs=1e-3)


def test_chance_sends_as_many_as_it_is_told(three: Situation) -> None:
    policy = RandomTrigger(threshold=ConstantThreshold(0.75))
    sent = [policy.decide(three, rng(seed)).send_second for seed in range(400)]
    assert 70 < sum(sent) < 130
    assert "drawn 0.637, not above the threshold of 0.75" in policy.decide(three, rng()).reason


@pytest.mark.parametrize("by", ["gap", "both"])
def test_our_form_may_be_decided_by_its_gap(grid: RoadNetwork, by: Literal["gap", "both"]) -> None:
    wide = TimeBounds(over_limit_kmh=2000.0)  # so that a radius of 1.5 is not held
    lesser = set()
    for node, radius in product(range(2, grid.num_nodes, 15), (0.01, 1.5)):
        call = situation(grid, node)
        model = replace(random_model(grid, radius=radius), bounds=wide)
        made = GapScored(model, by=by, time_limit_s=None).decide(call, rng())
        ours = Ideal(model, time_limit_s=None).decide(call, rng())
        assert made.gap is not None
        assert (made.primary, made.second) == (ours.primary, ours.second)
        gap_s = made.gap.lower_s
        assert made.score_s == (gap_s if by == "gap" else min(gap_s, ours.score_s))
        assert f"{made.score_s:.4g} s" in made.reason
        lesser.add(gap_s < ours.score_s)
    assert lesser == {True, False}
