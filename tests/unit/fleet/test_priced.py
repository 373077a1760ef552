"""The priced threshold of a fleet's table: one clock for both sides, and whose correction it is."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch.candidate import Worth
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.dispatch.price import UNCALIBRATED, expected_deaths
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE, survival_curve
from ideal_dispatch.dispatch.threshold import CapacityCost, ClinicalThreshold, Threshold
from ideal_dispatch.fleet.calibration import Calibration
from ideal_dispatch.fleet.inputs.places import cells_by_junctions
from ideal_dispatch.fleet.priced import FleetTable, priced_threshold
from ideal_dispatch.fleet.travel import connected_nodes
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.unit.dispatch.worlds import depots, situation

UNITS = {depot.name: 2 for depot in depots(4)}


def worth_by(network: RoadNetwork, rule: Threshold) -> Worth:
    policy = Ideal(responses=ResponseModel.published(), seconds=("other-depot",), threshold=rule)
    worth = policy.decide(situation(network, 65), np.random.default_rng(0)).worth
    assert worth is not None
    return worth


def test_lives_saved_and_lives_lost_count_from_the_call(grid: RoadNetwork) -> None:
    rule = priced_threshold(FleetTable(UNITS, 60.0, delay_s=90.0), grid, depots(4))
    plain, from_the_call = CURVES[USUAL_CURVE], survival_curve(USUAL_CURVE, before_drive_s=90.0)
    cells, _ = cells_by_junctions(grid, connected_nodes(grid), 500)
    drive_s = [grid.distances(grid.free_flow_times_s, one.node)[cells] for one in depots(4)]
    lost = expected_deaths(ResponseModel.published().of(np.array(drive_s)), 90.0, plain)
    np.testing.assert_allclose(rule.prices.harm, np.sort(lost.T, axis=1))
    saved, at_once = (
        worth_by(grid, ClinicalThreshold(curve, CapacityCost(0.001))).survival_gain
        for curve in (from_the_call, plain)
    )
    assert worth_by(grid, rule).survival_gain == pytest.approx(saved)
    assert saved < 0.9 * at_once


@pytest.mark.parametrize(
    ("stations", "calls_per_day", "told"),
    [
        (tuple(UNITS), 70.0, ""),
        (tuple(reversed(UNITS)), 50.0, ""),
        (tuple(UNITS), 75.0, "another fleet, a town: 75 calls a day, .fleet. has 60; make one"),
        (tuple(UNITS), 45.0, "another fleet, a town: 45 calls a day, .fleet. has 60; make one"),
        (("Mill", "Pier"), 60.0, r"its stations \(Mill, Pier\) are not those of .fleet. units;"),
    ],
)
def test_a_correction_for_another_fleet_is_warned_about(
    grid: RoadNetwork, tmp_path: Path, stations: tuple[str, ...], calls_per_day: float, told: str
) -> None:
    factors = (2.0, *UNCALIBRATED[1:])
    found = Calibration(
        "a town", stations, calls_per_day, 0, {"deaths": factors, "late": UNCALIBRATED}, ()
    )
    found.save(tmp_path / "price.json")
    table = FleetTable(UNITS, 60.0, price="price.json")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        rule = priced_threshold(table, grid, depots(4), folder=tmp_path)
    assert tuple(rule.prices.factors) == factors
    assert len(warned) == (told != "")
    assert all(re.search(told, str(one.message)) for one in warned)
