"""Rollouts as the referee of prices, and the calibration by them."""

import json
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch.cli import fleet_price as command
from ideal_dispatch.cli.help import described
from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.fleet import calibration
from ideal_dispatch.fleet.calibration import HOLDS_S, Calibration, calibrate, price_grid
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.referee import judged, moments
from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.units import GOING, RETURNING
from tests.theory.test_price import town

price, _, _ = described(command.price)


@pytest.fixture(scope="module")
def city() -> FleetCity:
    return town(60.0, (0, 0, 1, 2, 2, 3), street_start=True)


@pytest.fixture(scope="module")
def found(city: FleetCity) -> Calibration:
    return calibrate(city, count=200, futures=200, seed=5)


def test_moments_are_just_after_a_unit_left(city: FleetCity) -> None:
    for one in moments(Simulator(city), 20, seed=1):
        assert one.state.status[one.unit] <= RETURNING
        left = (one.state.status == GOING) & (one.state.sent_s == one.now_s)
        assert left.sum() == 1
        assert one.free == (one.state.status <= RETURNING).sum()


def test_rollouts_are_the_same_by_seed_and_leave_the_moment_alone(city: FleetCity) -> None:
    simulator = Simulator(city)
    at = moments(simulator, 3, seed=1)
    before = [one.state.copy() for one in at]
    verdict, again = (judged(simulator, at, HOLDS_S, 20, seed=4) for _ in range(2))
    np.testing.assert_array_equal(verdict.deaths, again.deaths)
    np.testing.assert_array_equal(verdict.late, again.late)
    assert (judged(simulator, at, HOLDS_S, 20, seed=5).deaths != verdict.deaths).any()
    for one, state in zip(at, before, strict=True):
        for name, kept in zip(state._fields, state, strict=True):
            np.testing.assert_array_equal(getattr(one.state, name), kept, name)


def test_an_absence_of_no_time_costs_nothing(city: FleetCity) -> None:
    simulator = Simulator(city)
    at = [one for one in moments(simulator, 40, seed=1) if one.state.status[one.unit] < RETURNING]
    verdict = judged(simulator, at, [1e-6], 5, seed=4)
    np.testing.assert_array_equal(verdict.deaths, 0.0)
    np.testing.assert_array_equal(verdict.late, 0.0)


def test_too_few_moments_are_said() -> None:
    with pytest.raises(InputError, match="0 moments of a year had a unit to spare, 5 are needed"):
        moments(Simulator(town(20.0, (0,))), 5, seed=0)


def test_calibrated_prices_are_near_the_referee(found: Calibration) -> None:
    assert [(one.harm, one.hold_s) for one in found.checks] == [
        (harm, away_s) for harm in ("deaths", "late") for away_s in HOLDS_S
    ]
    for one in found.checks:
        assert one.after == pytest.approx(one.referee, rel=0.15)
        assert abs(one.after - one.referee) < abs(one.before - one.referee)


def test_prices_are_checked_as_they_are_served(
    city: FleetCity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(first: float) -> list[float]:
        monkeypatch.setattr(calibration, "_fitted", lambda *about: (first, 0.0, 0.0, 0.0, 0.0))
        return [one.after for one in calibrate(city, count=10, futures=2, seed=5).checks]

    twentieth = 0.05 * np.array(after(1.0))  # a correction makes no price less than that
    np.testing.assert_allclose(after(-1.0), twentieth)


def test_a_calibration_comes_back_from_its_file(found: Calibration, tmp_path: Path) -> None:
    found.save(tmp_path / "price.json")
    assert Calibration.load(tmp_path / "price.json") == found


def test_a_file_with_other_factors_is_refused(found: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "price.json"
    found.save(file)
    content = json.loads(file.read_text())
    content["factors"]["deaths"] = [1.0]
    file.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="damaged file of prices"):
        Calibration.load(file)


def test_the_grid_falls_with_free_units(city: FleetCity) -> None:
    grid = price_grid(city, "deaths", UNCALIBRATED, (1, 3, 6, 7), (0, 12))
    assert np.isnan(grid[:, 3]).all()
    assert (np.diff(grid[:, :3], axis=1) < 0.0).all()
    assert (np.diff(grid[:, :3], axis=2) > 0.0).all()


def test_the_command_prints_prices_and_their_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "price.json"
    price(utilisation=0.4, moments=12, futures=6, output=file)
    told = capsys.readouterr().out
    assert "one unit away for 15 min: lives lost" in told
    assert "price / referee, at moments that were not learned from" in told
    assert "late arrivals, 80 min" in told
    assert Calibration.load(file).city in told
    with pytest.raises(InputError, match="is there already; add --force"):
        price(output=file)
    with pytest.raises(InputError, match="--utilisation goes without a file"):
        price(file=tmp_path / "fleet.toml", utilisation=0.4)
