"""Whatever the context: an ordinary time, within what the model's own training contexts give.

Every model here has a hole in its training: one month with three stray trips of
another, one weekday, a few hours, dry weather alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.city_trips import city_trips
from ideal_dispatch import Context, Model, RoadNetwork, Weather, WeatherValue
from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.learning import TrainParams, fit
from ideal_dispatch.records import Trips

MARGIN = 0.1
"""A path's time leaves the range of its training contexts by at most this share."""

_JANUARY = 13  # its column
_TRIPS = 400


def _one_month(rows: FloatArray) -> BoolArray:
    january, february = rows[:, _JANUARY] == 1, rows[:, _JANUARY + 1] == 1
    chosen: BoolArray = february | (january & (np.cumsum(january) <= 3))
    return chosen


HOLES: dict[str, Callable[[FloatArray], BoolArray]] = {
    "one month, three trips of another": _one_month,
    "one weekday": lambda rows: rows[:, 8] == 1,
    "a few hours": lambda rows: (rows[:, 5] >= 7) & (rows[:, 5] < 10),
    "dry weather": lambda rows: rows[:, 1] == 0,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Trained:
    network: RoadNetwork
    model: Model
    paths: FloatArray  # one row per path: how often it has each edge
    seconds: FloatArray  # one row per training context

    def path_seconds(self, context: Context | FloatArray) -> FloatArray:
        seconds: FloatArray = self.paths @ self.model.forecast(context, self.network).nominal_times
        return seconds


@cache
def _pool() -> tuple[RoadNetwork, Trips]:
    return city_trips(8000)


@cache
def _trained(hole: str) -> _Trained:
    network, pool = _pool()
    trips = pool.select(np.flatnonzero(HOLES[hole](pool.contexts)))
    trips = trips.select(np.arange(min(_TRIPS, len(trips))))
    model = fit(network, trips, params=TrainParams(epochs=5))
    rng = np.random.default_rng(1)
    paths = np.zeros((60, network.num_edges))
    for row in paths:
        origin, destination = rng.choice(network.num_nodes, 2, replace=False).tolist()
        times = network.free_flow_times_s * rng.uniform(0.7, 1.5, network.num_edges)
        row[network.shortest_path(times, origin, destination).edges] = 1.0
    made = _Trained(network, model, paths, np.empty(0))
    rows = np.unique(trips.contexts, axis=0)
    return _Trained(network, model, paths, np.array([made.path_seconds(row) for row in rows]))


def _value(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.just(float("nan"))


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    at = draw(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))
    ranges = {"temperature_c": (-60, 60), "rainfall_mm": (0, 400), "humidity_percent": (0, 100),
              "wind_kmh": (0, 400), "pressure_hpa": (850, 1100)}  # fmt: skip
    assert set(ranges) == set(WEATHER_VARIABLES)
    weather = {name: WeatherValue(draw(_value(*ends))) for name, ends in ranges.items()}
    holiday, eve = draw(st.booleans()), draw(st.booleans())
    return Context(at.astimezone(ZoneInfo("Asia/Hong_Kong")), holiday, eve, Weather(**weather))


@pytest.mark.parametrize("hole", HOLES)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(context=contexts())
def test_every_path_takes_an_ordinary_time(hole: str, context: Context) -> None:
    trained = _trained(hole)
    seconds = trained.path_seconds(context)
    assert (seconds >= trained.seconds.min(axis=0) * (1 - MARGIN)).all()
    assert (seconds <= trained.seconds.max(axis=0) * (1 + MARGIN)).all()


@pytest.mark.parametrize("hole", HOLES)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(context=contexts(), seed=st.integers(0, 1000))
def test_every_scenario_keeps_to_the_bounds_of_every_road(
    hole: str, context: Context, seed: int
) -> None:
    trained = _trained(hole)
    forecast = trained.model.forecast(context, trained.network)
    bounds = trained.model.bounds.on(trained.network)
    least, greatest = bounds.least_s, bounds.greatest_s
    scenarios = forecast.scenario_set
    lowest, highest = scenarios.time_bounds()
    assert (lowest >= least * (1 - 1e-6)).all()
    assert (highest <= greatest * (1 + 1e-6)).all()
    (metric,) = scenarios.sample(1, np.random.default_rng(seed))
    times = scenarios.times(metric)
    assert ((times >= least * (1 - 1e-6)) & (times <= greatest * (1 + 1e-6))).all()


@pytest.mark.parametrize(
    ("hole", "at", "rain", "words"),
    [
        ("one month, three trips of another", "2023-07-05T12:00+08:00", 0.0, "July (no trips)"),
        ("one month, three trips of another", "2023-01-11T12:00+08:00", 0.0, "January ("),
        ("one weekday", "2023-02-05T12:00+08:00", 0.0, "Sunday (no trips)"),
        ("a few hours", "2023-02-08T20:00+08:00", 0.0, "hour 20 (no trips)"),
        ("dry weather", "2023-02-08T12:00+08:00", 30.0, "rainfall_mm 30 (seen: 0 … 0)"),
    ],
)
def test_what_is_unusual_is_said(hole: str, at: str, rain: float, words: str) -> None:
    trained = _trained(hole)
    moment = datetime.fromisoformat(at)
    context = Context(moment, weather=Weather(rainfall_mm=WeatherValue(rain)))
    assert any(
        words in reason for reason in trained.model.forecast(context, trained.network).unusual
    )


def test_a_month_that_few_trips_saw_changes_no_time() -> None:
    """The stray trips' month, unseen ones and the learned one; all on a Wednesday at noon."""
    trained = _trained("one month, three trips of another")
    by_month = []
    for month in range(1, 13):
        first = datetime(2023, month, 1, 12, tzinfo=UTC)
        wednesday = first + timedelta(days=(2 - first.weekday()) % 7)
        by_month.append(trained.path_seconds(Context(wednesday)))
    for seconds in by_month:
        np.testing.assert_allclose(seconds, by_month[1], rtol=0.01)
