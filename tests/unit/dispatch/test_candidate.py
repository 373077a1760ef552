import math

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment, Decision
from ideal_dispatch.dispatch.candidate import Candidate, quoted
from ideal_dispatch.dispatch.decision import log_details
from ideal_dispatch.dispatch.path_pair import differing, overlap, unshared_s
from ideal_dispatch.dispatch.worth import gain_features
from ideal_dispatch.network.time_bounds import TimeBounds
from tests.unit.dispatch.worlds import situation

# 0 → 1 → 2 → 3 along edges 0, 1, 2; a detour 1 → 4 → 2 along edges 3, 4; and 5 → 2 along edge 5
NETWORK = RoadNetwork.from_arrays(
    [0, 1, 2, 1, 4, 5], [1, 2, 3, 4, 2, 2], [100.0, 300.0, 100.0, 200.0, 200.0, 400.0],
    speed_kmh=np.full(6, 36.0),
)  # fmt: skip
DIRECT, DETOUR = NETWORK.path([0, 1, 2]), NETWORK.path([0, 3, 4, 2])
ELSEWHERE, NOTHING = NETWORK.path([5, 2]), NETWORK.path([], 3)


def test_overlap_is_the_share_of_the_seconds_metres() -> None:
    assert overlap(NETWORK, DIRECT, DETOUR) == pytest.approx(200 / 600)
    assert overlap(NETWORK, DETOUR, DIRECT) == pytest.approx(200 / 500)
    assert overlap(NETWORK, DIRECT, ELSEWHERE) == pytest.approx(100 / 500)
    assert overlap(NETWORK, DIRECT, DIRECT) == 1.0
    assert overlap(NETWORK, DIRECT, NOTHING) == 0.0
    assert overlap(NETWORK, NOTHING, DIRECT) == 0.0
    assert overlap(NETWORK, NOTHING, NOTHING) == 1.0


def test_what_to_keep_to_so_that_the_difference_is_driven() -> None:
    assert differing(NETWORK, DETOUR, DIRECT) == 3
    assert differing(NETWORK, DIRECT, DETOUR) == 2
    assert differing(NETWORK, ELSEWHERE, DIRECT) == 1
    assert differing(NETWORK, DIRECT, DIRECT) == 0
    assert differing(NETWORK, NOTHING, DIRECT) == 0


def test_unshared_time_by_hand() -> None:
    # 3 of 5 parts of the one, 4 of 6 of the other are theirs alone
    assert unshared_s(NETWORK, DIRECT, 50.0, DETOUR, 120.0) == pytest.approx(30.0 + 80.0)
    assert unshared_s(NETWORK, DIRECT, 50.0, DIRECT, 50.0) == 0.0
    assert unshared_s(NETWORK, DIRECT, 50.0, NOTHING, 0.0) == 50.0


def test_features_of_two_candidates() -> None:
    one = Candidate("router", Assignment(0, DIRECT), 50.0, 15.0, 5.0)
    two = Candidate("router", Assignment(0, DETOUR), 120.0, math.nan, math.nan)
    features = gain_features(NETWORK, one, two)
    assert features.mean_s == -70.0
    assert features.unshared_s == pytest.approx(110.0)
    assert (features.first_above_s, features.first_below_s) == (15.0, 5.0)
    assert np.isnan(features.second_above_s)
    assert np.isnan(features.second_below_s)


def test_a_quote_is_corrected_by_its_edges(grid: RoadNetwork) -> None:
    call = situation(grid)
    quote, told = call.quote(1), Assignment(1, call.quote(1).path)
    assert quoted(grid, "router", told, quote, None).expected_s == quote.duration_s
    way = quoted(grid, "router", told, quote, None)
    assert way.above_s == quote.pessimistic_s - quote.duration_s
    assert way.below_s == quote.duration_s - quote.optimistic_s
    drift = np.linspace(-1.0, 2.0, grid.num_edges)
    corrected = quoted(grid, "router", told, quote, drift)
    assert corrected.expected_s == pytest.approx(quote.duration_s + drift[quote.path.edges].sum())
    gone = quoted(grid, "router", told, quote, np.full(grid.num_edges, -1e4))
    least_s = TimeBounds().on(grid, quote.path).least_s.sum()
    assert gone.expected_s == pytest.approx(least_s), "no quote is faster than can be driven"
    assert least_s > 0.1 * quote.duration_s


def test_what_the_log_says_of_a_pair(grid: RoadNetwork) -> None:
    call = situation(grid)
    one, two = (Assignment(number, call.quote(number).path) for number in (0, 1))
    alone, same, other = (
        Decision("p", one, second, 0.0, 0.0, "", {"mine": 1}, situation=call)
        for second in (None, one, two)
    )
    assert log_details(alone) == {"mine": 1}
    assert log_details(same) == {
        "overlap": 1.0, "same_depot": True, "same_path": True, "mine": 1,
    }  # fmt: skip
    assert not other.same_depot
    assert not other.same_path
