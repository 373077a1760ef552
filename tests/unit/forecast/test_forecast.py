"""What a model says: as torch does, on its network and others, in known and odd contexts."""

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from ideal_dispatch import Context, Model, RoadNetwork, Weather, WeatherValue
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.forecast.inputs import Standardisation
from ideal_dispatch.forecast.radius import RadiusRule, trip_features
from ideal_dispatch.forecast.seen_contexts import SeenContexts
from ideal_dispatch.learning import TrainParams
from ideal_dispatch.learning.encoders import export
from tests.unit.forecast.models import small_model
from tests.unit.learning.worlds import contexts, town, trainer, trips

NOON = Context(datetime(2024, 1, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="module")
def network() -> RoadNetwork:
    return town()


@pytest.fixture(scope="module")
def model(network: RoadNetwork) -> Model:
    return small_model(network)


@pytest.mark.parametrize(
    ("head", "features", "harmonics"),
    [("polar", "attributes", 3), ("plain", "location", 3), ("polar", "location", 0)],
)
def test_times_are_those_of_torch(
    grid: RoadNetwork, head: Any, features: Any, harmonics: int
) -> None:
    table = trips(grid, 60, distinct=20)
    rng = np.random.default_rng(9)
    odd = contexts(60, rng)
    odd[:20] *= np.where(rng.random((20, 27)) < 0.3, np.nan, 1.0)
    odd[20], odd[21] = np.nan, 0.0
    odd[22, 0] = 999.9
    table = replace(table, contexts=np.where(np.arange(60)[:, None] < 30, table.contexts, odd))
    shape = Architecture(features, head, hour_harmonics=harmonics)
    made = trainer(grid, table, TrainParams(shape, epochs=2), held_out=30)
    made.run()
    made.finish()
    ours = export(made.model, made.data)
    inputs = made.lower_level.contexts[made.lower_level.group]
    theirs = made.model.all_times(inputs, made.model.edge_part().detach())
    seen = theirs[made.data.train]
    theirs = np.clip(theirs, seen.min(axis=0), seen.max(axis=0))
    dynamic = made.model.dynamic(inputs).detach().numpy()
    for i in range(60):
        forecast = ours.forecast(table.contexts[i], grid)
        np.testing.assert_allclose(forecast.nominal_times, theirs[i], rtol=1e-5)
        lengths = (forecast.embeddings**2).sum(axis=1)
        np.testing.assert_allclose(lengths, theirs[i], rtol=1e-5)
        np.testing.assert_allclose(forecast.context_representation, dynamic[i], atol=1e-5)


def test_no_torch_at_dispatch_time(model: Model, network: RoadNetwork, tmp_path: Any) -> None:
    model.save(tmp_path / "model")
    network.save(tmp_path / "town.network")
    code = (
        "import sys, ideal_dispatch as ideal, numpy as np\n"
        f"network = ideal.RoadNetwork.load({str(tmp_path / 'town.network')!r})\n"
        f"model = ideal.Model.load({str(tmp_path / 'model')!r})\n"
        "model.scenario_set(np.zeros(27), network)\n"
        "heavy = {'torch', 'sklearn', 'pandas', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_contexts_as_objects_and_as_rows(model: Model, network: RoadNetwork) -> None:
    weather = Weather(temperature_c=WeatherValue(25.0))
    context = replace(NOON, weather=weather)
    by_object = model.forecast(context, network)
    row = model.encoding.encode([context])
    for given in (row, row[0], row[0].tolist()):
        np.testing.assert_array_equal(
            by_object.embeddings, model.forecast(given, network).embeddings
        )
    sets = model.scenario_set(context, network)
    assert (sets.radius, sets.dimension) == (by_object.radius, 4)
    assert not by_object.transferred


@pytest.mark.parametrize(
    "given",
    [np.zeros(26), np.zeros((2, 27)), 3.0, ["monday"] * 27, [[1.0], [1.0, 2.0]],
     np.full(27, np.inf), np.where(np.arange(27) == 5, 24.0, 0.0),
     np.where(np.arange(27) == 5, -1.0, 0.0)],
)  # fmt: skip
def test_rows_that_are_no_context(model: Model, network: RoadNetwork, given: Any) -> None:
    with pytest.raises(InputError, match="^context"):
        model.forecast(given, network)


@pytest.mark.parametrize("value", [999.9, -1e6, 1e300])
def test_a_broken_sensor_does_not_move_times_beyond_what_was_seen(
    model: Model, network: RoadNetwork, value: float
) -> None:
    row = trips(network).contexts[0].copy()
    row[0] = value
    broken = model.forecast(row, network)
    edge = model.seen.greatest if value > 0 else model.seen.least
    row[0] = edge[0]
    np.testing.assert_array_equal(broken.nominal_times, model.forecast(row, network).nominal_times)
    assert any("temperature_c" in reason for reason in broken.unusual)


def test_another_network_with_the_same_attributes(model: Model) -> None:
    other = model.forecast(NOON, town(1))
    assert other.transferred
    assert (other.nominal_times > 0).all()
    bare = RoadNetwork.from_arrays([0, 1], [1, 0], [5.0, 5e4])  # no coordinates, odd lengths
    assert model.forecast(NOON, bare).transferred


def test_a_model_of_places_speaks_of_its_own_alone(network: RoadNetwork) -> None:
    model = small_model(network, features="location")
    assert not model.forecast(NOON, network).transferred
    inside = replace(network, length_m=1.1 * network.length_m)
    assert model.forecast(NOON, inside).transferred
    outside = replace(network, lon=network.lon + 1.0)
    with pytest.raises(InputError, match="12 of 12 nodes"):
        model.forecast(NOON, outside)
    bare = RoadNetwork.from_arrays(network.tail, network.head, network.length_m)
    with pytest.raises(InputError):
        model.forecast(NOON, bare)
    with pytest.raises(InputError, match="no coordinates"):
        small_model(bare, trips(bare), features="location")


def test_rescaling_multiplies_all_times(model: Model, network: RoadNetwork) -> None:
    before = model.forecast(NOON, network)
    twice = model.rescaled(1.25).rescaled(1.6)
    after = twice.forecast(NOON, network)
    np.testing.assert_allclose(after.nominal_times, 2 * before.nominal_times, rtol=1e-6)
    assert after.radius == before.radius
    assert twice.details["rescaled"] == pytest.approx(2.0)
    assert twice.checksum != model.checksum
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="^scale"):
            model.rescaled(wrong)


def test_the_radius_may_know_the_trip(model: Model, network: RoadNetwork) -> None:
    forecast = model.forecast(NOON, network)
    times = forecast.nominal_times
    paths = [network.shortest_path(times, 0, end) for end in range(1, network.num_nodes)]
    radii = {model.forecast(NOON, network, path).radius for path in paths}
    assert len(radii) > 3
    at_home = network.path([], origin=0)
    assert np.isfinite(model.forecast(NOON, network, at_home).radius)
    plain = replace(model, radius_rule=RadiusRule(constant=0.25))
    assert plain.forecast(NOON, network, paths[0]).radius == 0.25


def test_features_of_a_trip() -> None:
    network = RoadNetwork.from_arrays(
        [0, 1], [1, 2], [300.0, 100.0], road_class=["primary", "residential"]
    )
    path = network.path([0, 1])
    (row,) = trip_features(network, [path], [np.array([20.0, 30.0])])
    expected = [np.log(50), np.log(400), 0.75, (np.log(300) + np.log(100)) / 2]
    np.testing.assert_allclose(row, expected)


def test_pickled_and_copied(model: Model, network: RoadNetwork) -> None:
    before = model.forecast(NOON, network)
    again = pickle.loads(pickle.dumps(model))
    assert again.checksum == model.checksum
    assert again.details == model.details
    np.testing.assert_array_equal(again.forecast(NOON, network).embeddings, before.embeddings)
    with pytest.raises(TypeError):
        again.weights["x"] = 1


def test_many_threads_ask_at_once(model: Model) -> None:
    fresh = pickle.loads(pickle.dumps(model))
    towns = [town(seed) for seed in range(4)]
    expected = [model.forecast(NOON, place).embeddings for place in towns]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: fresh.forecast(NOON, towns[i % 4]).embeddings, range(80)))
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, expected[i % 4])


def test_a_city_of_equal_roads_has_times_too() -> None:
    n = np.arange(6)
    ring = RoadNetwork.from_arrays(n, (n + 1) % 6, np.full(6, 100.0))
    table = trips(ring)
    for sizes in ({}, {"dimension": 1, "width": 1}, {"dimension": 9, "width": 3}):
        shape = Architecture("attributes", crossings=False, **sizes)  # type: ignore[arg-type]
        made = trainer(ring, table, TrainParams(shape))
        model = export(made.model, made.data)
        group = made.lower_level.contexts[made.lower_level.group[:1]]
        theirs = made.model.all_times(group, made.model.edge_part().detach())[0]
        times = model.forecast(table.contexts[0], ring).nominal_times
        np.testing.assert_allclose(times, theirs, rtol=1e-5)
        assert np.ptp(times) < 1e-5 * times[0]


def test_what_is_unusual_is_said_in_words() -> None:
    encoding = ContextEncoding(("events",))
    rows = np.zeros((3, 28))
    rows[:, 0] = 10.0, 20.0, 30.0
    rows[:, 1] = np.nan
    rows[:, 4] = 1000.0
    rows[:, 5] = 8.0, 9.0, 9.0
    rows[:, 6] = 1.0
    seen = SeenContexts.of(rows, encoding)
    assert seen.unusual(rows[0], encoding) == ()
    usual = rows[0].copy()
    usual[:2] = 32.0, 500.0  # within a tenth of the range; rain was never known
    assert seen.unusual(usual, encoding) == ()
    odd = rows[0].copy()
    odd[[0, 4, 5, 6, 7, 25]] = 33.0, 1001.0, 3.0, 0.0, 1.0, 1.0
    keys = ("temperature_c 33", "pressure_hpa 1001", "Tuesday", "holiday", "hour 3")
    for reason, key in zip(seen.unusual(odd, encoding), keys, strict=True):
        assert reason.startswith(key)
    assert seen.unusual(np.full(28, np.nan), encoding) == ()
    again = SeenContexts.from_dict(json.loads(json.dumps(seen.as_dict())))
    assert again.trips_by_hour == seen.trips_by_hour
    assert again.trips_by_flag == seen.trips_by_flag
    np.testing.assert_array_equal(again.least, seen.least)


def _calendar_rows(*days: tuple[int, int, int, int]) -> FloatArray:
    """Encoded rows: so many trips, each in an hour of a weekday (from 0) of a month (from 1)."""
    rows = np.zeros((sum(count for count, *_ in days), 27))
    first = 0
    for count, hour, weekday, month in days:
        part = rows[first : first + count]
        part[:, 5], part[:, 6 + weekday], part[:, 12 + month] = hour, 1.0, 1.0
        first += count
    return rows


def test_what_few_trips_show_is_not_learned() -> None:
    encoding = ContextEncoding()
    rows = _calendar_rows(
        (700, 8, 0, 2), (760, 22, 1, 3), (29, 8, 2, 4), (30, 15, 0, 2), (6, 9, 0, 2)
    )
    seen = SeenContexts.of(rows, encoding)
    assert seen.least_trips == 30
    months, weekdays = slice(13, 25), slice(6, 13)

    def held(hour: int, weekday: int, month: int) -> FloatArray:
        row: FloatArray = seen.held(_calendar_rows((1, hour, weekday, month)), encoding)[0]
        return row

    usual = held(15, 0, 3)
    np.testing.assert_array_equal(usual, _calendar_rows((1, 15, 0, 3))[0])
    rare = held(9, 2, 4)  # in 29 trips
    assert np.isnan(rare[months]).all()
    assert np.isnan(rare[weekdays]).all()
    assert rare[5] == 8.0, "the nearest hour that has enough trips"
    assert held(2, 0, 2)[5] == 22.0, "around midnight"
    assert np.isnan(held(8, 0, 8)[months]).all()
    assert not np.isnan(held(8, 0, 8)[weekdays]).any()
    off = _calendar_rows((1, 8, 0, 2))
    off[0, 25] = 1.0
    assert np.isnan(seen.held(off, encoding)[0, 25])
    said = seen.unusual(_calendar_rows((1, 9, 2, 4))[0], encoding)
    assert [reason.split()[0] for reason in said] == ["Wednesday", "April", "hour"]


def test_no_input_of_a_network_is_large() -> None:
    """Three trips of another month among 1,500 made its flag an input of 22."""
    rows = np.zeros((1500, 3))
    rows[:3, 0] = 1.0
    rows[:2, 1] = 80.0
    rows[:, 2] = np.arange(1500)
    scale = Standardisation.fit(rows)
    assert np.abs(scale(rows)).max() <= 4.0
    np.testing.assert_allclose(scale(rows)[[0, -1], 0], [2 * (1 - 0.002), 2 * -0.002])
    assert np.ptp(scale(rows)[:, 2]) > 3.0


def test_standardisation_ignores_what_never_varied() -> None:
    rows = np.array([[1.0, 5.0, np.nan, 2.0], [3.0, 5.0, np.nan, np.nan]])
    scale = Standardisation.fit(rows)
    np.testing.assert_allclose(scale(rows), [[-1, 0, 0, 0], [1, 0, 0, 0]])
    beyond = scale(np.array([[9.0, 9.0, 9.0, 9.0], [np.nan] * 4]))
    np.testing.assert_allclose(beyond, [[1, 0, 0, 0], [0, 0, 0, 0]])
    again = Standardisation.of(scale.rows("edge"), "edge")
    np.testing.assert_array_equal(again.greatest, scale.greatest)


@pytest.mark.parametrize(
    "changes",
    [{"features": "colour"}, {"head": "round"}, {"dimension": 0}, {"width": 1.5},
     {"hour_harmonics": -1}, {"location_waves": -1}],
)  # fmt: skip
def test_shapes_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(changes))}"):
        Architecture(**changes)


@pytest.mark.parametrize("name", ["direction.weight", "static.2.weight", "cross.out.weight"])
def test_weights_that_overflow_give_no_zero_times(
    model: Model, network: RoadNetwork, name: str
) -> None:
    """Squares beyond single precision once made every direction, and so every time, zero."""
    huge = replace(model, weights={**model.weights, name: model.weights[name] * np.float32(1e25)})
    try:
        forecast = huge.forecast(NOON, network)
    except FileFormatError:
        pass
    else:
        assert (forecast.nominal_times >= forecast.bounds.expected_s[0] * (1 - 1e-9)).all()


def test_weights_without_a_range_or_not_finite_are_refused(model: Model) -> None:
    without = {k: v for k, v in model.weights.items() if k != "range.least"}
    broken = {**model.weights, "cross.out.bias": np.array([np.nan], np.float32)}
    for weights, name in ((without, "range.least"), (broken, "cross.out.bias")):
        with pytest.raises(FileFormatError, match=f"^weight {name}"):
            replace(model, weights=weights)


def test_weather_of_another_source_than_in_training_is_flagged() -> None:
    network = town()
    sources = {"temperature_c": {"cowin": 40}, "wind_kmh": {"": 40}}
    table = replace(trips(network), provenance={"weather": sources})
    model = small_model(network, table)
    at = datetime(2023, 1, 9, 8, tzinfo=UTC)

    def flags(source: str) -> list[str]:
        weather = Weather(temperature_c=WeatherValue(24.0, source), wind_kmh=WeatherValue(9.0, "x"))
        unusual = model.forecast(Context(at, weather=weather), network).unusual
        return [line for line in unusual if source in line]

    assert flags("cowin") == []
    assert [line.split()[0] for line in flags("open-meteo")] == ["temperature_c"]
