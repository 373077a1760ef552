"""E[D⁺] of D = m + s · t₃ in closed form, and its fit by maximum likelihood."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import t as student

from ideal_dispatch.dispatch.expected_gain import (
    GainFeatures,
    GainModel,
    expected_positive_part_s,
)

MEANS = st.floats(-3000.0, 3000.0)
SPREADS = st.floats(0.01, 1000.0)


@pytest.mark.parametrize(
    ("mean", "spread"), [(0, 10), (30, 20), (-30, 20), (-100, 7), (400, 3), (-5, 0.1), (1e-9, 50)]
)
def test_it_is_the_integral(mean: float, spread: float) -> None:
    zero = -mean / spread  # where D changes sign
    integral, _ = quad(
        lambda x: (mean + spread * x) * student.pdf(x, 3), zero, np.inf, epsabs=1e-12, limit=200
    )
    assert float(expected_positive_part_s(mean, spread)) == pytest.approx(
        integral, rel=1e-6, abs=1e-9
    )


def test_it_is_the_mean_of_many_draws() -> None:
    draws = np.random.default_rng(0).standard_t(3, 2_000_000)
    for mean, spread in ((-40.0, 25.0), (10.0, 25.0)):
        gains = np.maximum(mean + spread * draws, 0.0)
        four_errors = 4 * gains.std() / np.sqrt(draws.size)
        assert abs(float(expected_positive_part_s(mean, spread)) - gains.mean()) < four_errors


@given(MEANS, MEANS, SPREADS, SPREADS)
def test_it_grows_with_mean_and_spread(one: float, other: float, thin: float, wide: float) -> None:
    means, spreads = np.sort([one, other]), np.sort([thin, wide])
    by_mean = expected_positive_part_s(means, thin)
    by_spread = expected_positive_part_s(one, spreads)
    rounding = 1e-12 * (np.abs(means).max() + spreads[1])
    assert by_mean[1] >= by_mean[0] - rounding
    assert by_spread[1] >= by_spread[0] - rounding


@given(MEANS, SPREADS)
def test_waiting_to_see_is_worth_something(mean: float, spread: float) -> None:
    """By Jensen's inequality it is above max(m, 0); D and −D differ by m."""
    gain, loss = expected_positive_part_s([mean, -mean], spread)
    assert gain >= max(mean, 0.0)
    assert gain - loss == pytest.approx(mean, abs=1e-9)


@given(MEANS, SPREADS, st.floats(0.01, 100.0))
def test_units_do_not_matter(mean: float, spread: float, unit: float) -> None:
    scaled = float(expected_positive_part_s(unit * mean, unit * spread))
    plain = unit * float(expected_positive_part_s(mean, spread))
    assert scaled == pytest.approx(plain, rel=1e-9, abs=1e-11 * unit * (abs(mean) + spread))


def test_the_fit_is_the_maximum_likelihood() -> None:
    """No other search over SciPy's own density finds better coefficients; the prior is weak."""
    rng = np.random.default_rng(2)
    n = 4000
    unshared, first, second = rng.uniform(20, 900, n), rng.gamma(2, 40, n), rng.gamma(2, 40, n)
    mean = rng.normal(-40.0, 80.0, n)
    features = GainFeatures(mean, unshared, first, 0.0, second, 0.0)
    truth = (3.0, 0.04, 0.2, 0.4)
    realised = mean + GainModel(truth, (1.0, 1.0)).spread_s(features) * rng.standard_t(3, n)
    model = GainModel.fit(features, realised)
    moved = model.mean_s(features)

    def loss(logs: np.ndarray) -> float:
        spread = GainModel(tuple(np.exp(logs)), (1.0, 1.0)).spread_s(features)
        return -float(np.mean(student.logpdf(realised, 3, moved, spread)))

    start = np.log(model.coefficients)
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    assert loss(start) <= best.fun + 1e-3
    np.testing.assert_allclose(model.coefficients[1:], truth[1:], rtol=0.2)
