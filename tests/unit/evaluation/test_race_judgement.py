"""Races whose answer is known, judged."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.race_judgement import (
    JudgedRaces,
    area_under_curve,
    day_draws,
    saved_at,
)

TOOK_S = np.array([[300.0, 200.0], [310.0, 400.0], [250.0, 240.0], [500.0, 300.0], [220.0, 220.0]])
EXPECTED_S = np.array(
    [[280.0, 290.0], [300.0, 380.0], [270.0, 260.0], [300.0, 310.0], [250.0, 250.0]]
)


def judged(**changes: Any) -> JudgedRaces:
    """Five races: the primary is column 0 but in the third; seconds save 100, 0, 0, 200, 0."""
    given: dict[str, Any] = {
        "took_s": TOOK_S,
        "day": np.array([1, 1, 2, 3, 3]),
        "expected_s": {"ideal": EXPECTED_S, "other": EXPECTED_S[:, ::-1]},
        "predicted_s": {"ideal": EXPECTED_S, "exact": TOOK_S},
        "scores": {"ideal": np.array([4.0, 1.0, 3.0, 5.0, 2.0]), "falling": np.arange(5.0)[::-1]},
        "gain_s": np.array([80.0, 5.0, 20.0, 180.0, 15.0]),
        "second_first": np.array([0.6, 0.1, 0.4, 0.7, 0.4]),
    }
    return JudgedRaces(**given | changes)


def test_the_primary_is_the_unit_that_ours_expects_first() -> None:
    races = judged()
    assert races.primary.tolist() == [0, 0, 1, 0, 0]  # a tie goes to the first column
    assert races.primary_s.tolist() == [300, 310, 240, 500, 220]
    assert races.second_s.tolist() == [200, 400, 250, 300, 220]
    assert races.saved_s.tolist() == [100, 0, 0, 200, 0]
    assert races.came_first.tolist() == [True, False, False, True, False]  # a tie saves nothing


def test_the_figures_of_the_file() -> None:
    told = judged().as_dict()
    assert list(told) == [
        "races", "second_first_share", "always_saved_s", "mean_primary_s", "auc", "saved_s",
        "gain_ratio", "mae_s",
    ]  # fmt: skip
    assert told["races"] == 5
    assert told["second_first_share"] == pytest.approx(0.4)
    assert told["always_saved_s"] == pytest.approx(60.0)
    assert told["mean_primary_s"]["ideal"] == pytest.approx((300 + 310 + 240 + 500 + 220) / 5)
    assert told["mean_primary_s"]["other"] == pytest.approx((200 + 400 + 250 + 300 + 220) / 5)
    assert told["auc"] == pytest.approx({"ideal": 1.0, "falling": 4 / 6, "random": 0.5})
    # a quarter of five races: the best one, and a quarter of the next
    assert told["saved_s"]["ideal"] == pytest.approx({"0.25": 45.0, "0.5": 60.0, "0.75": 60.0})
    assert told["saved_s"]["random"] == pytest.approx({"0.25": 15.0, "0.5": 30.0, "0.75": 45.0})
    assert told["gain_ratio"] == pytest.approx(1.0)
    assert told["mae_s"]["exact"] == 0.0
    assert told["mae_s"]["ideal"] == pytest.approx(np.abs(EXPECTED_S - TOOK_S).mean())


def test_races_of_one_score_share_what_is_left() -> None:
    saved = np.array([10.0, 0.0, 30.0, 20.0])
    score = np.array([1.0, 1.0, 2.0, 1.0])
    assert_allclose(saved_at(score, saved, (0.0, 0.25, 0.5, 1.0)), [[0, 7.5, 10.0, 15.0]])
    backwards = saved_at(score[::-1], saved[::-1], (0.5,))
    assert_allclose(backwards, 10.0)  # whatever the order of the races
    with pytest.raises(InputError, match="a share lies between 0 and 1"):
        saved_at(score, saved, (1.5,))
    with pytest.raises(InputError, match="race 1: its score is not a number"):
        saved_at(np.array([1.0, np.nan]), saved[:2], (0.5,))


def test_auc_counts_pairs() -> None:
    rng = np.random.default_rng(0)
    score, happened = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.3
    won, lost = score[happened][:, None], score[~happened][None, :]
    pairs = (won > lost).mean() + 0.5 * (won == lost).mean()
    assert area_under_curve(score, happened)[0] == pytest.approx(pairs)
    assert np.isnan(area_under_curve(score, np.ones(60, bool))[0])


def test_weights_count_like_repeated_races() -> None:
    rng = np.random.default_rng(1)
    score, saved, times = rng.random(20), rng.random(20), rng.integers(0, 4, 20)
    rows = np.repeat(np.arange(20), times)
    weighted = saved_at(score, saved, (0.3, 0.6), times[None, :].astype(float))
    assert_allclose(weighted, saved_at(score[rows], saved[rows], (0.3, 0.6)))
    happened = saved > 0.5
    assert_allclose(
        area_under_curve(score, happened, times[None, :].astype(float)),
        area_under_curve(score[rows], happened[rows]),
    )


def test_whole_days_are_drawn() -> None:
    day = np.array([4, 4, 7, 9, 9, 9])
    drawn = day_draws(day, seed=2, draws=50)
    assert drawn.shape == (50, 6)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert (drawn[:, 3] == drawn[:, 5]).all()
    assert (drawn[:, 0] + drawn[:, 2] + drawn[:, 3] == 3).all()
    assert (day_draws(day, seed=2, draws=50) == drawn).all()
    assert day_draws(np.zeros(4, int)).shape == (0, 4)


def test_intervals_hold_what_was_found() -> None:
    rng = np.random.default_rng(3)
    n = 400
    expected = rng.uniform(200, 400, (n, 2))
    took = expected * np.exp(0.2 * rng.standard_normal((n, 2)))
    gap = expected.max(axis=1) - expected.min(axis=1)
    races = judged(
        took_s=took, day=np.arange(n) // 8, expected_s={"ideal": expected},
        predicted_s={"ideal": expected}, scores={"ideal": -gap, "wrong": gap},
        gain_s=np.full(n, 20.0), second_first=np.full(n, 0.2),
    )  # fmt: skip
    assert races.days == 50
    for one in (
        races.auc("ideal"), races.gain_ratio, races.mean_primary_s("ideal"), races.mae_s("ideal"),
        *races.saved_intervals("ideal"), *races.shares_kept("ideal"),
    ):  # fmt: skip
        assert one.low < one.mean < one.high
    assert races.auc("ideal").low > 0.5 > races.auc("wrong").high
    assert races.saved_beyond("ideal", "wrong", 0.5).low > 0
    assert races.saved_beyond("ideal", "ideal", 0.5).mean == 0
    assert races.primary_beyond("ideal", "ideal").mean == 0
    kept = races.shares_kept("ideal", (0.5,))[0].mean
    assert kept == pytest.approx(races.saved_at("ideal", (0.5,))[0] / races.saved_s.mean())


def test_what_cannot_be_judged_is_said() -> None:
    with pytest.raises(InputError, match="there is no race to judge"):
        judged(took_s=np.empty((0, 2)))
    with pytest.raises(InputError, match="ideal is missing, which chooses the primary"):
        judged(expected_s={"other": EXPECTED_S})
