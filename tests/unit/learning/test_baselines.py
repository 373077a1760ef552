"""Baselines: what was planted is found, what is unknown does no harm, bad input has a line."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.baselines import (
    CANDIDATES,
    Baseline,
    TripTable,
    boosting,
    constant,
    fit_baselines,
    hour_of_week,
)
from ideal_dispatch.learning.scores import scores
from ideal_dispatch.records import Trips

pytest.importorskip("sklearn", reason="the train extra is not installed")

ALL: tuple[Baseline, ...] = (
    constant(), hour_of_week(), boosting(30), boosting(30, located=True),
)  # fmt: skip
of = TripTable.of
each = pytest.mark.parametrize("baseline", ALL, ids=lambda b: b.name)


def _contexts(rng: np.random.Generator, count: int) -> FloatArray:
    """Hour, weekday and temperature known, all else not."""
    rows = np.full((count, 27), np.nan)
    rows[:, 0] = rng.normal(20, 5, count)
    rows[:, 5] = rng.integers(0, 24, count)
    rows[:, 6:13] = np.eye(7)[rng.integers(0, 7, count)]
    return rows


def _trips(network: RoadNetwork, count: int = 600, seed: int = 0, factor: Any = None) -> Trips:
    """Trips that take ``factor(table)`` times as long as in free flow, 2 if not given."""
    rng = np.random.default_rng(seed)
    origin = rng.integers(0, network.num_nodes, count).astype(np.int32)
    trips = Trips(
        origin=origin,
        destination=(origin + rng.integers(1, network.num_nodes, count, np.int32))
        % network.num_nodes,
        observed_s=np.ones(count),
        contexts=_contexts(rng, count),
        network_checksum=network.checksum,
    )
    table = of(network, trips)
    ratio = np.full(count, 2.0) if factor is None else factor(table)
    return replace(trips, observed_s=table.free_flow_s * ratio)


def _mae_s(baseline: Baseline, network: RoadNetwork, train: Trips, test: Trips) -> float:
    return scores(
        test.observed_s, baseline.fit(of(network, train)).predict(of(network, test))
    ).mae_s


def test_the_table_of_one_trip(grid: RoadNetwork) -> None:
    trips = _trips(grid, 5)
    table = of(grid, trips)
    for row in range(5):
        path = grid.shortest_path(
            grid.free_flow_times_s, int(trips.origin[row]), int(trips.destination[row])
        )
        assert table.free_flow_s[row] == pytest.approx(path.time_s(grid.free_flow_times_s))
        assert table.length_m[row] == pytest.approx(path.length_m(grid))
        assert table.edges[row] == len(path)
        metres = np.zeros(14)
        np.add.at(metres, grid.road_class[path.edges], grid.length_m[path.edges])
        assert table.classes[row] == pytest.approx(metres / metres.sum())
        day = int(trips.contexts[row, 6:13].argmax())
        assert table.hour_of_week[row] == 24 * day + trips.contexts[row, 5]


@each
def test_one_factor_everywhere_is_found_by_all(baseline: Baseline, grid: RoadNetwork) -> None:
    train, test = _trips(grid), _trips(grid, 50, seed=1)
    predicted = baseline.fit(of(grid, train)).predict(of(grid, test))
    assert predicted == pytest.approx(test.observed_s, rel=1e-9)


@each
def test_observed_times_are_not_read(baseline: Baseline, grid: RoadNetwork) -> None:
    noisy = _trips(grid, factor=lambda t: np.random.default_rng(2).lognormal(0.5, 0.3, len(t)))
    test = _trips(grid, 50, seed=1)
    fitted = baseline.fit(of(grid, noisy))
    late = replace(test, observed_s=np.full(50, 1e6))
    assert np.array_equal(fitted.predict(of(grid, test)), fitted.predict(of(grid, late)))


@each
def test_trips_within_a_node(baseline: Baseline, grid: RoadNetwork) -> None:
    trips = _trips(grid, 200)
    destination = trips.destination.copy()
    destination[:20] = trips.origin[:20]
    stays = replace(trips, destination=destination, observed_s=trips.observed_s + 1e-3)
    predicted = baseline.fit(of(grid, stays)).predict(of(grid, stays))
    assert (predicted[:20] == 0.0).all()
    assert (predicted[20:] > 0.0).all()
    with pytest.raises(InputError, match=f"^{baseline.name}"):
        baseline.fit(of(grid, stays.select(np.arange(20))))


@each
def test_one_trip_and_no_question(baseline: Baseline, grid: RoadNetwork) -> None:
    fitted = baseline.fit(of(grid, _trips(grid, 1)))
    assert np.isfinite(fitted.predict(of(grid, _trips(grid, 20, seed=1)))).all()
    assert fitted.predict(of(grid, _trips(grid).select(np.arange(0)))).shape == (0,)


@each
def test_contexts_of_which_nothing_is_known(baseline: Baseline, grid: RoadNetwork) -> None:
    known, test = _trips(grid), _trips(grid, 50, seed=1)
    unknown = replace(known, contexts=np.full((600, 27), np.nan))
    blank = replace(test, contexts=np.full((50, 27), np.nan))
    for train, asked in ((unknown, test), (known, blank), (unknown, blank)):
        predicted = baseline.fit(of(grid, train)).predict(of(grid, asked))
        assert predicted == pytest.approx(test.observed_s, rel=1e-9)


def test_another_network_and_another_encoding_are_refused(grid: RoadNetwork) -> None:
    trips = _trips(grid, 50)
    fitted = constant().fit(of(grid, trips))
    other = RoadNetwork.from_arrays([0, 1], [1, 0], [100.0, 100.0])
    with pytest.raises(InputError, match="another network"):
        of(other, trips)
    wider = replace(trips, encoding=ContextEncoding(("visibility_m",)), contexts=np.zeros((50, 28)))
    with pytest.raises(InputError, match="context columns"):
        fitted.predict(of(grid, wider))


def test_no_other_constant_has_a_smaller_error(grid: RoadNetwork) -> None:
    train = _trips(grid, factor=lambda t: np.random.default_rng(2).lognormal(0.5, 0.5, len(t)))
    table = of(grid, train)
    found = _mae_s(constant(), grid, train, train)
    for factor in np.linspace(0.5, 4.0, 200):
        assert found <= scores(train.observed_s, factor * table.free_flow_s).mae_s + 1e-9


def test_hours_of_the_week_are_found_and_drawn_to_the_constant(grid: RoadNetwork) -> None:
    def factor(table: TripTable) -> FloatArray:
        return np.asarray(1.0 + table.hour_of_week / 100.0)

    train, test = _trips(grid, 3000, factor=factor), _trips(grid, 200, seed=1, factor=factor)
    assert _mae_s(hour_of_week(0.0), grid, train, test) == pytest.approx(0.0, abs=1e-9)
    usual = constant().fit(of(grid, train)).predict(of(grid, test))
    drawn = hour_of_week(1e12).fit(of(grid, train)).predict(of(grid, test))
    assert drawn == pytest.approx(usual)
    between = hour_of_week(20.0).fit(of(grid, train)).predict(of(grid, test))
    outside = (
        np.minimum(usual, test.observed_s) - between,
        between - np.maximum(usual, test.observed_s),
    )
    assert np.maximum(*outside).max() < 1e-9


def test_whole_boosting_learns_a_constant_of_the_trip(grid: RoadNetwork) -> None:
    train, test = (
        _trips(grid, n, seed, lambda table: 1.0 + 90.0 / table.free_flow_s)
        for n, seed in ((600, 0), (300, 1))
    )
    error_s = _mae_s(boosting(whole=True), grid, train, test)
    assert error_s < 3.0, "of 90 s and a drive"
    assert error_s < 0.5 * _mae_s(constant(), grid, train, test)
    nowhere = replace(test, destination=test.origin)
    fitted = boosting(whole=True).fit(of(grid, train))
    assert fitted.predict(of(grid, nowhere)).tolist() == [0.0] * 300


def test_only_located_boosting_depends_on_the_place(grid: RoadNetwork) -> None:
    def factor(table: TripTable) -> FloatArray:
        east = table.ends_m[:, 0] > np.median(table.ends_m[:, 0])
        return np.where(east, 3.0, 1.5)

    train, test = _trips(grid, 2000, factor=factor), _trips(grid, 300, seed=1)
    test = replace(test, observed_s=test.observed_s / 2 * factor(of(grid, test)))
    blind = _mae_s(boosting(), grid, train, test)
    assert _mae_s(boosting(located=True), grid, train, test) < 0.2 * blind
    moved = replace(grid, lon=grid.lon[::-1], lat=grid.lat[::-1])
    train, test = (replace(trips, network_checksum="") for trips in (train, test))
    for baseline, same in ((boosting(), True), (boosting(located=True), False)):
        here = baseline.fit(of(grid, train)).predict(of(grid, test))
        there = baseline.fit(of(grid, train)).predict(of(moved, test))
        assert np.array_equal(here, there) is same


def test_settings_are_chosen_on_the_validation_trips(grid: RoadNetwork) -> None:
    def factor(table: TripTable) -> FloatArray:
        noise = np.random.default_rng(len(table)).lognormal(0.0, 0.3, len(table))
        return np.asarray((1.0 + table.hour / 24.0) * noise)

    train, validation = _trips(grid, 400, factor=factor), _trips(grid, 90, seed=1, factor=factor)
    fitted = fit_baselines(grid, train, validation)
    for one, kind in zip(fitted, CANDIDATES, strict=True):
        assert one.name == kind[0].name
        if "boosting" in one.name:
            continue  # the same choice, at many times the cost
        errors = [_mae_s(candidate, grid, train, validation) for candidate in kind]
        chosen = scores(validation.observed_s, one.predict(of(grid, validation))).mae_s
        assert chosen == pytest.approx(min(errors))


def test_without_coordinates_the_located_ones_are_left_out() -> None:
    n = 30
    around = RoadNetwork.from_arrays(np.arange(n), (np.arange(n) + 1) % n, np.full(n, 100.0))
    trips = _trips(around, 100)
    names = [one.name for one in fit_baselines(around, trips, trips)]
    assert names == [constant().name, hour_of_week().name, boosting().name]
    with pytest.raises(InputError, match="no coordinates"):
        boosting(located=True).fit(of(around, trips))


def test_settings_need_validation_trips(grid: RoadNetwork) -> None:
    trips = _trips(grid, 50)
    with pytest.raises(InputError, match="no validation trips"):
        fit_baselines(grid, trips, trips.select(np.arange(0)))
