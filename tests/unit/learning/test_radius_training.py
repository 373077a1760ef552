"""Target radii of many trips; the radius network: what each loss does, what is refused."""

from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import pytest

from ideal_dispatch import Model, RoadNetwork, Trips, target_radius
from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.radius import RadiusRule
from ideal_dispatch.learning import RadiusParams
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.radius_training import FittedRadius, TripRadii, fit_radius, trip_radii
from tests.unit.learning.worlds import town, trainer, trips


def _data(count: int, zeros: float, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Contexts, trip features and targets of which a share is zero."""
    rng = np.random.default_rng(seed)
    contexts, features = rng.standard_normal((count, 4)), rng.standard_normal((count, 4))
    targets = np.exp(0.5 * contexts[:, 0]) * rng.exponential(0.05, count)
    return contexts, features, np.where(rng.random(count) < zeros, 0.0, targets)


def _fit(zeros: float = 0.5, held: float = 0.0, **changes: Any) -> tuple[FittedRadius, BoolArray]:
    contexts, features, targets = _data(600, zeros)
    held_out = np.arange(600) < 600 * held
    fitted = fit_radius(RadiusParams(**changes), contexts, features, targets, held_out)
    radii = fitted.rule(fitted.weights, contexts.astype(np.float32), features)
    return fitted, (targets <= radii)[~held_out]


def test_the_papers_loss_collapses_where_most_targets_are_zero_and_says_so() -> None:
    fitted, covered = _fit(zeros=0.6, loss="mean_absolute", coverage=None)
    assert "collapsed" in " ".join(fitted.warnings)
    assert covered.mean() < 0.7
    assert "level above" in _fit(zeros=0.9, coverage=None)[0].warnings[0], "not the loss it has"
    assert _fit(zeros=0.9, coverage=None, level=0.97)[0].warnings == ()


def test_the_papers_loss_does_not_collapse_where_few_targets_are_zero() -> None:
    fitted, covered = _fit(zeros=0.1, loss="mean_absolute", coverage=None)
    assert fitted.warnings == ()
    assert covered.mean() == pytest.approx(0.5, abs=0.06), "the median"


@pytest.mark.parametrize("level", [0.6, 0.9])
@pytest.mark.parametrize("uses_trip", [False, True])
def test_quantile_loss_reaches_its_level(level: float, uses_trip: bool) -> None:
    fitted, covered = _fit(zeros=0.4, level=level, coverage=None, uses_trip=uses_trip)
    assert fitted.warnings == ()
    assert covered.mean() == pytest.approx(level, abs=0.03)
    assert (fitted.rule.loss, fitted.rule.level, fitted.rule.scale) == ("quantile", level, 1.0)


def test_coverage_is_scaled_on_the_part_held_out() -> None:
    fitted, covered = _fit(held=0.3, level=0.6, coverage=0.9)
    assert fitted.rule.scale > 1.0
    assert fitted.rule.level == fitted.promised == 0.9
    assert covered.mean() == pytest.approx(0.9, abs=0.06)


def test_too_few_held_out_trips_promise_nothing() -> None:
    fitted, _ = _fit(held=3 / 600)
    assert (fitted.rule.scale, fitted.promised) == (1.0, None)
    assert fitted.warnings


def test_same_seed_same_weights() -> None:
    first, second, other = (_fit(seed=seed)[0].weights for seed in (1, 1, 2))
    assert all((first[name] == second[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e6])
def test_targets_of_any_size(size: float) -> None:
    contexts, features, targets = _data(80, 0.3)
    held_out = np.arange(80) < 20
    fitted = fit_radius(RadiusParams(epochs=30), contexts, features, size * targets, held_out)
    radii = fitted.rule(fitted.weights, contexts.astype(np.float32), features)
    assert np.isfinite(radii).all()
    assert (size * targets <= radii)[held_out].mean() >= 0.8


def test_nothing_to_fit() -> None:
    contexts, features, targets = _data(10, 0.0)
    held_out = np.arange(10) < 5
    unexplained = np.where(held_out, targets, np.inf)
    with pytest.raises(InputError, match="finite target radius"):
        fit_radius(RadiusParams(), contexts, features, unexplained, held_out)


@pytest.mark.parametrize(
    "changes",
    [{"loss": "squared"}, {"level": 1.0}, {"coverage": 0.0}, {"coverage": float("nan")},
     {"epochs": 0}, {"width": 2.5}],
)  # fmt: skip
def test_parameters_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^radius {next(iter(changes))}"):
        RadiusParams(**changes)


def test_a_constant_radius_needs_no_network() -> None:
    rule = RadiusRule(constant=0.2, scale=1.5)
    np.testing.assert_allclose(rule({}, np.zeros((3, 2), np.float32), None), 0.3)
    for changes in ({"scale": -1.0}, {"scale": float("inf")}, {"constant": float("nan")}):
        with pytest.raises(InputError, match=f"^radius {next(iter(changes))}"):
            RadiusRule(**changes)  # type: ignore[arg-type]


# --- target radii of trips ------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> tuple[Model, RoadNetwork, Trips]:
    network = town(2)
    table = trips(network, 90, distinct=12)
    alone = np.arange(90) == 7
    table = replace(table, destination=np.where(alone, table.origin, table.destination))
    made = trainer(network, table)
    return export(made.model, made.data), network, table


def _same(ours: TripRadii, theirs: TripRadii) -> None:
    for name in ("predicted_s", "lower", "upper", "contexts", "features"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.paths == theirs.paths


def test_radii_are_those_of_single_trips_and_proved(
    world: tuple[Model, RoadNetwork, Trips],
) -> None:
    model, network, table = world
    found = trip_radii(model, network, table)
    late = 0
    for i in range(len(table)):
        forecast = model.forecast(table.contexts[i], network)
        origin, destination = int(table.origin[i]), int(table.destination[i])
        observed = float(table.observed_s[i]) - model.trip_constant_s
        path = network.shortest_path(forecast.nominal_times, origin, destination)
        assert found.paths[i] == path
        drive_s = path.time_s(forecast.nominal_times)
        assert found.predicted_s[i] == drive_s + model.trip_constant_s
        np.testing.assert_array_equal(found.contexts[i], forecast.context_representation)
        single = target_radius(network, forecast.embeddings, origin, destination, observed)
        single.verify(network, forecast.embeddings, origin, destination, observed)
        if i == 7:
            assert found.lower[i] == found.upper[i] == single.upper == np.inf
            continue
        assert (single.upper == 0) == (found.upper[i] == 0) == (observed <= drive_s)
        assert found.lower[i] <= single.upper * (1 + 1e-9)
        assert single.lower <= found.upper[i] * (1 + 1e-9)
        assert found.upper[i] == pytest.approx(single.upper, rel=1e-5)
        late += single.upper > 0
    assert 20 < late < 80, "some trips are late and some are not"


def test_answers_do_not_depend_on_how_work_is_shared(
    world: tuple[Model, RoadNetwork, Trips],
) -> None:
    model, network, table = world
    with pytest.raises(InputError, match="no trips"):
        trip_radii(model, network, table.select([]))
    alone = trip_radii(model, network, table, jobs=1)
    _same(trip_radii(model, network, table, jobs=3), alone)
    seen: list[float] = []
    with joblib.parallel_config("loky", n_jobs=2):
        _same(trip_radii(model, network, table, report=seen.append), alone)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = trip_radii(model, network, table.select(order))
    np.testing.assert_allclose(shuffled.upper, alone.upper[order], rtol=1e-12)


def test_equal_contexts_share_a_forecast(
    world: tuple[Model, RoadNetwork, Trips], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, network, table = world
    asked, forecast = [], Model.forecast

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return forecast(*arguments)

    monkeypatch.setattr(Model, "forecast", counted)
    trip_radii(model, network, table, jobs=1)
    distinct = len({row.tobytes() for row in table.contexts})
    assert len(asked) <= distinct + 4, "one per context, one per task, one at the start"
