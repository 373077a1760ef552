import numpy as np
import pytest

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from workshop.traffic.slowness import Slowness, autocorrelation, together

MOMENTS = 2000


def _slowness(values: FloatArray, day: FloatArray | None = None, step_s: float = 60) -> Slowness:
    """Places 100 m apart on a line going east on the equator."""
    moments, places = values.shape
    return Slowness(
        values.astype(np.float32),
        step_s * np.arange(moments, dtype=np.float64),
        np.zeros(moments, np.int64) if day is None else day.astype(np.int64),
        np.arange(places) * 100 / 111_195,
        np.zeros(places),
        np.full(places, 100.0),
    )


def _autoregressive(memory: float, places: int, rng: np.random.Generator) -> FloatArray:
    values = rng.standard_normal((MOMENTS, places))
    for i in range(1, MOMENTS):
        values[i] = memory * values[i - 1] + np.sqrt(1 - memory**2) * values[i]
    return values


def test_autocorrelation_of_an_autoregressive_world_is_its_memory() -> None:
    slowness = _slowness(_autoregressive(0.9, 60, np.random.default_rng(0)))
    found = autocorrelation(slowness, np.array([1.0, 5.0, 10.0]))
    assert found.value == pytest.approx([0.9, 0.9**5, 0.9**10], abs=0.03)
    assert found.pairs.tolist() == [60 * (MOMENTS - lag) for lag in (1, 5, 10)]


def test_a_place_is_compared_with_its_own_mean_of_the_day_alone() -> None:
    rng = np.random.default_rng(2)
    day = np.repeat([0, 1], MOMENTS // 2)
    values = rng.standard_normal((MOMENTS, 5)) * [1, 2, 3, 4, 5]
    plain = _slowness(values, day).swings()
    shifted = _slowness(values + 50 * day[:, None] + np.arange(5), day).swings()
    assert shifted == pytest.approx(plain, abs=1e-4)
    assert plain.std(axis=0) == pytest.approx(np.ones(5), abs=1e-4)


def test_pairs_of_moments_lie_on_one_day() -> None:
    values = np.random.default_rng(3).standard_normal((40, 3))
    slowness = _slowness(values, np.repeat([0, 1], 20))
    assert autocorrelation(slowness, np.array([20.0])).pairs.tolist() == [0]
    assert np.isnan(autocorrelation(slowness, np.array([20.0])).value[0])
    assert autocorrelation(slowness, np.array([19.0])).pairs.tolist() == [6]


def test_places_near_each_other_are_slow_together() -> None:
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((MOMENTS, 41))
    values = (noise[:, :-1] + noise[:, 1:]) / np.sqrt(2)  # neighbours share half
    slowness = _slowness(values)
    limits = np.array([0.05, 0.15, 0.25, 1.0])
    found = together(slowness, slowness.swings(), limits, rng)
    assert found.value == pytest.approx([0.5, 0, 0], abs=0.03)
    further = sum(40 - apart for apart in range(3, 10))
    assert (found.pairs / MOMENTS).tolist() == [39, 38, further]


def test_levels_compare_places_with_the_city_not_with_themselves() -> None:
    rng = np.random.default_rng(7)
    level = np.repeat([0.0, 1.0, 0.0, 1.0], 10)  # blocks of ten places, 1 km each
    slowness = _slowness(level + 0.01 * rng.standard_normal((30, 40)))
    found = together(slowness, slowness.levels(), np.array([0.05, 0.15, 0.95, 1.05]), rng)
    assert found.value[0] == pytest.approx((39 - 2 * 3) / 39, abs=0.01)
    assert found.value[2] == pytest.approx(-1.0, abs=0.01)


def test_moments_out_of_order_are_refused() -> None:
    good = _slowness(np.zeros((3, 2)))
    with pytest.raises(InputError, match="moments must be in order of time"):
        Slowness(good.values, good.seconds[::-1], good.day, good.lon, good.lat, good.length_m)
