"""Scores by hand, and intervals that hold what they should."""

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.scores import paired_interval, scores


def test_scores_by_hand() -> None:
    found = scores([100.0, 200.0, 400.0, 50.0], [110.0, 180.0, 400.0, 100.0])
    assert found.trips == 4
    assert found.mae_s == 20.0
    assert found.mape_percent == pytest.approx(100 * (0.1 + 0.1 + 0.0 + 1.0) / 4)
    assert found.rmse_s == pytest.approx(np.sqrt((100 + 400 + 2500) / 4))
    assert found.median_s == 15.0
    assert found.p90_s == pytest.approx(41.0)


def test_an_interval_holds_the_difference_and_turns_with_the_order() -> None:
    rng = np.random.default_rng(1)
    observed = rng.uniform(100, 900, 800)
    a, b = observed + rng.normal(0, 50, 800), observed + rng.normal(0, 60, 800)
    low, high = paired_interval(observed, a, b, seed=2)
    assert low < scores(observed, a).mae_s - scores(observed, b).mae_s < high < 0
    assert paired_interval(observed, b, a, seed=2) == pytest.approx((-high, -low))
    assert paired_interval(observed, a, b, seed=2) == (low, high)
    assert paired_interval(observed, a, a) == (0.0, 0.0)


def test_an_interval_of_equal_models_holds_zero_about_95_times_in_100() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        observed = rng.uniform(100, 900, 100)
        a, b = (observed + rng.normal(0, 50, 100) for _ in range(2))
        low, high = paired_interval(observed, a, b, draws=300)
        held += low <= 0 <= high
    assert 180 <= held <= 198


def test_bad_numbers() -> None:
    with pytest.raises(InputError, match=r"trip 1: observed 0.0 s, .* the first positive"):
        scores([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(InputError, match=r"trip 0: .* predicted nan s; both must be finite"):
        scores([1.0, 2.0], [np.nan, 1.0])
    with pytest.raises(InputError, match="2 observed and 1 predicted times: as many of both"):
        scores([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="0 predicted times: .* at least one"):
        scores([], [])
    with pytest.raises(InputError, match="1 observed and 2 predicted times"):
        paired_interval([1.0], [1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="draws 0: at least 1 is needed"):
        paired_interval([1.0], [1.0], [1.0], draws=0)
