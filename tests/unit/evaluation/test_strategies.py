"""Thresholds for a volume, ties, and which rows a policy gets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.outcomes import PolicyOutcomes
from ideal_dispatch.evaluation.strategies import (
    as_decided,
    at_threshold,
    at_volume,
    dual,
    matched_arrival_s,
    single,
    threshold_where,
    thresholds,
)


def policy(scores: list[float], missing: int = 0, second_s: float = 90.0) -> PolicyOutcomes:
    """A policy whose first takes 100 s; the last ``missing`` incidents have no second."""
    count = len(scores)
    has = np.arange(count) < count - missing
    return PolicyOutcomes(
        "one", np.array(scores), np.full(count, 2.5), has, np.zeros(count, bool),
        np.full(count, 100.0),
        np.where(has, second_s, np.nan), np.where(has, 0.0, np.nan), np.zeros(count, bool),
    )  # fmt: skip


def test_the_sooner_of_two_counts_where_both_go() -> None:
    one = policy([1.0, 2.0, 3.0, 4.0], missing=1)
    assert at_threshold(one, 1.0).arrival_s.tolist() == [100.0, 90.0, 90.0, 100.0]
    assert dual(one).arrival_s.tolist() == [90.0, 90.0, 90.0, 100.0]
    assert dual(one).extra == 0.75
    assert single(one).arrival_s.tolist() == [100.0] * 4
    assert as_decided(one).sent.tolist() == [False, False, True, False]
    later = policy([1.0], second_s=120.0)
    assert dual(later).arrival_s.tolist() == [100.0]


def test_equal_scores_go_together_to_the_nearer_side() -> None:
    one = policy([9.0, 3.0, 3.0, 3.0, 3.0, 0.0, 0.0, 0.0])
    assert at_volume(one, 0.25).extra == 1 / 8  # 1 is nearer to 2 than 5 is
    assert at_volume(one, 0.5).extra == 5 / 8  # 5 is nearer to 4 than 1 is
    assert at_volume(one, 3 / 8).extra == 1 / 8  # equally near: fewer ambulances
    assert at_volume(policy([0.0] * 4), 0.4).extra == 0.0


def test_volume_counts_all_incidents_not_only_those_with_a_second() -> None:
    one = policy([4.0, 3.0, 2.0, 1.0, 9.0, 9.0, 9.0, 9.0], missing=4)
    assert at_volume(one, 0.25).sent.tolist() == [True, True, *[False] * 6]
    assert at_volume(one, 0.75).extra == 0.5  # all there are
    none = policy([1.0, 2.0], missing=2)
    assert at_volume(none, 0.5).extra == 0.0


def test_the_threshold_comes_from_the_calibration_run() -> None:
    test, training = policy([10.0, 20.0, 30.0, 40.0]), policy([35.0, 1.0, 2.0, 3.0])
    chosen = at_volume(test, 0.25, training)
    assert chosen.threshold_s == 3.0
    assert chosen.extra == 1.0
    assert chosen.label == "one, +25 %"


@given(
    st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_no_other_threshold_comes_nearer(scores: list[float], share: float, missing: int) -> None:
    one = policy(scores, missing=min(missing, len(scores)))
    reached = at_volume(one, share).extra
    others = [at_threshold(one, x).extra for x in (-np.inf, *scores)]
    assert abs(reached - share) <= min(abs(x - share) for x in others) + 1e-12


def test_matched_volumes_are_met_exactly() -> None:
    one = policy([4.0, 3.0, 3.0, 1.0])  # a first takes 100 s, a second 90 s
    for share, wanted in (
        (0.0, [100.0] * 4),
        (0.25, [90.0, 100, 100, 100]),
        (0.5, [90.0, 95, 95, 100]),  # one of the two equal ones
        (0.75, [90.0, 90, 90, 100]),
        (0.875, [90.0, 90, 90, 95]),
        (1.0, [90.0] * 4),
    ):
        np.testing.assert_allclose(matched_arrival_s(one, share), wanted)
    few = policy([2.0, 1.0, 0.0, 0.0], missing=2)
    np.testing.assert_allclose(matched_arrival_s(few, 0.75), [90.0, 90, 100, 100])
    none = policy([1.0, 1.0], missing=2)
    np.testing.assert_allclose(matched_arrival_s(none, 0.5), [100.0, 100])
    with pytest.raises(InputError, match="a volume of 1.5"):
        matched_arrival_s(one, 1.5)


def test_thresholds_go_from_none_to_all() -> None:
    rng = np.random.default_rng(0)
    one = policy(rng.normal(size=500).tolist())
    volumes = [at_threshold(one, x).extra for x in thresholds(one, 11)]
    assert volumes == pytest.approx(np.linspace(0, 1, 11))
    few = policy([1.0, 1.0, 2.0])
    assert [at_threshold(few, x).sent.sum() for x in thresholds(few)] == [0, 1, 3]


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from([90.0, 100.0]), st.booleans()),
        min_size=1, max_size=20,
    ),
    st.integers(0, 4),
    st.floats(0, 1),
)  # fmt: skip
def test_no_threshold_exceeds_a_rate_with_fewer_seconds(
    calls: list[tuple[int, float, bool]], missing: int, rate: float
) -> None:
    """Firsts take 100 s and seconds 90 s; the best is either, or one that nobody drives."""
    one = policy([float(score) for score, _, _ in calls], missing=min(missing, len(calls)))
    best_s = np.array([best - 20.0 * beyond for _, best, beyond in calls])
    tried = [at_threshold(one, x) for x in (-np.inf, *range(-4, 4))]
    rates = [np.mean(row.arrival_s <= best_s) for row in tried]
    able = [row.sent.sum() for row, found in zip(tried, rates, strict=True) if found > rate]
    threshold_s = threshold_where(
        one, lambda times_s: times_s <= best_s, lambda share: share > rate
    )
    if threshold_s is None:
        assert not able
    else:
        assert at_threshold(one, threshold_s).sent.sum() == min(able)
